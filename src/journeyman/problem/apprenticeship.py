"""The apprenticeship problem: do at least as well as the expert for every cost of a class.

    minimise over policies   max { <mu_pi, c_w> - <mu_E, c_w> : w in W }

with the expert's side estimated from demonstrations: program (5) of the paper, or (3) when the
expectations are exact. By Lemma 1 the inner maximum is the support function of W.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, assign
from journeyman.costs import CostBasis, CostClass, InfinityBall
from journeyman.demonstrations import Demonstrations, ExpertExpectation
from journeyman.errors import InvalidProblem
from journeyman.problem.budget import Budget
from journeyman.problem.program import Program
from journeyman.world import World


@dataclass(frozen=True, eq=False, init=False)
class Apprenticeship(Program):
    """Imitate an expert under every cost the basis can express.

    Args:
        world: where both act.
        basis: the costs that may matter.
        expert: demonstrations, or expectations (declared, or estimated in a way of your choice).
        cost_class: which weights are possible; `InfinityBall()` by default.
        constraints: budgets that the apprentice must keep (the expert may have broken them).
    """

    expectation: ExpertExpectation
    demonstrations: Demonstrations | None

    def __init__(
        self,
        world: World,
        basis: CostBasis,
        expert: Demonstrations | ExpertExpectation,
        cost_class: CostClass | None = None,
        constraints: Iterable[Budget] | Budget = (),
    ) -> None:
        for name, part, kind in (("world", world, World), ("basis", basis, CostBasis)):
            if not isinstance(part, kind):
                raise InvalidProblem(
                    f"{name} is a {type(part).__name__}",
                    "Give Apprenticeship(world, basis, expert): a World, a CostBasis, then "
                    "Demonstrations or an ExpertExpectation",
                )
        basis = basis.fitted(world)
        if isinstance(expert, Demonstrations):
            expectation = ExpertExpectation.from_demonstrations(expert, basis, world)
        elif isinstance(expert, ExpertExpectation):
            expectation = expert
            _refuse_turned_sign(basis, expectation, world)
        else:
            raise InvalidProblem(
                f"the expert is a {type(expert).__name__}",
                "Give Demonstrations (jm.record turns a policy into them) or an ExpertExpectation",
            )
        assign(self, expectation=expectation, demonstrations=expectation.demonstrations)
        chosen = InfinityBall() if cost_class is None else cost_class
        super().__init__(world, basis, chosen, expectation.values, constraints)

    @property
    def exact_target(self) -> FloatArray | None:
        return self.target if self.expectation.is_declared else None


def _refuse_turned_sign(basis: CostBasis, expert: ExpertExpectation, world: World) -> None:
    """Declared expectations of rewards that only make sense with the other sign."""
    if not basis.rewards or expert.values.size != basis.num_costs:
        return
    slack = 1e-9 * basis.norms
    low, high = (basis.lowest - slack, basis.highest + slack)
    given = expert.values / world.effective_horizon
    impossible = (given < low) | (given > high)
    if impossible.any() and ((-given >= low) & (-given <= high)).all():
        name = basis.names[int(np.argmax(impossible))]
        raise InvalidProblem(
            f"the basis holds rewards, and the declared expectation of {name!r} has the sign of "
            "a reward where a cost is expected",
            "Declare it with ExpertExpectation.from_rewards(...)",
        )
