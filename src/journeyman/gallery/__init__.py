"""Worlds with costs and an expert, ready to use: for examples, tests and benchmarks."""

from journeyman.gallery.driving import driving
from journeyman.gallery.example import Example, PublishedExample
from journeyman.gallery.garnet import garnet
from journeyman.gallery.grid import grid

__all__ = ["Example", "PublishedExample", "driving", "garnet", "grid"]
