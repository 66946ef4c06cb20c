"""What the policy does, state by state: a table of the most visited states, for every world that is
listed.

Pages run no script, so it is the browser that searches the table for a name, in the folded part
too; a choice of actions above it hides the other rows by style alone.
"""

from typing import Any

from journeyman.policy import Policy
from journeyman.policy.listing import Choice, Listing
from journeyman.report.numbers import exact, exact_column, share
from journeyman.report.rendering import Section
from journeyman.report.report_data import ReportData

MOST_OPEN, MOST_LISTED = 15, 200
"""Rows that are shown at once, and with those that are folded away."""
MOST_ACTIONS = 12
"""Actions among which can be chosen; the style sheet has a rule for each."""
UNBROKEN = "\N{NO-BREAK SPACE}"
MOST_OTHERS = 3
"""Further actions that a row names."""


def policy(data: ReportData, prefix: str) -> Section | None:
    """None where the policy is no table."""
    acting = data.certificate.policy
    if data.world is None or not isinstance(acting, Policy):
        return None
    demos = data.demonstrations
    seen = None if demos is None else demos.counts_in(data.world)
    listing = Listing.of(data.world, acting, seen=seen)
    rows = listing.most_visited(MOST_LISTED)
    if not rows:
        return None
    actions = _actions(rows)
    cells = _cells(rows, actions)
    shown = sum(row.visits or 0.0 for row in rows) + listing.unlisted
    content = {
        "id": f"{prefix}policy", "timed": listing.steps is not None, "whole": listing.whole,
        "visits": listing.visits is not None,
        "placed": listing.state_names is None and listing.world.coordinates is not None,
        "seen": f"{listing.decisions_seen:,}" if listing.decisions_seen else "",
        "agreement": "" if listing.agreement is None else share(listing.agreement),
        "all": listing.num_rows, "open": cells[:MOST_OPEN], "folded": cells[MOST_OPEN:],
        "left_out": listing.num_rows - len(rows), "left_visits": share(max(0.0, 1 - shown)),
        "ended": share(listing.unlisted) if listing.unlisted else "",
        "choices": list(actions.values()) if 1 < len(actions) <= MOST_ACTIONS else [],
    }  # fmt: skip
    return Section("policy", "What the policy does", content, link="Policy")


def _actions(rows: list[Choice]) -> dict[str, tuple[int, str, int]]:
    """The likeliest actions, the most frequent first: place, name and number of rows."""
    names = [row.actions[0] for row in rows]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    return {name: (place, name, count) for place, (name, count) in enumerate(ordered)}


def _cells(
    rows: list[Choice], actions: dict[str, tuple[int, str, int]]
) -> list[dict[str, Any]]:  # fmt: skip
    visits = exact_column([100 * (row.visits or 0.0) for row in rows])
    return [
        {
            "kind": actions[row.actions[0]][0], "t": row.t, "name": row.name,
            "action": row.actions[0], "others": _others(row),
            "probability": exact(row.probabilities[0], share(row.probabilities[0])),
            "visits": visits[index], "seen": _seen(row),
        }
        for index, row in enumerate(rows)
    ]  # fmt: skip


def _seen(row: Choice) -> tuple[str, str]:
    """The expert's most frequent action, and how often it was seen."""
    if not row.seen:
        return "", ""
    name, count = row.seen[0]
    times = f"{count:,} of {sum(often for _, often in row.seen):,}".replace(" ", UNBROKEN)
    return name, times


def _others(row: Choice) -> list[tuple[str, str]]:
    """The next actions with their probabilities, then how many more there are."""
    pairs = list(zip(row.actions, row.probabilities, strict=True))[1:]
    named = [(name, share(part).replace(" ", UNBROKEN)) for name, part in pairs[:MOST_OTHERS]]
    more = len(pairs) - len(named)
    return [*named, *([(f"{more} more", "")] if more else [])]
