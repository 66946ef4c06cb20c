"""Which solver `jm.solve` takes when none is given."""

from journeyman.costs import Simplex
from journeyman.policy.chains import is_narrow
from journeyman.problem import Program
from journeyman.solvers.column_generation import ColumnGeneration
from journeyman.solvers.linear_program import LinearProgram

SMALL = 4_000
NARROW = 14_000
PATIENCE_FOR_SURPLUS = 2
"""`LinearProgram` also finds the largest surplus for `Simplex`: worlds may be larger by this."""


def solver_for(problem: Program) -> tuple[LinearProgram | ColumnGeneration, str]:
    """An exact solver for a problem, and the reason in words (none for a small world).

    Measured with `InfinityBall` and 8 to 64 costs, CPU seconds of `LinearProgram` and of
    `ColumnGeneration` at their own tolerances:

    | world                | pairs  | linear program | columns |
    |----------------------|--------|----------------|---------|
    | grid 32x32, .99      | 4,096  | 0.4            | 2.1     |
    | grid 48x48, .99      | 9,216  | 1.8            | 3.0     |
    | grid 64x64, .99      | 16,384 | 4.4            | 2.6     |
    | garnet 300, .95      | 1,200  | 0.12           | 0.08    |
    | garnet 1,000, .99    | 4,000  | 0.9            | 0.3     |
    | garnet 3,000, .99    | 12,000 | 7.6            | 0.5     |

    General engines live on sparse factors, which stay sparse in narrow worlds such as grids and
    fill up elsewhere; columns need neither.
    """
    pairs = problem.world.num_pairs
    factor = PATIENCE_FOR_SURPLUS if isinstance(problem.cost_class, Simplex) else 1
    if pairs <= factor * SMALL:
        return LinearProgram(), ""
    if pairs <= factor * NARROW and is_narrow(problem.world):
        return LinearProgram(), f"a narrow world of {pairs} pairs, whose factors stay sparse"
    return ColumnGeneration(), f"a large world, {pairs} pairs"
