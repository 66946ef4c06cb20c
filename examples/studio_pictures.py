"""Pictures of `journeyman studio` as a browser shows it, of several moments of a session.

    python -P examples/studio_pictures.py [--only choose slip ...] [--widths 390 1280]
                                          [--schemes light dark] [--output docs/images]
                                          [--browser /usr/bin/chromium]

Without options it draws the pictures of the documentation (`make studio-pictures`); with `--widths`
or `--schemes` all of the wanted moments at every one of these widths and schemes, whole pages.
Needs Playwright and a Chromium.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SHOTS = [
    ("demonstrated", 1280, "light", 900), ("apprentice", 1280, "dark", 0),
    ("choose", 1280, "light", 800), ("slip", 390, "light", 900), ("driving", 768, "dark", 1000),
]  # fmt: skip
"""Moment, width, scheme and height of the pictures of the documentation; 0 is the whole page."""
NAMES = {"demonstrated": "studio"}
"""Of files, where the moment is not."""
SECONDS = 60_000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(MOMENTS), default=list(MOMENTS))
    parser.add_argument("--widths", nargs="+", type=int)
    parser.add_argument("--schemes", nargs="+", choices=("light", "dark"))
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    parser.add_argument("--browser", default="/usr/bin/chromium")
    options = parser.parse_args(arguments)
    shots = SHOTS
    if options.widths or options.schemes:
        shots = [
            (moment, width, scheme, 0)
            for moment in MOMENTS
            for width in options.widths or (1280,)
            for scheme in options.schemes or ("light",)
        ]
    options.output.mkdir(parents=True, exist_ok=True)
    wanted = [shot for shot in shots if shot[0] in options.only]
    with TemporaryDirectory(prefix="journeyman-") as directory:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "journeyman", "studio", directory, "--no-browser"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            take_pictures(found[0], wanted, options.output, options.browser)
        finally:
            process.terminate()
            process.wait()


def take_pictures(
    address: str, shots: Sequence[tuple[str, int, str, int]], output: Path, browser: str
) -> None:
    """Play up to every moment once for each window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for moment, width, scheme, height in shots:
            window = chromium.new_context(
                viewport={"width": width, "height": height or 900}, color_scheme=scheme
            )
            page = window.new_page()
            page.goto(address)
            seen = MOMENTS[moment](page) or page
            path = output / f"{NAMES.get(moment, f'studio-{moment}')}-{scheme}-{width}.png"
            whole = {} if height or seen is not page else {"full_page": True}
            seen.screenshot(path=path, **whole)
            window.close()
            sys.stdout.write(f"{path}\n")
        chromium.close()


def begin(page: Any, kind: str, environment: str = "") -> None:
    page.locator(f"input[name=kind][value={kind}]").check(force=True)
    if environment:
        page.locator("#toy").select_option(environment)
    page.locator("#begin").click()
    page.locator("#board svg").wait_for()
    page.locator("#board").focus()


def keep(page: Any, keys: Sequence[str], count: int) -> None:
    """One more episode, and wait until it is in the list and certified."""
    from playwright.sync_api import expect

    for key in keys:
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(page.locator("#episodes tbody tr")).to_have_count(count, timeout=SECONDS)
    expect(page.locator("#renewing")).to_be_hidden(timeout=SECONDS)
    expect(page.locator("#brief")).to_contain_text(str(count), timeout=SECONDS)


def choose(page: Any) -> None:
    """A world is drawn by hand."""
    page.locator("#begin").wait_for()


def slip(page: Any) -> None:
    """In the middle of an episode, just after a slip."""
    begin(page, "grid")
    for key in ["ArrowRight", "ArrowUp"] * 25:
        page.keyboard.press(key)
        page.wait_for_timeout(60)
        if "slipped" in (page.locator("#what").text_content() or ""):
            break


def demonstrated(page: Any) -> None:
    """After five episodes of somebody who walks to the goal and avoids the pond, all but the first
    from where the page advises."""
    begin(page, "grid")
    for count in (1, 2, 3, 4, 5):
        if count > 1:
            page.locator("#advised").click()
            page.wait_for_timeout(200)
        while "terminated" not in (page.locator("#what").text_content() or ""):
            page.keyboard.press(wise_key(page))
            page.wait_for_timeout(40)
        keep(page, [], count)


def wise_key(page: Any) -> str:
    """The first key of a cheapest way to the goal, where the pond costs eight steps."""
    looks = page.locator("#board .cell").evaluate_all(
        "cells => cells.map(one => /look-(\\w+)/.exec(one.getAttribute('class'))[1])"
    )
    size = int(len(looks) ** 0.5)
    cost = [{"wall": 1e9, "2": 8.0}.get(look, 1.0) for look in looks]
    way = [0.0 if look == "goal" else 1e9 for look in looks]
    moves = {"ArrowUp": (-1, 0), "ArrowRight": (0, 1), "ArrowDown": (1, 0), "ArrowLeft": (0, -1)}

    def after(cell: int, key: str) -> float:
        row, column = cell // size + moves[key][0], cell % size + moves[key][1]
        inside = 0 <= row < size and 0 <= column < size
        there = row * size + column
        return cost[there] + way[there] if inside else 1e9

    for _ in range(len(looks)):
        way = [min(old, *(after(cell, key) for key in moves)) for cell, old in enumerate(way)]
    found = re.search(r"row (\d+), column (\d+)", page.locator("#what").text_content() or "")
    assert found is not None
    here = (int(found[1]) - 1) * size + int(found[2]) - 1
    return min(moves, key=lambda key: after(here, key))


def apprentice(page: Any) -> Any:
    """The apprentice of these, with its replay."""
    from playwright.sync_api import expect

    page.emulate_media(reduced_motion="reduce")
    demonstrated(page)
    expect(page.locator("#replay-boards figure")).to_have_count(2, timeout=SECONDS)
    return page.locator("#apprentice")


def driving(page: Any) -> None:
    """On the road."""
    begin(page, "driving")
    keep(page, ["ArrowRight", *["ArrowUp", "ArrowLeft", "ArrowUp", "ArrowRight"] * 5], 1)
    for key in ["ArrowUp", "ArrowUp", "ArrowLeft"]:
        page.keyboard.press(key)
        page.wait_for_timeout(60)


def taxi(page: Any) -> None:
    """A world of Gymnasium, with more than four actions."""
    begin(page, "gymnasium", "Taxi-v4")
    keep(page, ["ArrowRight", "ArrowUp", "ArrowDown", "1"] * 3, 1)


MOMENTS: dict[str, Callable[[Any], Any]] = {
    "choose": choose, "slip": slip, "demonstrated": demonstrated, "apprentice": apprentice,
    "driving": driving, "taxi": taxi,
}  # fmt: skip


if __name__ == "__main__":
    main()
