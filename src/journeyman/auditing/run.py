"""A run as the auditor has read it, and the estimates of the expert that its inputs allow."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from journeyman.auditing.apprentice import Apprentice
from journeyman.auditing.expert import Estimate, known_estimate, parts_of, plain_estimates
from journeyman.auditing.inputs import (
    Points,
    Question,
    Records,
    World,
    read_points,
    read_policy,
    read_question,
    read_records,
    read_recovered,
    read_trace,
    read_world,
)
from journeyman.auditing.knowledge import Distances
from journeyman.auditing.ledger import AGREEMENT
from journeyman.auditing.reading import Refused
from journeyman.auditing.sampled_rows import Features, read_features
from journeyman.auditing.shaped import shaped_estimate
from journeyman.auditing.stored import ROWS, Stored, sampling_of, stored_combinations
from journeyman.auditing.tables import Floats

Part = TypeVar("Part")
ALWAYS = ("policy.npz", "problem.npz", "witness.npz", "world.npz")
DEMONSTRATIONS, FEATURES, TRACE, RECOVERED = SOMETIMES = (
    "demonstrations.npz", "features.npz", "trace.npz", "recovered.npz",
)  # fmt: skip
OFFSET = 1e-3


@dataclass(frozen=True, eq=False)
class Run:
    """All inputs, what the certificate claims to have combined, and its failure probability."""

    world: World
    question: Question
    apprentice: Apprentice
    records: Records | None
    points: Points
    features: Features | None
    trace: Floats | None
    claimed: list[Stored]
    failure_probability: float
    same_numpy: bool
    """Whether the run names the version of numpy that is used now; seeds may mean other numbers
    under another one."""

    @property
    def sampling(self) -> str | None:
        """What the evaluation drew."""
        return sampling_of(self.claimed)

    @cached_property
    def distances(self) -> Distances | None:
        """Of the true laws from the model's; None in an exact world."""
        return self.world.knowledge.distances(self.world.rows, self.failure_probability)

    @property
    def parts(self) -> tuple[float, float]:
        """Of the failure probability, for the expert and for the evaluation."""
        spent = 0.0 if self.distances is None else self.distances.spent
        left = self.failure_probability - spent
        if self.sampling is None:
            return left, 0.0
        return (left / 2, left / 2) if self.estimated else (0.0, left)

    @property
    def floor(self) -> float:
        """What absolute errors of gaps are measured by: the largest gap of two policies, and a
        little of what it would be without centring, because that is what was rounded."""
        costs = self.question.costs
        return 2 * (costs.smaller + OFFSET * costs.plain) * self.world.horizon

    def plain(self, sign: float = 1.0) -> float:
        """What no gap exceeds because costs are bounded: 2 N h, or N h and the distance of a target
        that is taken as exact. With sign -1: what minus a gap does not exceed."""
        costs, h, target = self.question.costs, self.world.horizon, self.exact_target
        if target is None:
            return 2 * costs.smaller * h
        given = costs.plain * h + costs.gap(-sign * target)
        return min(given, costs.about_centre * h + costs.gap(sign * (h * costs.centre - target)))

    @property
    def exact_target(self) -> Floats | None:
        """The target where it is taken as exact."""
        return None if self.estimated else self.question.target

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

    def estimates(self, *, centred: bool) -> list[Estimate]:
        """The estimates by one reading."""
        known = known_estimate(self.question)
        if known is not None:
            return [known]
        if self.records is None:
            raise Refused("the expert's expectations were estimated from nothing")
        plain = plain_estimates(
            self.world, self.question, self.records, self.parts[0], centred=centred
        )
        return plain if self.shaped is None else [*plain, self.shaped]

    @cached_property
    def shaped(self) -> Estimate | None:
        if self.records is None:
            return None
        part = parts_of(self.world, self.records)[2] * self.parts[0]
        if part <= 0:
            return None
        return shaped_estimate(self.world, self.question, self.records, part)


def read_run(files: dict[str, bytes], facts: dict[str, Any]) -> Run:
    """The inputs among `files`; the first that cannot be used is `Refused`, with its name."""
    claimed = stored_combinations(facts)
    world = _named("world.npz", lambda: read_world(files["world.npz"]))
    question = _named("problem.npz", lambda: read_question(files["problem.npz"], world))
    policy = _named("policy.npz", lambda: read_policy(files["policy.npz"], world))
    points = _named("witness.npz", lambda: read_points(files["witness.npz"], world, question))
    records: Records | None = None
    features: Features | None = None
    if DEMONSTRATIONS in files:
        records = _named(DEMONSTRATIONS, lambda: read_records(files[DEMONSTRATIONS], world))
    if FEATURES in files:
        features = _named(FEATURES, lambda: read_features(files[FEATURES], world))
    trace = _named(TRACE, lambda: read_trace(files[TRACE])) if TRACE in files else None
    if RECOVERED in files:
        _named(RECOVERED, lambda: read_recovered(files[RECOVERED], question))
    sampling = sampling_of(claimed)
    if (features is None) == (sampling == ROWS):
        raise Refused(f"sampled rows and the file {FEATURES} do not come together")
    if sampling is not None and points.measure is not None:
        raise Refused("a certificate rests on draws and on a measure")
    return Run(
        world, question, Apprentice(world, question, policy), records, points, features, trace,
        claimed, facts["failure_probability"], facts["software"]["numpy"] == np.__version__,
    )  # fmt: skip


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
