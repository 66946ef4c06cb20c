"""The world without costs: transition law, initial law, discount, and the flow of mass."""

from journeyman.world.flow import Flow
from journeyman.world.gymnasium_table import expected_rewards
from journeyman.world.pairs import Pairs
from journeyman.world.world import World

__all__ = ["Flow", "Pairs", "World", "expected_rewards"]
