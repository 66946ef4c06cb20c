"""Pictures with matplotlib (extra `plot`): traces, certificates, policies, comparisons.

    import journeyman as jm

    jm.plot.policy(world, policy)               certificate.plot()
    answer.plot_trace()                         comparison.plot()

Every function draws into the Axes that it is given and returns them; without `ax` it opens a figure
of pyplot, so that notebooks show it and `plt.show()` does. Nothing else of pyplot is touched: no
style and no setting. Everybody can distinguish the colours (Okabe and Ito), and whatever a colour
says is said by words or numbers too.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from statistics import median
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.presentation import (
    COST,
    GAP,
    averages_of,
    brief,
    has_goal,
    large_and_negligible,
    layers_of,
)
from journeyman.certificate.terms import Term
from journeyman.errors import InvalidInput, MissingExtra
from journeyman.policy import Policy
from journeyman.policy.listing import Choice, Listing
from journeyman.report.drawing import printable, shortened
from journeyman.report.grid_maps import GridLayout, directions, grid_of
from journeyman.report.numbers import number, share
from journeyman.report.run_sections import trace_of_answer
from journeyman.world import World

if TYPE_CHECKING:
    from journeyman.certificate import Certificate
    from journeyman.solvers import Answer
    from journeyman.studies import Comparison
    from journeyman.studies.comparison import Summary

__all__ = ["certificate", "comparison", "policy", "trace"]

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
)  # fmt: skip
INK, QUIET, REST = "#333333", "#767676", "#BBBBBB"
ACTIONS = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE)
"""Of the actions in bars; further ones share a grey."""
STEEP = 30.0
"""From this ratio on equal ratios have equal distances."""
LONGEST, WIDEST = 36, 72
"""Characters of a name, and of a line above a picture."""
MOST_STATES = 20
"""States that bars are drawn for."""
WIDE_ENOUGH = 0.14
"""Share of a bar in which the name of an action has room."""
LONGEST_INSIDE = 80
"""Characters in a whole bar."""
UNDECIDED = 0.15
"""Mean directions shorter than this are drawn as a dot."""
SMALLEST = 1e-300


def trace(answer: "Answer", *, ax: Any = None) -> Any:
    """How a solver came to its answer: bounds or loss against time, rounds or steps."""
    found = trace_of_answer(answer)
    if found is None or not found.moments.size:
        raise InvalidInput(
            f"{answer.engine} has left no trace of how it came to its answer",
            "Solve with jm.ColumnGeneration(), jm.StochasticSubgradient(features) or another "
            "iterative method",
        )
    axes = _axes(ax, (6.4, 3.6))
    styles = [{"color": VERMILION, "ls": "-"}, {"color": INK, "ls": "--"}]
    for (name, values), style in zip(found.lines.items(), styles, strict=False):
        label = f"{name}: {number(float(values[-1]))} at last"
        alone = {"marker": "D"} if found.moments.size == 1 else {}
        axes.plot(found.moments, values, label=label, lw=1.8, **style, **alone)
    values = np.concatenate(list(found.lines.values()))
    if values.min() > 0 and values.max() > STEEP * values.min():
        axes.set_yscale("log")
    axes.set_xlabel(found.unit)
    axes.set_ylabel(_unit(answer.problem))
    _headline(axes, found.words)
    axes.grid(visible=True, color=REST, lw=0.5, alpha=0.6)
    axes.set_axisbelow(True)
    _spare(axes, "top", "right")
    _plain(axes.legend(frameon=False, fontsize="small"))
    return axes


def certificate(certificate: "Certificate", *, ax: Any = None) -> Any:
    """What the bound is made of, term by term; below, where something is declared about the
    expert's own cost, the same for the regret."""
    bars = _waterfall(certificate.terms, certificate.best.bound, certificate.bound)
    regret = certificate.regret
    if regret is not None and regret.terms:
        bars += _waterfall(regret.terms, regret.found, regret.bound, "regret: ")
    axes = _axes(ax, (7.0, 1.4 + 0.36 * len(bars)))
    _draw_bars(axes, bars)
    largest = certificate.trivial_bound
    _, right = axes.get_xlim()
    if 0 < largest <= 1.6 * right:
        axes.axvline(largest, color=INK, lw=1.2, ls="--")
        words = f"largest possible: {number(largest)}"
        axes.annotate(
            words, (largest, 1), (0, 3), xycoords=("data", "axes fraction"), ha="right",
            textcoords="offset points", fontsize="small", color=INK,
        )  # fmt: skip
        axes.set_xlim(right=max(right, 1.02 * largest))
    axes.set_xlabel(_unit(certificate.problem))
    _headline(axes, brief(certificate), pad=18)
    return axes


class _Bar(NamedTuple):
    words: str
    start: float
    end: float
    colour: str
    value: str
    strong: bool = False


def _waterfall(terms: Sequence[Term], total: float, bound: float, what: str = "") -> list[_Bar]:
    """A bar for each term that matters, where the one before ends; then their sum, which is the
    bound unless that is smaller for another reason."""
    large, small = large_and_negligible(terms)
    ends = accumulate((term.value for term in large), initial=0.0)
    bars = [
        _Bar(
            f"{what}{term.name}", start, end, VERMILION if term.name in (GAP, COST) else PURPLE,
            f"{'+' * bool(place and term.value > 0)}{number(term.value)}",
        )
        for place, (term, (start, end)) in enumerate(zip(large, pairwise(ends), strict=True))
    ]  # fmt: skip
    if small:
        names = f"{what}{f'{len(small)} small terms' if len(small) > 1 else small[0].name}"
        rest = sum(term.value for term in small)
        bars.append(_Bar(names, total - rest, total, PURPLE, f"+{number(rest)}"))
    words = "bound" if number(bound) == number(total) else "sum of the terms"
    return [*bars, _Bar(f"{what}{words}", 0.0, total, BLUE, number(total), strong=True)]


def _draw_bars(axes: Any, bars: Sequence[_Bar]) -> None:
    heights = np.arange(len(bars))
    for height, bar in zip(heights, bars, strict=True):
        axes.barh(height, bar.end - bar.start, left=bar.start, height=0.62, color=bar.colour)
        axes.annotate(
            bar.value, (max(bar.start, bar.end), height), (4, 0), textcoords="offset points",
            va="center", fontsize="small", color=INK, fontweight="bold" if bar.strong else None,
        )  # fmt: skip
    for above, (bar, behind) in enumerate(pairwise(bars)):
        if not bar.strong:
            at = behind.end if behind.strong else bar.end
            axes.plot([at, at], [above - 0.31, above + 1.31], color=QUIET, lw=0.7, zorder=0)
    _named_rows(axes, [bar.words for bar in bars])
    axes.axvline(0.0, color=INK, lw=0.8)
    low, high = min(0.0, *(bar.start for bar in bars)), max(bar.end for bar in bars)
    span = (high - low) or 1.0
    axes.set_xlim(low - 0.02 * span if low < 0 else 0.0, high + 0.16 * span)
    _spare(axes, "top", "right", "left")
    axes.tick_params(axis="y", length=0)


def policy(world: World, policy: Policy, *, t: int | None = None, ax: Any = None) -> Any:
    """Where a policy goes and what it does.

    In a world on the points of a plane grid a map: shades are the share of the time that is spent
    in a square, arrows the mean direction, the longer the more decided, with a dot where none
    stands out. With other coordinates in the plane, the same at the places of the states. In all
    other worlds a bar for each of the twenty most visited states, divided by the probabilities of
    its actions.

    Args:
        t: the step that is drawn, for a policy that depends on time. Maps show step 0 by default,
            bars the states and steps that are visited most.
    """
    if not isinstance(world, World) or not isinstance(policy, Policy):
        raise InvalidInput(
            f"a {type(policy).__name__} in a {type(world).__name__} cannot be drawn state by state",
            "Give an explicit world and a table: jm.World, and jm.Policy or answer.policy",
        )
    listing = Listing.of(world, policy)
    step = _step(listing, t)
    there, grid = listing.world, grid_of(listing.world)
    if grid is not None:
        return _map(_axes(ax, _map_size(grid)), grid, *_at(listing, step or 0), listing, step)
    if there.coordinates is not None and there.coordinates.shape[1] == 2:
        return _places(_axes(ax, (6.0, 5.0)), *_at(listing, step or 0), listing, step)
    rows = [
        row
        for row in listing.most_visited(MOST_STATES if t is None else None)
        if t is None or listing.steps is None or row.t == t
    ][:MOST_STATES]
    if not rows:
        raise InvalidInput("nothing is decided in this world", "Give a world with choices")
    return _bars(_axes(ax, (7.0, 1.5 + 0.3 * len(rows))), rows, listing, t)


def _step(listing: Listing, t: int | None) -> int | None:
    """The step to draw, None where it makes no difference."""
    if listing.steps is None:
        return None
    if t is not None and t not in range(listing.steps):
        raise InvalidInput(f"t = {t!r}, and episodes have {listing.steps} steps", "Count from 0")
    return 0 if t is None else t


def _at(listing: Listing, step: int) -> tuple[FloatArray, FloatArray]:
    """The law at a step, and the shares of that step's time spent in each state."""
    pairs, count = listing.world.num_pairs, listing.world.num_states
    law = listing.law[step * pairs : (step + 1) * pairs]
    if listing.visits is None:
        return law, np.zeros(count)
    visits = listing.visits[step * count : (step + 1) * count]
    return law, visits / visits.sum() if listing.steps is not None else visits


def _map_size(grid: GridLayout) -> tuple[float, float]:
    rows, columns = grid.shape
    longest = max(rows, columns)
    return 5.6 * columns / longest + 1.4, 5.0 * rows / longest + 0.9


def _map(
    axes: Any, grid: GridLayout, law: FloatArray, visits: FloatArray, listing: Listing,
    step: int | None,
) -> Any:  # fmt: skip
    from matplotlib.colors import PowerNorm

    rows, columns = grid.shape
    inside = grid.inhabited()
    shades = np.ma.masked_array(grid.total(visits), ~inside).reshape(rows, columns)
    norm = PowerNorm(0.5, 0.0, max(float(shades.max()), SMALLEST))
    colours = _matplotlib().colormaps["Blues"].with_extremes(bad=REST)
    image = axes.imshow(shades, cmap=colours, norm=norm)
    arrows = grid.arrows(law, np.maximum(visits, SMALLEST))[inside]
    y, x = np.divmod(np.flatnonzero(inside), columns)
    _draw_arrows(axes, x, y, arrows, 0.8)
    _shade_bar(axes, image, listing, step)
    axes.set_xlabel("column" if grid.step == 1 else f"column, squares of {grid.step} cells")
    axes.set_ylabel("row" if grid.step == 1 else f"row, squares of {grid.step} cells")
    axes.locator_params(integer=True)
    _timed_title(axes, step)
    return axes


def _draw_arrows(
    axes: Any, x: Any, y: Any, arrows: FloatArray, length: float, pivot: str = "middle"
) -> None:
    """Dark arrows with a light edge, which are seen on every shade."""
    sizes = np.linalg.norm(arrows, axis=1)
    clear = sizes >= UNDECIDED
    scale = length / np.maximum(sizes, SMALLEST) * (0.45 + 0.55 * np.minimum(sizes, 1.0))
    down, right = (arrows * scale[:, np.newaxis]).T
    axes.quiver(
        x[clear], y[clear], right[clear], down[clear], angles="xy", scale_units="xy", scale=1.0,
        pivot=pivot, color=INK, edgecolor="white", linewidth=0.6,
        width=0.012 if pivot == "middle" else 0.006,
        headwidth=4.0, headlength=4.0, headaxislength=3.6, units="width",
    )  # fmt: skip
    axes.scatter(x[~clear], y[~clear], s=14, color=INK, edgecolor="white", linewidth=0.6)


def _places(
    axes: Any, law: FloatArray, visits: FloatArray, listing: Listing, step: int | None
) -> Any:
    """States at their coordinates (down, right); the larger, the more time is spent there."""
    world = listing.world
    assert world.coordinates is not None
    y, x = world.coordinates.T
    moves = directions(world) * law[:, np.newaxis]
    arrows = world.pairs.total(moves)
    span = max(float(np.ptp(x)), float(np.ptp(y)), SMALLEST)
    most = max(float(visits.max()), SMALLEST)
    image = axes.scatter(
        x, y, s=60 + 340 * visits / most, c=visits, cmap="Blues", vmin=0, vmax=most,
        edgecolor=QUIET, linewidth=0.6,
    )  # fmt: skip
    _draw_arrows(axes, x, y, arrows, 0.5 * span / max(np.sqrt(world.num_states), 2.0), "tail")
    axes.set_aspect("equal", adjustable="datalim")
    axes.invert_yaxis()
    axes.margins(0.1)
    _shade_bar(axes, image, listing, step)
    axes.set_xlabel("second coordinate")
    axes.set_ylabel("first coordinate")
    _timed_title(axes, step)
    return axes


def _shade_bar(axes: Any, image: Any, listing: Listing, step: int | None) -> None:
    if listing.visits is None:
        return
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.85)
    bar.set_label(f"share of {listing.whole if step is None else f'episodes, at step {step}'}")
    bar.ax.yaxis.set_major_formatter(lambda value, _: share(float(value)))


def _timed_title(axes: Any, step: int | None) -> None:
    if step is not None:
        axes.set_title(f"step {step}", loc="left", fontsize="medium")


def _bars(axes: Any, rows: Sequence[Choice], listing: Listing, t: int | None) -> Any:
    """A bar for every state, divided by probability; visits stand behind it."""
    if listing.world.action_names is None:
        rows = [replace(row, actions=tuple(f"action {one}" for one in row.actions)) for row in rows]
    mass: dict[str, float] = {}
    for row in rows:
        for name, part in zip(row.actions, row.probabilities, strict=True):
            mass[name] = mass.get(name, 0.0) + part
    order = sorted(mass, key=lambda name: -mass[name])
    colours = dict(zip(order, ACTIONS, strict=False))
    for height, row in enumerate(rows):
        _draw_choice(axes, row, height, colours)
    timed = t is None and listing.steps is not None
    _named_rows(axes, [f"{row.name}, t = {row.t}" if timed else row.name for row in rows])
    if listing.state_names is None:
        axes.set_ylabel("state")
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    left = listing.num_rows - len(rows) if t is None else 0
    more = f" ({left:,} less visited rows are not drawn)" if left else ""
    axes.set_xlabel(f"probability of the action{more}")
    if listing.visits is not None:
        axes.text(1.01, -0.72, "visits", va="bottom", fontsize="small", color=QUIET)
    handles = [_patch(colour, _short(name, 24)) for name, colour in colours.items()]
    if len(order) > len(colours):
        handles.append(_patch(REST, f"{len(order) - len(colours)} others"))
    room = sum(len(one.get_label()) + 5 for one in handles)
    _plain(axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1.01), frameon=False,
        ncols=len(handles) if room <= WIDEST else 3, fontsize="small", borderaxespad=0.2,
        handlelength=1.0,
    ))  # fmt: skip
    _spare(axes, "top", "right", "left")
    axes.tick_params(axis="y", length=0)
    return axes


def _draw_choice(axes: Any, row: Choice, height: int, colours: dict[str, str]) -> None:
    """The bar of one state."""
    starts = accumulate(row.probabilities, initial=0.0)
    for name, part, start in zip(row.actions, row.probabilities, starts, strict=False):
        colour = colours.get(name, REST)
        edge = {"edgecolor": "white", "lw": 0.5} if part > 0.02 else {}
        axes.barh(height, part, left=start, height=0.7, color=colour, **edge)
        if part >= WIDE_ENOUGH:
            words = f"{_short(name, 18)} {share(part)}"
            words = words if len(words) <= LONGEST_INSIDE * part else share(part)
            axes.text(
                start + part / 2, height, words, ha="center", va="center", fontsize="x-small",
                clip_on=True, color="white" if colour in (BLUE, VERMILION) else "black",
                parse_math=False,
            )  # fmt: skip
    if row.visits is not None:
        axes.text(1.01, height, share(row.visits), va="center", fontsize="small", color=INK)


def comparison(comparison: "Comparison", *, ax: Any = None) -> Any:
    """The gap of every trial and the bound that is certified for it, a row for every method; the
    number behind a row is the median gap."""
    from journeyman.studies.comparison import compared_gap

    gap, words = compared_gap(comparison.trials)
    rows = comparison.summaries
    several = len({row.problem for row in rows}) > 1
    known = [
        value for row in rows for name in (gap, "certified_bound") for value in row.values(name)
    ]
    if not any(row.values(gap) for row in rows):
        raise InvalidInput("no trial has an answer to draw", "comparison.table() says why")
    axes = _axes(ax, (7.0, 1.5 + 0.42 * len(rows)))
    for height, row in enumerate(rows):
        _draw_row(axes, row, gap, height)
    positive = [value for value in known if value > 0]
    if positive and max(positive) > STEEP * min(positive):
        axes.set_xscale("symlog", linthresh=max(min(positive), max(positive) * 1e-9))
        axes.set_xlim(left=min(0.0, *known))
    elif min(known) >= 0:
        axes.set_xlim(left=0.0)
    _named_rows(axes, [f"{row.problem}: {row.solver}" if several else row.solver for row in rows])
    axes.set_xlabel(f"{words}, in units of cost")
    axes.grid(visible=True, axis="x", color=REST, lw=0.5, alpha=0.6)
    axes.set_axisbelow(True)
    axes.text(1.01, -0.72, "median", transform=axes.get_yaxis_transform(), va="bottom",
              fontsize="small", color=QUIET)  # fmt: skip
    handles = [_marks("D", VERMILION, words), _marks("|", INK, "certified bound")]
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1.01), ncols=2, frameon=False,
        fontsize="small", borderaxespad=0.2,
    )  # fmt: skip
    _spare(axes, "top", "right", "left")
    axes.tick_params(axis="y", length=0)
    return axes


def _draw_row(axes: Any, row: "Summary", gap: str, height: int) -> None:
    gaps, bounds = row.values(gap), row.values("certified_bound")
    axes.plot(bounds, [height] * len(bounds), "|", color=INK, ms=14, mew=2)
    axes.plot(gaps, [height] * len(gaps), "D", color=VERMILION, ms=6, mec="white", mew=0.8)
    shown = number(median(gaps)) if gaps else row.outcome.lower()
    axes.text(1.01, height, shown, transform=axes.get_yaxis_transform(), va="center",
              fontsize="small", color=INK if gaps else QUIET)  # fmt: skip


def _unit(problem: Any) -> str:
    """What a number on an axis is."""
    if has_goal(problem):
        return "cost of an episode"
    if averages_of(problem) is not None:
        return "cost of a step, on average"
    layers = layers_of(problem)
    if layers is not None:
        return f"{'discounted ' * (layers.discount < 1)}cost of an episode"
    return "discounted cost"


def _headline(axes: Any, words: str, pad: float = 6) -> None:
    """A sentence above a picture, in lines of its width."""
    shares = words.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = "\n".join(wrap(shares, WIDEST))
    axes.set_title(lines, fontsize="small", loc="left", pad=pad, parse_math=False)


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    """The Axes that were given, or those of a new figure."""
    if ax is None:
        _matplotlib()
        from matplotlib import pyplot

        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not hasattr(ax, "get_yaxis_transform"):
        raise InvalidInput(
            f"ax is a {type(ax).__name__}", "Give the Axes of a figure, such as plt.subplots()[1]"
        )
    return ax


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    return matplotlib


def _patch(colour: str, words: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=words)


def _marks(shape: str, colour: str, words: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="", marker=shape, color=colour, ms=8 if shape == "|" else 6, mew=1.5,
                  label=words)  # fmt: skip


def _named_rows(axes: Any, names: Sequence[str]) -> None:
    """Names from the top down, as they are: a dollar sign starts no formula."""
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _plain(legend: Any) -> None:
    for text in legend.get_texts():
        text.set_parse_math(False)


def _spare(axes: Any, *sides: str) -> None:
    for side in sides:
        axes.spines[side].set_visible(False)


def _short(name: str, longest: int = LONGEST) -> str:
    return shortened(printable(name), max(longest, 2))
