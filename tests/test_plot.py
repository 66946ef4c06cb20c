"""Pictures: the numbers are in them, names are text, and nothing else of matplotlib is touched."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.text import Text

import journeyman as jm
from journeyman.errors import InvalidInput
from journeyman.report.numbers import number, share
from journeyman.studies import Comparison
from journeyman.studies.trial import Trial


@pytest.fixture(autouse=True)
def untouched():
    """No setting changes, and with Axes of our own there is no figure of pyplot."""
    mpl.use("Agg")
    before, figures = dict(mpl.rcParams), pyplot.get_fignums()
    yield
    assert dict(mpl.rcParams) == before
    assert pyplot.get_fignums() == figures


@pytest.fixture
def ax():
    return Figure(figsize=(7, 5), layout="constrained").subplots()


def words(axes):
    """All text of the figure, once it is drawn."""
    axes.figure.canvas.draw()
    return " ".join(text.get_text() for text in axes.figure.findobj(Text))


def problem(**more):
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=40, horizon=40, seed=0)
    return jm.Apprenticeship(world, basis, demos, **more)


def test_a_trace_has_both_bounds(ax):
    answer = jm.solve(problem(), jm.ColumnGeneration())
    assert answer.plot_trace(ax=ax) is ax
    high, low = ax.lines
    assert np.array_equal(high.get_ydata(), answer.bounds_trace[:, 2])
    assert np.array_equal(low.get_ydata(), answer.bounds_trace[:, 1])
    text = words(ax)
    assert f"best policy at hand: {number(answer.bounds_trace[-1, 2])}" in text
    assert "seconds" in text


def test_without_a_trace_it_says_which_solvers_leave_one(ax):
    with pytest.raises(InvalidInput, match=r"left no trace.*jm\.ColumnGeneration\(\)"):
        jm.solve(problem(), jm.LinearProgram()).plot_trace(ax=ax)


def test_the_terms_of_a_certificate_add_up_to_its_bound(ax):
    found = jm.certify(problem(), jm.Policy.uniform(problem().world))
    assert found.plot(ax=ax) is ax
    *terms, total = ax.patches
    assert sum(bar.get_width() for bar in terms) == pytest.approx(found.best.bound)
    assert total.get_width() == found.best.bound
    text = words(ax)
    assert number(found.best.bound) in text
    assert f"at most {found.bound:.4g} more than the expert" in text.replace("\n", " ")
    assert f"largest possible: {number(found.trivial_bound)}" in text


def test_a_certificate_shows_the_regret_too(ax):
    found = jm.certify(problem(expert_is=jm.Rational(regret_per_step=0.01)),
                       jm.Policy.uniform(problem().world))  # fmt: skip
    found.plot(ax=ax)
    assert number(found.regret.bound) in words(ax)
    assert "regret: " in words(ax)


def test_a_grid_is_a_map_of_visits_and_directions(ax):
    world, _, expert = jm.gallery.grid(4, walls=[(1, 1)])
    assert jm.plot.policy(world, expert, ax=ax) is ax
    visits = jm.policy.occupancy(world, expert).of_states / world.effective_horizon
    shades = ax.images[0].get_array()
    assert shades.mask.sum() == 1
    assert shades.compressed() == pytest.approx(visits)
    arrows = ax.collections[0]
    assert len(arrows.U) <= world.num_states
    assert "share of the discounted time" in words(ax)


def test_a_step_of_a_policy_that_depends_on_time(ax):
    world = jm.gallery.grid(4)[0].with_horizon(3)
    weights = np.random.default_rng(0).random(world.num_pairs)
    policy = jm.Policy(weights / world.pairs.spread(world.pairs.total(weights)), world.pairs)
    jm.plot.policy(world, policy, t=2, ax=ax)
    assert ax.images[0].get_array().sum() == pytest.approx(1)
    assert "step 2" in words(ax)
    with pytest.raises(InvalidInput, match="episodes have 3 steps"):
        jm.plot.policy(world, policy, t=3, ax=ax)


def test_other_worlds_have_bars_and_names_are_no_formulas(ax):
    names = ["$x^2", "b", r"\frac{}{$"]
    rows = [[0.9, 0.1, 0], [0, 0.7, 0.3], [1, 0, 0], [1, 0, 0]]
    world = jm.World(rows, [1, 0, 0], 0.9, choice_offsets=[0, 1, 3, 4], state_names=names,
                     action_names=["$run$", "stop$"])  # fmt: skip
    policy = jm.Policy([1, 0.3, 0.7, 1], world.pairs)
    jm.plot.policy(world, policy, ax=ax)
    text = words(ax)
    visits = jm.policy.occupancy(world, policy).of_states / 10
    for word in (*names, "$run$ 100 %", "stop$ 70 %", "30 %", *map(share, visits)):
        assert word in text
    widths = sorted(round(bar.get_width(), 12) for bar in ax.patches)
    assert widths == [0.3, 0.7, 1.0, 1.0]


def test_places_in_the_plane_are_drawn_where_they_are(ax):
    world = jm.World(np.full((6, 3), 1 / 3), [1, 0, 0], 0.9, coordinates=[[0, 0], [0.5, 7], [3, 1]])
    jm.plot.policy(world, jm.Policy.uniform(world), ax=ax)
    assert ax.collections[0].get_offsets().tolist() == [[0, 0], [7, 0.5], [1, 3]]


def test_a_comparison_has_every_gap_and_bound(ax):
    trials = [
        Trial("p", solver, k, "OPTIMAL", true_gap=gap * (k + 1), certified_bound=gap + 5)
        for solver, gap in (("$one", 0.5), ("two", 0.001))
        for k in range(3)
    ]
    found = Comparison((*trials, Trial("p", "none", 0, "REFUSED", "it cannot")))
    assert found.plot(ax=ax) is ax
    bounds, gaps, *_ = [list(line.get_xdata()) for line in ax.lines]
    assert bounds == [5.5] * 3
    assert gaps == [0.5, 1.0, 1.5]
    text = words(ax)
    for word in ("$one", "two", "none", "refused", number(1.0), number(0.002), "true gap"):
        assert word in text
    with pytest.raises(InvalidInput, match="no trial has an answer"):
        Comparison(found.trials[-1:]).plot(ax=ax)


def test_without_axes_a_figure_of_pyplot_is_opened():
    others = pyplot.get_fignums()
    world, _, expert = jm.gallery.grid(4)
    axes = jm.plot.policy(world, expert)
    assert pyplot.get_fignums() == [*others, axes.figure.number]
    pyplot.close(axes.figure)


def test_wrong_things_are_refused(ax):
    world, _, expert = jm.gallery.grid(4)
    with pytest.raises(InvalidInput, match=r"ax is a str.*plt\.subplots\(\)\[1\]"):
        jm.plot.policy(world, expert, ax="here")
    with pytest.raises(InvalidInput, match="a function in a World cannot be drawn"):
        jm.plot.policy(world, lambda state: 0, ax=ax)


def test_a_missing_matplotlib_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import journeyman as jm\n"
        "world, _, expert = jm.gallery.grid(4)\n"
        "try: jm.plot.policy(world, expert)\n"
        "except jm.errors.MissingExtra as fault: sys.stdout.write(str(fault))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "matplotlib is not installed: pip install 'journeyman[plot]'"


def test_the_example_draws_the_pictures_of_the_page(tmp_path):
    root = Path(__file__).parents[1]
    page = (root / "docs" / "reading-policies.md").read_text(encoding="utf-8")
    names = set(re.findall(r"images/(plot-[a-z-]+\.png)", page))
    command = [sys.executable, "-P", root / "examples" / "plots.py", "--size", "4"]
    command += ["--output", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == names
    assert all((root / "docs" / "images" / name).exists() for name in names)
