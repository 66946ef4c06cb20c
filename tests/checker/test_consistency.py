"""What is consistent with a deterministic or stationary expert is derived again."""

import copy

import numpy as np
import pytest

import journeyman as jm
from checker.forging import (
    at,
    change_arrays,
    facts_of,
    failed,
    numbers_in,
    rehash,
    summed_up,
    write_facts,
)
from class_examples import NAMES, example

PAPER = {"infinity": jm.InfinityBall(), "euclidean": jm.EuclideanBall(), "simplex": jm.Simplex()}
PREMISES = {
    "deterministic": (jm.Deterministic(),),
    "stationary": (jm.Stationary(),),
    "both": (jm.Stationary(), jm.Deterministic()),
}


def a_run(place, premises, cost_class, *, count=20, noisy=False, evaluation=None):
    world, _, _ = jm.gallery.grid(4)
    basis = jm.CostBasis(np.random.default_rng(0).uniform(-1, 1, (world.num_pairs, 3)))
    expert = jm.plan(world, basis.matrix @ np.array([1.0, -0.5, 0.3])).policy
    law = 0.9 * expert.on(world) + 0.1 / 4 if noisy else expert.on(world)
    demos = jm.record(world, jm.Policy(law, world.pairs), trajectories=count, horizon=30, seed=0)
    problem = jm.Apprenticeship(world, basis, demos, cost_class, expert_is=premises)
    policy = jm.clone(demos, world)
    certificate = jm.certify(problem, policy, evaluation=evaluation)
    certificate.save(place)
    return certificate


@pytest.mark.parametrize("premises", PREMISES)
@pytest.mark.parametrize("name", [*PAPER, *NAMES])
def test_honest_runs_pass(premises, name, tmp_path):
    cost_class = PAPER[name] if name in PAPER else example(name, 3)
    certificate = a_run(tmp_path, PREMISES[premises], cost_class)
    assert certificate.consistency is not None
    jm.audit(tmp_path).require()
    assert "one action" in jm.report.report_of_run(tmp_path) or premises == "stationary"


@pytest.mark.parametrize("count", [1, 5, 300])
@pytest.mark.parametrize("noisy", [False, True])
def test_honest_runs_of_other_records_pass(count, noisy, tmp_path):
    certificate = a_run(tmp_path, (jm.Stationary(),), jm.InfinityBall(), count=count, noisy=noisy)
    assert certificate.valid
    jm.audit(tmp_path).require()


def test_an_honest_run_by_rollouts_passes(tmp_path):
    way = jm.Rollouts(trajectories=200, horizon=60)
    certificate = a_run(tmp_path, (jm.Deterministic(),), jm.Simplex(), evaluation=way)
    assert certificate.best.estimate == "consistency"
    jm.audit(tmp_path).require()


def test_a_refuted_run_passes_and_says_which_steps(tmp_path):
    certificate = a_run(tmp_path, (jm.Deterministic(),), jm.InfinityBall(), noisy=True)
    assert not certificate.valid
    jm.audit(tmp_path).require()
    facts = facts_of(tmp_path)
    (row,) = [one for one in facts["premises"] if "one action for every state" in one["name"]]
    honest = row["detail"]
    for change in (honest.replace(" action 0", " action 1"), honest.replace("state ", "state 1")):
        row["detail"] = change
        write_facts(tmp_path, facts)
        if change != honest:
            failed(tmp_path, "the steps that are named")


@pytest.fixture(params=["deterministic", "stationary"])
def run(request, tmp_path):
    a_run(tmp_path, PREMISES[request.param], jm.InfinityBall())
    assert jm.audit(tmp_path).passed
    return tmp_path


@pytest.mark.parametrize("direction", [-1, 1])
def test_every_number_is_checked(run, direction):
    honest = facts_of(run)
    for path in numbers_in(honest):
        facts = copy.deepcopy(honest)
        place, key = at(facts, path)
        size = max(abs(place[key]), honest["trivial_bound"] if "level" not in path else 0.0)
        size = 0.01 if path == ("failure_probability",) else size or 1.0
        place[key] += direction * 1e-3 * size
        write_facts(run, facts)
        assert not jm.audit(run).passed, path


def consistent(facts):
    (way,) = [one for one in facts["combinations"] if one["estimate"].startswith("consistency")]
    return way


def test_a_better_bound_that_adds_up_is_found(run):
    facts = facts_of(run)
    consistent(facts)["terms"][0]["value"] *= 0.999
    summed_up(facts)
    write_facts(run, facts)
    failed(run, "gap to what is consistent")


def another_estimate(facts):
    consistent(facts)["estimate"] = "consistency 0.75, an oracle 0.25"


def another_part(facts):
    way = consistent(facts)
    way["estimate"] = way["terms"][0]["source"] = "consistency 0.5, plain mean, signs 0.5"


def left_out(facts):
    facts["combinations"].remove(consistent(facts))
    summed_up(facts)


@pytest.mark.parametrize("change", [another_estimate, another_part, left_out])
def test_another_combination_is_found(run, change):
    facts = facts_of(run)
    change(facts)
    write_facts(run, facts)
    failed(run)


def lowered(header, arrays):
    arrays["consistent_values"][:, 0] -= 1.0


def raised(header, arrays):
    arrays["consistent_values"][:, 0] += 1.0


def huge(header, arrays):
    arrays["consistent_values"] += 1e18


def fewer(header, arrays):
    """The directions in which the bound is largest are left out."""
    for name in ("consistent_weights", "consistent_values"):
        arrays[name] = arrays[name][:4]


def shorter(header, arrays):
    arrays["consistent_weights"] = 0.5 * arrays["consistent_weights"]


def repeated(header, arrays):
    arrays["consistent_weights"][0] = arrays["consistent_weights"][1]


def not_a_hull(header, arrays):
    header["consistent_hull"] = False


def no_word(header, arrays):
    del header["consistent_hull"]


def of_no_state(header, arrays):
    arrays["consistent_values"] = arrays["consistent_values"][:, :-1]


def gone(header, arrays):
    for name in ("consistent_weights", "consistent_values"):
        del arrays[name]


@pytest.mark.parametrize(
    "change",
    [lowered, raised, huge, fewer, shorter, repeated, not_a_hull, no_word, of_no_state, gone],
)
def test_changed_evidence_is_found(run, change):
    change_arrays(run / "evidence.npz", change)
    failed(run, "SHA-256")
    rehash(run)
    failed(run)


def nothing_declared(header, arrays):
    header["expert_is"] = []


def more_declared(header, arrays):
    header["expert_is"].append({"name": "Deterministic"})


def declared_twice(header, arrays):
    header["expert_is"] = 2 * header["expert_is"]


def unreadable(header, arrays):
    header["expert_is"] = "Deterministic"


@pytest.mark.parametrize("change", [nothing_declared, more_declared, declared_twice, unreadable])
def test_another_declaration_is_found(run, change):
    change_arrays(run / "problem.npz", change)
    rehash(run)
    failed(run)


def test_a_record_with_fewer_actions_is_found(run, tmp_path):
    """Somebody gives the evidence of a longer record to a shorter one."""
    other = tmp_path / "other"
    a_run(other, (jm.Deterministic(),), jm.InfinityBall(), count=2)
    (run / "demonstrations.npz").write_bytes((other / "demonstrations.npz").read_bytes())
    rehash(run)
    failed(run)
