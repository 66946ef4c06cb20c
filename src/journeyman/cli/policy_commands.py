"""Commands on policies: `journeyman policy show` (what it does, state by state) and `journeyman
policy export` (the same as a CSV file, for spreadsheets and for `certify` and `record`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from journeyman.cli.options import AsJson, OptionalWorld, WorldOption, parsed_options
from journeyman.cli.output import show
from journeyman.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from journeyman.policy.listing import Choice, Listing

RunOrFile = Annotated[Path, typer.Argument(help="A run directory; or a policy file, with --world.")]
WIDEST, MOST_OTHERS = 40, 3
"""Characters of a name in a column, and further actions that a row names."""


def show_policy(
    run: RunOrFile,
    state: Annotated[
        str | None, typer.Option(help="All that is done in this state: its name or number.")
    ] = None,
    limit: Annotated[int, typer.Option(help="States to list.", min=1)] = 20,
    world: OptionalWorld = None,
    option: WorldOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what a policy does, state by state.

    The most visited states come first. With a horizon the policy may depend on the step t. Beside
    the policy of a run stands what its expert was seen to do.
    """
    found = _listing(run, world, option)
    if state is not None:
        rows = found.in_state(_state(state, found))
        text = _state_text(rows, found)
    else:
        rows = found.most_visited(limit)
        text = _text(rows, found)
    facts = {
        "run": str(run), "states": found.world.num_states, "steps": found.steps,
        "rows": found.num_rows, "left_out": 0 if state else found.num_rows - len(rows),
        "visits_are_shares_of": found.whole, "unlisted_visits": found.unlisted,
        "expert_decisions": found.decisions_seen, "agreement": found.agreement,
        "policy": [row.to_dict() for row in rows],
    }  # fmt: skip
    show(facts, text, as_json=as_json)


def export_policy(
    run: RunOrFile,
    target: Annotated[Path, typer.Argument(help="The CSV file to write.")],
    world: OptionalWorld = None,
    option: WorldOption = None,
    as_json: AsJson = False,
) -> None:
    """Write a policy as a CSV file.

    It has a row for every action that is taken, with every digit: certify and record read it back
    as the same policy.
    """
    if target.suffix.lower() != ".csv":
        raise typer.BadParameter(f"{target} does not end in .csv", param_hint="FILE")
    found = _listing(run, world, option)
    found.save(target)
    rows = int((found.law > 0).sum())
    facts = {"file": str(target), "states": found.world.num_states, "rows": rows}
    timed = "" if found.steps is None else f", {found.steps:,} steps"
    show(
        facts | {"steps": found.steps},
        f"{target}: {found.world.num_states:,} states{timed}, {rows:,} rows",
        as_json=as_json,
    )


def _listing(run: Path, source: str | None, option: list[str] | None) -> Listing:
    """The policy of a run in its own world, or that of a file in the world of --world."""
    from journeyman.policy.listing import Listing
    from journeyman.report.saved_run import read_policy
    from journeyman.runs.run_directory import evidence_in
    from journeyman.runs.run_inputs import policy_from, world_from

    if source is None:
        if run.is_file():
            raise typer.BadParameter(
                f"{run} is a file: say of which world the policy is", param_hint="--world"
            )
        own, policy, demos = read_policy(evidence_in(run))
        return Listing.of(own, policy, seen=None if demos is None else demos.counts_in(own))
    there = world_from(source, parsed_options(option))
    return Listing.of(there, policy_from(run, there))


def _state(text: str, found: Listing) -> int:
    """The state of a name or number."""
    from journeyman.tables import Known

    world = found.world
    if text.strip().isdecimal() and int(text) < world.num_states:
        return int(text)
    if world.state_names is None:
        raise typer.BadParameter(
            f"{text!r}: states have no names here; give a number from 0 to {world.num_states - 1}",
            param_hint="--state",
        )
    try:
        return Known("state", world.state_names).number(text.strip(), "it")
    except InvalidInput as fault:
        raise typer.BadParameter(str(fault), param_hint="--state") from fault


def _text(rows: Sequence[Choice], found: Listing) -> str:
    """A table with a row for every state, and what it does not show."""
    head = [*_head(found), "action", "probability", "visits"]
    recorded = found.seen is not None
    table = [[*head, *["expert"] * recorded, "otherwise"]]
    table += [
        [
            *_place(row), row.actions[0], percent(row.probabilities[0]), _visits(row),
            *[_seen(row)] * recorded, _others(row),
        ]
        for row in rows
    ]  # fmt: skip
    numbers = {len(head) - 2, len(head) - 1}
    left = found.num_rows - len(rows)
    notes = [f"Visits: share of {found.whole}."] if found.visits is not None else []
    if found.unlisted:
        notes.append(f"Ended episodes, not listed, have {percent(found.unlisted)} of it.")
    if found.agreement is not None:
        decisions, part = f"{found.decisions_seen:,}", percent(found.agreement)
        notes.append(
            "Expert: its most frequent action, and in how many of its visits. The policy repeats "
            f"its {decisions} recorded decisions with a mean probability of {part}."
        )
    if left:
        kind = "states" if found.steps is None else "states and steps"
        shown = sum(row.visits or 0.0 for row in rows)
        part = f", with {percent(1 - shown - found.unlisted)} of the visits" * (
            found.visits is not None
        )
        notes.append(f"{left:,} {kind} are not shown{part}: --limit, --state, policy export.")
    return "\n".join([*_aligned(table, numbers), "", *notes])


def _state_text(rows: Sequence[Choice], found: Listing) -> str:
    """A row for every action that is taken in one state."""
    first = rows[0]
    visits = sum(row.visits or 0.0 for row in rows)
    known = f", {percent(visits)} of {found.whole}" if found.visits is not None else ""
    timed, recorded = found.steps is not None, found.seen is not None
    table = [[*["t"] * timed, "action", "probability", *["expert"] * recorded, *["visits"] * timed]]
    for row in rows:
        for k, (name, part, count) in enumerate(_together(row)):
            when = [str(row.t) if k == 0 else ""] * timed
            times = [f"{count:,}"] * recorded
            table.append([*when, name, part, *times, *[_visits(row) if k == 0 else ""] * timed])
    numbers = {at for at, name in enumerate(table[0]) if name != "action"}
    return "\n".join([f"state {_short(first.name)}{known}", *_aligned(table, numbers)])


def _together(row: Choice) -> Iterator[tuple[str, str, int]]:
    """Every action that the policy or the expert takes: its probability, and how often it was
    seen."""
    law = dict(zip(row.actions, row.probabilities, strict=True))
    seen = dict(row.seen)
    for name in dict.fromkeys([*law, *seen]):
        yield name, percent(law.get(name, 0.0)), seen.get(name, 0)


def _head(found: Listing) -> list[str]:
    return ["state"] if found.steps is None else ["t", "state"]


def _place(row: Choice) -> list[str]:
    return [row.name] if row.t is None else [str(row.t), row.name]


def _others(row: Choice) -> str:
    """The next actions with their probabilities."""
    pairs = list(zip(row.actions, row.probabilities, strict=True))[1:]
    named = [f"{_short(name)} {percent(share)}" for name, share in pairs[:MOST_OTHERS]]
    more = len(pairs) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])


def _seen(row: Choice) -> str:
    """The expert's most frequent action, and in how many of its visits it took that."""
    if not row.seen:
        return "not seen"
    name, count = row.seen[0]
    return f"{_short(name)} {count:,}/{sum(often for _, often in row.seen):,}"


def _visits(row: Choice) -> str:
    return "?" if row.visits is None else percent(row.visits)


def percent(value: float) -> str:
    """A share as reports write it."""
    from journeyman.report.numbers import share

    return share(value)


def _short(name: str) -> str:
    plain = "".join(sign if sign.isprintable() else "�" for sign in name)
    return plain if len(plain) <= WIDEST else f"{plain[: WIDEST - 1]}…"


def _aligned(rows: Sequence[Sequence[Any]], numbers: set[int]) -> list[str]:
    """Columns; those in `numbers` to the right."""
    last = len(rows[0]) - 1
    cells = [
        [text if at == last and at not in numbers else _short(text) for at, text in enumerate(row)]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if at in numbers else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
