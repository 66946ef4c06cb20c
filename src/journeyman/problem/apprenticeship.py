"""The apprenticeship problem: do at least as well as the expert for every cost of a class.

    minimise over policies   max { <mu_pi, c_w> - <mu_E, c_w> : w in W }

with the expert's side estimated from demonstrations: program (5) of the paper, or (3) when the
expectations are exact. By Lemma 1 the inner maximum is the support function of W.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.costs import CostBasis, CostClass, InfinityBall
from journeyman.demonstrations import Demonstrations, ExpertExpectation
from journeyman.errors import InvalidProblem
from journeyman.frozen import assign
from journeyman.problem.budget import Budget
from journeyman.problem.program import Program
from journeyman.world import World


@dataclass(frozen=True, eq=False, init=False)
class Apprenticeship(Program):
    """Imitate an expert under every cost the basis can express.

    Args:
        world: where both act.
        basis: the costs that may matter.
        expert: demonstrations, or expectations given directly.
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
        constraints: Iterable[Budget] = (),
    ) -> None:
        if isinstance(expert, Demonstrations):
            expectation = ExpertExpectation.from_demonstrations(expert, basis, world)
            assign(self, demonstrations=expert)
        elif isinstance(expert, ExpertExpectation):
            expectation = expert
            assign(self, demonstrations=None)
        else:
            raise InvalidProblem(
                f"the expert is a {type(expert).__name__}",
                "Give Demonstrations (jm.record turns a policy into them) or an ExpertExpectation",
            )
        assign(self, expectation=expectation)
        chosen = InfinityBall() if cost_class is None else cost_class
        super().__init__(world, basis, chosen, expectation.values, constraints)
