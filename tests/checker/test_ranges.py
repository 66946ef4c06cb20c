"""The trivial bound is derived again from its potentials, and whatever is changed is found."""

import copy
import html

import numpy as np
import pytest

import journeyman as jm
from checker.forging import change_arrays, facts_of, failed, rehash, write_facts
from journeyman.certificate.saving import save_run
from journeyman.problem.bounds import plain_bound

pytestmark = pytest.mark.filterwarnings("ignore::journeyman.errors.SupportWarning")

CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]


def lake(seed=0, estimated=False):
    """A world that ends, where ranges decide."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(5, 0.5), size=10)
    law[:, -1] += 0.5
    law /= law.sum(axis=1, keepdims=True)
    law[-2:] = np.eye(5)[-1]
    true = jm.World(law, np.eye(5)[0], 0.95)
    costs = rng.uniform(-1, 1, (10, 3))
    costs[-2:] = 0.0
    if not estimated:
        return true, true, jm.CostBasis(costs)
    drawn = np.array([rng.multinomial(100_000, row) for row in law]) / 100_000
    model = jm.World(drawn, true.initial, 0.95, transition_counts=100_000, support=true.transition)
    return true, model, jm.CostBasis(costs)


def certified(kind, *, estimated=False, declared=False, seed=0):
    true, world, basis = lake(seed, estimated)
    expert = jm.Policy(np.random.default_rng(seed + 9).dirichlet(np.ones(2), size=5))
    demos = jm.record(true, expert, trajectories=80, horizon=60, seed=seed)
    if kind is None:
        problem = jm.Forward(world, basis.matrix[:, 0])
    else:
        given = jm.ExpertExpectation([0.3, -0.2, 0.1]) if declared else demos
        problem = jm.Apprenticeship(world, basis, given, kind([0.5, 1.0, 2.0]))
    policy = jm.Policy(np.random.default_rng(seed + 7).dirichlet(np.ones(2), size=5))
    return jm.certify(problem, policy)


@pytest.mark.parametrize("kind", [*CLASSES, None])
@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_honest_runs_pass(kind, estimated, declared, seed, tmp_path):
    certificate = certified(kind, estimated=estimated, declared=declared, seed=seed)
    assert certificate.valid
    assert certificate.ranges is not None
    assert certificate.trivial_bound < plain_bound(
        certificate.problem, certificate.problem.exact_target
    )
    save_run(certificate, tmp_path, seeds={"solver": None})
    assert jm.audit(tmp_path).require().passed
    report = html.unescape(jm.report.report_of_run(tmp_path))
    assert certificate.summary().split(",")[0].split(" at most ")[0] in report


@pytest.fixture(params=[(kind, one) for kind in (*CLASSES, None) for one in (False, True)])
def run(request, tmp_path):
    kind, estimated = request.param
    save_run(certified(kind, estimated=estimated), tmp_path, seeds={"solver": None})
    assert jm.audit(tmp_path).passed
    return tmp_path


def concluded(facts):
    """The words that follow from the numbers."""
    best = facts["combinations"][0]["bound"]
    facts["bound"] = min(best, facts["trivial_bound"])
    possible = facts["trivial_bound"] - facts["least_possible"]
    facts["vacuous"] = facts["bound"] >= facts["trivial_bound"]
    facts["weak"] = facts["vacuous"] or (
        possible > 0 and (facts["bound"] - facts["least_possible"]) / possible > 0.5
    )


@pytest.mark.parametrize("change", [-0.5, -1e-3, 1e-3, 0.5])
def test_another_trivial_bound_is_found(run, change):
    facts = facts_of(run)
    facts["trivial_bound"] += change * max(1.0, abs(facts["trivial_bound"]))
    concluded(facts)
    write_facts(run, facts)
    failed(run, "the trivial bound")


@pytest.mark.parametrize("word", ["vacuous", "weak"])
def test_another_word_is_found(run, word):
    facts = facts_of(run)
    facts[word] = not facts[word]
    write_facts(run, facts)
    failed(run, {"vacuous": "vacuity", "weak": "weakness"}[word])


def test_another_least_possible_is_found(run):
    facts = facts_of(run)
    facts["least_possible"] -= 0.5
    concluded(facts)
    write_facts(run, facts)
    failed(run, "the least possible")


@pytest.mark.parametrize("name", ["low_values", "high_values"])
def test_every_changed_potential_is_found(run, name):
    """The bound no longer follows: a potential of a state that is visited proves less."""
    honest = copy.deepcopy(facts_of(run))

    def raised(header, arrays):
        arrays[name][:, 0] += 1.0

    change_arrays(run / "evidence.npz", raised)
    failed(run, "SHA-256")
    rehash(run)
    outcome = failed(run)
    assert "the trivial bound" in str(outcome) or "the least possible" in str(outcome)
    assert facts_of(run)["trivial_bound"] == honest["trivial_bound"]


def removed(header, arrays):
    for name in ("range_costs", "low_values", "high_values"):
        del arrays[name]


def of_other_costs(header, arrays):
    arrays["range_costs"] = arrays["range_costs"] + 10


def of_no_state(header, arrays):
    arrays["low_values"] = arrays["low_values"][:, :-1]


def not_numbers(header, arrays):
    arrays["high_values"][0, 0] = np.nan


def huge(header, arrays):
    """Numbers so large that rounding could hide anything."""
    arrays["low_values"] += 1e18
    arrays["high_values"] += 1e18


@pytest.mark.parametrize("change", [removed, of_other_costs, of_no_state, not_numbers, huge])
def test_potentials_of_something_else_are_found(run, change):
    change_arrays(run / "evidence.npz", change)
    rehash(run)
    failed(run)


def test_a_failed_premise_leaves_no_use_for_potentials(tmp_path):
    """Somebody hides a premise that failed behind the ranges of a world that is wrong."""
    certificate = certified(jm.Simplex)
    save_run(certificate, tmp_path, seeds={"solver": None})
    facts = facts_of(tmp_path)
    facts["premises"][0]["status"] = "failed"
    facts["valid"] = False
    facts["bound"] = facts["trivial_bound"]
    facts["vacuous"] = facts["weak"] = True
    write_facts(tmp_path, facts)
    failed(tmp_path, "the trivial bound", "do not go together")
