"""The interior point on box programs by themselves, without worlds around the figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.problem.features.features import Features
from journeyman.problem.penalty import ExactPenalty
from journeyman.problem.reduced import Reduced
from journeyman.solvers.box_dual import box_dual, run_highs
from journeyman.solvers.l1_interior_point import run_interior_point
from journeyman.solvers.watch import Watch
from journeyman.solvers.weighted_gram import gram_of, stored
from journeyman.testing import random_problem
from journeyman.testing.strategies import seeds


def quiet():
    return Watch("test", lambda event: None)


def random_box(seed, *, density=1.0, num_features=5, cost_class=None, num_states=20):
    problem = random_problem(seed, cost_class, num_states=num_states, num_budgets=seed % 2)
    rng = np.random.default_rng(seed)
    columns = rng.exponential(size=(problem.world.num_pairs, num_features))
    if density < 1:
        columns = sparse.csr_array(columns * (rng.random(columns.shape) < density))
    features = Features(columns).normalised(problem.world)
    return box_dual(Reduced(problem, features), ExactPenalty().of(problem))


def relative_gap(box, point):
    loss = box.loss(point.x)
    bound = box.lower_bound(point.v, 2 * max(1, np.linalg.norm(point.x)))
    return (loss - bound) / box.unit(loss)


classes = st.sampled_from([jm.InfinityBall(), jm.Simplex()])


@given(seeds, st.sampled_from([0.1, 0.5, 1.0]), classes)
def test_loss_and_bound_meet(seed, density, cost_class):
    box = random_box(seed, density=density, cost_class=cost_class)
    point = run_interior_point(box, quiet(), 1e-8)
    assert point.status is jm.Status.OPTIMAL
    assert -1e-12 <= relative_gap(box, point) <= 1e-8
    assert (box.lower <= point.v).all()
    assert (point.v <= box.upper).all()


@given(seeds, classes)
def test_it_agrees_with_the_simplex_method(seed, cost_class):
    box = random_box(seed, cost_class=cost_class)
    ours = run_interior_point(box, quiet(), 1e-8)
    theirs = run_highs(box, jm.Engine.SIMPLEX, 1, quiet())
    loss = box.loss(theirs.x)
    assert box.loss(ours.x) == pytest.approx(loss, abs=1e-7 * box.unit(loss))


@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
def test_the_weighted_gram_matrix(density):
    box = stored(random_box(1, density=density, num_features=9))
    rows = box.stacked().toarray()
    weights = np.random.default_rng(0).exponential(size=box.num_rows)
    expected = rows.T @ np.diag(weights) @ rows
    np.testing.assert_allclose(np.tril(gram_of(box, weights)), np.tril(expected), atol=1e-10)
    np.testing.assert_allclose(box.adjoint(weights), rows.T @ weights, atol=1e-10)
    x = np.arange(float(box.slope.size))
    np.testing.assert_allclose(box.apply(x), rows @ x, atol=1e-10)


def test_sparse_rows_are_stored_densely_when_they_are_full():
    kept, filled = (stored(random_box(1, density=density)) for density in (0.02, 0.9))
    assert sparse.issparse(kept.blocks[0])
    assert not sparse.issparse(filled.blocks[0])


def test_overlapping_features_cost_no_accuracy():
    """Wide Gaussian bumps on a line: almost dependent columns, where a factor alone fails."""
    world, basis, expert = jm.gallery.grid(16)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis) + 0.5)
    problem = jm.Apprenticeship(world, basis, target)
    centres = np.linspace(0, world.num_pairs, 40)
    columns = np.exp(-(((np.arange(world.num_pairs)[:, None] - centres) / 70) ** 2))
    reduced = Reduced(problem, Features(columns).normalised(world))
    box = box_dual(reduced, ExactPenalty().of(problem))
    point = run_interior_point(box, quiet(), 1e-8)
    assert np.linalg.cond(columns) > 1e6
    assert point.status is jm.Status.OPTIMAL
    assert relative_gap(box, point) <= 1e-8


def test_every_iteration_is_reported_with_a_loss_that_never_grows():
    losses = []
    watch = Watch("test", lambda event: losses.append(event.objective))
    point = run_interior_point(random_box(0), watch, 1e-8)
    assert len(losses) == point.iterations > 5
    assert losses == sorted(losses, reverse=True)


def test_the_same_call_gives_the_same_point():
    first, second = (run_interior_point(random_box(3), quiet(), 1e-8) for _ in range(2))
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.v, second.v)
