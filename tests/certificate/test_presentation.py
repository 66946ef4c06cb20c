"""What a person reads of a certificate: true, and nothing that matters left out."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

import journeyman as jm
from journeyman.certificate.presentation import KINDS, SYMBOL, SYMBOLS
from journeyman.report.page import page
from journeyman.report.report_data import ReportData


@pytest.fixture(scope="module")
def grid():
    world, basis, expert = jm.gallery.grid(5, macro_cells=2)
    return world, basis, expert, jm.record(world, expert, trajectories=600, horizon=120, seed=0)


def test_the_summary_has_bound_probability_and_premises(grid):
    world, basis, expert, demos = grid
    certificate = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    said = certificate.summary()
    assert said.startswith("With probability 0.95 the policy costs at most")
    assert f"{certificate.bound:.4g} more than the expert" in said
    assert "declared: independent trajectories" in said


def test_a_negative_bound_says_less_instead_of_more(grid):
    world, basis, expert, _ = grid
    spent = jm.occupancy(world, expert).expectations(basis)
    dearer = jm.Apprenticeship(world, basis, jm.ExpertExpectation(spent + 1.0), jm.Simplex())
    certificate = jm.certify(dearer, expert)
    assert certificate.bound == pytest.approx(-1.0)
    assert "the policy costs at least 1 less than the expert" in certificate.summary()


def test_a_budget_that_is_not_kept_is_said_everywhere(grid):
    world, basis, expert, demos = grid
    budget = jm.Budget(cost=np.ones(25), at_most=1.0, name="time")
    problem = jm.Apprenticeship(world, basis, demos, constraints=budget)
    certificate = jm.certify(problem, expert)
    assert (
        "'time' is NOT shown to be kept: all that is shown is that at most 20 is spent, 19 more"
        in certificate.summary()
    )
    assert "1 of 1 budgets NOT certified" in repr(certificate)
    with pytest.raises(jm.NotCertified, match="by 19 more than allowed"):
        certificate.require(gap=40)


def test_nothing_is_called_probable_that_is_certain(grid):
    world, basis, expert, _ = grid
    forward = jm.Forward(world, np.arange(25) / 25)
    said = jm.certify(forward, expert).summary()
    assert said.startswith("The policy's expected cost is at most")
    exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    declared = jm.certify(jm.Apprenticeship(world, basis, exact), expert).summary()
    assert declared.startswith("If the declared expectations are the expert's, the policy costs")
    assert "probability" not in said + declared


def test_a_failed_premise_comes_first_and_alone(grid):
    world, basis, expert, demos = grid
    elsewhere = jm.World(world.transition, np.eye(25)[0], world.discount)
    certificate = jm.certify(jm.Apprenticeship(elsewhere, basis, demos), expert)
    assert certificate.summary().startswith("Nothing is certified because a premise failed")
    assert certificate.advice().startswith("A premise has failed")
    assert "probability" not in repr(certificate)


def test_advice_about_samples_of_the_policy(grid):
    world, basis, expert, demos = grid
    problem = jm.Apprenticeship(world, basis, demos)
    sampled = jm.certify(problem, expert, evaluation=jm.Rollouts(50, 100))
    assert "evaluated exactly" in sampled.advice()
    assert "evaluated exactly" not in jm.certify(problem, expert).advice()


@pytest.mark.parametrize("gap", [float("nan"), -1.0, 0.0])
def test_what_is_not_shown_is_not_passed(grid, gap):
    world, basis, expert, demos = grid
    with pytest.raises(jm.NotCertified):
        jm.certify(jm.Apprenticeship(world, basis, demos), expert).require(gap=gap)


def test_a_problem_is_asked_for(grid):
    _, _, expert, demos = grid
    with pytest.raises(jm.errors.InvalidProblem, match="a Demonstrations is not a problem"):
        jm.certify(demos, expert)


def test_a_lower_bound_that_says_nothing_is_not_said(grid):
    world, basis, expert, demos = grid
    attained = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    assert attained.lower_bound <= 1e-9
    assert "on this data its gap is" in attained.summary()
    assert "no policy can be below" not in attained.summary()
    spent = jm.occupancy(world, expert).expectations(basis)
    cheaper = jm.ExpertExpectation(spent - 0.5)
    problem = jm.Apprenticeship(world, basis, cheaper)
    solved = jm.certify(problem, jm.solve(problem))
    assert solved.lower_bound > 0
    assert f"and no policy can be below {solved.lower_bound:.4g}" in solved.summary()
    for cost, said in ((np.zeros(25), False), (np.arange(25) - 30.0, True)):
        forward = jm.Forward(world, cost)
        words = jm.certify(forward, jm.solve(forward)).summary()
        assert ("no policy can be below" in words) is said


PLAIN = {
    "sqrt", "log", "max", "max_i", "min", "mean", "sum_i", "sum_k", "combined", "of", "half", "the",
    "ranges", "under", "all", "laws", "or", "worst", "expectations", "values", "discount",
    "initial", "pairs", "branches", "summands", "costs", "in", "model", "w",
}  # fmt: skip
"""Words in formulas that say themselves what they mean."""
ROOM = Path(jm.__file__).parent / "certificate"


def formulas_in(text):
    """Texts given as the formula of a `Term` or a `Rate`, or to a variable of that name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Term", "Rate"):
            places = node.args[2:3]
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "formula":
            places = [node.value]
        else:
            continue
        parts = [part for place in places for part in ast.walk(place)]
        formats = [one.format_spec for one in parts if isinstance(one, ast.FormattedValue)]
        skipped = {id(part) for one in formats if one is not None for part in ast.walk(one)}
        for part in parts:
            text = part.value if isinstance(part, ast.Constant) else None
            if isinstance(text, str) and id(part) not in skipped:
                yield text


FORMULAS = [one for path in sorted(ROOM.glob("*.py")) for one in formulas_in(path.read_text())]


def test_every_symbol_of_every_formula_is_explained():
    assert len(FORMULAS) > 20
    assert "max_w <w, values> - lower(<w, total>)" in FORMULAS
    unknown = {
        word: formula
        for formula in FORMULAS
        if "delta_opt" not in formula  # of `requirements`, which no certificate has
        for word in SYMBOL.findall(formula)
        if word not in SYMBOLS and word not in PLAIN
    }
    assert not unknown
    assert not PLAIN & set(SYMBOLS)  # a word has one meaning in all formulas


def test_symbols_are_explained_below_the_table_and_only_those_that_occur(grid):
    world, basis, expert, demos = grid
    certificate = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    lines = certificate.table().partition("\nsymbols\n")[2].splitlines()
    stated = " ".join(" ".join(lines).split())
    assert "N: largest cost of the class in any pair" in stated
    assert "D: exact visits" in stated
    assert "theta" not in stated
    assert all(len(line) <= 100 for line in lines)
    assert "lower: lower bound on an expectation, by betting" in stated
    assert "Symbols: " in page(ReportData.of(certificate))


def test_the_page_about_certificates_explains_the_same_symbols():
    text = (ROOM.parents[2] / "docs" / "certificates.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", text, re.MULTILINE))
    for symbol, words in (SYMBOLS | KINDS).items():
        if symbol != "n":
            assert rows[symbol] == words.replace("|", "\\|")


# What certificates rest on, by name


def named(certificate):
    """Whether `summary` names every premise, and as what it is."""
    words = certificate.summary()
    declared, _, tested = words.partition("Premises tested and not refuted: ")
    for one in certificate.premises:
        assert one.name in (
            declared if one.status is jm.certificate.PremiseStatus.DECLARED else tested
        ), one
    return {one.name for one in certificate.premises}


def test_every_certificate_names_its_premises():
    world, basis, expert = jm.gallery.grid(4, seed=0)
    demos = jm.record(world, expert, trajectories=80, horizon=30, seed=0)
    explicit = jm.Apprenticeship(world, basis, demos)
    rollouts = jm.Rollouts(40, 20)
    assert len(named(jm.certify(explicit, expert))) == 5
    assert "fresh rollouts are independent of the policy" in named(
        jm.certify(explicit, expert, evaluation=rollouts)
    )
    given_expert = jm.ExpertExpectation(np.zeros(basis.num_costs))
    assert named(jm.certify(jm.Apprenticeship(world, basis, given_expert), expert)) == {
        "the declared expectations are those of the expert", "the laws of the world are exact",
    }  # fmt: skip
    cost = np.ones(world.num_pairs)
    assert named(jm.certify(jm.Forward(world, cost), expert)) == {"the laws of the world are exact"}
    model = estimated_twin(world)
    assert named(jm.certify(jm.Forward(model, cost), jm.Policy.uniform(model))) == {
        "the true laws are as near as the model says"
    }
    found = named(jm.certify(jm.Apprenticeship(model, basis, demos), jm.Policy.uniform(model)))
    assert "the expert acts in the world the model describes" in found


def estimated_twin(world, count=40):
    pairs = np.repeat(np.arange(world.num_pairs), count)
    rng = np.random.default_rng(0)
    rows = np.cumsum(world.transition.toarray(), axis=1)[pairs]
    after = np.minimum((rows < rng.random((pairs.size, 1))).sum(axis=1), world.num_states - 1)
    return jm.World.from_transitions(
        world.pairs.states[pairs], world.pairs.actions[pairs], after, world.discount,
        initial=world.initial,
    )  # fmt: skip


def test_large_and_simulated_certificates_name_their_premises():
    network = jm.gallery.queues(4, buffers=[3, 2, 2, 3])
    world, costs, expert = network.world, network.costs, network.longer
    demos = jm.record(world, expert, trajectories=20, horizon=15, seed=0)
    rollouts, numbers = jm.Rollouts(40, 20), np.zeros(costs.num_costs)
    large = jm.Apprenticeship(world, costs, demos)
    assert len(named(jm.certify(large, expert, evaluation=rollouts))) == 9
    known = jm.Apprenticeship(world, costs, jm.ExpertExpectation(numbers))
    assert named(jm.certify(known, expert, evaluation=rollouts)) == {
        "costs lie in their declared range", "the declared expectations are those of the expert",
        "the laws of the world are exact", "fresh rollouts are independent of the policy",
        "rollouts are independent of one another",
    }  # fmt: skip
    totals = jm.demonstrations.record_totals(
        large.simulator, expert, trajectories=20, horizon=15, seed=0
    )
    simulated = jm.Apprenticeship(large.simulator, None, totals)
    mixture = jm.policy.MixturePolicy([expert, network.uniform], [0.5, 0.5])
    drawn = jm.certify(simulated, mixture, evaluation=jm.problem.MixtureRollouts(20, 15))
    assert "rollouts are independent of the candidates" in named(drawn)
    assert "the simulator is the world the expert acted in" in named(drawn)
    stated = jm.Apprenticeship(large.simulator, None, jm.ExpertExpectation(numbers))
    assert "the simulator is the world the expert acted in" in named(
        jm.certify(stated, expert, evaluation=rollouts)
    )


def test_budgets_are_kept_with_a_probability_where_laws_were_counted():
    world, basis, expert = jm.gallery.grid(4, seed=0)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    wear = np.linspace(0.5, 1, world.num_pairs)
    roomy, tight = (
        [jm.Budget(wear, part * world.effective_horizon, name="wear")] for part in (1.1, 0.6)
    )
    model = estimated_twin(world)
    policy = jm.Policy.uniform(model)
    kept = jm.certify(jm.Apprenticeship(model, basis, target, constraints=roomy), policy)
    (budget,) = kept.budgets
    assert budget.is_kept
    assert budget.failure_probability == 0.25 * 0.05
    assert "kept with probability 0.9875" in kept.table()
    assert "The budget 'wear' is kept with probability 0.9875" in kept.summary()
    assert "kept with probability 0.9875" in kept._repr_html_()
    broken = jm.certify(jm.Apprenticeship(model, basis, target, constraints=tight), policy)
    assert "spent with probability 0.9875" in broken.summary()
    with pytest.raises(jm.NotCertified, match=r"up to \S+ with probability 0.9875, by"):
        broken.require(gap=1e9)
    exact = jm.certify(jm.Apprenticeship(world, basis, target, constraints=roomy), expert)
    assert exact.budgets[0].failure_probability == 0
    assert "kept with" not in exact.table()
    never = [jm.Budget(np.zeros(world.num_pairs), 0.0, name="nothing")]
    free = jm.certify(jm.Apprenticeship(model, basis, target, constraints=never), policy)
    assert free.budgets[0].failure_probability == 0


def test_a_certificate_as_plain_values_says_what_its_attributes_say(grid):
    world, basis, expert, demos = grid
    budget = jm.Budget(cost=np.ones(25), at_most=30.0, name="time")
    certificate = jm.certify(jm.Apprenticeship(world, basis, demos, constraints=budget), expert)
    known = json.loads(certificate.to_json())
    assert known == certificate.to_dict()
    assert known["bound"] == certificate.bound
    assert known["expectations"] == certificate.expectations.tolist()
    assert known["budgets"][0]["spent"] == certificate.budgets[0].spent
    assert known["lower_bounds"]["on_data"] == certificate.lower_bound
    assert [one["status"] for one in known["premises"]] == [
        one.status.value for one in certificate.premises
    ]
    rows = certificate.to_rows()
    best = [row for row in rows if row["bound"] == rows[0]["bound"]]
    assert sum(row["value"] for row in best) == pytest.approx(certificate.best.bound)
    assert len(rows) == sum(len(way.terms) for way in certificate.combinations)


def test_what_was_not_evaluated_exactly_is_absent_in_one_way():
    network = jm.gallery.queues(4, buffers=(2, 2, 2, 2), discount=0.9)
    demos = jm.record(network.world, network.longer, trajectories=20, horizon=40, seed=0)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    certificate = jm.certify(problem, network.longer, evaluation=jm.Rollouts(50, 40))
    assert not certificate.is_exact
    known = json.loads(certificate.to_json())
    assert known["gap_on_data"] is None
    for name in ("budgets", "expert_intervals", "apprentice_intervals"):
        assert known[name] == []
    assert certificate.witness is certificate.optimality_gap is certificate.reduced is None
    assert certificate.lower_bound == 0 <= certificate.bound
    assert known["lower_bounds"]["expert_radius"] == "inf"
    assert not certificate.alarm
    assert "gap on the data" not in certificate.table() + certificate.summary()
    assert "rollout sampling" in certificate.advice()
    assert repr(certificate).startswith("Certificate(gap <= ")
