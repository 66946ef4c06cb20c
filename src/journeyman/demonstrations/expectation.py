"""What the expert costs: the expected discounted total of every basis cost.

    e_i = E sum_t discount^t psi_i(x_t, a_t)

estimated by the mean over trajectories of their plain totals (`MonteCarlo`), of totals with most of
the world's noise taken out (`ControlVariate`), or of the blend of both that varies least (`Blend`,
the default). Known tails of terminated episodes are added exactly. Behind records that are cut off
`Blend` and `ControlVariate` put the values of a cloned policy, in estimated worlds too, and
`MonteCarlo()` nothing; how much discounted time is without a record, `truncation_mass` says.

No policy has an expectation outside the attainable ranges of the world, so completed means are
moved to the nearest point of their box, which is closer to the truth whatever the truth is.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, assign, read_only, real_array
from journeyman.costs import CostBasis
from journeyman.demonstrations.control_variate import (
    Blend,
    ControlVariate,
    Method,
    MonteCarlo,
    Tails,
)
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.errors import InvalidDemonstrations
from journeyman.execution import Executor
from journeyman.policy.attainable import attainable_ranges
from journeyman.world import World


@dataclass(frozen=True, eq=False, init=False)
class ExpertExpectation:
    """Expected discounted costs of the expert.

    Given directly, `ExpertExpectation(values)`, they are declared exact. From demonstrations they
    carry what a guarantee needs to know about them.
    """

    values: FloatArray
    num_trajectories: int | None
    """None when the values were declared."""
    spread: FloatArray
    """Standard deviation over trajectories, per cost."""
    truncation_mass: float
    """Mean discounted time without a record: |error of the mean| <= max|psi| truncation_mass."""
    method: Method | None
    demonstrations: Demonstrations | None
    """What the values were estimated from."""

    def __init__(self, values: ArrayLike) -> None:
        checked = real_array("expectations", values, ndim=1, refusal=InvalidDemonstrations)
        zero = read_only(np.zeros(checked.size))
        assign(self, values=checked, num_trajectories=None, spread=zero, truncation_mass=0.0)
        assign(self, method=None, demonstrations=None)

    @classmethod
    def from_rewards(cls, values: ArrayLike) -> Self:
        """Declared expectations of reward features, for a basis made by `from_rewards`."""
        given = real_array("expectations", values, ndim=1, refusal=InvalidDemonstrations)
        return cls(-given)

    @classmethod
    def from_demonstrations(
        cls,
        demos: Demonstrations,
        basis: CostBasis,
        world: World,
        *,
        method: MonteCarlo | ControlVariate | Blend | None = None,
        executor: Executor | None = None,
        clipped: bool = True,
    ) -> Self:
        """Discounted means over the trajectories of `demos`, checked against `world`.

        `method` is `Blend()` by default. `executor` adds up tasks of trajectories; no bit depends
        on it. Where tails were completed, values outside of what policies attain are `clipped`
        to it, unless the cost class does not bear that (`CostClass.bears_clipping`).
        """
        chosen = Blend() if method is None else method
        if not isinstance(chosen, MonteCarlo | ControlVariate | Blend):
            raise InvalidDemonstrations(
                f"method is {method!r}", "Give Blend(), ControlVariate() or MonteCarlo()"
            )
        matrix = basis.on(world)
        demos.pairs_in(world)
        totals = chosen.totals(demos, matrix, world, executor=executor)
        unrecorded = Tails.of(demos, matrix, world).unknown_mass
        found = cls.from_totals(totals, unrecorded, chosen, demos)
        completed = isinstance(chosen, MonteCarlo) and chosen.completed
        moved = clipped and (completed or isinstance(chosen, Blend))
        return found.attainable(basis, world) if moved else found

    @classmethod
    def from_totals(
        cls,
        totals: FloatArray,
        unrecorded: FloatArray,
        method: Method | None = None,
        demos: Demonstrations | None = None,
    ) -> Self:
        """The mean of discounted totals (trajectories x costs) with `unrecorded` time behind."""
        expectation = cls(totals.mean(axis=0))
        count, num_costs = totals.shape
        spread = totals.std(axis=0, ddof=1) if count > 1 else np.full(num_costs, np.inf)
        assign(
            expectation,
            num_trajectories=count,
            spread=read_only(spread),
            truncation_mass=float(unrecorded.mean()),
            method=method,
            demonstrations=demos,
        )
        return expectation

    def attainable(self, basis: CostBasis, world: World) -> Self:
        """The same with values outside their attainable ranges moved to the nearest end."""
        moved = attainable_ranges(world, basis).clip(self.values)
        other = type(self)(moved)
        assign(
            other,
            num_trajectories=self.num_trajectories,
            spread=self.spread,
            truncation_mass=self.truncation_mass,
            method=self.method,
            demonstrations=self.demonstrations,
        )
        return other

    @property
    def is_declared(self) -> bool:
        return self.num_trajectories is None
