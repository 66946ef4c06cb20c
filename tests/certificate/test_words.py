"""What is said about one certificate in several places says the same thing."""

import re

import numpy as np
import pytest

import journeyman as jm
from journeyman.certificate.saving import certificate_facts

LEAST = re.compile(r"^lower bound on the (data|cost) +(\S+)", re.MULTILINE)


def world_of(kind, seed):
    rng = np.random.default_rng(seed)
    states = 5
    law = rng.dirichlet(np.full(states, 0.5), size=2 * states)
    if kind == "episodic":
        law[:, -1] += 0.5
        law /= law.sum(axis=1, keepdims=True)
        law[-2:] = np.eye(states)[-1]
    true = jm.World(law, np.eye(states)[0], 0.95)
    costs = rng.uniform(0, 1, (2 * states, 2))
    if kind == "episodic":
        costs[-2:] = 0.0
    if kind != "estimated":
        return true, true, jm.CostBasis(costs)
    drawn = np.array([rng.multinomial(200, row) for row in law]) / 200
    model = jm.World(drawn, true.initial, 0.95, transition_counts=200)
    return true, model, jm.CostBasis(costs)


def solved(kind, cost_class, seed):
    true, world, basis = world_of(kind, seed)
    if cost_class is None:
        problem = jm.Forward(world, basis.matrix[:, 0])
    else:
        expert = jm.Policy(np.random.default_rng(seed + 50).dirichlet(np.ones(2), size=5))
        demos = jm.record(true, expert, trajectories=60, horizon=40, seed=seed)
        problem = jm.Apprenticeship(world, basis, demos, cost_class())
    answer = jm.solve(problem)
    return answer, jm.certify(problem, answer)


EVERY = pytest.mark.parametrize(
    ("kind", "cost_class", "seed"),
    [
        (kind, cost_class, seed)
        for kind in ("continuing", "episodic", "estimated")
        for cost_class in (jm.InfinityBall, jm.EuclideanBall, jm.Simplex, None)
        for seed in range(3)
    ],
)


@EVERY
def test_lower_bounds_do_not_contradict_the_answer_or_one_another(kind, cost_class, seed):
    """OPTIMAL stands beside a lower bound that shows it; what allows for more errors says so."""
    answer, certificate = solved(kind, cost_class, seed)
    unit = answer.problem.gap_scale
    assert answer.status.name == "OPTIMAL"
    assert ("in the model" in repr(answer)) is (kind == "estimated")
    assert certificate.lower_bound == pytest.approx(answer.lower_bound, abs=1e-6 * unit)
    assert certificate.gap_on_data == pytest.approx(answer.value, abs=1e-9 * unit)
    assert 0 <= certificate.optimality_gap <= 1e-6 * unit
    assert certificate.true_lower_bound <= certificate.lower_bound + 1e-9 * unit
    table = certificate.table()
    (shown,) = LEAST.findall(table)
    assert float(shown[1]) == pytest.approx(certificate.lower_bound, rel=1e-5, abs=1e-12)
    facts = certificate_facts(certificate)
    assert facts["lower_bounds"]["on_data"] == certificate.lower_bound
    for line in table.split("\n"):
        about_the_model = line.startswith(("gap on the data", "expected cost ", "lower bound on"))
        if about_the_model and kind == "estimated":
            assert "in the model" in line or "allowing for model error" in line, line
    assert ("in the model" in certificate.summary()) <= (kind == "estimated")


@EVERY
def test_no_lower_bound_is_shown_that_everybody_knows(kind, cost_class, seed):
    _, certificate = solved(kind, cost_class, seed)
    for line in certificate.table().split("\n"):
        if line.startswith("lower bound on the true"):
            value = float(line.split()[6])
            known = -certificate.trivial_bound if cost_class is jm.Simplex else 0.0
            assert value > known
            assert "allowing for" in line
            assert ("does better than the expert by more" in line) is (value < 0)


@EVERY
def test_every_term_is_what_its_name_says(kind, cost_class, seed):
    """The gap to the estimate is that of exact evaluation; the error of the model is a term."""
    answer, certificate = solved(kind, cost_class, seed)
    problem = answer.problem
    own = answer.occupancy.expectations(problem.basis)
    for way in certificate.combinations:
        names = [term.name for term in way.terms]
        assert ("model" in names) is (kind == "estimated")
        assert names[0] == ("expected cost" if cost_class is None else "gap to the estimate")
        if cost_class is None:
            assert way.terms[0].value == pytest.approx(float(own[0]))
    by_estimate = {}
    for way in certificate.combinations:
        by_estimate.setdefault(way.estimate, set()).add(round(way.terms[0].value, 9))
    assert all(len(values) == 1 for values in by_estimate.values())


@EVERY
def test_the_page_has_three_figures_of_the_gap_by_the_names_of_the_table(kind, cost_class, seed):
    _, certificate = solved(kind, cost_class, seed)
    page = jm.report.as_html(certificate)
    names = re.findall(r"<dt>([^<]*)</dt>", page.partition("What the bound is made of")[0])
    of_gaps = [name for name in names if "gap" in name or "bound" in name or "cost" in name]
    expected = ["gap on the data", "lower bound on the data"]
    if cost_class is None:
        expected = ["expected cost", "lower bound on the cost"]
    assert of_gaps == expected
    table = certificate.table()
    for name in expected:
        assert f"\n{name} " in table
    strength = certificate.strength
    assert ("badge good" in page.partition("What the bound is made of")[0]) is not strength
    for text in (certificate.summary(), table.split("\n")[0], repr(certificate)):
        assert (strength in text) if strength else ("weak" not in text and "vacuous" not in text)
