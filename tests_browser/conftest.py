"""A real Chromium without a network, and pages of every kind for it to show."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

import journeyman as jm
from journeyman.report import write_report

BROWSER = os.environ.get("CHROMIUM", "/usr/bin/chromium")
WIDTHS, SCHEMES = ("390", "768", "1280"), ("light", "dark")
"""Of a phone, a tablet and a desktop."""
LONG = "the cost of everything that takes longer than anybody would have expected it to take"
HOSTILE = ("<script>document.title='x'</script>", '🦊 & "quotes"', "שלום עולם", LONG)


@pytest.fixture(scope="session")
def browser():
    if not Path(BROWSER).exists():
        pytest.fail(f"{BROWSER} is missing: apt-get install chromium, or set CHROMIUM")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """One file for each kind of result."""
    place = tmp_path_factory.mktemp("pages")
    for name, make in MAKERS.items():
        make(place / f"{name}.html")
    return place


def grid(path):
    world, basis, expert = jm.gallery.grid(12, macro_cells=4, walls=[(3, 3), (3, 4)])
    demos = jm.record(world, expert, trajectories=500, horizon=100, seed=0)
    wear = jm.Budget(cost=np.arange(world.num_pairs) % 2, at_most=9.0, name="wear")
    jm.learn(world, basis, demos, constraints=[wear], solver=jm.ColumnGeneration()).report(path)


def hostile(path):
    world, basis, expert = jm.gallery.grid(3, macro_cells=2)
    names = [f"{HOSTILE[k % 4]} {k}" for k in range(9)]
    world = jm.World(world.transition, world.initial, world.discount, state_names=names,
                     action_names=HOSTILE)  # fmt: skip
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=0)
    budgets = [
        jm.Budget(cost=np.ones(world.num_pairs), at_most=19.0, name=name) for name in HOSTILE
    ]
    problem = jm.Apprenticeship(
        world, jm.CostBasis(basis.matrix, HOSTILE), demos, constraints=budgets
    )
    write_report(jm.certify(problem, expert), path, title=HOSTILE[0], note=HOSTILE[3])


def large_numbers(path):
    """Costs in the millions, and one of almost nothing."""
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    scaled = jm.CostBasis(basis.matrix.toarray() * [2e6, 1e6, 1e-3, 1.0], ["a", "b", "c", "d"])
    demos = jm.record(world, expert, trajectories=600, horizon=60, seed=0)
    jm.learn(world, scaled, demos).report(path)


def driving(path):
    world, basis, expert = jm.gallery.driving()
    jm.learn(world, basis, expert, cost_class=jm.Simplex()).report(path)


def queues(path):
    network = jm.gallery.queues(4, buffers=(3, 3, 3, 3))
    demos = jm.record(network.world, network.longer, trajectories=40, horizon=60, seed=0)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    rollouts = jm.Rollouts(trajectories=400, horizon=60)
    write_report(jm.certify(problem, network.lbfs, evaluation=rollouts), path)


def notebook(path):
    """Cells on a page of somebody else."""
    world, basis, expert = jm.gallery.grid(5, macro_cells=2)
    demos = jm.record(world, expert, trajectories=60, horizon=60, seed=0)
    learned = jm.learn(world, basis, demos)
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>notebook</title><body>'
    shown = (learned, learned.certificate, world, learned.policy, demos, learned.answer)
    cells = "".join(one._repr_html_() for one in shown)
    path.write_text(f"{head}{cells}</body></html>", encoding="utf-8")


def few(path):
    """Four demonstrations: nothing about the gap, and something about the regret."""
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=4, horizon=30, seed=0)
    jm.learn(world, basis, demos, expert_is=jm.Rational(regret_per_step=0.01)).report(path)


MAKERS = {
    "grid": grid, "few": few, "hostile": hostile, "large-numbers": large_numbers,
    "driving": driving, "queues": queues, "notebook": notebook,
}  # fmt: skip


@pytest.fixture(scope="module", params=product(MAKERS, WIDTHS, SCHEMES), ids="-".join)
def shown(browser, pages, request):
    """A page in a window, all of it unfolded, and what it asked for or complained about."""
    name, width, scheme = request.param
    window = browser.new_context(
        viewport={"width": int(width), "height": 900}, color_scheme=scheme, offline=True
    )
    page = window.new_page()
    page.name, page.width, page.scheme = name, int(width), scheme
    page.asked, page.complaints = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda fault: page.complaints.append(str(fault)))
    page.goto((pages / f"{name}.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    yield page
    window.close()
