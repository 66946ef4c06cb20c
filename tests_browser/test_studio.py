"""The studio in a real browser: drawn, demonstrated by keyboard and touch, certified, audited."""

import re
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

import journeyman as jm

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from studio.studio_process import GRID, StudioProcess

SECONDS = 60_000
WIDTHS = (390, 768, 1280, 1600)
OPEN = GRID | {"cells": ["1122", "1122", "3344", "3344"]}
"""Without a goal, so that an episode is as long as it is typed."""
CORRIDOR = {"kind": "grid", "cells": ["1*#", "###", "###"], "slip": 0.0}


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    process = StudioProcess(tmp_path_factory.mktemp("studio"))
    yield process
    process.close()


@pytest.fixture
def window(browser):
    """Pages of a window; none of them may report an error."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    problems = []
    context.on("weberror", lambda fault: problems.append(str(fault.error)))
    context.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
    yield context
    assert not [one for one in problems if "Failed to load resource" not in one]
    context.close()


@pytest.fixture
def page(window, studio):
    page = window.new_page()
    page.goto(studio.address)
    return page


def opened(page, studio, world=OPEN, **settings):
    """A session in a world, without the page on which it is chosen."""
    name = studio.post("sessions", {"world": world | settings})["name"]
    page.goto("about:blank")
    page.goto(f"{studio.address}&session={name}")
    expect(page.locator("#board")).to_be_focused()
    return name


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def tab_to(page, selector):
    """Tab until the focus is there, as somebody without a mouse does."""
    for _ in range(80):
        if page.evaluate("one => document.activeElement.matches(one)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no way leads to {selector} by the Tab key")


def demonstrate(page, count):
    """Keep one more episode; typed faster than answers come."""
    press(page, *["ArrowRight", "ArrowUp"] * 6, "Enter")
    expect(page.locator("#episodes tbody tr")).to_have_count(count, timeout=SECONDS)


def settled(page, count):
    """Wait until the certificate is that of so many episodes."""
    expect(page.locator("#brief")).to_contain_text(f"after {count} episode", timeout=SECONDS)
    expect(page.locator("#renewing")).to_be_hidden(timeout=SECONDS)


def test_a_story_by_keyboard_from_an_empty_page_to_an_audited_run(page, tmp_path):
    tab_to(page, "#editor")
    press(page, "ArrowDown", "w", "Space", "ArrowRight", "5", "Space", "ArrowRight", "s", "Space")
    expect(page.locator("#editor .look-wall")).to_have_count(3)
    expect(page.locator("#editor .look-5")).to_have_count(1)
    expect(page.locator("#editor .start-mark")).to_have_count(1)
    tab_to(page, "#begin")
    press(page, "Enter")
    expect(page.locator("#board")).to_be_focused()
    for count in (1, 2, 3):
        demonstrate(page, count)
    settled(page, 3)
    expect(page.locator("#share")).to_contain_text("%")
    expect(page.locator("#chart circle")).to_have_count(3)
    expect(page.locator("#maps svg")).to_have_count(3)
    expect(page.locator("#ranges svg")).to_be_visible()
    expect(page.locator("#replay-boards figure")).to_have_count(2)
    press(page, "ArrowRight", "ArrowRight", "Backspace")
    expect(page.locator("#position")).to_contain_text("1 of at most 60 steps")
    tab_to(page, "#advised")
    press(page, "Enter")
    expect(page.locator("#what")).to_contain_text("Advised start")
    expect(page.locator("#board")).to_be_focused()
    tab_to(page, "input[name=premise]")
    press(page, "ArrowDown")
    expect(page.locator("input[value=deterministic]")).to_be_checked()
    expect(page.locator("#claim")).to_contain_text("more than you", timeout=SECONDS)
    tab_to(page, "[aria-label='Drop episode 3']")
    press(page, "Enter")
    settled(page, 2)
    tab_to(page, "#audit")
    press(page, "Enter")
    expect(page.locator("#audited")).to_contain_text("passed", timeout=SECONDS)
    with page.expect_download() as waiting:
        press(page, "Shift+Tab", "Shift+Tab", "Enter")
    packed = tmp_path / "run.zip"
    waiting.value.save_as(packed)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path / "run")
    (certificate,) = (tmp_path / "run").rglob("certificate.json")
    assert jm.audit(certificate.parent).passed


def test_slips_ends_and_time_limits_are_distinguished(page, studio):
    opened(page, studio, CORRIDOR)
    press(page, "ArrowRight")
    expect(page.locator("#what")).to_contain_text("terminated")
    press(page, "ArrowRight", "Enter")
    expect(page.locator("#episodes tbody")).to_contain_text("terminated")
    opened(page, studio, slip=1.0, most_steps=20)
    slips = 0
    for step in range(1, 21):
        press(page, "ArrowRight")
        expect(page.locator("#position")).to_contain_text(f" {step} of at most 20")
        slipped = "slipped" in page.locator("#what").text_content()
        assert page.locator("#board .intended").count() == 2 * slipped
        slips += slipped
    assert slips > 0
    expect(page.locator("#what")).to_contain_text("time limit of 20 steps truncates")
    press(page, "Enter", "ArrowUp", "Enter")
    expect(page.locator("#episodes tbody tr").last).to_contain_text("truncated: time limit")
    expect(page.locator("#episodes tbody tr").first).to_contain_text("truncated by you")


def test_by_touch(browser, studio):
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    page = context.new_page()
    opened(page, studio)
    for _ in range(3):
        page.locator("#pad .up").tap()
    expect(page.locator("#position")).to_contain_text("3 of")
    page.locator("#undo").tap()
    expect(page.locator("#position")).to_contain_text("2 of")
    page.locator("#finish").tap()
    expect(page.locator("#brief")).to_contain_text("after 1 episode.", timeout=SECONDS)
    context.close()


@pytest.mark.parametrize("world", [
    {"kind": "driving"}, {"kind": "gymnasium", "name": "Taxi-v4"},
    {"kind": "gymnasium", "name": "CliffWalkingSlippery-v1"},
], ids=["driving", "taxi", "cliff"])  # fmt: skip
def test_other_worlds_are_shown_and_certified(page, studio, world):
    opened(page, studio, world)
    expect(page.locator("#board svg")).to_be_visible()
    press(page, "ArrowRight", "ArrowLeft", "Enter")
    settled(page, 1)
    expect(page.locator("#maps")).to_contain_text(
        "The apprentice" if "Cliff" in str(world) else "%"
    )


def test_two_tabs_show_one_session(page, studio, window):
    opened(page, studio)
    demonstrate(page, 1)
    other = window.new_page()
    other.goto(page.url)
    expect(other.locator("#episodes tbody tr")).to_have_count(1)
    press(other, "ArrowUp")
    expect(page.locator("#position")).to_contain_text("1 of at most")
    press(page, "ArrowUp")
    expect(other.locator("#position")).to_contain_text("2 of at most")
    demonstrate(other, 2)
    expect(page.locator("#episodes tbody tr")).to_have_count(2)


def test_the_back_button_leads_to_the_choice_and_forward_to_the_session(page):
    page.locator("#begin").click()
    expect(page.locator("#board")).to_be_focused()
    press(page, "ArrowUp")
    expect(page.locator("#position")).to_contain_text("1 of")
    page.go_back()
    expect(page.locator("#choose")).to_be_visible()
    expect(page.locator("#session")).to_be_hidden()
    page.go_forward()
    expect(page.locator("#position")).to_contain_text("1 of")


def test_a_long_solve_shows_progress_stops_and_resumes(page, studio):
    opened(page, studio, cells=["1" * 15 + "*"] + ["1122334411223344"] * 15)
    demonstrate(page, 1)
    settled(page, 1)
    page.locator("#methods summary").click()
    page.locator("#steps").fill("1000000000")
    for word in ("Solve", "Resume"):
        expect(page.locator("#solve")).to_have_text(word, timeout=SECONDS)
        page.locator("#solve").click()
        expect(page.locator("#progress")).to_contain_text("iteration", timeout=SECONDS)
        page.locator("#stop").click()
    expect(page.locator("#progress")).to_contain_text("goes on from where it was", timeout=SECONDS)


def test_a_killed_server_is_noticed_and_nothing_is_lost(window, tmp_path):
    first = StudioProcess(tmp_path)
    page = window.new_page()
    name = opened(page, first)
    demonstrate(page, 1)
    press(page, "ArrowUp", "ArrowUp")
    expect(page.locator("#position")).to_contain_text("2 of")
    first.kill()
    expect(page.locator("#connection")).to_contain_text("not connected")
    expect(page.locator("#error")).to_contain_text("nothing that was recorded is lost")
    again = StudioProcess(tmp_path)
    page.goto(f"{again.address}&session={name}")
    expect(page.locator("#position")).to_contain_text("2 of")
    expect(page.locator("#episodes tbody tr")).to_have_count(1)
    again.close()


def test_a_lost_connection_comes_back_by_itself(page, studio):
    name = studio.post("sessions", {"world": GRID})["name"]
    page.route("**/events", lambda route: route.abort())
    page.goto("about:blank")
    page.goto(f"{studio.address}&session={name}")
    expect(page.locator("#connection")).to_contain_text("not connected")
    page.unroute("**/events")
    expect(page.locator("#connection")).to_have_text("connected")
    expect(page.locator("#error")).to_be_hidden()


def test_a_saved_run_of_other_origin_is_opened(window, tmp_path):
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=3, horizon=20, seed=0)
    jm.learn(world, basis, demos, expert_is=jm.Rational(regret_per_step=0.01)).save(
        tmp_path / "run"
    )
    process = StudioProcess(tmp_path)
    page = window.new_page()
    page.goto(process.address)
    page.get_by_text("Open a saved run").click()
    page.locator("[data-name=run]").click()
    settled(page, 3)
    expect(page.locator("#more")).to_contain_text("as saved")
    press(page, "ArrowUp", "Enter")
    settled(page, 4)
    process.close()


def test_a_page_without_the_token_shows_nothing(browser, studio):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://{studio.host}/")
    expect(page.locator("#error")).to_contain_text("token")
    context.close()


UNNAMED = """() => [...document.querySelectorAll('button, input, select, svg, [role=application]')]
    .filter(one => one.checkVisibility() && !one.closest('[aria-hidden=true]'))
    .filter(one => !(one.ariaLabel || one.labels?.length || one.textContent.trim()))
    .map(one => one.outerHTML.slice(0, 80))"""
FAINT = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, at) => sum + x * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = one => {
    for (; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const texts = 'p, span, small, label, button, th, td, h1, h2, h3, li, figcaption, legend';
  return [...document.querySelectorAll(texts)]
    .filter(one => one.checkVisibility() && one.textContent.trim())
    .filter(one => !one.closest('[aria-disabled=true], :disabled, .unseen'))
    .map(one => [light(parse(getComputedStyle(one).color)), light(behind(one)), one.textContent])
    .filter(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5)
    .map(([a, b, text]) => text.slice(0, 40));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_width_is_named_and_has_contrast(page, studio, scheme):
    page.emulate_media(color_scheme=scheme)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(FAINT) == []
    opened(page, studio)
    demonstrate(page, 1)
    settled(page, 1)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(FAINT) == []
    expect(page.locator("#live")).to_contain_text(re.compile("of the most|starts in"))
