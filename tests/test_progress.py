import io
import math
import sys

import numba
import numpy as np
import pytest

import journeyman as jm
import journeyman.compiled
from journeyman.progress import Deadline, Event, Terminal, guarded, quiet, within
from journeyman.solvers.running import Watch

EVENT = Event("LinearProgram", elapsed=12.34, iteration=5, objective=0.123456789)
BOUNDED = Event("ColumnGeneration", 3.2, 14, objective=0.1301, lower_bound=0.1234)


class Screen(io.StringIO):
    """A terminal that remembers what it was shown."""

    def isatty(self):
        return True


@pytest.fixture
def show(monkeypatch):
    """What a terminal has been sent after some events."""

    def run(*events, **settings):
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        with Terminal(**settings) as terminal:
            for event in events:
                terminal(event)
        return screen.getvalue()

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return run


def test_an_event_says_task_time_iteration_and_objective():
    assert str(EVENT) == "LinearProgram · 12.3 s · iteration 5 · objective 0.123457"


def test_an_event_without_objective_does_not_invent_one():
    assert str(Event("LinearProgram", elapsed=0.0, iteration=0)) == (
        "LinearProgram · 0.0 s · iteration 0"
    )


def test_an_objective_of_zero_is_shown():
    assert str(Event("LinearProgram", 0.0, 0, objective=0.0)).endswith("objective 0")


def test_both_bounds_are_shown_with_their_difference():
    assert str(BOUNDED) == (
        "ColumnGeneration · 3.2 s · iteration 14 · 0.1234 <= optimum <= 0.1301 (difference 0.0067)"
    )


def test_a_lower_bound_alone_is_one_side():
    assert str(Event("task", 0.0, 1, lower_bound=-2.5)).endswith(" · -2.5 <= optimum")


def test_quiet_shows_nothing(capfd):
    quiet(EVENT)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_the_event(show):
    assert str(EVENT) in show(EVENT)


def test_a_terminal_shows_the_latest_bounds(show):
    earlier = Event("ColumnGeneration", 2.0, 13, objective=0.1399, lower_bound=0.0)
    assert "0.1234 <= optimum <= 0.1301 (difference 0.0067)" in show(earlier, BOUNDED, interval=0.0)


def test_brackets_in_a_name_are_shown_as_they_are(show):
    assert "least spending of '[/wear]'" in show(Event("least spending of '[/wear]'", 12.4, 6))


def test_a_terminal_is_left_with_its_cursor_shown(show):
    text = show(EVENT)
    assert 0 <= text.rfind("\x1b[?25l") < text.rfind("\x1b[?25h")


def test_a_terminal_is_patient_with_short_computations(show):
    assert show(Event("LinearProgram", elapsed=0.9, iteration=1), patience=1.0) == ""


def test_a_terminal_skips_events_that_come_too_fast(show):
    text = show(EVENT, Event("too soon", elapsed=12.4, iteration=6), interval=1e9)
    assert "LinearProgram" in text
    assert "too soon" not in text


def test_a_terminal_renews_its_line(show):
    assert "later" in show(EVENT, Event("later", elapsed=12.4, iteration=6), interval=0.0)


def test_a_terminal_is_silent_where_standard_error_is_not_one(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Terminal() as terminal:
        terminal(EVENT)
    assert capfd.readouterr() == ("", "")


def test_a_failing_display_warns_once_and_never_raises():
    calls = []

    def broken(event):
        calls.append(event)
        raise RuntimeError("no ink")

    observe = guarded(broken)
    with pytest.warns(UserWarning, match="display failed and was switched off: no ink"):
        observe(EVENT)
    observe(EVENT)
    assert calls == [EVENT]


def test_a_sound_display_sees_every_event_through_its_guard():
    seen = []
    observe = guarded(seen.append)
    observe(EVENT)
    observe(EVENT)
    assert seen == [EVENT, EVENT]


def test_an_interrupt_passes_through_the_guard():
    def interrupted(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded(interrupted)(EVENT)


@pytest.mark.parametrize("nothing", [None, math.inf, -math.inf, math.nan])
def test_a_watch_reports_finite_figures_only(nothing):
    seen = []
    watch = Watch("task", seen.append)
    watch.report(1, nothing, nothing)
    watch.report(2, 1.5, nothing)
    watch.report(3, nothing, 0.5)
    assert [(event.objective, event.lower_bound) for event in seen] == [
        (None, None), (1.5, None), (None, 0.5),
    ]  # fmt: skip


def test_what_is_said_aside_is_named_and_ends():
    seen = []
    watch = Watch("task", seen.append)

    def fail():
        with watch.aside("something else"):
            watch.report(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    watch.report(2)
    assert [event.task for event in seen] == ["task, something else", "task"]


def seen_while_solving(problem, solver):
    seen = []
    answer = jm.solve(problem, solver, observer=seen.append)
    return [event for event in seen if not event.is_stage], answer


def demonstrated(budgets=()):
    world, basis, expert = jm.gallery.grid(6, macro_cells=2)
    demos = jm.record(world, expert, trajectories=20, horizon=60, seed=0)
    return jm.Apprenticeship(world, basis, demos, constraints=budgets)


def test_column_generation_reports_the_bounds_of_its_trace():
    seen, answer = seen_while_solving(demonstrated(), jm.ColumnGeneration())
    told = [(event.lower_bound, event.objective) for event in seen]
    assert told == [tuple(bounds) for bounds in answer.bounds_trace[:, 1:]]
    assert {event.task for event in seen} == {"ColumnGeneration"}


def test_sgd_al_reports_a_bound_on_its_own_loss():
    problem = demonstrated()
    features = jm.features.partition(problem.world, problem.demonstrations, num_cells=4)
    solver = jm.StochasticSubgradient(features, steps=3000)
    seen, _ = seen_while_solving(problem, solver)
    least = jm.solve(problem, jm.ReducedProgram(features)).reduced
    assert all(event.lower_bound <= least.loss * (1 + 1e-9) for event in seen)
    assert all(event.objective >= least.loss_lower_bound for event in seen)
    assert max(event.lower_bound for event in seen) > 0


def test_a_search_about_budgets_says_so():
    """Its figures are increases and spendings, not gaps."""
    wear = np.linspace(1, 2, 144)
    budgets = [jm.Budget(wear, 29.0, "wear"), jm.Budget(3 - wear, 29.0, "rest")]
    seen, answer = seen_while_solving(demonstrated(budgets), jm.ColumnGeneration())
    assert answer.status is jm.Status.INFEASIBLE
    last = {event.task: event for event in seen}
    cheapest = [f"ColumnGeneration, least spending of {name!r}" for name in ("wear", "rest")]
    increase = "ColumnGeneration, least increase of the limits"
    assert list(last) == ["ColumnGeneration", increase, *cheapest]
    for task, least in zip(cheapest, answer.relaxation.least, strict=True):
        assert last[task].lower_bound == pytest.approx(least, rel=1e-5)
        assert last[task].lower_bound <= least * (1 + 1e-9)


def test_a_mixture_that_breaks_a_budget_is_not_said_to_bound_the_optimum():
    world = jm.World([[1, 0], [0, 1], [0, 1]], [1.0, 0.0], 0.5, choice_offsets=[0, 2, 3])
    budget = jm.Budget([1.0, 0.999, 0.999], at_most=1.9985)
    basis = jm.CostBasis([[0.0], [1.0], [1.0]])
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0]), constraints=budget)
    seen, answer = seen_while_solving(problem, jm.ColumnGeneration())
    told = [event for event in seen if event.task == "ColumnGeneration"]
    assert told[0].objective is None
    assert all(event.lower_bound <= answer.value for event in told)
    assert all(event.objective is None or event.objective > 1.49 for event in told)
    assert answer.lower_bound > 1.49


@pytest.mark.parametrize(("module", "said"), [("journeyman.policy.steps", 1), ("numpy", 0)])
def test_whoever_waits_for_the_compiler_is_told(module, said):
    """For code of this package alone; what was compiled before is not compiled again."""

    def double(number):
        return 2 * number

    double.__module__ = module
    seen, twice = [], numba.njit(double)
    with within(Deadline(None, seen.append)):
        assert [twice(1.5), twice(2.5)] == [3.0, 5.0]
    assert journeyman.compiled
    assert [event.task.startswith("compiling double") for event in seen] == [True] * said
    assert all(event.is_stage for event in seen)
