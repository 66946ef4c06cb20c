"""Rows of features drawn once more in a large world, and the laws they are drawn by.

    q1(s) = sum_j phi_j(s)/(d h)                                        pairs
    q2(y) = sum_j ((B + discount P)' phi_j)(y)/((1 + discount) d h)     states

u = Phi theta, and D theta = (B - discount P)' u at a state: its own pairs less what comes from the
pairs before it. The features are asked for rows of pairs only; flow rows are added up here.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.draws import Moments
from journeyman.auditing.large_draws import CostFunction, shards
from journeyman.auditing.large_inputs import LargeQuestion
from journeyman.auditing.reading import Refused
from journeyman.auditing.row_checks import Examined, steps_agree
from journeyman.auditing.tables import Floats, Ints

BLOCK = 1 << 10
"""States whose predecessors are held at a time."""
STREAM = protocol.LARGE_STREAMS["rows"]


@dataclass(frozen=True, eq=False)
class Rows:
    """A world with features, and the coefficients of a policy over them."""

    question: LargeQuestion
    world: Any
    cost: CostFunction
    features: Any
    theta: Floats
    known: Floats
    """<phi_j, psi_i> where it is exact, NaN elsewhere: (costs x features)."""

    def __post_init__(self) -> None:
        shape = (len(self.question.names), self.theta.size)
        if self.known.shape != shape or self.features.num_features != self.theta.size:
            raise Refused("the features are not those of the coefficients")

    @property
    def exact(self) -> Floats:
        """The part of Psi' u that is not sampled."""
        return np.asarray(np.where(np.isnan(self.known), 0.0, self.known) @ self.theta)

    @property
    def ratio(self) -> float:
        """No row of Phi is longer than this times its q1."""
        return self.theta.size * self.question.horizon

    def ranges(self) -> list[Floats]:
        """Of the samples: psi times what is sampled of u/q1, V1 and V2."""
        reach = [
            self.ratio * np.maximum(sign * self._sampled, 0.0).max(axis=1) for sign in (-1.0, 1.0)
        ]
        ends = self.question.costs.ends
        corners = np.array([end * far for end in ends for far in (-reach[0], reach[1])])
        flow = 2 * (1 + self.question.discount) * self.ratio * np.abs(self.theta).max() + 2
        negative = self.ratio * max(0.0, float(-self.theta.min()))
        widths = [np.ptp(corners, axis=0), np.array([negative]), np.array([flow])]
        return [one * (1 + protocol.SLACK) for one in widths]

    def drawn(self, seed: int, count: int) -> tuple[list[Moments], Floats, list[Examined]]:
        """Moments of the three sums from their seed; Psi' u when all of it is sampled; what the
        rows are found to be."""
        parts = [
            self._shard(rng, part)
            for rng, part in shards(seed, (STREAM,), count, protocol.ROW_SHARD)
        ]
        *sums, whole = (
            np.concatenate(part) for part in zip(*(one[:4] for one in parts), strict=True)
        )
        moments = [Moments.of(one.reshape(count, -1)) for one in sums]
        return moments, whole, [one[4] for one in parts]

    @property
    def _sampled(self) -> Floats:
        return np.where(np.isnan(self.known), self.theta, 0.0)

    def _shard(
        self, rng: np.random.Generator, count: int
    ) -> tuple[Floats, Floats, Floats, Floats, Examined]:
        pairs = self.features.draw(rng, count)
        rows = self.features.rows(*pairs)
        law = np.asarray(rows.sum(axis=1)).ravel() / self.ratio
        density, costs = np.asarray(rows @ self.theta) / law, self.cost(*pairs)
        expected = costs * np.asarray(rows @ self._sampled.T) / law[:, np.newaxis]
        starts = rng.random(count) < 0.5
        first = self.world.draw_initial(rng, count)
        states = np.where(starts, first, self.features.draw_flow(rng, count))
        blocks = [self._violation(states[at : at + BLOCK]) for at in range(0, count, BLOCK)]
        violated, flow, initial = (np.concatenate(part) for part in zip(*blocks, strict=True))
        whole = costs * density[:, np.newaxis]
        steps, contradiction = steps_agree(self.world, pairs, states, rng)
        first, flowing = slice(0, protocol.DRAWS_BET_ON), ~starts
        again = zip(np.asarray(pairs[0]).tolist(), np.asarray(pairs[1]).tolist(), strict=True)
        examined = Examined(
            steps, contradiction, count, np.asarray((1 / (law * self.ratio)) @ rows),
            math.fsum(initial / (flow + initial)),
            list(zip(again, law.tolist(), strict=True))[first],
            list(zip(states[flowing].tolist(), flow[flowing].tolist(), strict=True))[first],
        )  # fmt: skip
        return expected, np.maximum(-density, 0.0), violated, whole, examined

    def _violation(self, states: Ints) -> tuple[Floats, Floats, Floats]:
        """|D_y theta - initial_y|/q(y), q2 and the initial law."""
        leaving, mass = np.zeros(states.size), np.zeros(states.size)
        for action in range(self.world.num_actions):
            rows = self.features.rows(states, np.full(states.size, action))
            leaving += rows @ self.theta
            mass += np.asarray(rows.sum(axis=1)).ravel()
        offsets, before, actions, chances = self.world.predecessors(states)
        where = np.arange(states.size).repeat(np.diff(offsets))
        rows, weight = self.features.rows(before, actions), self.question.discount * chances
        entering = np.bincount(where, weight * (rows @ self.theta), minlength=states.size)
        sums = np.asarray(rows.sum(axis=1)).ravel()
        mass += np.bincount(where, weight * sums, minlength=states.size)
        initial = np.asarray(self.world.initial_probability(states))
        law = mass / ((1 + self.question.discount) * self.ratio)
        off = np.abs(leaving - entering - initial)
        return np.asarray(off / ((law + initial) / 2)), law, initial
