"""Reports of four problems, and pictures of them as a browser shows them.

    python -P examples/report_pictures.py [--only grid driving ...] [--pages DIRECTORY]
                                          [--output docs/images] [--browser /usr/bin/chromium]

Writes `report-grid.png`, `report-driving.png`, `report-icu-sepsis.png` and `report-queues.png`: the
first two in the light scheme and the others in the dark one, at the width of a desktop, then the
maps and the policy of the grid, and its page at the width of a phone. Needs Playwright and a
Chromium (`make report-pictures` has both); with `--pages` the pages themselves are kept, and with
`--browser ''` nothing else is made.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np

import journeyman as jm
from journeyman.report import write_report

DESKTOP, PHONE = (1200, 1200), (390, 1500)
SHOTS = {
    "report-grid": ("grid", DESKTOP, "light", ""),
    "report-grid-maps": ("grid", DESKTOP, "light", "#maps"),
    "report-policy": ("grid", DESKTOP, "light", "#policy"),
    "report-grid-phone": ("grid", PHONE, "dark", ""),
    "report-driving": ("driving", DESKTOP, "light", ""),
    "report-icu-sepsis": ("icu-sepsis", DESKTOP, "dark", ""),
    "report-queues": ("queues", DESKTOP, "dark", ""),
}
"""Which page, in which window and scheme, and which section if not the first ones."""


def main(arguments: Sequence[str] | None = None) -> None:
    here = Path(__file__).resolve().parent  # icu_sepsis.py beside this file is not the package
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != here]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(PAGES), default=list(PAGES))
    parser.add_argument("--pages", type=Path, help="keep the pages in this directory")
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    parser.add_argument("--browser", default="/usr/bin/chromium", help="'' for none")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="journeyman-") as temporary:
        pages = options.pages or Path(temporary)
        pages.mkdir(parents=True, exist_ok=True)
        for name in options.only:
            PAGES[name](pages / f"{name}.html")
            sys.stdout.write(f"{pages / name}.html\n")
        if options.browser:
            options.output.mkdir(parents=True, exist_ok=True)
            take_pictures(pages, options.output, options.browser, set(options.only))


def grid(path: Path) -> None:
    """The exact program by column generation, so that there is a trace of both bounds."""
    walls = [(row, 8) for row in range(2, 11)]
    world, basis, expert = jm.gallery.grid(16, walls=walls)
    demos = jm.record(world, expert, trajectories=2000, horizon=150, seed=0)
    learned = jm.learn(world, basis, demos, solver=jm.ColumnGeneration())
    write_report(learned, path, title="Grid: an expert on a slippery floor")


def driving(path: Path) -> None:
    """A published expert who collides; with the simplex a policy can do better."""
    world, basis, expert = jm.gallery.driving()
    learned = jm.learn(world, basis, expert, cost_class=jm.Simplex())
    write_report(learned, path, title="Driving: better than a bad driver")


def icu_sepsis(path: Path) -> None:
    """At least as good as the clinicians in every cost, with less of the vasopressors."""
    example = jm.gallery.icu_sepsis()
    world, basis, expert = example
    demos = jm.record(world, expert, trajectories=3000, horizon=300, seed=0)
    doses = np.asarray(basis.on(world)[:, basis.names.index("vasopressors")])
    given = float(jm.occupancy(world, expert).measure @ doses)
    budget = jm.Budget(cost=doses, at_most=0.8 * given, name="vasopressors")
    learned = jm.learn(world, basis, demos, cost_class=jm.Simplex(), constraints=[budget])
    title = "ICU-Sepsis: learning from clinicians"
    write_report(learned, path, title=title, note=example.description)


def queues(path: Path) -> None:
    """A million states: SGD-AL on drawn rows, certified by rollouts."""
    network = jm.gallery.queues(4)
    demos = jm.record(network.world, network.longer, trajectories=400, horizon=200, seed=0)
    heuristics = [network.longer, network.lbfs]
    features = jm.features.factored(network.world, network.radix, demos, heuristics, num_knots=2)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    answer = jm.solve(problem, jm.StochasticSubgradient(features, steps=10_000, seed=2))
    rollouts = jm.Rollouts(trajectories=4000, horizon=200)
    certificate = jm.certify(problem, answer, evaluation=rollouts)
    title = "Queues: a network with a million states"
    write_report(certificate, path, answer=answer, title=title)


PAGES: dict[str, Callable[[Path], None]] = {
    "grid": grid, "driving": driving, "icu-sepsis": icu_sepsis, "queues": queues,
}  # fmt: skip


def take_pictures(pages: Path, output: Path, browser: str, wanted: set[str]) -> None:
    """The first screens of each page, without a network."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name, (page_name, (width, height), scheme, section) in SHOTS.items():
            if page_name not in wanted:
                continue
            window = chromium.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
            )
            page = window.new_page()
            page.goto((pages / f"{page_name}.html").resolve().as_uri())
            seen = page.locator(section) if section else page
            seen.screenshot(path=output / f"{name}.png")
            window.close()
            sys.stdout.write(f"{output / name}.png\n")
        chromium.close()


if __name__ == "__main__":
    main()
