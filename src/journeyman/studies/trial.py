"""One solver on one problem with one seed, in figures."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

REFUSED, RAISED = "REFUSED", "RAISED"
"""States of trials without an answer: the method said no, or something went wrong in it."""
COUNTS = ("iterations", "forward_solves", "environment_steps", "expert_queries")
"""What methods spend, by the names of the fields."""


@dataclass(frozen=True)
class Trial:
    """What became of a trial. A figure that is not known is None."""

    problem: str
    solver: str
    seed: int | None
    """None where nothing depends on one: neither the problem, nor the method."""
    status: str
    """The name of a `Status`; REFUSED when the method cannot be used on such a problem, RAISED
    when it ended in another exception."""
    message: str = ""
    """Why there is no answer."""
    engine: str = ""
    true_gap: float | None = None
    """The policy's gap to the true expert, where that one is known."""
    gap_on_data: float | None = None
    """The policy's gap to the estimate of the expert that the method was given."""
    lower_bound: float | None = None
    """No policy has a smaller gap on the data; proven by what the method found."""
    certified_bound: float | None = None
    """What `jm.certify` shows of the policy with the given probability."""
    valid: bool | None = None
    """Whether no premise of the certificate has failed."""
    vacuous: bool | None = None
    """Whether the certificate shows no more than holds for every policy."""
    weak: bool | None = None
    """Whether its bound is above half of the trivial bound; every vacuous one is."""
    budgets_kept: bool | None = None
    """Whether the certificate shows that all budgets are kept; None without budgets."""
    trivial_bound: float | None = None
    """No gap can be larger."""
    seconds: float = 0.0
    """Of solving, features included where they are made for the method; not of certifying."""
    iterations: int | None = None
    forward_solves: int | None = None
    """Known costs for which an optimal policy was planned."""
    environment_steps: int | None = None
    """Transitions that were drawn from the world."""
    expert_queries: int | None = None
    """States in which the expert was asked, beyond the demonstrations."""

    @property
    def has_policy(self) -> bool:
        return self.gap_on_data is not None

    @property
    def is_final(self) -> bool:
        """Whether a second attempt would end alike. What was no refusal may have been a full
        memory or a fault that is mended by then."""
        return self.status != RAISED

    def facts(self) -> dict[str, Any]:
        """All figures, ready for JSON."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        """From stored figures; ValueError when they are not those of a trial."""
        wanted = {one.name: _words(one.type) for one in fields(cls)}
        if not isinstance(facts, Mapping) or set(facts) != set(wanted):
            raise ValueError("these are not the figures of a trial")
        return cls(**{name: _of_type(wanted[name], name, value) for name, value in facts.items()})


def _words(kind: Any) -> str:
    """A type as it is written in the class."""
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _of_type(wanted: str, name: str, value: Any) -> Any:
    """The value, if it is of a type that the field takes."""
    if value is None and "None" in wanted:
        return None
    kinds: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
    kind = kinds[wanted.partition(" ")[0]]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float and number and math.isfinite(value):
        return float(value)
    if kind is not float and isinstance(value, kind) and (kind is bool) == isinstance(value, bool):
        return value
    raise ValueError(f"{name} = {value!r}")
