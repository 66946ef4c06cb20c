import io
import sys

import pytest

from journeyman.progress import Event, Terminal, guarded, quiet

EVENT = Event("LinearProgram", elapsed=12.34, iteration=5, objective=0.123456789)


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
    return run


def test_an_event_says_task_time_iteration_and_objective():
    assert str(EVENT) == "LinearProgram · 12.3 s · iteration 5 · objective 0.123457"


def test_an_event_without_objective_does_not_invent_one():
    assert str(Event("LinearProgram", elapsed=0.0, iteration=0)) == (
        "LinearProgram · 0.0 s · iteration 0"
    )


def test_an_objective_of_zero_is_shown():
    assert str(Event("LinearProgram", 0.0, 0, objective=0.0)).endswith("objective 0")


def test_quiet_shows_nothing(capfd):
    quiet(EVENT)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_the_event(show):
    assert str(EVENT) in show(EVENT)


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
