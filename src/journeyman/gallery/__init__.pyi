"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.gallery.driving_simulator import driving as driving
from journeyman.gallery.engine import engine_replacement as engine_replacement
from journeyman.gallery.example import Example as Example
from journeyman.gallery.example import HiddenCostExample as HiddenCostExample
from journeyman.gallery.example import PublishedExample as PublishedExample
from journeyman.gallery.garnet_world import garnet as garnet
from journeyman.gallery.grid_world import grid as grid
from journeyman.gallery.highway_world import highway as highway
from journeyman.gallery.inventory_world import inventory as inventory
from journeyman.gallery.inventory_world import shop as shop
from journeyman.gallery.object_world import objectworld as objectworld
from journeyman.gallery.parking_lot import Lot as Lot
from journeyman.gallery.parking_lot import ParkingExample as ParkingExample
from journeyman.gallery.parking_lot import parking as parking
from journeyman.gallery.queue_network import EmptyStart as EmptyStart
from journeyman.gallery.queue_network import QueueNetwork as QueueNetwork
from journeyman.gallery.queue_network import QueuePlan as QueuePlan
from journeyman.gallery.queue_network import Queues as Queues
from journeyman.gallery.queue_network import SmoothStart as SmoothStart
from journeyman.gallery.queue_network import queues as queues
from journeyman.gallery.roads import road_network as road_network
from journeyman.gallery.sepsis import ClinicalExample as ClinicalExample
from journeyman.gallery.sepsis import icu_sepsis as icu_sepsis
from journeyman.gallery.windy_world import windy_costs as windy_costs
from journeyman.gallery.windy_world import windy_grid as windy_grid
