"""Options of a source as they are typed on a command line: names and texts, turned into values.

What a text means is decided by the argument it is for, not by how it looks: `is_slippery=no` is
False, because the environment's own default is a truth value, and never the text "no", which Python
would take for true.
"""

import csv
import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.errors import InvalidInput, InvalidWorld, TooLarge
from journeyman.tables import Known, is_number

Options: TypeAlias = Mapping[str, str]

TRUE = {"true", "yes", "on"}
FALSE = {"false", "no", "off"}
EVERYWHERE = ("memory_gb",)
"""Options that every source takes."""


def refuse_unknown(source: str, options: Options, known: Collection[str]) -> None:
    """Name the first option that `source` does not have."""
    allowed = [*known, *EVERYWHERE]
    for name in options:
        if name not in allowed:
            raise InvalidWorld(
                f"{source} has no option {name!r}{_meant(name, allowed)}",
                f"Its options are {', '.join(allowed)}",
            )


def _meant(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def discount_of(source: str, options: Options) -> float:
    """The discount that a source cannot know."""
    if "discount" not in options:
        raise InvalidWorld(
            f"{source} has no discount",
            "Give one, for example discount=0.95; on the command line --discount 0.95 with world "
            "import, --option discount=0.95 elsewhere",
        )
    return real_number("discount", options["discount"])


GOAL = ("sink", "steps_at_most")
"""Options of sources that can have discount 1."""


def goal_of(options: Options) -> dict[str, Any]:
    """Arguments of a `World` that discount 1 asks for."""
    found: dict[str, Any] = {}
    if "sink" in options:
        found["sink"] = whole_number("sink", options["sink"])
    if "steps_at_most" in options:
        found["steps_at_most"] = real_number("steps_at_most", options["steps_at_most"])
    return found


def real_number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidWorld(
            f"{name} = {text!r} is not a number", "Give a number, for example 0.95"
        ) from None


def whole_number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidWorld(f"{name} = {text!r} is not a whole number", "Give digits only") from None


def whole_numbers(name: str, text: str) -> list[int]:
    """State ids separated by commas."""
    return [whole_number(name, part) for part in text.split(",") if part.strip()]


def states_in(option: str, text: str, names: Sequence[str] | None) -> list[int]:
    """States separated by commas, by their numbers or, where they have some, by their names; a name
    with a comma stands in quotes, unless it is the only one."""
    if names is None:
        return whole_numbers(option, text)
    known = Known("state", names)
    whole = text.strip()
    parts = [whole] if whole in names else next(csv.reader([whole], skipinitialspace=True), [])
    return [
        whole_number(option, part)
        if is_number(part)
        else known.number(part.strip(), f"the option {option}")
        for part in parts
        if part.strip()
    ]


def truth_value(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in TRUE | FALSE:
        raise InvalidWorld(f"{name} = {text!r} is not a truth value", "Give true or false")
    return word in TRUE


def initial_law(
    source: str,
    options: Options,
    num_states: int,
    uniform: FloatArray,
    names: Sequence[str] | None = None,
) -> FloatArray:
    """The law of the first state by the option `initial`: a state, or uniform over `uniform`."""
    text, one = options.get("initial"), names[0] if names else "0"
    if text is None:
        raise InvalidWorld(
            f"{source} does not say where episodes start",
            f"Give initial={one} for state {one}, or initial=uniform; on the command line "
            f"--initial {one} with world import, --option initial=uniform elsewhere; a log may "
            "also give it in the columns episode,t",
        )
    if text == "uniform":
        return np.asarray(uniform / uniform.sum())
    state = one_state("initial", text, names)
    if not 0 <= state < num_states:
        raise InvalidWorld(
            f"initial = {state} is outside 0..{num_states - 1}",
            "Give the number of a state, or uniform",
        )
    law = np.zeros(num_states)
    law[state] = 1.0
    return law


def one_state(option: str, text: str, names: Sequence[str] | None) -> int:
    """A state, by its number or, if it has one, its name."""
    found = states_in(option, text, names)
    if len(found) != 1:
        raise InvalidWorld(f"{option} = {text!r} is not one state", "Give one state")
    return found[0]


def arguments_for(source: str, function: Callable[..., Any], options: Options) -> dict[str, Any]:
    """Arguments of `function` from texts, each of the type of the argument's default."""
    parameters = inspect.signature(function).parameters
    open_ended = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    named = [name for name, one in parameters.items() if one.kind not in _ANY_NUMBER]
    given = {name: text for name, text in options.items() if name not in EVERYWHERE}
    if not open_ended:
        refuse_unknown(source, given, named)
    defaults = {name: parameters[name].default for name in given if name in named}
    return {name: typed(name, text, defaults.get(name)) for name, text in given.items()}


_ANY_NUMBER = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def typed(name: str, text: str, default: Any) -> Any:
    """`text` as a value of the type of `default`; where that says nothing, as JSON, or as text.

    >>> typed("is_slippery", "no", True), typed("map_name", "8x8", "4x4"), typed("slip", "1", 0.3)
    (False, '8x8', 1.0)
    >>> typed("walls", "[[0, 1]]", ()), typed("initial", "null", None), typed("desc", "SFG", None)
    ([[0, 1]], None, 'SFG')
    """
    if isinstance(default, bool):
        return truth_value(name, text)
    if isinstance(default, int):
        return whole_number(name, text)
    if isinstance(default, float):
        return real_number(name, text)
    if isinstance(default, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return truth_value(name, text) if text.lower() in TRUE | FALSE else text


MEMORY_LIMIT = 500_000_000
"""Bytes a source may take unless the option `memory_gb` says otherwise."""
PER_TRANSITION, PER_PAIR, PER_STATE = 44, 60, 80
"""Bytes that building a world takes at its peak, beyond what its source holds; measured."""


def memory_limit(options: Mapping[str, str]) -> int:
    """Bytes allowed by the option `memory_gb`, or `MEMORY_LIMIT`."""
    text = options.get("memory_gb")
    if text is None:
        return MEMORY_LIMIT
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit < 1e6:
        raise InvalidInput(
            f"memory_gb = {text} is not a number of gigabytes", "Give for example memory_gb=4"
        )
    return int(limit * 1e9)


def require_memory(what: str, estimate: float, limit: int) -> None:
    """Refuse what would take more than `limit` bytes, with the estimate."""
    if estimate > limit:
        raise TooLarge(
            f"{what} would take about {estimate / 1e9:.2g} GB, {limit / 1e9:.2g} GB are allowed",
            f"If it is what you expect, give memory_gb={estimate / 1e9 * 1.2:.2g}",
        )


def world_bytes(num_states: int, num_pairs: int, num_transitions: int) -> int:
    """What a world of this size takes while it is built."""
    return PER_TRANSITION * num_transitions + PER_PAIR * num_pairs + PER_STATE * num_states
