"""Rollouts of the candidates of a mixture, and what each may cost of the failure probability.

    gap_W(sum_k theta_k (m_k - m^_k)) <= sum_k theta_k gap_W(m_k - m^_k) <= sum_k theta_k s_k

for *every* theta at once, when each radius s_k of a candidate's rollout mean m^_k holds with its
own part of delta. So weights may be chosen on the very rollouts they are certified with. Candidates
come in rounds; those of round r are made in view of the rounds before and have

    delta/(r (r + 1))  together,   delta/R in the last of at most R rounds,   the same part each

which sums to delta whenever one stops: 1/2 + 1/6 + ... + 1/((R - 1) R) + 1/R = 1.

*Guarantee*: the episodes of each candidate come from a stream of its own, so those of a round are
independent of everything before it. Those of a solver come from its seed; those of a certificate
from what is certified (`draw_seeds`).
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from fractions import Fraction

from journeyman.arrays import assign, require_whole
from journeyman.demonstrations.simulation import EpisodeTotals, Simulator, simulate
from journeyman.errors import InvalidProblem
from journeyman.execution import Executor
from journeyman.policy.acting import AnyPolicy
from journeyman.problem.draw_seeds import ignored_seed

STREAM = 0x6D697874
"""Which of a seed's streams the candidates are rolled out from."""


@dataclass(frozen=True)
class MixtureRollouts:
    """Evaluate a `MixturePolicy` candidate by candidate, for `certify(..., evaluation=...)`.

    Args:
        trajectories: of every candidate.
        horizon: steps after which a rollout is cut off.
        seed: has no influence any more, and is going to be removed: problem and policy decide which
            rollouts a certificate draws.
        rounds: how many candidates each round was to have; by default all are of one round.
        most_rounds: that were planned beforehand; by default as many as there are in `rounds`.

    >>> [str(part) for part in MixtureRollouts(1000, 200, rounds=(4, 1), most_rounds=3).parts(5)]
    ['1/8', '1/8', '1/8', '1/8', '1/6']
    """

    trajectories: int
    horizon: int
    seed: InitVar[int | None] = None
    rounds: tuple[int, ...] | None = None
    most_rounds: int | None = None

    def __post_init__(self, seed: int | None) -> None:
        ignored_seed(seed, "MixtureRollouts")
        for name, least in (("trajectories", 2), ("horizon", 1)):
            assign(self, **{name: _whole(name, getattr(self, name), least)})
        if self.rounds is not None:
            rounds = tuple(_whole("rounds", size, 1) for size in self.rounds)
            assign(self, rounds=rounds)
            planned = len(rounds) if self.most_rounds is None else self.most_rounds
            assign(self, most_rounds=_whole("most_rounds", planned, max(len(rounds), 1)))
        elif self.most_rounds is not None:
            raise InvalidProblem("most_rounds without rounds", "Say how many candidates each has")

    def parts(self, count: int) -> list[Fraction]:
        """The share of the failure probability of each of the first `count` candidates."""
        sizes, planned = self._sizes(count)
        return [
            share_of_round(number, planned) / sizes[number - 1] for number, _ in self._places(count)
        ]

    def totals(
        self,
        simulator: Simulator,
        candidates: Sequence[AnyPolicy],
        seed: int,
        which: Sequence[int] | None = None,
        executor: Executor | None = None,
    ) -> list[EpisodeTotals]:
        """The episodes of all candidates, or of those asked for by their numbers."""
        places = self._places(len(candidates))
        asked = range(len(candidates)) if which is None else which
        policies = [(candidates[k], (STREAM, *places[k])) for k in asked]
        return simulate(simulator, policies, self.trajectories, self.horizon, seed, executor)

    def _sizes(self, count: int) -> tuple[tuple[int, ...], int]:
        if self.rounds is None:
            return (count,), 1
        if sum(self.rounds) < count:
            raise InvalidProblem(
                f"there are {count} candidates, and the rounds {self.rounds} have "
                f"{sum(self.rounds)} in all",
                "Say how many candidates each round has",
            )
        assert self.most_rounds is not None
        return self.rounds, self.most_rounds

    def _places(self, count: int) -> list[tuple[int, int]]:
        """Round, from 1, and number within it of each candidate."""
        sizes, _ = self._sizes(count)
        return [(number, place) for number, size in enumerate(sizes, 1) for place in range(size)][
            :count
        ]


def share_of_round(number: int, most_rounds: int) -> Fraction:
    """1/(r (r + 1)) for round r, and 1/R for the last one.

    >>> sum(share_of_round(number, 7) for number in range(1, 8))
    Fraction(1, 1)
    """
    return Fraction(1, number if number == most_rounds else number * (number + 1))


def _whole(name: str, value: int, least: int) -> int:
    return require_whole(name, value, least, InvalidProblem)
