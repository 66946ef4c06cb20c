"""Coefficients with what is proven about their loss.

    loss_lower_bound <= min over |theta|_2 <= radius of L(theta) <= loss = L(coefficients)

Both sides are recomputed from the data: the loss by a pass over all rows, the bound by weak duality
from the witness. Neither rests on what an engine reports about itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, read_only, real_array
from journeyman.errors import InvalidProblem
from journeyman.policy import extract
from journeyman.policy.function_policy import FeaturePolicy
from journeyman.problem import Apprenticeship, best_witness
from journeyman.problem.drawn import DrawnReduced
from journeyman.problem.reduced import DrawnRows, Reduced
from journeyman.problem.surrogate import ReducedWitness, Surrogate, reduced_lower_bound
from journeyman.solvers.answer import SampledSolution, Solution

CLOSE = 1e-3
"""A loss this share below the trivial bound is as good as none."""
OTHER_FEATURES = (
    "Take other features: jm.features.partition(world, demonstrations, num_cells=n) puts cells "
    "where the expert goes, and more of them lower the loss; jm.ReducedProgram(features) finds the "
    "least loss that features allow, without steps"
)
OTHER_DRAWN_FEATURES = (
    "Take other features: jm.features.cloned and jm.features.factored with more knots where the "
    "expert goes; jm.solvers.SampledProgram(features) finds about the least loss that features "
    "allow"
)
RELATIVE_ACCURACY, SCALE_ACCURACY = 0.05, 0.0025
"""Of the loss and of 2N/(1 - discount): errors that are small by default."""
ERRORS = 3.0
"""Standard errors that an estimated loss may be off by."""


@dataclass(frozen=True, eq=False)
class ReducedSolution:
    """Coefficients and a dual point of a surrogate with the numbers that follow from them."""

    surrogate: Surrogate
    coefficients: FloatArray
    witness: ReducedWitness
    loss: float
    loss_lower_bound: float
    radius: float
    """The bound is about coefficients of at most this 2-norm."""
    sampled_loss: float | None = None
    """An unbiased estimate of the loss from rows that the coefficients have not seen."""
    sampled_error: float | None = None
    """The standard error of `sampled_loss`."""
    sampled_excess: float | None = None
    """How far coefficients of fewer rows were above the least loss on rows they had not seen: on
    average at least their error (`sampled_program`)."""

    averaged_loss: float | None = None
    """The loss with flow on average only, on fresh rows, where that was minimised."""

    @classmethod
    def of(
        cls,
        surrogate: Surrogate,
        coefficients: ArrayLike,
        witness: ReducedWitness,
        *,
        radius: float | None = None,
        sampled_loss: float | None = None,
        sampled_error: float | None = None,
    ) -> "ReducedSolution":
        """Recompute loss and bound; the origin replaces a witness that proves less."""
        theta = real_array(
            "coefficients", coefficients, ndim=1, size=surrogate.reduced.num_features,
            refusal=InvalidProblem,
        )  # fmt: skip
        if radius is None:
            radius = ball_around(theta, surrogate.reduced)
        bound, best = reduced_lower_bound(surrogate, witness, radius), witness
        nothing_is_zero = surrogate.reduced.problem.cost_class.contains_zero
        if not (nothing_is_zero and bound >= 0):  # else the origin proves no more
            nothing = origin(surrogate)
            bound, best = max(
                (bound, best), (reduced_lower_bound(surrogate, nothing, radius), nothing),
                key=lambda pair: pair[0],
            )  # fmt: skip
        return cls(
            surrogate, theta, best, surrogate.value(theta), bound, radius, sampled_loss,
            sampled_error,
        )  # fmt: skip

    @classmethod
    def estimated(
        cls, surrogate: Surrogate, coefficients: FloatArray, rows: DrawnRows, radius: float
    ) -> "ReducedSolution":
        """Where rows can only be drawn: the loss is an estimate from rows that the coefficients
        have not seen, and nothing is proven of the least one but that costs of a class with the
        zero cost have no negative loss."""
        theta = read_only(coefficients)
        loss, error = surrogate.estimate(theta, rows)
        nothing = ReducedWitness(np.zeros(surrogate.reduced.matching_target.size), (), ())
        least = 0.0 if surrogate.reduced.problem.cost_class.contains_zero else -np.inf
        return cls(surrogate, theta, nothing, loss, least, radius, loss, error)

    @property
    def num_used(self) -> int:
        """Coefficients that are not zero."""
        return int(np.count_nonzero(self.coefficients))

    @property
    def loss_in_words(self) -> str:
        """The loss, with its standard error where it is an estimate."""
        error = f" +- {self.sampled_error:.2g}" if self.is_estimate else ""
        return f"{self.loss:.6g}{error}"

    @property
    def is_estimate(self) -> bool:
        """Whether `loss` is an estimate, `sampled_error` its standard error."""
        return isinstance(self.surrogate.reduced, DrawnReduced)

    @property
    def matching_error(self) -> float:
        """gap_W(G theta - target): the loss without penalties."""
        return self.surrogate.matching_error(self.coefficients)

    @property
    def optimisation_error(self) -> float:
        """loss - loss_lower_bound: by how much the coefficients can be worse than the best ones."""
        return self.loss - self.loss_lower_bound

    @property
    def unit(self) -> float:
        """What tolerances are relative to: the loss, or the largest cost difference of a step."""
        problem = self.surrogate.reduced.problem
        return max(abs(self.loss), problem.gap_scale / problem.total_time)

    @property
    def relative_gap(self) -> float:
        """(loss - loss_lower_bound)/unit."""
        return (self.loss - self.loss_lower_bound) / (self.unit or 1.0)

    @property
    def advice(self) -> str:
        """What is wrong with the features and what to do, where the loss shows nothing."""
        others = OTHER_DRAWN_FEATURES if self.is_estimate else OTHER_FEATURES
        return f"{self.fault}. {others}" if self.fault else ""

    @property
    def fault(self) -> str:
        """Words for a loss that is not below the trivial bound; empty for any other, and where
        another loss was minimised."""
        if self.averaged_loss is not None:
            return ""
        trivial = self.surrogate.reduced.problem.trivial_bound
        if self.is_estimate:
            return hopeless(self.loss - ERRORS * (self.sampled_error or 0.0), 0.0, trivial)
        return hopeless(self.loss, self.loss_lower_bound, trivial)

    def __repr__(self) -> str:
        return (
            f"ReducedSolution({self.coefficients.size} coefficients, loss {self.loss:.6g}, "
            f"lower bound {self.loss_lower_bound:.6g})"
        )


def wanted_accuracy(accuracy: float | None, loss: float, problem: Apprenticeship) -> float:
    """The proven error at which a run ends; none is small enough for 0."""
    if accuracy is not None:
        return accuracy if accuracy > 0 else -np.inf
    return max(RELATIVE_ACCURACY * loss, SCALE_ACCURACY * problem.gap_scale)


def ball_around(coefficients: FloatArray, reduced: Reduced) -> float:
    """The radius that a bound is about when none is asked for: max(heavy radius, 2 |theta|_2).

    The ball holds every mixture of columns of some mass, and theta in its inner half, so it is no
    constraint on theta: loss - bound is an error among all coefficients. If a bound holds at radius
    rho >= 2 |theta|_2, then for coefficients theta' of any length kappa rho >= rho

        L(theta') >= L(theta) - (1 + 2 kappa) (L(theta) - bound),

    since the segment from theta to theta' leaves the ball after a share s >= 1/(1 + 2 kappa) of its
    way, and by convexity bound <= (1 - s) L(theta) + s L(theta') there. No approximate dual point
    bounds a loss over all coefficients at once, so some radius has to be named.
    """
    length = float(np.linalg.norm(coefficients))
    return max(reduced.heavy_radius, 2 * length)


def hopeless(loss: float, least: float, trivial: float) -> str:
    """Words for a loss that is not below the trivial bound; `least` is a bound on what the features
    allow."""
    enough = (1 - CLOSE) * trivial
    if loss < enough or trivial <= 0:
        return ""
    if least >= enough:
        proven = f"no coefficients have a loss below {least:.4g}, so more steps do not help"
    else:
        proven = (
            f"the least loss that they allow is between {max(least, 0.0):.4g} and {loss:.4g}, and "
            "more steps may or may not help"
        )
    return (
        f"These features are hopeless as they stand: the loss {loss:.4g} is not below the trivial "
        f"bound {trivial:.4g}, which holds for every policy, so it shows nothing about this one; "
        f"{proven}"
    )


def policy_solution(found: ReducedSolution) -> Solution | SampledSolution:
    """The policy of the coefficients; where it can be evaluated, with the witness that their dual
    point suggests."""
    surrogate, weights = found.surrogate, found.witness.cost_weights
    if isinstance(surrogate.reduced, DrawnReduced):
        return SampledSolution(FeaturePolicy(surrogate.reduced.features, found.coefficients))
    problem, features = surrogate.reduced.problem, surrogate.reduced.features
    prices = surrogate.penalties.budgets * found.witness.broken_budgets
    if not prices.size:
        prices = np.zeros(len(problem.constraints))
    policy = extract(problem.world, features.measure(found.coefficients))
    return Solution.of(problem, policy, best_witness(problem, weights, prices))


def origin(surrogate: Surrogate) -> ReducedWitness:
    """The dual point without penalties: it proves that a class with the zero cost has L >= 0."""
    reduced = surrogate.reduced
    return ReducedWitness(
        np.zeros(reduced.matching_target.size),
        np.zeros(reduced.flow_target.size),
        np.zeros(reduced.floor.size),
    )
