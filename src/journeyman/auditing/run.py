"""A run as the auditor has read it, and the estimates of the expert that its inputs allow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from journeyman.auditing import protocol
from journeyman.auditing.apprentice import Apprentice
from journeyman.auditing.expert import Estimate, is_shaped, known_estimate, plain_estimates
from journeyman.auditing.inputs import (
    Points,
    Question,
    Records,
    World,
    read_points,
    read_policy,
    read_question,
    read_records,
    read_world,
)
from journeyman.auditing.ledger import AGREEMENT
from journeyman.auditing.reading import Refused
from journeyman.auditing.shaped import shaped_estimate

Part = TypeVar("Part")
ALWAYS = ("policy.npz", "problem.npz", "witness.npz", "world.npz")
SOMETIMES = "demonstrations.npz"
OFFSET = 1e-3


@dataclass(frozen=True, eq=False)
class Run:
    """All inputs, and the failure probability of the certificate."""

    world: World
    question: Question
    apprentice: Apprentice
    records: Records | None
    points: Points
    failure_probability: float

    @property
    def floor(self) -> float:
        """What absolute errors of gaps are measured by: the largest gap of two policies, and a
        little of what it would be without centring, because that is what was rounded."""
        costs = self.question.costs
        return 2 * (costs.smaller + OFFSET * costs.plain) * self.world.horizon

    def trivial(self) -> list[float]:
        """What no gap exceeds, by every reading: 2 N h, or N h and the distance of a target that is
        taken as exact."""
        costs, h = self.question.costs, self.world.horizon
        if self.estimated:
            return [2 * costs.smaller * h]
        return [
            costs.smaller * h + costs.gap(h * centred * costs.centre - self.question.target)
            for centred in self.readings()
        ]

    @property
    def estimated(self) -> bool:
        """Whether the expert is known from demonstrations only."""
        return self.question.expectation.get("kind") not in ("declared", "known cost")

    def readings(self) -> list[bool]:
        """Whether unrecorded tails count as mid-range: when that is smaller, both when equal."""
        costs = self.question.costs
        if abs(costs.about_centre - costs.plain) <= AGREEMENT * costs.plain:
            return [costs.about_centre < costs.plain, costs.about_centre >= costs.plain]
        return [costs.about_centre < costs.plain]

    def estimates(self) -> list[list[Estimate]]:
        """The estimates by every reading."""
        known = known_estimate(self.question)
        if known is not None:
            return [[known]]
        if self.records is None:
            raise Refused("the expert's expectations were estimated from nothing")
        delta = self.failure_probability
        shaped = None
        if is_shaped(self.records):
            part = protocol.SHAPED_PARTS[2] * delta
            shaped = shaped_estimate(self.world, self.question, self.records, part)
        more = [] if shaped is None else [shaped]
        return [
            plain_estimates(self.world, self.question, self.records, delta, centred=centred) + more
            for centred in self.readings()
        ]


def read_run(files: dict[str, bytes], failure_probability: float) -> Run:
    """The inputs among `files`; the first that cannot be used is `Refused`, with its name."""
    world = _named("world.npz", lambda: read_world(files["world.npz"]))
    question = _named("problem.npz", lambda: read_question(files["problem.npz"], world))
    policy = _named("policy.npz", lambda: read_policy(files["policy.npz"], world))
    points = _named("witness.npz", lambda: read_points(files["witness.npz"], world, question))
    records: Records | None = None
    if SOMETIMES in files:
        records = _named(SOMETIMES, lambda: read_records(files[SOMETIMES], world))
    apprentice = Apprentice(world, question, policy)
    return Run(world, question, apprentice, records, points, failure_probability)


def _named(name: str, read: Callable[[], Part]) -> Part:
    try:
        return read()
    except Exception as fault:  # zipfile, zlib, numpy and json have many ways to say "damaged"
        raise Refused(f"{name}: {_words_of(fault)}") from fault


def _words_of(fault: Exception) -> str:
    if isinstance(fault, Refused):
        return str(fault)
    if isinstance(fault, KeyError):
        return f"it lacks {fault}"
    return f"it cannot be read ({fault or type(fault).__name__})"
