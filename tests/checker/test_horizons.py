"""Audits of runs with a horizon: layers are made again, and nothing but episodes is believed."""

import shutil

import numpy as np
import pytest

import journeyman as jm
from checker.forging import change_arrays, change_facts, rehash

STEPS = 6


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    world, basis, expert = jm.gallery.grid(3, macro_cells=3)
    demos = jm.record(world, expert, trajectories=80, horizon=STEPS + 2, seed=0)
    short = jm.record(world, expert, trajectories=20, horizon=STEPS - 2, seed=1)
    both = jm.Demonstrations.concatenate([demos, short])
    apprentice = jm.learn(world.with_horizon(STEPS, 1.0), basis, both)
    place = tmp_path_factory.mktemp("horizon") / "run"
    apprentice.save(place)
    return place


@pytest.fixture
def copied(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


def test_runs_of_every_kind_pass(saved, tmp_path):
    assert jm.audit(saved).passed
    world, basis, expert = jm.gallery.grid(3, macro_cells=3)
    there = world.with_horizon(STEPS, 0.95)
    demos = jm.record(there, expert, trajectories=60, seed=0)
    policy = jm.clone(demos, there)
    uniform = jm.Policy.uniform(world)
    seen = jm.record(world, uniform, trajectories=60, horizon=60, seed=0)
    steps = (seen.step_states, seen.actions, seen.next_states)
    counted = jm.World.from_transitions(*steps, 0.9, initial=world.initial)
    cases = {
        "simplex": jm.Apprenticeship(there, basis, demos, jm.Simplex()),
        "round": jm.Apprenticeship(there, basis, demos, jm.EuclideanBall()),
        "stationary": jm.Apprenticeship(there, basis, demos, expert_is=jm.Stationary()),
        "regret": jm.Apprenticeship(there, basis, demos, expert_is=jm.NearlyOptimal(regret=1.0)),
        "counted": jm.Apprenticeship(counted.with_horizon(STEPS, 1.0), basis, demos),
    }
    for name, problem in cases.items():
        jm.certify(problem, policy).save(tmp_path / name)
        assert jm.audit(tmp_path / name).passed, name
    rollouts = jm.Rollouts(100, STEPS - 1)
    jm.certify(cases["simplex"], policy, evaluation=rollouts).save(tmp_path / "rollouts")
    assert jm.audit(tmp_path / "rollouts").passed


def test_another_number_of_steps_or_discount_is_found(copied):
    change_arrays(copied / "world.npz", lambda header, arrays: header.update(step_discount=0.9))
    rehash(copied)
    assert not jm.audit(copied).passed


def test_a_policy_of_another_horizon_is_refused(copied):
    change_arrays(copied / "policy.npz", lambda header, arrays: header.update(horizon=2 * STEPS))
    rehash(copied)
    assert "another horizon" in str(jm.audit(copied))


def test_a_smaller_trivial_bound_is_found(copied):
    change_facts(copied, lambda facts: facts.update(trivial_bound=facts["trivial_bound"] * 0.99))
    assert not jm.audit(copied).passed


def test_costs_behind_the_end_are_refused(copied):
    def paid(header, arrays):
        arrays["basis_data"] = np.append(arrays["basis_data"], 1.0)
        arrays["basis_indices"] = np.append(arrays["basis_indices"], 0)
        arrays["basis_indptr"][-1] += 1

    change_arrays(copied / "problem.npz", paid)
    rehash(copied)
    assert "behind the end" in str(jm.audit(copied))
