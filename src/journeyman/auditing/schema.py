"""What a certificate of one kind consists of: its parts, and the files beside it."""

from dataclasses import dataclass, field

SHARED = frozenset({
    "bound", "combinations", "digest", "failure_probability", "inputs", "kind", "least_possible",
    "premises", "seeds", "software", "trivial_bound", "vacuous", "valid", "version", "weak",
})  # fmt: skip
"""Parts of every certificate."""


@dataclass(frozen=True)
class Schema:
    """Kind and version, the inputs there always are and the others, and parts of its own."""

    kind: str
    version: int
    always: tuple[str, ...]
    sometimes: tuple[str, ...]
    own: set[str] = field(default_factory=set)

    @property
    def keys(self) -> set[str]:
        return {*SHARED, *self.own}

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.always, *self.sometimes)
