"""The interior point on box programs by themselves, without worlds around the figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.features.base import Features
from journeyman.problem.reduced import ExactPenalty, Reduced
from journeyman.solvers.norm_cone import ConePoint, ConeStep, Scaling
from journeyman.solvers.reduced import dual_repair
from journeyman.solvers.reduced.box_dual import box_dual, run_clarabel, run_highs
from journeyman.solvers.reduced.dual_repair import gram_of, repaired, stored
from journeyman.solvers.reduced.interior_point import run_interior_point
from journeyman.solvers.running import Watch
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
    bound = box.lower_bound(point.v, box.radius(point.x))
    return (loss - bound) / box.unit(loss)


linear_classes = st.sampled_from([jm.InfinityBall(), jm.Simplex()])
balls = st.sampled_from([jm.EuclideanBall(), jm.EuclideanBall([0.1, 1.0, 3.0])])
classes = st.one_of(linear_classes, balls)


@given(seeds, st.sampled_from([0.1, 0.5, 1.0]), classes)
def test_loss_and_bound_meet(seed, density, cost_class):
    box = random_box(seed, density=density, cost_class=cost_class)
    point = run_interior_point(box, quiet(), 1e-8)
    assert point.status is jm.Status.OPTIMAL
    assert -1e-12 <= relative_gap(box, point) <= 1e-8
    assert (box.lower <= point.v).all()
    assert (point.v <= box.upper).all()
    assert np.linalg.norm(point.v[box.num_boxed :] / box.ball_scale) <= 1


@given(seeds, balls)
def test_it_agrees_with_clarabel(seed, cost_class):
    box = random_box(seed, cost_class=cost_class)
    ours = run_interior_point(box, quiet(), 1e-8)
    theirs = run_clarabel(box, 1, quiet(), rescaled=False)
    loss = box.loss(theirs.x)
    assert box.loss(ours.x) == pytest.approx(loss, abs=1e-6 * box.unit(loss))


@given(seeds, linear_classes)
def test_it_agrees_with_the_simplex_method(seed, cost_class):
    box = random_box(seed, cost_class=cost_class)
    ours = run_interior_point(box, quiet(), 1e-8)
    theirs = run_highs(box, jm.solvers.Engine.SIMPLEX, 1, quiet())
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


@pytest.mark.parametrize("density", [0.02, 0.9])
def test_threads_change_no_bits(monkeypatch, density):
    box = stored(random_box(1, density=density, num_features=9))
    weights = np.random.default_rng(0).exponential(size=box.num_rows)
    whole = gram_of(box, weights)
    monkeypatch.setattr(dual_repair, "SHARED_ROWS", 1)
    shared = gram_of(box, weights)
    np.testing.assert_allclose(np.tril(shared), np.tril(whole), rtol=1e-12, atol=1e-10)
    for threads in (2, 3):
        found = gram_of(replace(box, threads=threads), weights)
        assert np.array_equal(np.tril(found), np.tril(shared))


def test_sparse_rows_are_stored_densely_when_they_are_full_or_few(monkeypatch):
    assert not sparse.issparse(stored(random_box(1, density=0.02)).blocks[0])
    monkeypatch.setattr(dual_repair, "FEW_PRODUCTS", 0)
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


@given(seeds, st.integers(1, 6))
def test_the_scaling_of_a_cone(seed, size):
    """W^2 z = s, H is the inverse of the last block of W^-2, and steps change s o z as asked."""
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=(2, size))
    u /= np.linalg.norm(u) * (1 + rng.exponential())
    at = ConePoint(np.append(1.0, u), np.append(np.linalg.norm(y) + rng.exponential(), y))
    scaling, J = Scaling(at), np.diag(np.append(1.0, -np.ones(size)))
    square = scaling.beta**2 * (2 * np.outer(scaling.w, scaling.w) - J)
    inverse = np.linalg.inv(square)
    np.testing.assert_allclose(square @ at.z, at.s, rtol=1e-6)
    softened = scaling.softened(np.eye(size))
    np.testing.assert_allclose(softened @ inverse[1:, 1:], np.eye(size), atol=1e-6)
    twice = scaling.softened(scaling.softened(np.eye(size), 0.5), 0.5)
    np.testing.assert_allclose(twice, softened, atol=1e-9)
    change, pressure = rng.normal(size=size + 1), rng.normal(size=size)
    step = scaling.step(change, pressure)
    np.testing.assert_allclose(step.z + inverse @ step.s, change, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(step.s[1:], softened @ pressure, atol=1e-12)


@given(seeds, st.integers(1, 6))
def test_the_reach_of_a_cone_ends_at_its_boundary(seed, size):
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=(2, size))
    at = ConePoint(np.append(1.0, 0.5 * u / np.linalg.norm(u)), np.append(2 * np.linalg.norm(y), y))
    step = ConeStep(np.append(0.0, rng.normal(size=size)), rng.normal(size=size + 1))
    for k, change, reach in zip((at.s, at.z), (step.s, step.z), at.reach(step), strict=True):
        end = k + min(reach, 1e6) * change
        depth = end[0] - np.linalg.norm(end[1:])
        if reach < 1e6:
            assert depth == pytest.approx(0, abs=1e-8 * np.abs(end).max())
        else:
            assert depth >= -1e-8 * np.abs(end).max()


@given(seeds, classes)
def test_a_dual_point_that_misses_its_equations_is_repaired(seed, cost_class):
    box = random_box(seed, cost_class=cost_class)
    point = run_interior_point(box, quiet(), 1e-8)
    radius, noise = box.radius(point.x), np.random.default_rng(seed).normal(size=box.num_rows)
    spoilt = box.admitted(point.v * (1 + 1e-6 * noise))
    admitted = box.admitted(repaired(box, spoilt, radius))
    missed = [np.linalg.norm(box.adjoint(v) + box.slope) for v in (spoilt, admitted)]
    bounds = [box.lower_bound(v, radius) for v in (spoilt, admitted)]
    assert bounds[0] <= bounds[1] <= box.loss(point.x) + 1e-12 * box.unit(box.loss(point.x))
    assert missed[1] <= 0.01 * missed[0] + 1e-9


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
