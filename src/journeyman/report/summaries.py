"""Worlds, policies, demonstrations and answers in a few lines, as a notebook shows them.

Colours are those of the notebook, whichever it has: nothing is set but lines and distances.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidInput
from journeyman.policy import Policy
from journeyman.report.numbers import number, seconds, share
from journeyman.report.rendering import rendered
from journeyman.solvers import Answer
from journeyman.world import World

MOST_NAMES, MOST_ROWS = 6, 8
"""Names and rows that are listed."""


class Summary(NamedTuple):
    """A title, facts, and perhaps the first rows of what there is more of."""

    title: str
    facts: list[tuple[str, str]]
    headings: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    note: str = ""


def summary_of(value: Any) -> str:
    """A short element of HTML; whatever has a name is escaped."""
    makers: dict[type, Any] = {
        World: _world,
        Policy: _policy,
        Demonstrations: _demonstrations,
        Answer: _answer,
    }
    for kind, make in makers.items():
        if isinstance(value, kind):
            return rendered("summary.html", summary=make(value))
    raise InvalidInput(
        f"there is no report on a {type(value).__name__}",
        "Give what jm.learn or jm.certify returned",
    )


def _world(world: World) -> Summary:
    made = world.reduction
    base = world if made is None else made.base
    facts = [
        ("states", f"{base.num_states:,}{_names(base.state_names)}"),
        ("actions", f"{_counted(base.pairs.actions_per_state)} a state{_names(base.action_names)}"),
        ("possible steps", f"{base.transition.nnz:,}, from {base.num_pairs:,} states and actions"),
        ("counted", _counting(world)),
        ("starts in", _states(base, np.flatnonzero(base.initial))),
    ]
    if base.absorbing.any():
        facts.append(("never leaves", _states(base, np.flatnonzero(base.absorbing))))
    if base.coordinates is not None:
        facts.append(("coordinates", f"{base.coordinates.shape[1]} a state"))
    facts.append(("laws", "estimated from records" if base.is_estimated else "exact"))
    return Summary("World", facts)


def _counting(world: World) -> str:
    """How costs of steps are added up."""
    if world.averages is not None:
        return "averages a step, in the long run"
    if world.layers is not None:
        discount = world.layers.discount
        counted = "" if discount == 1 else f", discount {number(discount)}"
        return f"episodes of {world.layers.horizon:,} steps{counted}"
    return "until the goal, discount 1" if world.has_goal else f"discount {world.discount:g}"


def _policy(policy: Policy) -> Summary:
    steps, pairs = policy.horizon, policy.pairs
    count = policy.num_states if steps is None else (policy.num_states - 1) // steps
    places = count * (steps or 1)
    largest = -pairs.smallest(-policy.per_pair)[:places]
    sure = int(np.count_nonzero(largest == 1.0))
    facts = [("states", f"{count:,}")]
    if steps is not None:
        facts.append(("depends on time", f"{steps:,} steps"))
    facts += [
        ("actions", f"{_counted(pairs.actions_per_state[:places])} a state"),
        ("deterministic", f"in {sure:,} of {places:,} {'states' if steps is None else 'rows'}"),
    ]
    shown = np.arange(min(places, MOST_ROWS))
    likeliest = policy.likeliest(shown)
    rows = [
        (*([] if steps is None else [str(k // count)]), str(k % count), str(likeliest[k]),
         share(float(largest[k])))
        for k in shown.tolist()
    ]  # fmt: skip
    head = ("state", "likeliest action", "probability")
    left = f"{places - len(rows):,} more rows. " if places > len(rows) else ""
    note = f"{left}With names and visits: jm.plot.policy(world, policy), policy.save(csv, world)."
    return Summary("Policy", facts, head if steps is None else ("t", *head), rows, note)


def _demonstrations(demos: Demonstrations) -> Summary:
    ended = int(demos.terminated.sum())
    facts = [
        ("episodes", f"{len(demos):,}"),
        ("steps", f"{demos.num_steps:,}, {_counted(demos.lengths)} an episode"),
        ("ends", f"{ended:,} terminated, {len(demos) - ended:,} truncated"),
    ]
    if not demos.has_ids:
        return Summary("Demonstrations", [*facts, ("states", "observations")])
    facts.append(("states", f"{np.unique(demos.states).size:,} different ones"))
    facts.append(("actions", f"{np.unique(demos.actions).size:,} different ones"))
    first = demos.states[demos.offsets[:-1] + np.arange(len(demos))]
    rows = [
        (str(k), str(demos.lengths[k]), str(first[k]), str(demos.last_states[k]),
         "terminated" if demos.terminated[k] else "truncated")
        for k in range(min(len(demos), MOST_ROWS))
    ]  # fmt: skip
    left = f"{len(demos) - len(rows):,} more episodes." if len(demos) > len(rows) else ""
    head = ("episode", "steps", "first state", "last state", "end")
    return Summary("Demonstrations", facts, head, rows, left)


def _answer(answer: Answer) -> Summary:
    status = answer.status
    facts = [("status", f"{status.name}: {status.message}")]
    known = answer.solution
    if known is None:
        facts.append(("remedy", str(answer.relaxation or status.remedy)))
    elif known.value is not None:
        known_cost = answer.problem.has_known_cost
        facts.append(("cost" if known_cost else "gap on the data", number(answer.value)))
        if known.lower_bound is not None:
            facts.append(("no policy below", number(answer.lower_bound)))
    elif answer.reduced is not None:
        facts.append(("loss", str(answer.reduced.loss_in_words)))
    if answer.regret is not None:
        facts.append(("regret on the data", f"at most {number(answer.regret.bound)}"))
    facts += [("solver", answer.engine), ("time", seconds(answer.solve_seconds))]
    facts += [("chosen for", answer.reason)] if answer.reason else []
    return Summary("Answer", facts, note=answer.advice)


def _counted(values: Any) -> str:
    """One number, or from where to where."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _names(names: Iterable[str] | None) -> str:
    known = list(names or ())
    more = ", …" if len(known) > MOST_NAMES else ""
    return f": {', '.join(known[:MOST_NAMES])}{more}" if known else ""


def _states(world: World, states: Any) -> str:
    """Some states by name or number."""
    names = world.state_names
    shown = [str(k) if names is None else names[k] for k in states[:MOST_NAMES].tolist()]
    if len(states) == 1:
        return f"state {shown[0]}"
    more = ", …" if len(states) > MOST_NAMES else ""
    return f"{len(states):,} states: {', '.join(shown)}{more}"
