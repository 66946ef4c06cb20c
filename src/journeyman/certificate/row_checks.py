"""Whether drawn rows are what they claim to be: rows of the world, drawn by the declared law.

Kind A in a large world rests on four answers of code: `predecessors`, the law of the features'
draws, the masses of their columns, and the initial law. A wrong one makes a false bound, so

*Steps* are followed there and back. From a drawn pair (x, a) a successor y is drawn, and must
list (x, a) among its predecessors with the probability of that step: a missing pair is met as
often as its mass is missing from the flow. Of a drawn state y one listed predecessor is taken,
and must lead to y. Recorded steps are looked up as well. One contradiction refutes the premise.

*Draws* are bet against. Under their law, with n draws,

    pairs, states    each seen again as often as q1 and q2 say (rows(kappa) of `betting`), and any
                     of those already seen as often as the sum of their laws says
    columns          phi_j/(d h q1) lies in [0, 1] and has mean 1/d: phi_j has mass h
    starts           initial/(2 q) lies in [0, 1] and has mean 1/2: initial has mass 1

For z in [0, 1] of mean m, exp(l sum z)/(1 - m + m e^l)^n has a mean of at most one for every l.
The mean of all wealths reaches 1/level with probability `level` at most.

*Not seen*: errors in rows that are rarely drawn, and a density that is wrong where no row is
drawn twice. That is declared.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.certificate.betting import CONCENTRATIONS, log_mean, log_rising
from journeyman.certificate.premises import judged
from journeyman.certificate.terms import Premise, PremiseStatus, declared, failed
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidCosts, InvalidWorld
from journeyman.world.large_world import LargeWorld, Predecessors, successor_laws
from journeyman.world.laws import draw_columns

FOLLOWED = 1 << 12
"""Rows of a task whose steps are followed."""
MOST_STEPS = 1 << 16
"""Recorded steps that are looked up: the first ones."""
MOST_BETS = 1 << 14
"""Draws whose repetitions are counted: the first ones."""
TILTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""l, with both signs."""
LEAST = 1e-12
"""In the place of probabilities that a law with a mass above one makes negative."""
RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""By how much the probabilities of a step forwards and backwards may differ."""
AGREE = "successors and predecessors agree"
DRAWN = "draws of features follow their law"
TAKEN = "features and predecessors are what they declare"


@dataclass(frozen=True)
class Steps:
    """How many steps were followed, and the first contradiction among them."""

    count: int
    contradiction: str | None

    @classmethod
    def joined(cls, parts: "list[Steps]") -> "Steps":
        words = [part.contradiction for part in parts if part.contradiction is not None]
        return cls(sum(part.count for part in parts), words[0] if words else None)


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """What is known of draws, task by task."""

    count: int
    num_flow: int
    """States that were drawn by q2."""
    columns: FloatArray
    """sum of phi_j/(d h q1) over the pairs that were drawn, column by column."""
    starts: float
    """sum of initial/(2 q) over the states that were drawn."""
    pairs: tuple[IntArray, FloatArray]
    """Which pairs are the same, and q1."""
    states: tuple[IntArray, FloatArray]
    """States drawn by q2, and q2."""


def followed(
    world: LargeWorld,
    pairs: tuple[IntArray, IntArray],
    states: IntArray,
    rng: np.random.Generator,
) -> Steps:
    """There and back from drawn pairs, back and there from drawn states."""
    x, a = (part[:FOLLOWED] for part in pairs)
    laws = successor_laws(world, x, a)
    chosen = draw_columns(laws.probabilities, rng.random(x.size))
    reached = laws.states[np.arange(x.size), chosen]
    chances = _probability(laws.states, laws.probabilities, reached)
    words = _not_listed(world, x, a, reached, chances)
    y, lots = states[:FOLLOWED], rng.random(min(states.size, FOLLOWED))
    return Steps(x.size + y.size, words or _not_leading(world, y, lots))


def looked_up(world: LargeWorld, demos: Demonstrations | None) -> Steps:
    """Recorded steps among the predecessors of where they led."""
    if demos is None:
        return Steps(0, None)
    x, a, y = (part[:MOST_STEPS] for part in (demos.step_states, demos.actions, demos.next_states))
    keys = np.unique(np.column_stack([x, a, y]), axis=0)
    x, a, y = (np.ascontiguousarray(part) for part in keys.T)
    laws = successor_laws(world, x, a)
    chances = _probability(laws.states, laws.probabilities, y)
    possible = chances > 0  # another premise speaks of the others
    x, a, y, chances = x[possible], a[possible], y[possible], chances[possible]
    return Steps(x.size, _not_listed(world, x, a, y, chances))


def draws_of(
    rows: SparseMatrix,
    pairs: tuple[IntArray, IntArray],
    law: FloatArray,
    flow: tuple[IntArray, FloatArray],
    starts: FloatArray,
) -> CheckedRows:
    """Of one task: rows of Phi with their q1, states drawn by q2 with it, initial/q of all."""
    part = slice(0, MOST_BETS)
    _, same = np.unique(np.column_stack(pairs)[part], axis=0, return_inverse=True)
    shares = np.asarray((1.0 / np.asarray(rows.sum(axis=1)).ravel()) @ rows)
    return CheckedRows(
        law.size, flow[0].size, shares, float(starts.sum()) / 2,
        (np.ravel(same), law[part]), (flow[0][part], flow[1][part]),
    )  # fmt: skip


def require_drawable(law: FloatArray, pairs: tuple[IntArray, IntArray]) -> None:
    """Refuse pairs that were drawn where all columns are zero."""
    if (law <= 0).any():
        at = int(np.argmax(law <= 0))
        raise InvalidCosts(
            f"the features draw state {pairs[0][at]}, action {pairs[1][at]}, where all of them are "
            "0",
            "Let draw() follow the columns that rows() gives",
        )


def require_drawable_states(law: FloatArray, states: IntArray) -> None:
    """Refuse states that were drawn and have neither initial nor flow mass."""
    sound = law > 0
    if not sound.all():
        at = int(np.argmin(sound))
        raise InvalidWorld(
            f"state {states[at]} was drawn, and has probability {law[at]} by initial_probability, "
            "features and predecessors",
            "Let predecessors list every pair that leads to a state, and initial_probability be "
            "the law of draw_initial; jm.testing.check_world probes a world",
        )


def row_premises(steps: Steps, parts: list[CheckedRows], level: float) -> tuple[Premise, ...]:
    """What was followed, what was bet against, and what is left to be declared."""
    if steps.contradiction is None:
        detail = f"{steps.count} steps were followed there and back"
        agree = Premise(AGREE, PremiseStatus.TESTED, detail, 0.0)
    else:
        agree = failed(AGREE, steps.contradiction, 0.0)
    words, log_value = draw_evidence(parts)
    drawn = judged(DRAWN, f"{sum(one.count for one in parts)} rows", log_value, words, level)
    taken = declared(
        TAKEN,
        "predecessors are taken to be complete, columns to have mass 1/(1 - discount), draws to "
        "follow their law also where no row was drawn twice",
    )
    return agree, drawn, taken


def draw_evidence(parts: list[CheckedRows]) -> tuple[str, float]:
    """What is most out of line, and log E against the laws of all draws."""
    count = sum(one.count for one in parts)
    columns, starts = sum(one.columns for one in parts), sum(one.starts for one in parts)
    assert isinstance(columns, np.ndarray)
    by_column = [_tilted(float(total), count, 1 / columns.size) for total in columns]
    worst = int(np.argmax(by_column))
    found = {
        "pairs are drawn again too often": _repeated(*parts[0].pairs),
        "states are drawn again too often": _repeated(*parts[0].states),
        f"column {worst} has a share of {columns[worst] / count:.4g} in the draws, "
        f"{1 / columns.size:.4g} is its mass": log_mean(by_column),
        f"the initial law has a mass of {2 * starts / count:.4g} in the draws, it should be 1":
            _tilted(starts, count, 0.5),
    }  # fmt: skip
    return max(found, key=found.__getitem__), log_mean(list(found.values()))


def _tilted(total: float, count: int, mean: float) -> float:
    """Log wealth against the mean of numbers between 0 and 1 with the given sum."""
    tilts = np.array([sign * tilt for tilt in TILTS for sign in (-1, 1)])
    return log_mean((tilts * total - count * np.log1p(mean * np.expm1(tilts))).tolist())


def _repeated(which: IntArray, law: FloatArray) -> float:
    """Log wealth of bets on what comes again: on each by itself, and on all that was seen."""
    if not which.size:
        return 0.0
    _, first, counts = np.unique(which, return_index=True, return_counts=True)
    whole = np.array([float(which.size)])
    wealths = [
        float(log_rising(kappa * law[first], counts.astype(float)).sum())
        - float(log_rising(np.float64(kappa), whole)[0])
        for kappa in CONCENTRATIONS
    ]
    is_new = np.zeros(which.size, dtype=bool)
    is_new[first] = True
    covered = np.cumsum(np.where(is_new, law, 0.0)) - np.where(is_new, law, 0.0)
    every = [
        tilt * (which.size - first.size)
        - float(np.log(np.maximum(1 + covered * math.expm1(tilt), LEAST)).sum())
        for size in TILTS
        for tilt in (-size, size)
    ]
    return log_mean([log_mean(wealths), log_mean(every)])


def _not_listed(
    world: LargeWorld, x: IntArray, a: IntArray, y: IntArray, chances: FloatArray
) -> str | None:
    """The first step that the predecessors of its end do not know, or not with its probability."""
    listed, of = _listed(world, y)
    hit = (listed.states == x[of]) & (listed.actions == a[of])
    given = np.bincount(of[hit], listed.probabilities[hit], minlength=y.size)
    wrong = ~(np.abs(given - chances) <= ABSOLUTE + RELATIVE * chances)
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    contrary = f"give it {given[at]:.6g}" if given[at] else "do not list it"
    return (
        f"state {x[at]}, action {a[at]} leads to state {y[at]} with probability "
        f"{chances[at]:.6g}, and the predecessors of state {y[at]} {contrary}"
    )


def _not_leading(world: LargeWorld, y: IntArray, lots: FloatArray) -> str | None:
    """The first state of which a predecessor, taken by lot, does not lead there as it is listed."""
    listed, _ = _listed(world, y)
    counts = np.diff(listed.offsets)
    some = counts > 0
    place = (listed.offsets[:-1] + np.floor(lots * counts).astype(np.int64))[some]
    x, a, y = listed.states[place], listed.actions[place], y[some]
    laws = successor_laws(world, x, a)
    chances = _probability(laws.states, laws.probabilities, y)
    listed_chance = listed.probabilities[place]
    wrong = ~(np.abs(listed_chance - chances) <= ABSOLUTE + RELATIVE * chances)
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    return (
        f"predecessors of state {y[at]} list state {x[at]}, action {a[at]} with probability "
        f"{listed_chance[at]:.6g}, and its successors give {chances[at]:.6g}"
    )


def _listed(world: LargeWorld, states: IntArray) -> tuple[Predecessors, IntArray]:
    """Predecessors of all states, and whose each is."""
    parts: Any = (np.asarray(part) for part in world.predecessors(states))
    answer = Predecessors(*parts)
    sizes = {part.shape for part in answer[1:]}
    if answer.offsets.shape != (states.size + 1,) or sizes != {(int(answer.offsets[-1]),)}:
        raise InvalidWorld(
            f"predecessors of {states.size} states have offsets of shape {answer.offsets.shape} "
            f"and parts of shapes {sorted(sizes)}",
            "Let the predecessors of the k-th state be offsets[k]:offsets[k + 1]",
        )
    outside = (answer.states < 0) | (answer.states >= world.num_states)
    outside |= (answer.actions < 0) | (answer.actions >= world.num_actions)
    of = np.repeat(np.arange(states.size), np.diff(answer.offsets))
    if outside.any():
        at = int(np.argmax(outside))
        raise InvalidWorld(
            f"predecessors of state {states[of[at]]} list state {answer.states[at]}, action "
            f"{answer.actions[at]}, which the world lacks",
            "Number states and actions from 0",
        )
    return answer, of


def _probability(states: IntArray, laws: FloatArray, reached: IntArray) -> FloatArray:
    """Of reaching a given state, row by row."""
    return np.asarray(((states == reached[:, np.newaxis]) * laws).sum(axis=1))
