"""What a solver returns."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from journeyman.arrays import FloatArray, read_only
from journeyman.errors import NoSolution
from journeyman.lazy import InNotebooks
from journeyman.policy import Occupancy, Policy, occupancy
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem import Apprenticeship, Witness, lower_bound
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.solvers.nonlinear_cost import NonlinearCost
from journeyman.solvers.running import Status
from journeyman.tables import to_frame
from journeyman.world.levels import Level, require_level

if TYPE_CHECKING:
    from journeyman.solvers.reduced.descent import Optimisation
    from journeyman.solvers.reduced.solution import ReducedSolution


BOUNDS_TRACE = ("seconds", "lower_bound", "upper_bound")
ROUNDS_TRACE = ("round", "candidates", "value", "lower_bound")


@dataclass(frozen=True)
class Work:
    """What a run has spent, in the units in which methods are compared. Checks
    made afterwards for the answer's bounds are not among them."""

    iterations: int = 0
    forward_solves: int = 0
    """Optimal policies of a known cost that were planned; soft-optimal ones count too."""
    environment_steps: int = 0
    """Transitions that were drawn from the world."""
    expert_queries: int = 0
    """States in which the expert was asked what to do, beyond the demonstrations."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy and a dual point with the numbers that follow from them, recomputed from the data.

    `value` is the objective at the policy by exact evaluation, `lower_bound` what no policy within
    the budgets can go below. Neither rests on what an engine reports about itself.
    """

    policy: Policy
    occupancy: Occupancy
    witness: Witness
    value: float
    lower_bound: float
    overspending: FloatArray
    """<mu, d_j> - b_j per budget; positive means broken."""

    @classmethod
    def of(cls, problem: Apprenticeship, policy: Policy, witness: Witness) -> "Solution":
        visits = occupancy(problem.world, policy)
        return cls(
            policy, visits, witness, problem.gap(visits), lower_bound(problem, witness),
            read_only(problem.overspending(visits.measure)),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Relaxation:
    """How far budgets are from possible.

    `increase` minimises sum_j t_j (1 - discount)/(max d_j - min d_j) over increases t >= 0 of the
    limits; `least` is for each budget the smallest limit that is possible while the others are
    kept (infinite when the others exclude each other, NaN when it was not found); `prices` prove
    that the budgets exclude each other (`infeasibility_margin`); `policy` keeps the increased
    limits.
    """

    names: tuple[str, ...]
    increase: FloatArray
    least: FloatArray
    prices: FloatArray
    policy: Policy

    def __str__(self) -> str:
        return "; ".join(
            f"{name!r} would have to give way by {more:.6g} (alone, {least:.6g} is possible)"
            for name, more, least in zip(self.names, self.increase, self.least, strict=True)
        )


@dataclass(frozen=True, eq=False)
class SampledSolution:
    """A policy that was not evaluated exactly, and what is known of it all the same.

    For a policy over features of a large world nothing is known here but its loss
    (`answer.reduced`). For a mixture all numbers are those of the rollouts and the demonstrations,
    unrecorded tails at mid-range. `jm.certify(problem, answer)` proves what it can, from rollouts
    or rows of its own.
    """

    policy: AnyPolicy
    value: float | None = None
    """gap_W(expectations - target)."""
    lower_bound: float | None = None
    """No mixture of the same candidates has a smaller value."""
    cost_weights: FloatArray | None = None
    """The worst case for the policy: what the next best response would be asked for."""


@dataclass(frozen=True, eq=False)
class BoundedSolution:
    """A policy and a dual point with bounds that follow from them, computed from the rows of the
    world block by block; nothing here has a place for every transition."""

    policy: Policy
    witness: Witness
    value: float
    """The objective at the policy is at most this, and no smaller by more than evaluations leave
    open."""
    lower_bound: float
    """No policy within the budgets has a smaller value."""
    expectations: FloatArray
    """Of the basis costs, then of the budgets' costs: as (least, largest) of each."""
    overspending: FloatArray
    """<mu, d_j> - b_j per budget, at most; positive means broken."""


@dataclass(frozen=True, eq=False)
class CandidateRollouts:
    """What rollouts of the candidates of a mixture have shown."""

    expectations: FloatArray
    """(candidates x costs), means of rollouts."""
    spreads: FloatArray
    """(candidates x costs), standard deviations over rollouts."""
    rollouts: MixtureRollouts
    """How many a certificate draws, and what each round may cost of its failure probability."""
    trace: FloatArray
    """Round, candidates, value and lower bound, row by row."""


@dataclass(frozen=True, eq=False)
class RegretSolution:
    """What a policy is known to lose under the expert's own cost, by `RationalProgram`."""

    bound: float
    """On the regret of the policy to the optimum, if the premise about the expert holds and what it
    says of estimated expectations is taken at their values: certificates add what these miss."""
    lower_bound: float
    """No policy has a smaller one: the regret of the best policy at `cost_weights`."""
    cost_weights: FloatArray
    """The cost, among those under which the expert acted as declared, that leaves most open."""
    violation: float
    """By how much, at most, that cost misses what was declared: the accuracy of the engine."""


@dataclass(frozen=True, eq=False)
class LikelihoodEstimate:
    """Cost weights by maximum likelihood (`MaximumLikelihood`), with what is known of their errors.

    Standard errors are those of large samples, for an expert who is soft-optimal at temperature 1
    for a cost of the basis, in the world as it is given.
    """

    names: tuple[str, ...]
    weights: FloatArray
    status: Status
    """CONVERGED at a maximum."""
    log_likelihood: float
    uniform_log_likelihood: float
    """Of actions taken at random."""
    num_decisions: int
    covariance: FloatArray
    """Of the weights: the inverse of the observed information, within what is identified."""
    not_identified: FloatArray
    """Combinations of weights, one a row, that change no recorded decision."""
    unbounded: FloatArray
    """Combinations along which the likelihood rises without end, one a row."""

    @property
    def standard_errors(self) -> FloatArray:
        """Per weight; infinite where a part of the weight is not identified or has no maximum."""
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        for row in (*self.not_identified, *self.unbounded):
            errors[np.abs(row) > NEGLIGIBLE * np.abs(row).max()] = np.inf
        return read_only(errors)

    @property
    def t_values(self) -> FloatArray:
        """Weights in standard errors, zero where these are infinite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return read_only(np.nan_to_num(self.weights / self.standard_errors))

    @property
    def num_identified(self) -> int:
        """How many weights, or combinations of them, the decisions depend on."""
        return len(self.names) - len(self.not_identified)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What has no estimate, in words."""
        kinds = (
            (self.not_identified, "not identified, no recorded decision depends on it"),
            (self.unbounded, "without a maximum, the likelihood rises along it for ever"),
        )
        return tuple(
            f"{words}: {combination}"
            for rows, words in kinds
            for combination in combinations_in_words(rows, self.names)
        )

    def table(self) -> str:
        """Weights, standard errors and t-values as text, then the log-likelihood."""
        width = max(len("cost"), *(len(name) for name in self.names))
        lines = [f"{'cost':<{width}}  {'weight':>12}  {'std. error':>12}  {'t':>8}"]
        rows = zip(self.names, self.weights, self.standard_errors, self.t_values, strict=True)
        for name, weight, error, t in rows:
            known = f"{error:>12.6g}  {t:>8.2f}" if np.isfinite(error) else f"{'-':>12}  {'-':>8}"
            lines.append(f"{name:<{width}}  {weight:>12.6g}  {known}")
        lines.append(
            f"log-likelihood {self.log_likelihood:.6f} of {self.num_decisions} decisions, "
            f"{self.uniform_log_likelihood:.6f} for actions at random"
        )
        return "\n".join([*lines, *self.remarks])


NEGLIGIBLE = 1e-6
"""Share of a combination's largest coefficient below which another one is zero."""
MOST_TERMS = 6
"""Coefficients of a combination that are listed."""


def combinations_in_words(rows: FloatArray, names: tuple[str, ...]) -> list[str]:
    """A basis of the span of some rows with few coefficients, as sums of names.

    >>> combinations_in_words(np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]), ("a", "b", "c"))
    ['a', 'b']
    >>> combinations_in_words(np.array([[0.5, -1.0]]), ("a", "b"))
    ['b - 0.5 a']
    """
    left = np.array(rows, dtype=float)
    for place in range(len(left)):
        first, column = divmod(int(np.argmax(np.abs(left[place:]))), left.shape[1])
        chosen = left[place + first] / left[place + first, column]
        left[place + first] = left[place]
        left -= np.outer(left[:, column], chosen)
        left[place] = chosen
    return [_combination(row, names) for row in left]


def _combination(row: FloatArray, names: tuple[str, ...]) -> str:
    sizes = np.abs(row)
    used = np.flatnonzero(sizes > NEGLIGIBLE * sizes.max())
    used = used[np.argsort(-sizes[used], kind="stable")]
    terms = [
        ("-" if row[i] < 0 else "+", f"{size:.4g} " * (abs(size - 1) > NEGLIGIBLE) + names[i])
        for i, size in zip(used.tolist(), sizes[used].tolist(), strict=True)
    ]
    words = " ".join(f"{sign} {term}" for sign, term in terms[:MOST_TERMS])
    more = f" and {len(terms) - MOST_TERMS} more" if len(terms) > MOST_TERMS else ""
    return words.removeprefix("+ ") + more


@dataclass(frozen=True, eq=False)
class Details:
    """What a method has found beside the policy; None for what it does not look for.

    Every part is also a property of the answer: `answer.reduced` is `answer.details.reduced`.
    """

    relaxation: Relaxation | None = None
    """For budgets that exclude each other: how far they are from possible."""
    reduced: "ReducedSolution | None" = None
    """For solvers over features: coefficients, loss and the bound on it."""
    optimisation: "Optimisation | None" = None
    """For stochastic methods: the trace, and the bound in probability on the error."""
    bounds_trace: FloatArray | None = None
    """For `ColumnGeneration`: seconds, lower and upper bound after every call (calls x 3)."""
    work: Work | None = None
    """Iterations, forward solves, drawn steps, questions to the expert."""
    mixture: MixturePolicy | None = None
    """For methods that mix policies: the mixture. In an explicit world `policy` is its stationary
    equivalent."""
    recovered: FloatArray | None = None
    """For methods with a cost of their own (inferred from the expert, most separating, or what a
    discriminator has learned): its weights, in the method's own scale."""
    likelihood: LikelihoodEstimate | None = None
    """For `MaximumLikelihood`: the weights with standard errors, and the log-likelihood."""
    nonlinear: NonlinearCost | None = None
    """For methods whose own cost is a function of the features and no combination of them: the
    function and its value at every pair; `recovered` is then None."""
    candidates: CandidateRollouts | None = None
    """For `PolicyMixture`: what rollouts of its candidates have shown."""
    regret: RegretSolution | None = None
    """For `RationalProgram`: the regret under the expert's own cost, bounded from both sides."""


@dataclass(frozen=True, eq=False)
class Trace:
    """How the numbers of a run changed, by the names of their columns; the rows are moments."""

    columns: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def to_rows(self) -> list[dict[str, float]]:
        """One row for every moment."""
        values = np.column_stack(list(self.columns.values())).tolist()
        return [dict(zip(self.columns, row, strict=True)) for row in values]

    def to_frame(self) -> Any:
        """`to_rows` as a pandas DataFrame (extra `frames`)."""
        return to_frame(dict(self.columns))


@dataclass(frozen=True, eq=False)
class Answer(InNotebooks):
    """The outcome of `jm.solve`. Asking an answer without a solution for its policy raises."""

    problem: Apprenticeship
    status: Status
    engine: str
    """The engine that really ran, with its version."""
    solution: Solution | BoundedSolution | SampledSolution | None
    details: Details = Details()
    build_seconds: float = 0.0
    """Before the solve: for the program, or for the rollouts of candidates."""
    solve_seconds: float = 0.0
    log: str = field(default="", repr=False)
    reason: str = ""
    """What the solver was chosen for, where none was given (`solvers.solve`)."""

    @property
    def policy(self) -> Policy:
        """Typed as the table of an explicit world; elsewhere it is a `FeaturePolicy` or a
        `MixturePolicy`."""
        return cast(Policy, self._known("policy"))

    @property
    def value(self) -> float:
        """The objective at the policy: for an `Apprenticeship` its gap on the data. In an explicit
        world by exact evaluation, for a mixture by rollouts; for a policy over features of a large
        world it is not known (`reduced.loss` bounds it if the penalty is exact)."""
        return float(self._known("value"))

    @property
    def lower_bound(self) -> float:
        """No policy within the budgets (of `PolicyMixture` no mixture of its candidates) has a
        smaller value. Both are about the world as given: in an estimated world about the model,
        whatever its error."""
        return float(self._known("lower_bound"))

    @property
    def occupancy(self) -> Occupancy:
        return cast(Occupancy, self._known("occupancy"))

    @property
    def witness(self) -> Witness:
        return cast(Witness, self._known("witness"))

    @property
    def overspending(self) -> FloatArray:
        return cast(FloatArray, self._known("overspending"))

    @property
    def cost_weights(self) -> FloatArray:
        """The method's own cost where it has one (`recovered`); otherwise the one that separates
        best. At an optimum no policy beats this one under the latter (`witness.cost_weights`).
        """
        if self.recovered is not None:
            return self.recovered
        if isinstance(self.solution, SampledSolution):
            return cast(FloatArray, self._known("cost_weights"))
        return self.witness.cost_weights

    def _known(self, name: str) -> Any:
        """A member of the solution, or the reason why there is none."""
        if self.solution is None:
            why = f"{self.status.name}: {self.status.message}; {self.status.remedy}"
            raise NoSolution(why if self.relaxation is None else f"{why}. {self.relaxation}")
        found = getattr(self.solution, name, None)
        if found is None:
            require_level(self.problem, Level.EXPLICIT, f"the {name} of an answer")
            raise NoSolution(f"{self.engine} has no {name}; jm.certify evaluates the policy")
        return found

    @property
    def relaxation(self) -> Relaxation | None:
        return self.details.relaxation

    @property
    def reduced(self) -> "ReducedSolution | None":
        return self.details.reduced

    @property
    def optimisation(self) -> "Optimisation | None":
        return self.details.optimisation

    @property
    def bounds_trace(self) -> FloatArray | None:
        return self.details.bounds_trace

    @property
    def trace(self) -> Trace | None:
        """What the method has noted on its way: losses, or bounds; None if it notes nothing."""
        if self.optimisation is not None and self.optimisation.trace:
            points = [asdict(point) for point in self.optimisation.trace]
            return Trace({name: np.array([one[name] for one in points]) for name in points[0]})
        if self.bounds_trace is not None and self.bounds_trace.size:
            return Trace(dict(zip(BOUNDS_TRACE, self.bounds_trace.T, strict=True)))
        if self.candidates is not None and self.candidates.trace.size:
            return Trace(dict(zip(ROUNDS_TRACE, self.candidates.trace.T, strict=True)))
        return None

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for every cost: what it adds up to for expert and policy, and the weight that it
        has in `cost_weights`; rewards as rewards. None for a policy that was not evaluated."""
        basis = self.problem.basis
        expert, weights = self.problem.target, self.cost_weights
        policy: Any = [None] * basis.num_costs
        if isinstance(self.solution, Solution):
            policy = self.problem.difference(self.occupancy.measure) + expert
        elif self.mixture is not None and self.candidates is not None:
            policy = self.mixture.weights @ self.candidates.expectations
        if policy[0] is not None:
            policy = basis.as_given(policy).tolist()
        columns = (basis.names, basis.as_given(expert).tolist(), policy, weights.tolist())
        keys = ("cost", "expert", "policy", "weight")
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_frame(self) -> Any:
        """`to_rows` as a pandas DataFrame (extra `frames`)."""
        return to_frame(self.to_rows())

    @property
    def total_surplus(self) -> float | None:
        """For one-sided classes: how much less the policy costs than the expert, over scaled
        costs."""
        if not self.problem.cost_class.has_surplus or not isinstance(self.solution, Solution):
            return None
        return total_surplus(self.problem, self.solution.occupancy.measure)

    @property
    def work(self) -> Work | None:
        return self.details.work

    @property
    def mixture(self) -> MixturePolicy | None:
        return self.details.mixture

    @property
    def recovered(self) -> FloatArray | None:
        return self.details.recovered

    @property
    def likelihood(self) -> LikelihoodEstimate | None:
        return self.details.likelihood

    @property
    def nonlinear(self) -> NonlinearCost | None:
        return self.details.nonlinear

    @property
    def candidates(self) -> CandidateRollouts | None:
        return self.details.candidates

    @property
    def regret(self) -> RegretSolution | None:
        return self.details.regret

    @property
    def rollouts(self) -> MixtureRollouts | None:
        """How a certificate evaluates the mixture of this answer."""
        return None if self.candidates is None else self.candidates.rollouts

    @property
    def advice(self) -> str:
        """What to change where the method's own numbers show that it has failed; else empty."""
        return "" if self.reduced is None else self.reduced.advice

    def plot_trace(self, *, ax: Any = None) -> Any:
        """Draw how the solver came to this answer, bounds or loss against time, and return the
        matplotlib Axes (extra `plot`): those given, or new ones."""
        return import_module("journeyman.plot").trace(self, ax=ax)

    def __repr__(self) -> str:
        return (
            f"Answer({self.status.name}: {self._summary()}; {self.engine}, "
            f"build {self.build_seconds:.2g} s, solve {self.solve_seconds:.2g} s)"
            + (f"\n{self.advice}" if self.advice else "")
        )

    def _summary(self) -> str:
        if self.solution is None:
            return f"{self.status.message}: {self.relaxation or 'no relaxation was found'}"
        if self.solution.value is None and self.reduced is not None:
            used, count = self.reduced.num_used, self.reduced.coefficients.size
            return f"loss {self.reduced.loss_in_words}, {used} of {count} coefficients"
        there = " in the model" if getattr(self.problem.world, "is_estimated", False) else ""
        words = f"value {self.value:.6g}, lower bound {self.lower_bound:.6g}{there}"
        if self.regret is not None:
            least = f"no policy below {self.regret.lower_bound:.6g}"
            words = f"regret on the data at most {self.regret.bound:.6g}, {least}; {words}"
        if self.mixture is not None and self.candidates is not None:
            weights, rounds = self.mixture.weights, len(self.candidates.trace)
            in_use = f"{np.count_nonzero(weights)} of {weights.size} candidates in use"
            words += f", {in_use}, rounds {rounds}"
        return words


def total_surplus(problem: Apprenticeship, measure: FloatArray) -> float:
    """How much less a measure costs than the target, summed over scaled costs."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    return -float(scale @ problem.difference(measure))
