"""The world without costs: transition law, initial law, discount, and the flow of mass."""

from journeyman.world.conversions import expected_rewards
from journeyman.world.large_world import LargeWorld, Predecessors, SampledWorld, Successors
from journeyman.world.mixed_radix import MixedRadix
from journeyman.world.pairs import Pairs
from journeyman.world.records import Records
from journeyman.world.shared_laws import SharedLaws
from journeyman.world.world import Flow, World

__all__ = [
    "Flow", "LargeWorld", "MixedRadix", "Pairs", "Predecessors", "Records", "SampledWorld",
    "SharedLaws", "Successors", "World", "expected_rewards",
]  # fmt: skip
