"""Runs forged with care: hashes and digest fit, and what is changed could make a bound false."""

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
