"""The studio in a real browser: demonstrated by keyboard, certified, downloaded, audited."""

import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

import journeyman as jm

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from studio.studio_process import StudioProcess

SECONDS = 60_000
PICTURES = ("390", "768", "1280")


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    process = StudioProcess(tmp_path_factory.mktemp("studio"))
    yield process
    process.close()


@pytest.fixture
def page(browser, studio):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda fault: problems.append(str(fault)))
    page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
    page.goto(studio.address)
    yield page
    assert not problems
    context.close()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def begin(page):
    """By keyboard: from the top of the page to the button, and to the board."""
    expect(page.locator("#begin")).to_be_visible()
    page.locator("#begin").focus()
    press(page, "Enter")
    expect(page.locator("#board")).to_be_visible()
    page.locator("#board").focus()


def demonstrate(page, count):
    """Keep one more episode; typed faster than answers come."""
    press(page, *["ArrowRight", "ArrowDown"] * 6, "Enter")
    expect(page.locator("#episodes tbody tr")).to_have_count(count, timeout=SECONDS)


def test_a_story_by_keyboard_from_an_empty_page_to_an_audited_run(page, tmp_path):
    begin(page)
    for count in (1, 2, 3):
        demonstrate(page, count)
    expect(page.locator("#claim")).to_contain_text("%", timeout=SECONDS)
    expect(page.locator("#chart svg")).to_be_visible()
    expect(page.locator("#apprentice")).to_be_visible()
    expect(page.locator("#maps svg").first).to_be_visible()
    press(page, "ArrowRight", "ArrowRight", "Backspace")
    expect(page.locator("#position")).to_contain_text("1 of at most 60 steps")
    page.locator("#audit").focus()
    press(page, "Enter")
    expect(page.locator("#audited")).to_contain_text("passed", timeout=SECONDS)
    button = page.get_by_role("button", name="Run directory (ZIP)")
    with page.expect_download() as waiting:
        button.focus()
        press(page, "Enter")
    packed = tmp_path / "run.zip"
    waiting.value.save_as(packed)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path / "run")
    (certificate,) = (tmp_path / "run").rglob("certificate.json")
    assert jm.audit(certificate.parent).passed


def test_two_tabs_show_one_session(page, studio):
    begin(page)
    demonstrate(page, 1)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("#episodes tbody tr")).to_have_count(1, timeout=SECONDS)
    other.locator("#board").focus()
    demonstrate(other, 2)
    expect(page.locator("#episodes tbody tr")).to_have_count(2, timeout=SECONDS)


def test_a_page_without_the_token_shows_nothing(browser, studio):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://{studio.host}/")
    expect(page.locator("#error")).to_contain_text("token")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", PICTURES)
def test_it_fits_every_width(browser, studio, width, scheme, tmp_path):
    context = browser.new_context(
        viewport={"width": int(width), "height": 900}, color_scheme=scheme
    )
    page = context.new_page()
    page.goto(studio.address)
    begin(page)
    demonstrate(page, 1)
    expect(page.locator("#apprentice")).to_be_visible(timeout=SECONDS)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=tmp_path / f"studio-{scheme}-{width}.png", full_page=True)
    context.close()
