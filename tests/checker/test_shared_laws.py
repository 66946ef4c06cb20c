"""Runs in worlds whose pairs share laws: honest ones pass; whatever was changed is found."""

import shutil

import numpy as np
import pytest

import journeyman as jm
from checker.forging import change_arrays, change_facts, edit, failed, rehash
from journeyman.certificate.saving import save_run
from journeyman.world import SharedLaws

BINS = 8
WEAR = SharedLaws.increments(BINS, [0, 1, 2], num_actions=2, resets={1: 0})


def certified(**more):
    bus = jm.gallery.engine_replacement(
        BINS, increments=[0.3, 0.5, 0.2], weights=[500, 1], discount=0.8
    )
    log = jm.record(bus.world, jm.Policy.uniform(bus.world), trajectories=30, horizon=30, seed=3)
    steps = (log.step_states, log.actions, log.next_states)
    world = jm.World.from_transitions(
        *steps, 0.8, **{"initial": bus.world.initial, "shared": WEAR} | more
    )
    demos = jm.record(bus.world, bus.expert, trajectories=40, horizon=30, seed=4)
    demos = jm.Demonstrations(demos.states, demos.actions, demos.offsets)
    return jm.learn(world, bus.basis, demos).certificate


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "run"
    certificate = certified()
    assert certificate.valid
    save_run(certificate, place, seeds={"solver": 0})
    jm.audit(place).require()
    return place


@pytest.mark.parametrize(
    "more",
    [
        {"initial": None, "initial_states": np.zeros(50, int)},
        {"shared": SharedLaws.increments(
            BINS, [0, 1, 2], num_actions=3, resets={1: 0}, per_action=True)},
    ],
)  # fmt: skip
def test_honest_runs_pass(tmp_path, more):
    certificate = certified(**more)
    save_run(certificate, tmp_path / "run", seeds={"solver": 0})
    jm.audit(tmp_path / "run").require()


@pytest.mark.parametrize("horizon", [1, 2, 7])
def test_honest_runs_with_a_horizon_pass(tmp_path, horizon):
    problem = certified().problem
    world, demos = problem.world.with_horizon(horizon, discount=1), problem.demonstrations
    cut = [slice(first, first + horizon) for first in demos.offsets[:-1]]
    states = [demos.episode(j)[0][: horizon + 1] for j in range(len(demos))]
    episodes = jm.Demonstrations.from_arrays(states, [demos.actions[part] for part in cut])
    certificate = jm.learn(world, problem.basis, episodes).certificate
    assert certificate.valid
    names = [one.name for one in certificate.premises]
    assert ("pairs of a group share one law of outcomes" in names) == (horizon > 1)
    save_run(certificate, tmp_path / "run", seeds={"solver": 0})
    jm.audit(tmp_path / "run").require()


def test_a_run_whose_pairs_do_not_share_a_law_is_refuted_and_the_audit_says_so(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(BINS - 2, size=3000)
    y = x + np.where(x < 3, rng.integers(0, 2, x.size), rng.integers(1, 3, x.size))
    world = jm.World.from_transitions(
        x, 0 * x, y, 0.8, initial=np.eye(BINS)[0],
        shared=SharedLaws.increments(BINS, [0, 1, 2]),
    )  # fmt: skip
    problem = jm.Apprenticeship(
        world, jm.CostBasis(np.arange(BINS)[:, None] / BINS), jm.ExpertExpectation([1.0])
    )
    certificate = jm.certify(problem, jm.solve(problem))
    assert not certificate.valid
    save_run(certificate, tmp_path / "run", seeds={"solver": 0})
    jm.audit(tmp_path / "run").require()
    change_facts(tmp_path / "run", _claim_tested)
    failed(tmp_path / "run", "pairs of a group share one law of outcomes")


def _claim_tested(facts):
    for one in facts["premises"]:
        if one["name"] == "pairs of a group share one law of outcomes":
            one["status"] = "tested, not refuted"
            one["detail"] = one["detail"].split(";")[0]
    facts["valid"] = True


def changed(saved, place, change):
    shutil.copytree(saved, place)
    change_arrays(place / "world.npz", change)
    rehash(place)
    return place


def _tally(header, arrays):
    """More draws than there were, in proportion: laws stay, distances shrink."""
    arrays["shared_tallies"] = 2 * arrays["shared_tallies"]


def _counts(header, arrays):
    _tally(header, arrays)
    arrays["transition_counts"] = 2 * arrays["transition_counts"]


def _targets(header, arrays):
    arrays["shared_targets"][2, 0] = [2, 3, 5]


def _group(header, arrays):
    arrays["shared_groups"][2, 0] = 1


def _unseen(header, arrays):
    """What was counted where outcomes cannot be told apart."""
    arrays["shared_tallies"][BINS - 1, 0, 0] += 1


def _moved(header, arrays):
    """From one outcome to another, so that laws no longer follow."""
    arrays["shared_tallies"][0, 0, 0] -= 1
    arrays["shared_tallies"][0, 0, 1] += 1


def _dropped(header, arrays):
    del arrays["shared_groups"]


def _shape(header, arrays):
    arrays["shared_tallies"] = arrays["shared_tallies"][:, :, :2]


def _fractions(header, arrays):
    arrays["shared_groups"] = arrays["shared_groups"].astype(float)


@pytest.mark.parametrize(
    "change",
    [_tally, _counts, _targets, _group, _unseen, _moved, _dropped, _shape, _fractions],
    ids=lambda one: one.__name__[1:],
)
def test_changed_groups_are_found(saved, tmp_path, change):
    failed(changed(saved, tmp_path / "run", change))


def test_a_smaller_error_of_the_model_is_found(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "run")

    def change(facts):
        terms = facts["combinations"][0]["terms"]
        where = next(k for k, one in enumerate(terms) if one["name"] == "model")
        edit(("combinations", 0, "terms", where, "value"), lambda value: 0.9 * value)(facts)

    change_facts(tmp_path / "run", change)
    failed(tmp_path / "run")
