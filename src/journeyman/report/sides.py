"""Expert and apprentice, cost by cost, in the sign in which the features were given."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.certificate import Certificate
from journeyman.certificate.intervals import Interval
from journeyman.certificate.large_certificate import LargeCertificate
from journeyman.costs import CostBasis
from journeyman.report.subject import Subject


@dataclass(frozen=True, eq=False)
class Side:
    """Where the expectations of one of the two lie, one entry per cost."""

    low: FloatArray
    middle: FloatArray
    high: FloatArray

    def at(self, order: Sequence[int]) -> "Side":
        index = np.asarray(order, dtype=int)
        return Side(self.low[index], self.middle[index], self.high[index])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Both sides, and what their intervals mean."""

    names: tuple[str, ...]
    expert: Side
    apprentice: Side
    expert_words: str
    apprentice_words: str
    rewards: bool

    @property
    def differences(self) -> FloatArray:
        return self.apprentice.middle - self.expert.middle

    def most_different(self, most: int) -> "Comparison":
        """The costs with the largest differences, in their old order; all where they are few."""
        if len(self.names) <= most:
            return self
        largest = np.argsort(-np.abs(self.differences), kind="stable")[:most]
        order = [int(index) for index in np.sort(largest)]
        return Comparison(
            tuple(self.names[index] for index in order), self.expert.at(order),
            self.apprentice.at(order), self.expert_words, self.apprentice_words, self.rewards,
        )  # fmt: skip


def comparison_of(subject: Subject) -> Comparison | None:
    """What is known of single costs; None where that is nothing, or where there is no expert."""
    if not subject.has_expert:
        return None
    if isinstance(subject.certificate, Certificate):
        return _certified(subject.certificate)
    return _sampled(subject.certificate)


def _certified(certificate: Certificate) -> Comparison:
    """Intervals of the certificate."""
    basis = certificate.problem.basis
    chance = f"{1 - certificate.failure_probability:.4g}"
    declared = certificate.problem.expectation.is_declared  # type: ignore[attr-defined]
    whole = f"intervals of all costs hold together with probability {chance}"
    exact = not certificate.problem.world.is_estimated
    return Comparison(
        basis.names,
        _side(basis, certificate.expert_intervals, certificate.problem.target),
        _side(basis, certificate.apprentice_intervals, certificate.expectations),
        f"expert: {'declared' if declared else whole}",
        f"apprentice: {'evaluated exactly' if exact else 'as wide as the model allows'}",
        basis.rewards,
    )  # fmt: skip


def _side(basis: CostBasis, intervals: Sequence[Interval], middle: FloatArray) -> Side:
    ends = np.array([(one.low, one.high) for one in intervals])
    turned = np.sort(np.array([basis.as_given(end) for end in ends.T]), axis=0)
    return Side(turned[0], basis.as_given(middle), turned[1])


def _sampled(certificate: LargeCertificate) -> Comparison | None:
    """Means and twice their standard errors, where single costs were sampled."""
    samples, problem = certificate.best.statistics, certificate.problem
    basis, expectation = problem.basis, problem.expectation
    if len(samples) != 1 or len(samples[0].means) != basis.num_costs:
        return None
    sample = samples[0]
    centre = np.array(sample.means) + basis.centre * sample.unrecorded
    ours = 2 * np.sqrt(np.array(sample.variances) / sample.count)
    theirs = 2 * expectation.spread / np.sqrt(expectation.num_trajectories or 1)
    told = "mean and two standard errors of {} {}, no part of the certificate"
    demos = expectation.num_trajectories
    return Comparison(
        basis.names,
        _around(basis, problem.target, theirs),
        _around(basis, centre, ours),
        "expert: declared" if demos is None else
        f"expert: {told.format(f'{demos:,}', 'demonstrations')}",
        f"apprentice: {told.format(f'{sample.count:,}', 'rollouts')}",
        basis.rewards,
    )  # fmt: skip


def _around(basis: CostBasis, centre: FloatArray, radius: FloatArray) -> Side:
    middle = basis.as_given(centre)
    return Side(middle - radius, middle, middle + radius)
