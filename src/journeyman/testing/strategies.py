"""Hypothesis strategies for worlds, policies, measures and problems."""

import numpy as np
from hypothesis import strategies as st

from journeyman.arrays import FloatArray
from journeyman.costs import CostClass, Polytope, PriorBall
from journeyman.costs.registry import COST_CLASSES, cost_class_from
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship
from journeyman.testing.random_worlds import (
    Shape,
    random_policy,
    random_polytope,
    random_problem,
    random_world,
)
from journeyman.world import World

seeds = st.integers(0, 2**32 - 1)
discounts = st.sampled_from([0.01, 0.3, 0.8, 0.95, 0.99, 0.999, 0.9999])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Worlds of every shape, one to eight states, discounts from 0.01 to 0.9999."""
    return random_world(
        draw(seeds),
        draw(st.sampled_from(Shape)),
        num_states=draw(st.integers(1, 8)),
        num_actions=draw(st.integers(1, 4)),
        discount=draw(discounts),
    )


@st.composite
def policies(draw: st.DrawFn, world: World) -> Policy:
    """Policies of a world."""
    return random_policy(world, draw(seeds))


@st.composite
def measures(draw: st.DrawFn, world: World) -> FloatArray:
    """Signed vectors over pairs, with zeros, of any mass."""
    rng = np.random.default_rng(draw(seeds))
    size = 10.0 ** draw(st.integers(-3, 3))
    return np.asarray(rng.normal(size=world.num_pairs) * size * (rng.random(world.num_pairs) < 0.8))


@st.composite
def cost_classes(draw: st.DrawFn, num_costs: int) -> CostClass:
    """Every class, with and without scales."""
    rng = np.random.default_rng(draw(seeds))
    scale = rng.uniform(0.1, 3.0, num_costs) if draw(st.booleans()) else None
    name = draw(st.sampled_from(list(COST_CLASSES)))
    if name == Polytope.name:
        return random_polytope(rng, num_costs)
    if name == PriorBall.name:
        norm = draw(st.sampled_from(["infinity", "euclidean", "l1"]))
        return PriorBall(rng.normal(size=num_costs), rng.uniform(0.1, 3.0), norm, scale)
    return cost_class_from({"name": name} | ({} if scale is None else {"scale": scale}))


@st.composite
def problems(draw: st.DrawFn, max_budgets: int = 2) -> Apprenticeship:
    """Apprenticeship problems over all classes, with budgets that are possible."""
    num_costs = draw(st.integers(1, 4))
    return random_problem(
        draw(seeds),
        draw(cost_classes(num_costs)),
        shape=draw(st.sampled_from(Shape)),
        num_states=draw(st.integers(1, 8)),
        num_costs=num_costs,
        num_budgets=draw(st.integers(0, max_budgets)),
        discount=draw(discounts),
    )
