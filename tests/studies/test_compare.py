"""A study measures what a person would measure by hand, in order, whoever does the work."""

import re
from dataclasses import replace

import numpy as np
import pytest

import journeyman as jm
import study_methods
from journeyman.errors import InvalidInput, InvalidPolicy, InvalidProblem, InvalidSolver
from journeyman.solvers.classics.behaviour_cloning import BehaviourCloning

EXACT = {"lp": jm.LinearProgram(), "columns": jm.ColumnGeneration()}


def sgd(problem):
    features = jm.features.partition(problem.world, problem.demonstrations, num_cells=4)
    return jm.StochasticSubgradient(features, steps=3000, accuracy=0)


def untimed(trials):
    return [replace(trial, seconds=0.0) for trial in trials]


def test_numbers_are_those_of_solving_and_certifying_by_hand():
    world, basis, expert = study_methods.grid()
    problem = study_methods.drawn(3)
    (trial,) = jm.compare(
        problem, jm.LinearProgram(), expert=expert, failure_probability=0.1
    ).trials
    answer = jm.solve(problem, jm.LinearProgram())
    certificate = jm.certify(problem, answer, 0.1)
    truth = jm.Apprenticeship(
        world, basis, jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    )
    assert trial.true_gap == pytest.approx(truth.gap(answer.policy), rel=1e-12)
    assert trial.gap_on_data == answer.value
    assert trial.lower_bound == answer.lower_bound
    assert trial.certified_bound == certificate.bound
    assert trial.trivial_bound == certificate.trivial_bound
    assert (trial.valid, trial.vacuous) == (certificate.valid, certificate.vacuous)
    assert (trial.status, trial.engine) == ("OPTIMAL", answer.engine)
    assert (trial.problem, trial.solver, trial.seed) == ("problem", "LinearProgram", None)
    assert trial.budgets_kept is None
    assert trial.true_gap > 0
    assert trial.seconds > 0


def test_a_known_expert_may_be_given_by_its_expectations():
    world, basis, expert = study_methods.grid()
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    problem = study_methods.drawn(0)
    by_policy = jm.compare(problem, EXACT, expert=expert).trials
    by_values = jm.compare(problem, EXACT, truth=truth).trials
    assert [one.true_gap for one in by_policy] == [one.true_gap for one in by_values]
    unknown = jm.compare(problem, EXACT)
    assert [one.true_gap for one in unknown.trials] == [None, None]
    assert "true gap" not in unknown.table()
    assert "gap on the data" in unknown.table()


def test_trials_stand_in_the_order_of_problems_solvers_and_seeds():
    problems = {"few": study_methods.drawn, "exact": study_methods.declared()}
    found = jm.compare(problems, {"lp": jm.LinearProgram(), "sgd": sgd}, seeds=(2, 0))
    names = [(one.problem, one.solver, one.seed) for one in found.trials]
    assert names == [
        ("few", "lp", 2), ("few", "lp", 0), ("few", "sgd", 2), ("few", "sgd", 0),
        ("exact", "lp", None), ("exact", "sgd", 2), ("exact", "sgd", 0),
    ]  # fmt: skip
    few = [one.certified_bound for one in found.trials[:2]]
    assert few[0] != few[1], "every seed has its own demonstrations"
    drawn_twice = [one.gap_on_data for one in found.trials[-2:]]
    assert drawn_twice[0] != drawn_twice[1], "the method draws from the seed of its trial"
    assert [row.split()[0] for row in found.table().splitlines()[1:]] == [
        "few",
        "few",
        "exact",
        "exact",
    ]


def test_the_work_of_methods_is_counted():
    found = jm.compare(study_methods.drawn(0), {**EXACT, "sgd": sgd})
    lp, columns, descent = found.trials
    assert lp.iterations is None
    assert columns.iterations == columns.forward_solves >= 1
    assert (descent.iterations, descent.forward_solves) == (3000, 0)


def test_the_calls_of_the_second_stage_count_too():
    problem = jm.Apprenticeship(
        *study_methods.grid()[:2], study_methods.declared().expectation, jm.Simplex()
    )
    answer = jm.solve(problem, jm.ColumnGeneration())
    first, second = (int(number) for number in re.findall(r"(\d+) calls", answer.engine))
    assert answer.work.forward_solves == first + second


def test_a_refusal_or_a_fault_is_a_row_and_not_the_end(tmp_path):
    def impossible(problem):
        raise InvalidSolver("cells = 0", "Give more")

    methods = {
        "cloning": BehaviourCloning(),
        "broken": study_methods.Broken(tmp_path / "repaired"),
        "impossible": impossible,
        "lp": jm.LinearProgram(),
    }
    found = jm.compare(study_methods.declared(), methods)
    cloning, broken, made, lp = found.trials
    assert (cloning.status, cloning.has_policy) == ("REFUSED", False)
    assert "needs demonstrations" in cloning.message
    assert (broken.status, broken.message) == ("RAISED", "ZeroDivisionError: a fault of the method")
    assert (made.status, made.message) == ("REFUSED", "cells = 0. Give more.")
    assert lp.status == "OPTIMAL"
    assert "ZeroDivisionError" in found.table()


def test_budgets_that_no_policy_keeps_are_an_outcome():
    world, basis, _ = study_methods.grid()
    time = jm.Budget(cost=np.ones(world.num_pairs), at_most=1.0, name="time")
    problem = jm.Apprenticeship(world, basis, study_methods.drawn(0).demonstrations, None, [time])
    (trial,) = jm.compare(problem, jm.LinearProgram()).trials
    assert (trial.status, trial.has_policy) == ("INFEASIBLE", False)
    assert "exclude each other" in trial.message
    kept = jm.Budget(cost=np.ones(world.num_pairs), at_most=30.0, name="time")
    problem = jm.Apprenticeship(world, basis, study_methods.drawn(0).demonstrations, None, [kept])
    (trial,) = jm.compare(problem, jm.LinearProgram()).trials
    assert trial.budgets_kept is True


def test_no_number_depends_on_the_executor():
    def run(executor):
        return jm.compare(
            study_methods.drawn, {"lp": jm.LinearProgram(), "sgd": sgd}, range(2),
            expert=study_methods.grid()[2], executor=executor,
        )  # fmt: skip

    alone, together = run(None), run(jm.Processes(2))
    assert untimed(alone.trials) == untimed(together.trials)
    assert len(alone.trials) == 4


def test_the_observer_hears_of_every_trial():
    heard = []
    jm.compare(study_methods.drawn(0), EXACT, observer=heard.append)
    assert [event.task for event in heard] == ["1 of 2 trials", "2 of 2 trials"]


def test_the_time_limit_goes_before_that_of_the_solver():
    def endless(problem):
        return replace(sgd(problem), steps=10**9, time_limit=1000.0)

    (trial,) = jm.compare(study_methods.drawn(0), {"sgd": endless}, time_limit=0.05).trials
    assert trial.status == "TIME_LIMIT"
    assert trial.has_policy


def test_a_method_that_draws_nothing_has_one_trial_whether_it_has_a_seed_or_not():
    methods = {
        "exact": jm.solvers.ImitationTrustRegion(max_iterations=2),
        "made": lambda problem: jm.solvers.ImitationReinforce(max_iterations=2),
        "drawn": jm.solvers.ImitationTrustRegion(max_iterations=2, rollouts=5, horizon=20),
    }
    found = jm.compare(study_methods.declared(), methods, seeds=range(2))
    assert [(one.solver, one.seed) for one in found.trials] == [
        ("exact", None), ("made", None), ("drawn", 0), ("drawn", 1),
    ]  # fmt: skip


def test_a_single_method_needs_no_list():
    for alone in (jm.LinearProgram(), lambda problem: jm.LinearProgram()):
        (trial,) = jm.compare(study_methods.declared(), alone).trials
        assert trial.status == "OPTIMAL"


def test_solvers_without_names_have_those_of_their_classes():
    found = jm.compare(
        study_methods.drawn(0), [jm.LinearProgram(), jm.LinearProgram(tolerance=1e-3)]
    )
    assert [one.solver for one in found.trials] == ["LinearProgram", "LinearProgram 2"]


@pytest.mark.parametrize(
    ("changes", "refusal", "words"),
    [
        ({"seeds": 5}, InvalidInput, "range"),
        ({"seeds": 5.0}, InvalidInput, "range"),
        ({"seeds": None}, InvalidInput, "range"),
        ({"seeds": ()}, InvalidInput, "at least one seed"),
        ({"seeds": (1, 1)}, InvalidInput, "once"),
        ({"seeds": (-1,)}, InvalidInput, "from 0"),
        ({"seeds": (0.5,)}, InvalidInput, "whole"),
        ({"solvers": []}, InvalidSolver, "no solver"),
        ({"solvers": [jm.solvers.Projection]}, InvalidSolver, r"a class. Give .* Projection\("),
        ({"solvers": jm.solvers.Projection}, InvalidSolver, r"a class. Give .* Projection\("),
        ({"solvers": {"lp": jm.LinearProgram}}, InvalidSolver, "is a class"),
        ({"solvers": "projection"}, InvalidSolver, "'projection' is not a solver"),
        ({"solvers": ["projection"]}, InvalidSolver, "'projection' is not a solver"),
        ({"solvers": None}, InvalidSolver, "None is not a solver"),
        ({"solvers": {"lp": 3}}, InvalidSolver, "value such as"),
        ({"problem": 3}, InvalidProblem, "Apprenticeship"),
        ({"problem": {}}, InvalidProblem, "no problem"),
        ({"problem": lambda seed: seed}, InvalidProblem, "is a int"),
        ({"problem": jm.Apprenticeship}, InvalidProblem, "Apprenticeship"),
        ({"expert": "someone"}, InvalidPolicy, "Policy"),
        ({"truth": [1.0]}, InvalidProblem, "ExpertExpectation"),
        ({"truth": jm.ExpertExpectation([1.0])}, InvalidProblem, "1 expectations"),
        ({"expert": {"other": None}}, InvalidProblem, "no true expert"),
        ({"truth": jm.ExpertExpectation([1.0]), "expert": 3}, InvalidInput, "one of them"),
        ({"time_limit": 0}, InvalidSolver, "seconds"),
        ({"failure_probability": 2}, InvalidInput, "probability"),
        ({"executor": 2}, InvalidInput, "Processes"),
        ({"executor": jm.Serial(), "observer": print}, InvalidInput, "to the executor"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_at_the_door(changes, refusal, words):
    given = {"problem": study_methods.declared(), "solvers": EXACT} | changes
    with pytest.raises(refusal, match=words):
        jm.compare(**given)
