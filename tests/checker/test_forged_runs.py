"""Runs forged with care: hashes and digest fit, and what is changed could make a bound false."""

import shutil

import numpy as np
import pytest

import journeyman as jm
from checker.forging import change_arrays, facts_of, failed, rehash, write_facts


@pytest.fixture(scope="module")
def grid():
    world, basis, expert = jm.gallery.grid(4)
    return world, basis, expert, jm.record(world, expert, trajectories=100, horizon=50, seed=0)


def test_laws_with_more_than_all_the_mass_are_refused(grid, tmp_path):
    """Potentials that are a large constant would turn the excess into any bound."""
    world, basis, _, demos = grid
    jm.learn(world, basis, demos).save(tmp_path / "run")
    change_arrays(
        tmp_path / "run" / "world.npz",
        lambda _, arrays: arrays.update(initial=arrays["initial"] * (1 + 1e-11)),
    )
    rehash(tmp_path / "run")
    failed(tmp_path / "run", "the initial law is not a probability law")


def test_rollouts_that_claim_to_have_recorded_everything_are_found(grid, tmp_path):
    world, basis, expert, demos = grid
    problem = jm.Apprenticeship(world, basis, demos)
    jm.certify(problem, expert, evaluation=jm.Rollouts(100, 10)).save(tmp_path / "run")
    facts = facts_of(tmp_path / "run")
    for way in facts["combinations"]:
        for sample in way["statistics"]:
            sample["unrecorded"] = 0.0
    write_facts(tmp_path / "run", facts)
    failed(tmp_path / "run", "of time unrecorded, fresh ones")


def test_terms_may_not_hide_behind_the_size_of_one_budget_cost(tmp_path):
    """A pair that is never taken costs so much that every term agrees up to that size."""
    world, basis, expert = jm.gallery.grid(4)
    taken = jm.occupancy(world, expert).measure
    cost = np.full(world.num_pairs, 0.5)
    cost[int(np.argmin(taken))] = 1e11
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    budget = jm.Budget(cost=cost, at_most=1.0, name="wear")
    problem = jm.Apprenticeship(world, basis, target, constraints=[budget])
    jm.certify(problem, expert).save(tmp_path / "run")
    facts = facts_of(tmp_path / "run")
    stated = facts["budgets"][0]
    for number, term in enumerate(stated["terms"]):
        term["value"] = 0.5 if number == 0 else 0.0
    stated["spent"], stated["is_kept"] = float(np.nextafter(0.5, 1)), True
    write_facts(tmp_path / "run", facts)
    failed(tmp_path / "run", "the terms of budget 'wear' add up to 0.5")


PRICES = jm.costs.Polytope(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 1, -2]],
    [1, 1, 1, 1, 1, 1, 3.9],
)


@pytest.fixture(scope="module")
def polytope_run(tmp_path_factory):
    world, _, expert = jm.gallery.grid(4)
    basis = jm.CostBasis(np.random.default_rng(0).uniform(-1, 1, (world.num_pairs, 3)))
    demos = jm.record(world, expert, trajectories=100, horizon=50, seed=0)
    place = tmp_path_factory.mktemp("polytope") / "run"
    jm.learn(world, basis, demos, cost_class=PRICES).save(place)
    assert jm.audit(place).require().passed
    return place


@pytest.mark.parametrize("vertex", range(len(PRICES.vertices)))
def test_a_polytope_without_one_of_its_vertices_is_refused(polytope_run, tmp_path, vertex):
    """However little of the polytope is cut off: no probing direction need see it."""
    place = shutil.copytree(polytope_run, tmp_path / "run")

    def leave_out(_, arrays):
        arrays["vertices"] = np.delete(arrays["vertices"], vertex, axis=0)

    change_arrays(place / "problem.npz", leave_out)
    rehash(place)
    failed(place, "the vertices of the polytope are not all of it")


def test_a_vertex_outside_of_the_polytope_is_refused(polytope_run, tmp_path):
    place = shutil.copytree(polytope_run, tmp_path / "run")

    def move(_, arrays):
        arrays["vertices"] = arrays["vertices"] * (1 + 1e-8)

    change_arrays(place / "problem.npz", move)
    rehash(place)
    failed(place, "a vertex of the polytope lies outside of it")
