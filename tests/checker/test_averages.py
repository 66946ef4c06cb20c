"""Audits of runs with average costs: the reduction is made again from the base world, and times to
a restart are believed only as far as the laws prove them."""

import shutil

import numpy as np
import pytest

import journeyman as jm
from checker.forging import change_arrays, change_facts, rehash


def example(seed=0, count=30, length=300):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(6, 0.5), size=12)
    world = jm.World(rows, np.full(6, 1 / 6), 0.9).with_average_cost()
    basis = jm.CostBasis(rng.uniform(-1, 1, size=(12, 3)))
    expert = jm.plan(world, basis.matrix @ [0.5, 0.3, 0.2]).policy
    demos = jm.record(world, expert, trajectories=count, horizon=length, seed=seed)
    return world, basis, demos


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    place = tmp_path_factory.mktemp("averages") / "run"
    jm.learn(*example()).save(place)
    return place


@pytest.fixture
def copied(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()])
@pytest.mark.parametrize(("count", "length"), [(1, 40_000), (40, 200)])
def test_runs_pass_with_few_long_records_and_many_short_ones(cost_class, count, length, tmp_path):
    world, basis, demos = example(count=count, length=length)
    jm.learn(world, basis, demos, cost_class=cost_class).save(tmp_path / "run")
    assert jm.audit(tmp_path / "run").passed, str(jm.audit(tmp_path / "run"))


def test_records_of_different_lengths_pass(tmp_path):
    world, basis, demos = example()
    longer = example(seed=0, count=3, length=900)[2]
    both = jm.Demonstrations.concatenate([demos, longer])
    jm.learn(world, basis, both).save(tmp_path / "run")
    assert jm.audit(tmp_path / "run").passed, str(jm.audit(tmp_path / "run"))


def test_declared_expectations_and_known_costs_pass(tmp_path):
    world, basis, _ = example()
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0, 0.1, 0.0]))
    jm.certify(problem, jm.solve(problem)).save(tmp_path / "declared")
    assert jm.audit(tmp_path / "declared").passed
    forward = jm.Forward(world, basis.matrix[:, 0])
    jm.certify(forward, jm.solve(forward)).save(tmp_path / "forward")
    assert jm.audit(tmp_path / "forward").passed


def test_shorter_times_than_the_laws_allow_are_refused(copied):
    def shorten(header, arrays):
        arrays["restart_times"] = np.maximum(arrays["restart_times"] * 0.9, 1.0)

    change_arrays(copied / "world.npz", shorten)
    rehash(copied)
    assert "more steps to a restart than it states" in str(jm.audit(copied))


def test_another_restart_law_is_refused(copied):
    def move(header, arrays):
        arrays["restart"] = np.roll(arrays["restart"], 1)

    change_arrays(copied / "world.npz", move)
    rehash(copied)
    assert not jm.audit(copied).passed


@pytest.mark.parametrize("what", ["states", "actions", "offsets"])
def test_other_records_are_found(copied, what):
    def change(header, arrays):
        if what == "offsets":
            arrays["offsets"][1] -= 1
        else:
            arrays[what][:200] = arrays[what][:200][::-1]

    change_arrays(copied / "demonstrations.npz", change)
    rehash(copied)
    assert not jm.audit(copied).passed


def test_a_smaller_bias_is_found(copied):
    def shrink(facts):
        terms = facts["combinations"][0]["terms"]
        (bias,) = (one for one in terms if one["name"] == "truncation")
        bias["value"] *= 0.9

    change_facts(copied, shrink)
    assert not jm.audit(copied).passed


def test_the_premise_that_the_expert_is_stationary_cannot_be_left_out(copied):
    def drop(facts):
        facts["premises"] = [one for one in facts["premises"] if "present state" not in one["name"]]

    change_facts(copied, drop)
    assert not jm.audit(copied).passed
