"""Psi' Phi where it is exact and where it is sampled, and what its error does to the loss."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.features.base import every_action
from journeyman.problem import drawn
from journeyman.problem.drawn import FRESH, MATCHING, DrawnReduced, block_stream
from journeyman.problem.surrogate import Surrogate

NETWORK = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)
EXPLICIT, BASIS = NETWORK.explicit()
WALKS = jm.record(NETWORK.world, NETWORK.longer, trajectories=10, horizon=40, seed=0)
FEATURES = jm.features.factored(
    NETWORK.world, NETWORK.radix, WALKS, [NETWORK.longer, NETWORK.uniform], 2
)
PAIRS = every_action(np.arange(EXPLICIT.num_states), 4)
EXACT = np.asarray(BASIS.matrix.T @ FEATURES.rows(*PAIRS).toarray())
THETA = np.random.default_rng(0).dirichlet(np.ones(FEATURES.num_features))
UNTOLD = jm.CostFunctions(NETWORK.costs.function, NETWORK.costs.names, lowest=0, highest=1)
SCALE = np.array([0.5, 1.0, 2.0, 1.0, 3.0])
CLASSES = {
    "l1": jm.InfinityBall(SCALE), "l2": jm.EuclideanBall(SCALE), "simplex": jm.Simplex(SCALE)
}  # fmt: skip


@pytest.fixture(autouse=True)
def _few_pairs(monkeypatch):
    monkeypatch.setattr(drawn, "MATCHING_BLOCKS", 2)
    monkeypatch.setattr(drawn, "FRESH_BLOCKS", 5)
    monkeypatch.setattr(drawn, "MATCHING_BLOCK", 200)


def surrogate_of(costs=UNTOLD, cost_class=None, seed=0, features=FEATURES):
    expert = jm.ExpertExpectation(np.ones(5))
    problem = jm.Apprenticeship(NETWORK.world, costs, expert, cost_class)
    return Surrogate(DrawnReduced(problem, features, seed))


def block_by_hand(number, seed=0):
    """The mean of psi Phi / q1 over one numbered block of pairs."""
    states, actions = FEATURES.draw(block_stream(seed, MATCHING, number), 200)
    rows = FEATURES.rows(states, actions).toarray()
    law = rows.sum(axis=1) / (FEATURES.num_features * 10)
    values = NETWORK.costs.at(states, actions)
    return sum(np.outer(values[k], rows[k]) / law[k] for k in range(200)) / 200


def test_sampled_entries_are_means_over_numbered_blocks():
    ours = surrogate_of()
    learnt = (block_by_hand(0) + block_by_hand(1)) / 2
    np.testing.assert_allclose(ours.reduced.matching, learnt, rtol=1e-10, atol=1e-12)
    fresh = np.array([block_by_hand(number) for number in range(2, 7)])
    np.testing.assert_allclose(ours.reduced.fresh, fresh, rtol=1e-10, atol=1e-12)


def test_entries_are_exact_where_they_can_be():
    """Costs of one factor are; with features that know nothing beside them, only their columns."""

    class Silent(jm.features.FactoredFeatures):
        def exact_matching(self, costs):
            return np.full((5, self.num_features), np.nan)

    told = surrogate_of(NETWORK.costs)
    silent = Silent(NETWORK.world, NETWORK.radix, FEATURES.axes, FEATURES.heuristics)
    both = surrogate_of(NETWORK.costs, features=jm.features.JoinedFeatures(FEATURES, silent))
    half = FEATURES.num_features
    for matrix in (told.reduced.matching, *told.reduced.fresh, both.reduced.matching[:, :half]):
        np.testing.assert_allclose(matrix[:4], EXACT[:4], rtol=1e-12)
    for sampled in (told.reduced.matching[4], both.reduced.matching[:4, half:]):
        wanted = EXACT[4] if sampled.ndim == 1 else EXACT[:4]
        assert not np.allclose(sampled, wanted, rtol=1e-3)
        assert np.abs(sampled - wanted).max() < 10


@pytest.mark.parametrize("name", CLASSES)
def test_the_error_of_the_loss_is_that_of_its_parts(name):
    ours = surrogate_of(cost_class=CLASSES[name])
    blocks = np.array([block_by_hand(number) @ THETA for number in range(2, 7)])
    errors = SCALE * np.sqrt(((blocks - blocks.mean(axis=0)) ** 2).sum(axis=0) / 4 / 5)
    wanted = errors.sum() if name == "l1" else np.sqrt((errors**2).sum())
    assert ours.reduced.deviation(THETA, 0.0) == pytest.approx(wanted, rel=1e-9)
    gap = CLASSES[name].gap(blocks.mean(axis=0) - 1)
    assert ours.matching_error(THETA) == pytest.approx(gap, rel=1e-9)
    rows = ours.reduced.drawn(500, FRESH, 0)
    negative, missed = ours.estimated_parts(THETA, rows)
    noise = np.sqrt((negative.var(ddof=1) + missed.var(ddof=1)) / 500)
    loss, error = ours.estimate(THETA, rows)
    assert error == pytest.approx(np.hypot(noise, wanted), rel=1e-9)
    penalties = negative.mean() + missed.mean() + ours.penalties.flow
    assert loss == pytest.approx(gap + penalties, rel=1e-9)


def test_what_is_exact_has_no_error():
    costs = jm.CostFunctions(
        lambda states, actions: NETWORK.costs.at(states, actions)[:, :4], list("abcd"),
        lowest=0, highest=1, by_factor=NETWORK.costs.by_factor,
    )  # fmt: skip
    problem = jm.Apprenticeship(NETWORK.world, costs, jm.ExpertExpectation(np.ones(4)))
    ours = Surrogate(DrawnReduced(problem, FEATURES, 0))
    assert ours.reduced.deviation(THETA, 0.0) == 0
    exactly = np.abs(EXACT[:4] @ THETA - 1).sum()
    assert ours.matching_error(THETA) == pytest.approx(exactly, rel=1e-12)


def test_the_stated_error_is_the_one_that_is_made():
    """Of the Euclidean ball both are mean squares, so they agree over many seeds."""
    stated, made = [], []
    for seed in range(150):
        ours = surrogate_of(cost_class=jm.EuclideanBall(), seed=seed)
        stated.append(ours.reduced.deviation(THETA, 0.0) ** 2)
        mean = ours.reduced.fresh.mean(axis=0)
        made.append(((mean @ THETA - EXACT @ THETA) ** 2).sum())
    assert 0.7 < np.mean(stated) / np.mean(made) < 1.4


def test_tables_that_contradict_the_costs_are_refused_where_pairs_are_drawn():
    wrong = jm.CostFunctions(
        NETWORK.costs.function, NETWORK.costs.names, lowest=0, highest=1,
        by_factor={0: (3, NETWORK.costs.by_factor[0][1])},
    )  # fmt: skip
    with pytest.raises(jm.errors.InvalidCosts, match="by_factor says"):
        surrogate_of(wrong).reduced.matching  # noqa: B018
