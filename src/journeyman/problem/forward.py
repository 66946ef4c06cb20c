"""The forward problem: a known cost, with budgets.

    minimise over policies   E sum_t discount^t c(x_t, a_t)   subject to the budgets

Without budgets `jm.plan` is faster. With them an optimal policy may have to randomise.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import read_only
from journeyman.costs import CostBasis, KnownCost
from journeyman.errors import InvalidCosts, InvalidProblem
from journeyman.problem.budget import Budget
from journeyman.problem.program import Program
from journeyman.world import World


@dataclass(frozen=True, eq=False, init=False)
class Forward(Program):
    """Minimise a known cost: per pair, per state, (states x actions), or a one-column basis."""

    def __init__(
        self, world: World, cost: Any, constraints: Iterable[Budget] | Budget = ()
    ) -> None:
        basis = cost if isinstance(cost, CostBasis) else CostBasis(cost)
        rows, columns = basis.matrix.shape
        wide = columns >= world.pairs.width if not world.pairs.is_complete else False
        is_table = rows == world.num_states and (wide or columns == world.pairs.width)
        if columns > 1 and is_table and not sparse.issparse(basis.matrix):
            basis = CostBasis(world.pairs.flattened("cost", basis.matrix, InvalidCosts))
        if basis.num_costs != 1:
            raise InvalidProblem(
                f"a forward problem has one cost, not {basis.num_costs}",
                "Combine the columns with known weights first",
            )
        super().__init__(world, basis, KnownCost(), read_only(np.zeros(1)), constraints)
