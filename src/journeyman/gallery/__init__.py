"""Worlds with costs and an expert, ready to use: for examples, tests and benchmarks."""

from journeyman.gallery.driving import driving
from journeyman.gallery.example import Example, PublishedExample
from journeyman.gallery.garnet import garnet
from journeyman.gallery.grid import grid
from journeyman.gallery.icu_sepsis import ClinicalExample, icu_sepsis
from journeyman.gallery.queue_network import EmptyStart, QueueNetwork, QueuePlan, SmoothStart
from journeyman.gallery.queues import Queues, queues

__all__ = [
    "ClinicalExample", "EmptyStart", "Example", "PublishedExample", "QueueNetwork", "QueuePlan",
    "Queues", "SmoothStart", "driving", "garnet", "grid", "icu_sepsis", "queues",
]  # fmt: skip
