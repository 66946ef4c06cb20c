"""Lemma 1: the largest excess cost over a class is its support function of the difference."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from journeyman.costs import EuclideanBall, InfinityBall, Simplex
from journeyman.policy import occupancy
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import seeds, worlds


def members(cost_class, rng, num_costs):
    """Weights of the class, extreme points among them."""
    inner = rng.normal(size=(200, num_costs))
    match cost_class:
        case InfinityBall():
            return np.vstack([np.clip(inner, -1, 1), np.sign(inner)])
        case EuclideanBall():
            return inner / np.linalg.norm(inner, axis=1, keepdims=True)
        case Simplex():
            return np.vstack([rng.dirichlet(np.ones(num_costs), 200), np.eye(num_costs)])


@given(worlds(), st.sampled_from([InfinityBall(), EuclideanBall(), Simplex()]), seeds)
def test_the_supremum_over_costs_is_the_support_function(world, cost_class, seed):
    rng = np.random.default_rng(seed)
    Psi = rng.uniform(-1, 1, (world.num_pairs, 3))
    ours = occupancy(world, random_policy(world, rng)).measure
    theirs = occupancy(world, random_policy(world, rng)).measure
    unit = 2 * cost_class.pointwise_bound(Psi) * world.effective_horizon
    difference = Psi.T @ (ours - theirs)
    gap = cost_class.gap(difference)

    excess = [(ours - theirs) @ (Psi @ w) for w in members(cost_class, rng, 3)]
    assert max(excess) <= gap + 1e-12 * unit
    attaining = Psi @ cost_class.worst_case(difference)
    assert abs((ours - theirs) @ attaining - gap) <= 1e-12 * unit


@given(worlds(), st.sampled_from([InfinityBall(), EuclideanBall(), Simplex()]), seeds)
def test_no_gap_exceeds_the_trivial_bound(world, cost_class, seed):
    rng = np.random.default_rng(seed)
    Psi = rng.uniform(-1, 1, (world.num_pairs, 3))
    measures = [occupancy(world, random_policy(world, rng)).measure for _ in range(2)]
    bound = 2 * cost_class.pointwise_bound(Psi) * world.effective_horizon
    assert cost_class.gap(Psi.T @ (measures[0] - measures[1])) <= bound * (1 + 1e-12)
