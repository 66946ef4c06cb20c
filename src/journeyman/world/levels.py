"""What a world can do: four levels, each including the ones before.

    RECORDED    nothing but episodes that were recorded
    SAMPLED     a simulator: episodes can be started and run, or their totals asked for
    STEPPED     the laws of steps and of the start at given states, by callables (`LargeWorld`)
    EXPLICIT    all laws as arrays (`World`)

A problem has the level of its world, or a lower one where its costs allow no more: costs that
are functions have no matrix. Solvers and evaluations declare the level they `needs`, and
`require_level` is the one place that refuses.
"""

from enum import IntEnum
from typing import Any

from journeyman.errors import InvalidProblem


class Level(IntEnum):
    """How much of a world is at hand; levels can be compared."""

    RECORDED = 0
    SAMPLED = 1
    STEPPED = 2
    EXPLICIT = 3

    @property
    def meaning(self) -> str:
        return MEANINGS[self]


MEANINGS = {
    Level.RECORDED: "nothing but recorded episodes",
    Level.SAMPLED: "episodes can be drawn, laws cannot be asked for",
    Level.STEPPED: "laws at given states by callables, no arrays over all states",
    Level.EXPLICIT: "all laws and costs as arrays",
}
SAMPLING = "PolicyMixture(...), certified by Rollouts(...) or MixtureRollouts(...)"
ROWS = (
    "StochasticSubgradient(features), SampledProgram(features), certified by Rollouts(...) or "
    "SampledRows(...)"
)
BLOCKS = "ShardedColumns(executor=...) where vectors over the states fit into memory"
WORKS = {
    Level.RECORDED: "at this level works CrossFittedClone(...), and any policy is certified by "
    "certify(problem, policy); for more give a simulator or the laws of the world",
    Level.SAMPLED: f"at this level work {SAMPLING}",
    Level.STEPPED: f"at this level work {ROWS}; {BLOCKS}; {SAMPLING}",
    Level.EXPLICIT: "all solvers and evaluations work at this level",
}


def level_of(world: Any) -> Level:
    """The level of a world, by the members it has.

    >>> from journeyman.world import World
    >>> level_of(World([[1.0]], [1.0], 0.9)).name
    'EXPLICIT'
    """
    if hasattr(world, "transition") and hasattr(world, "pairs"):
        return Level.EXPLICIT
    if hasattr(world, "successors") and hasattr(world, "predecessors"):
        return Level.STEPPED
    if hasattr(world, "step") or hasattr(world, "totals"):
        return Level.SAMPLED
    return Level.RECORDED


def require_level(given: Any, needed: Level, by_whom: str) -> None:
    """Refuse a problem or a world of a level below `needed`."""
    level = getattr(given, "level", None)
    found = level if isinstance(level, Level) else level_of(given)
    if found >= needed:
        return
    kind = type(getattr(given, "world", given)).__name__
    raise InvalidProblem(
        f"{by_whom} needs the level {needed.name} ({needed.meaning}), and this problem in a {kind} "
        f"has the level {found.name} ({found.meaning})",
        WORKS[found][0].upper() + WORKS[found][1:],
    )


def require_discounted(world: Any, by_whom: str) -> None:
    """Refuse a world of discount 1: what is asked for is proven with a discount below 1 only."""
    if getattr(world, "has_goal", False):
        raise InvalidProblem(
            f"{by_whom} is for worlds with a discount below 1: with discount 1 nothing bounds how "
            "far a small error is carried, for the policy decides how long an episode lasts",
            "With discount 1 use LinearProgram() and exact evaluation; or give the world a "
            "discount below 1",
        )


def require_totals(world: Any, by_whom: str) -> None:
    """Refuse a world of average costs: what is asked for is about totals of episodes."""
    if getattr(world, "averages", None) is not None:
        raise InvalidProblem(
            f"{by_whom} is about episodes that start and are discounted, and this world has "
            "average costs",
            "Use an exact program, a reduced one or SGD-AL, and exact evaluation; or the world "
            "without average costs",
        )
