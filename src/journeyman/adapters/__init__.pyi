"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.adapters.cost_sources import read_costs as read_costs
from journeyman.adapters.demonstration_formats import read_demonstrations as read_demonstrations
from journeyman.adapters.demonstration_formats import write_demonstrations as write_demonstrations
from journeyman.adapters.gymnasium_simulator import GymnasiumSimulator as GymnasiumSimulator
from journeyman.adapters.ray import Ray as Ray
from journeyman.adapters.stable_baselines import StableBaselinesPlanner as StableBaselinesPlanner
from journeyman.adapters.world_check import ObservedSteps as ObservedSteps
from journeyman.adapters.world_check import TransitionCheck as TransitionCheck
from journeyman.adapters.world_check import check_transitions as check_transitions
from journeyman.adapters.world_sources import read_world as read_world

__all__: list[str]
