"""Expert expectations with less noise: the martingale control variate.

For any potential V (states x costs) that does not depend on a trajectory, its shaped total

    M = <initial, V> + sum_{t<T} discount^t (psi(x_t, a_t) + discount (P V)(x_t, a_t) - V(x_t))

has the same expectation as its plain total, up to the tail: V(x_0) and each V(x_{t+1}) were
replaced by their known conditional means, so only noise of the world was taken out,

    E M = E [ sum_{t<T} discount^t psi_t + discount^T V(x_T) ]

for every expert, history-dependent ones included. A known tail replaces V(x_T) exactly; behind a
truncated record V(x_T) stands for the tail. If V is the expert's own value, all that is left is
the randomness of its actions: a deterministic expert is then known without error.

V is the value of a policy cloned from *other* trajectories (cross-fitting): one cloned from the
same trajectories would make M depend on V, and its mean biased.

*Reference*: potential-based shaping, Ng, Harada and Russell (1999); Henderson and Glynn (2002) on
martingale control variates.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix, read_only
from journeyman.demonstrations.cloning import clone
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.demonstrations.episode_shards import by_shards
from journeyman.demonstrations.totals import Tails, recorded_totals
from journeyman.errors import InvalidDemonstrations
from journeyman.execution import Executor
from journeyman.policy.values import value_functions
from journeyman.world import World

FEWEST_TRAJECTORIES = 20
"""With fewer the clones are too poor to help, and the plain mean is used."""


@dataclass(frozen=True, eq=False)
class Shaping:
    """A potential, and costs shaped by it. Nothing here looks at the trajectories it is used on."""

    potential: FloatArray
    """V, (states x costs)."""
    baseline: FloatArray
    """<initial, V>."""
    costs: FloatArray
    """psi + discount P V - V, (pairs x costs)."""

    @classmethod
    def learned(
        cls, demos: Demonstrations, matrix: Matrix, world: World, smoothing: float
    ) -> "Shaping":
        """The values of a policy cloned from `demos` as potential."""
        V = value_functions(world, clone(demos, world, smoothing=smoothing), matrix)
        dense = np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
        shaped = dense + world.discount * (world.transition @ V) - V[world.pairs.states]
        return cls(V, read_only(world.initial @ V), read_only(shaped))

    def totals(self, demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
        """M of every episode, known tails put in the place of the potential's."""
        return np.asarray(
            self.baseline
            + recorded_totals(demos, self.costs, world)
            + self.tails(demos, matrix, world)
        )

    def tails(self, demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
        """What a known tail is worth beyond the potential that stood for it; zero elsewhere."""
        tails = Tails.of(demos, matrix, world)
        weight = np.where(tails.known, world.discount**demos.lengths, 0.0)[:, np.newaxis]
        return np.asarray(tails.known_totals - weight * self.potential[demos.last_states])


@dataclass(frozen=True)
class ControlVariate:
    """Cross-fitted shaped totals: each fold is shaped by a policy cloned from the other folds.

    Args:
        num_folds: episode j belongs to fold j modulo this number.
        smoothing: of the cloned policies, as in `clone`.
    """

    num_folds: int = 2
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        if not (isinstance(self.num_folds, int) and self.num_folds >= 2):
            raise InvalidDemonstrations(f"num_folds = {self.num_folds!r}", "Give 2 or more")

    def totals(
        self,
        demos: Demonstrations,
        matrix: Matrix,
        world: World,
        *,
        executor: Executor | None = None,
    ) -> FloatArray:
        """One shaped total per episode: (episodes x costs)."""
        if len(demos) < self.num_folds:
            raise InvalidDemonstrations(
                f"{len(demos)} trajectories cannot be cut into {self.num_folds} folds",
                "Give more, or use method=MonteCarlo()",
            )
        found = np.empty((len(demos), matrix.shape[1]))
        for fold in range(self.num_folds):
            mine, others = self._fold(len(demos), fold)
            shaping = Shaping.learned(demos.subset(others), matrix, world, self.smoothing)
            found[mine] = by_shards(shaping.totals, demos.subset(mine), matrix, world, executor)
        return found

    def _fold(self, count: int, fold: int) -> tuple[IntArray, IntArray]:
        belongs = np.arange(count) % self.num_folds == fold
        return np.flatnonzero(belongs), np.flatnonzero(~belongs)


@dataclass(frozen=True)
class MonteCarlo:
    """Plain discounted totals. Needs no transition law."""

    def totals(
        self,
        demos: Demonstrations,
        matrix: Matrix,
        world: World,
        *,
        executor: Executor | None = None,
    ) -> FloatArray:
        """One total per episode, known tails included: (episodes x costs)."""
        return by_shards(_plain_totals, demos, matrix, world, executor)


def _plain_totals(demos: Demonstrations, matrix: Matrix, world: World) -> FloatArray:
    recorded = recorded_totals(demos, matrix, world)
    return np.asarray(recorded + Tails.of(demos, matrix, world).known_totals)
