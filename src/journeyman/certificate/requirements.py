"""What SGD-AL needs before it starts: the corrected theorem, forwards and backwards.

With probability 1 - delta the policy of the averaged iterate satisfies, for all theta in the ball,

    gap(average) <= gap(theta) + a_1 V1(theta) + a_2 V2(theta)
                    + (1 + k) opt + 2 k rho K_psi + 2 s + 2 tr + 2 model

    opt = rho (K + 2 sigma sqrt(2 log(1/delta_opt)))/sqrt(T)     learning rate rho/(K sqrt(T))
    s   = the smallest of the class's `radii` at m and delta_expert,      tr = N h discount^H
    a_1 = 2 N' h + (1 + k) lambda_1,    a_2 = N' h + (1 + k) lambda_2
    model = N h (discount max over policies <mu, err> + err0), 0 where the laws are known

where h = 1/(1 - discount), N' = N + lambda_3 sum_j |d_j| and k is the `shortfall` of the penalties.
With `ExactPenalty` k = 0: the bias 2 k rho K_psi is gone and T grows as 1/accuracy^2. delta is
halved between expert and optimisation. The accuracy: half for (1 + k) opt, half for 2 s + 2 tr, of
which `truncation_share` goes to the tails. A known cost has no expert; its optimisation gets all.

In an estimated world policy and comparator may both be off by `model`, which neither demonstrations
nor steps make smaller; laws that were counted take their share of delta first, as in a certificate.

*Guarantee*: for any features, for independent demonstrations and a constant learning rate. It is a
worst case, usually far above what is observed. *Cost*: the constants of the surrogate, a pass over
its rows. *Reference*: docs/errata.md says where the printed constants, shown beside, go wrong.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import require_between, require_whole
from journeyman.certificate.concentration import (
    fewest,
    radii,
    recorded_length,
    require_probability,
    truncation,
)
from journeyman.certificate.model_error import greatest_model_term, model_error
from journeyman.costs import InfinityBall
from journeyman.costs.cost_class import Rate
from journeyman.errors import (
    InvalidCosts,
    InvalidDemonstrations,
    InvalidProblem,
    InvalidSolver,
)
from journeyman.features.base import Features
from journeyman.problem import Apprenticeship
from journeyman.problem.reduced import Penalties, Penalty, Reduced, RowSampling
from journeyman.problem.surrogate import Surrogate
from journeyman.world.levels import require_discounted

ROUNDING = 1e-12


@dataclass(frozen=True)
class AsPrinted:
    """The paper's constants for one problem; labelled "as printed" wherever they are shown.

        lambda = 1/eps
        K      = |Phi|_2 sum_i |psi_i|_2 + lambda (C_1 + C_2)
        m      = 32 n^2 log(4n/delta)/((1 - gamma) eps^2)            in the theorem
        m      = 32 n log(4n/delta)/(2 (1 - gamma) eps^2)            in its proof
        Delta  = K + sqrt(10 log(2/delta)) + sqrt(5 d log(1 + rho^2 T/d))
        T      = (4 rho^2/eps^2) (2N/(lambda (1 - gamma)) + 1)^2 Delta^2,      eta = rho/(K sqrt(T))
        excess = (2N/(1 - gamma)) (N |Phi|_1 rho sqrt(d) + n/(1 - gamma)) eps + eps

    where n is the number of costs, d of features, N = |Psi|_inf, rho the radius. T is on both
    sides: sqrt(T)/Delta(T) grows with T, so T <- ceil(c Delta(T)^2) from T = 1 rises to the least
    valid T.

    They are here to be compared with: a `Quantity` shows one beside the corrected value, under a
    heading that says so. Nothing is computed from them.

    *Reference*: Kamoutsi, Banjac and Lygeros, arXiv:2201.00039, Theorem 1 and its proof.
    """

    penalty: float
    num_trajectories: int
    num_trajectories_in_proof: int
    pair_ratio: float
    flow_ratio: float
    subgradient_bound: float
    factor: float
    """2N/(lambda (1 - gamma)) + 1."""
    noise_term: float
    """Delta at T."""
    steps: int
    learning_rate: float
    excess: float
    """What the theorem adds for a feasible comparator: its bias term and eps."""


def as_printed(
    surrogate: Surrogate, radius: float, accuracy: float, failure_probability: float
) -> AsPrinted | None:
    """The paper's constants, or None where the paper prints none (see `in_scope`).

    Only features, costs and sampling laws of the surrogate are used, not its penalties.
    """
    if not in_scope(surrogate, accuracy):
        return None
    problem, features = surrogate.reduced.problem, surrogate.reduced.features
    h, n, d = problem.world.effective_horizon, problem.basis.num_costs, features.num_features
    size, eps = problem.gap_scale / (2 * h), accuracy
    K = printed_subgradient_bound(surrogate, 1 / eps)
    factor = 2 * size * h * eps + 1
    steps, Delta = printed_steps(K, factor, radius, d, eps, failure_probability)
    log_term = math.log(4 * n / failure_probability)
    bias = 2 * size * h * (size * float(features.masses.max()) * radius * math.sqrt(d) + n * h)
    return AsPrinted(
        penalty=1 / eps,
        num_trajectories=math.ceil(32 * n**2 * log_term * h / eps**2),
        num_trajectories_in_proof=math.ceil(32 * n * log_term * h / (2 * eps**2)),
        pair_ratio=surrogate.laws.pair_ratio,
        flow_ratio=surrogate.laws.flow_ratio,
        subgradient_bound=K,
        factor=factor,
        noise_term=Delta,
        steps=steps,
        learning_rate=radius / (K * math.sqrt(steps)),
        excess=bias * eps + eps,
    )


def in_scope(surrogate: Surrogate, accuracy: float) -> bool:
    """Whether the paper prints constants for this case: the infinity ball over costs in [-1, 1],
    features without a base measure, no budgets, and an accuracy below 1."""
    reduced = surrogate.reduced
    problem = reduced.problem
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    return (
        problem.cost_class.same_as(InfinityBall(scale), scale.size)
        and bool((scale * problem.basis.norms <= 1 + ROUNDING).all())
        and reduced.features.base is None
        and not problem.constraints
        and 0 < accuracy < 1
    )


def printed_subgradient_bound(surrogate: Surrogate, penalty: float) -> float:
    """K = |Phi|_2 sum_i |psi_i|_2 + penalty (C_1 + C_2)."""
    problem, Phi = surrogate.reduced.problem, surrogate.reduced.pair_rows
    Psi = problem.cost_matrix
    squares = np.asarray((Psi * Psi).sum(axis=0)).ravel()
    norms = problem.cost_class.scaling(squares.size) * np.sqrt(squares)
    gram = Phi.T @ Phi
    dense = np.asarray(gram.toarray() if sparse.issparse(gram) else gram)
    spectral = math.sqrt(max(0.0, float(np.linalg.eigvalsh(dense)[-1])))
    ratios = surrogate.laws.pair_ratio + surrogate.laws.flow_ratio
    return spectral * float(norms.sum()) + penalty * ratios


def printed_steps(
    K: float, factor: float, radius: float, num_features: int, eps: float, delta: float
) -> tuple[int, float]:
    """The least T that satisfies the printed condition, and Delta there."""
    steps = 1
    while True:
        spread = math.log(1 + radius**2 * steps / num_features)
        Delta = K + math.sqrt(10 * math.log(2 / delta)) + math.sqrt(5 * num_features * spread)
        needed = math.ceil(4 * radius**2 / eps**2 * factor**2 * Delta**2)
        if needed <= steps:
            return steps, Delta
        steps = needed


@dataclass(frozen=True)
class Quantity:
    """One quantity of a guarantee: corrected, and as the paper prints it."""

    name: str
    value: float
    formula: str
    as_printed: float | None = None
    printed_formula: str | None = None
    note: str = ""
    """In one line, what is wrong with the printed one; empty when nothing is."""


def beside_the_paper(quantities: Iterable[Quantity]) -> str:
    """A table: corrected value, value as printed, note."""
    rows = [("quantity", "corrected", "as printed", "")]
    rows += [(one.name, _shown(one.value), _shown(one.as_printed), one.note) for one in quantities]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {printed:>{widths[2]}}  {note}".rstrip()
        for name, value, printed, note in rows
    )


def beside(printed: AsPrinted | None, name: str, value: float, formula: str) -> Quantity:
    """A corrected quantity with the printed one of the same name, if the paper has it."""
    if name not in _PRINTED:
        return Quantity(name, value, formula)
    field, printed_formula, note = _PRINTED[name]
    if printed is None or field is None:
        return Quantity(name, value, formula, None, printed_formula, note if field is None else "")
    return Quantity(name, value, formula, getattr(printed, field), printed_formula, note)


def compared(name: str, excess: float, trivial_bound: float) -> str:
    """One line that says whether a guarantee says anything."""
    vacuous = "vacuous, " if excess >= trivial_bound else ""
    most = f"while gaps of two policies differ by at most {trivial_bound:.6g}"
    return f"{name}: {vacuous}excess {excess:.6g}, {most}"


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


_PRINTED: dict[str, tuple[str | None, str | None, str]] = {
    "num_trajectories": (
        "num_trajectories", "32 n^2 log(4n/delta)/((1 - gamma) eps^2)",
        "lacks a factor 1/(1 - gamma): errata 1",
    ),
    "num_trajectories in the proof": (
        "num_trajectories_in_proof", "32 n log(4n/delta)/(2 (1 - gamma) eps^2)",
        "lacks a factor 2n/(1 - gamma): errata 2",
    ),
    "recorded_length": (None, None, "the paper's trajectories never end"),
    "steps": (
        "steps", "T = (4 rho^2/eps^2) (2N/(lambda (1 - gamma)) + 1)^2 Delta(T)^2",
        "its noise term lacks a factor K: errata 3",
    ),
    "learning_rate": ("learning_rate", "rho/(K sqrt(T))", "right for its K; T is not: errata 3"),
    "penalty of negative pairs": ("penalty", "1/eps", "valid but leaves a bias: errata 8"),
    "penalty of flow violation": ("penalty", "1/eps", "valid but leaves a bias: errata 8"),
    "subgradient_bound": (
        "subgradient_bound", "|Phi|_2 sum_i |psi_i|_2 + lambda (C_1 + C_2)",
        "valid but grows with the number of states: errata 7",
    ),
    "pair_ratio": ("pair_ratio", "C_1 = max |Phi_s|_2/q1(s)", ""),
    "flow_ratio": ("flow_ratio", "C_2 = max |Phi'(B - gamma P)_y|_2/q2(y)", ""),
    "excess": (
        "excess", "(2N/(1 - gamma)) (N |Phi|_1 rho sqrt(d) + n/(1 - gamma)) eps + eps",
        "most of it is the bias of lambda = 1/eps: errata 8",
    ),
}  # fmt: skip
"""The field of `AsPrinted`, the printed formula, and what is wrong with it, by quantity."""


TRUNCATION_SHARE = 0.01
"""Of the accuracy left for the expert: one part in a hundred asks for 2 % more demonstrations."""


@dataclass(frozen=True, eq=False)
class Requirements:
    """What an accuracy asks for. `table()` shows it beside the paper's."""

    accuracy: float
    failure_probability: float
    num_trajectories: int
    """Demonstrations of `recorded_length` steps."""
    complete_records: tuple[tuple[Rate, int], ...]
    """Every radius of the class with the demonstrations it asks for when no tail is missing."""
    recorded_length: int
    steps: int
    learning_rate: float
    penalties: Penalties
    radius: float
    subgradient_bound: float
    pair_ratio: float
    flow_ratio: float
    noise_bound: float
    statistical: float
    """2 s at `num_trajectories`."""
    truncation: float
    """2 tr at `recorded_length`."""
    optimisation: float
    """(1 + k) opt at `steps`."""
    bias: float
    """2 k rho K_psi, which no effort removes; 0 with exact penalties."""
    model: float
    """Twice what the laws of an estimated world may hide, which more demonstrations or steps do not
    reduce; 0 where the laws are known."""
    trivial_bound: float
    printed: AsPrinted | None
    """The paper's constants, where it prints any: see `in_scope`."""

    @property
    def excess(self) -> float:
        """What the guarantee adds to the gap of a feasible comparator: accuracy, bias, and the
        error of an estimated world."""
        return self.accuracy + self.bias + self.model

    @property
    def vacuous(self) -> bool:
        """Whether the excess reaches what the gaps of two policies differ by at most anyway."""
        return self.excess >= self.trivial_bound

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Every quantity with its formula, and the printed one where the paper has it."""
        m = self.num_trajectories
        rows: list[tuple[str, float, str]] = [
            ("num_trajectories", m, "least m with s + tr <= eps/4 at recorded_length"),
            *([("num_trajectories in the proof", m, "the same")] if self.printed else []),
            *((f"  complete records, {rate.name}", count, f"least m with {rate.formula} <= eps/4")
              for rate, count in self.complete_records),
            ("recorded_length", self.recorded_length, "least H with N h gamma^H <= tr"),
            ("steps", self.steps, "least T with (1 + k) opt <= eps/2"),
            ("learning_rate", self.learning_rate, "rho/(K sqrt(T))"),
            ("penalty of negative pairs", self.penalties.pairs, "exact: 2 N'/(1 - gamma)"),
            ("penalty of flow violation", self.penalties.flow, "exact: N'/(1 - gamma)"),
            ("radius", self.radius, "default: (1/(1 - gamma))/smallest column mass"),
            ("subgradient_bound", self.subgradient_bound, "K_psi + lambda_1 C_1 + lambda_2 C_2"),
            ("pair_ratio", self.pair_ratio, "C_1 = max |Phi_s|_2/q1(s)"),
            ("flow_ratio", self.flow_ratio, "C_2 = max |Phi'(B - gamma P)_y|_2/q2(y)"),
            ("noise_bound", self.noise_bound, "sqrt((lambda_1 C_1)^2 + (lambda_2 C_2)^2)"),
            ("statistical", self.statistical, "2 s"),
            ("truncation", self.truncation, "2 N h gamma^H"),
            ("optimisation", self.optimisation, "(1 + k) opt"),
            *([("model", self.model, "2 N h (gamma max <mu, err> + err0)")] * (self.model > 0)),
            ("excess", self.excess, f"eps + 2 k rho K_psi{' + model' * (self.model > 0)}"),
        ]  # fmt: skip
        return tuple(beside(self.printed, *row) for row in rows)

    def table(self) -> str:
        """Quantity, corrected value, value as printed, and what is wrong with the latter."""
        paper = (
            "as printed: the paper has no constants beyond C_lin, costs in [-1, 1] and accuracy < 1"
            if self.printed is None
            else compared("as printed", self.printed.excess, self.trivial_bound)
        )
        corrected = compared("corrected", self.excess, self.trivial_bound)
        return "\n".join([beside_the_paper(self.quantities), "", corrected, paper])


@dataclass(frozen=True, eq=False)
class Attainable:
    """The accuracy that given demonstrations and steps guarantee, and what it is made of."""

    statistical: float
    truncation: float
    optimisation: float
    bias: float
    model: float
    """Twice what the laws of an estimated world may hide; 0 where they are known."""
    trivial_bound: float

    @property
    def accuracy(self) -> float:
        return self.statistical + self.truncation + self.optimisation + self.bias + self.model

    @property
    def vacuous(self) -> bool:
        """Whether the accuracy is no better than what gaps of two policies differ by anyway."""
        return self.accuracy >= self.trivial_bound

    def table(self) -> str:
        """The terms and their sum."""
        names = ["statistical", "truncation", "optimisation", "bias", "accuracy"]
        names[4:4] = ["model"] * (self.model > 0)
        lines = [f"{name:<12}  {getattr(self, name):>12.6g}" for name in names]
        return "\n".join([*lines, "", compared("guarantee", self.accuracy, self.trivial_bound)])


def requirements(
    problem: Apprenticeship,
    features: Features,
    *,
    accuracy: float,
    failure_probability: float,
    penalty: Penalty | None = None,
    sampling: RowSampling | None = None,
    radius: float | None = None,
    truncation_share: float = TRUNCATION_SHARE,
) -> Requirements:
    """Demonstrations, their length, steps, learning rate and constants for an accuracy.

    In an estimated world the error of its laws comes on top of `accuracy`: see `model`, `excess`.

    Args:
        problem: whatever its expert is, `num_trajectories` are demonstrations to record.
        features: the columns that SGD-AL combines.
        accuracy: by how much the policy may be worse than the best feasible combination.
        failure_probability: over demonstrations and sampled rows together.
        penalty, sampling: `ExactPenalty()` and `RowNorms()` by default.
        radius: of the coefficients; `default_radius` if not given.
        truncation_share: of the expert's part of the accuracy, for unrecorded tails.

    >>> import journeyman as jm
    >>> world = jm.World([[1, 0], [0, 1], [0, 1], [1, 0]], [0.5, 0.5], 0.9)
    >>> problem = jm.Apprenticeship(world, jm.CostBasis([1.0, -1.0]), jm.ExpertExpectation([0.0]))
    >>> uniform = Features([[2.5], [2.5], [2.5], [2.5]])
    >>> needs = requirements(problem, uniform, accuracy=0.5, failure_probability=0.05)
    >>> needs.num_trajectories, needs.recorded_length, needs.vacuous
    (57229, 86, False)
    """
    accuracy, delta = require_accuracy(accuracy), require_probability(failure_probability)
    share = require_between(
        "truncation_share", truncation_share, 0.0, 1.0, InvalidProblem, "Give for example 0.01"
    )
    return _required(
        *_setting(problem, features, penalty, sampling, radius), accuracy, delta, share
    )


def attainable(
    problem: Apprenticeship,
    features: Features,
    *,
    steps: int,
    failure_probability: float,
    num_trajectories: int | None = None,
    recorded_length: int | None = None,
    penalty: Penalty | None = None,
    sampling: RowSampling | None = None,
    radius: float | None = None,
) -> Attainable:
    """What the demonstrations and steps at hand guarantee: `requirements` read backwards.

    Without `num_trajectories` those of the problem count (declared expectations are exact); without
    `recorded_length` the tails that the problem's own records leave out.

    >>> import journeyman as jm
    >>> world = jm.World([[1, 0], [0, 1], [0, 1], [1, 0]], [0.5, 0.5], 0.9)
    >>> problem = jm.Forward(world, [1.0, -1.0])
    >>> uniform = Features([[2.5], [2.5], [2.5], [2.5]])
    >>> attainable(problem, uniform, steps=10**6, failure_probability=0.05).vacuous
    False
    """
    delta, model = _model_share(problem, require_probability(failure_probability))
    counts = {"num_trajectories": num_trajectories, "recorded_length": recorded_length}
    for name, count in {"steps": steps, **counts}.items():
        if count is not None:
            require_whole(name, count, 1, InvalidProblem, below=math.inf)
    surrogate, ball = _setting(problem, features, penalty, sampling, radius)
    if num_trajectories is None and problem.expert is not None:
        num_trajectories = problem.expectation.num_trajectories
    estimated = num_trajectories is not None and bool(radii(problem, delta))
    share = delta / 2 if estimated else delta
    rates = radii(problem, share) if estimated else ()
    return Attainable(
        statistical=2 * least_radius(rates, int(num_trajectories or 0)),
        truncation=2 * truncation(problem, recorded_length) if estimated else 0.0,
        optimisation=optimisation_rate(surrogate, ball, share).at(int(steps)),
        bias=bias(surrogate, ball),
        model=2 * model,
        trivial_bound=problem.largest_excess,
    )


def demonstrations_needed(
    problem: Apprenticeship, accuracy: float, failure_probability: float
) -> int:
    """The fewest demonstrations with which a certificate of one policy cannot lose more than
    `accuracy` to them: to sampling, to unrecorded tails and, in an estimated world, to its laws.

    Radii are one-sided; records are as long as the present ones, and declared expectations count as
    complete records. A known cost needs none. The laws of an estimated world count as for the
    policy they are worst for.

    >>> from journeyman.costs import CostBasis
    >>> from journeyman.demonstrations import ExpertExpectation
    >>> from journeyman.world import World
    >>> world = World([[1, 0], [0, 1]], [0.5, 0.5], 0.9)
    >>> problem = Apprenticeship(world, CostBasis([1.0, -1.0]), ExpertExpectation([0.0]))
    >>> demonstrations_needed(problem, accuracy=0.5, failure_probability=0.05)
    2952
    """
    target = require_accuracy(accuracy)
    delta, hidden = _model_share(problem, require_probability(failure_probability))
    if hidden >= target:
        raise InvalidProblem(
            f"the laws of this world are estimates, which alone may cost {hidden:.3g}, and "
            f"{target:.3g} is asked for in all",
            "Demonstrations do not help there: record more transitions of every pair, or ask for "
            "less; the advice of a certificate says how many transitions its policy needs",
        )
    lost = truncation(problem)
    if lost + hidden >= target:
        length = recorded_length(problem, (target - hidden) / 2)
        raise InvalidDemonstrations(
            f"the unrecorded tails alone leave {lost:.3g}, and {target - hidden:.3g} is asked for "
            "in all",
            f"Record {length} steps or more per demonstration, which leaves at most half of it",
        )
    return fewest(radii(problem, delta, two_sided=False), target - hidden - lost)


def _model_share(problem: Apprenticeship, delta: float) -> tuple[float, float]:
    """What is left of delta, and what the laws of an estimated world may hide of a policy's gap."""
    error = model_error(problem, delta)
    if error is None:
        return delta, 0.0
    return delta - error.failure_probability, greatest_model_term(problem, error)


def _required(
    surrogate: Surrogate, ball: float, accuracy: float, delta: float, share: float
) -> Requirements:
    problem, asked = surrogate.reduced.problem, delta
    delta, model = _model_share(problem, asked)
    halves = 1 if not radii(problem, delta) else 2
    rates = radii(problem, delta / halves)
    quarter = accuracy / 4
    demonstrations = fewest(rates, (1 - share) * quarter)
    length = recorded_length(problem, share * quarter) if rates else 0
    rate = optimisation_rate(surrogate, ball, delta / halves)
    steps = rate.smallest(accuracy / halves)
    K = surrogate.subgradient_bound
    return Requirements(
        accuracy=accuracy,
        failure_probability=asked,
        num_trajectories=demonstrations,
        complete_records=tuple((variant, variant.smallest(quarter)) for variant in rates),
        recorded_length=length,
        steps=steps,
        learning_rate=ball / (K * math.sqrt(steps)),
        penalties=surrogate.penalties,
        radius=ball,
        subgradient_bound=K,
        pair_ratio=surrogate.laws.pair_ratio,
        flow_ratio=surrogate.laws.flow_ratio,
        noise_bound=surrogate.noise_bound(),
        statistical=2 * least_radius(rates, demonstrations),
        truncation=2 * truncation(problem, length) if rates else 0.0,
        optimisation=rate.at(steps),
        bias=bias(surrogate, ball),
        model=2 * model,
        trivial_bound=problem.largest_excess,
        printed=as_printed(surrogate, ball, accuracy, asked),
    )


def default_radius(problem: Apprenticeship, features: Features) -> float:
    """(1/(1 - discount))/smallest column mass: holds every mixture of the columns."""
    return features.mixture_radius(problem.world)


def _setting(
    problem: Apprenticeship,
    features: Features,
    penalty: Penalty | None,
    sampling: RowSampling | None,
    radius: float | None,
) -> tuple[Surrogate, float]:
    if not isinstance(features, Features):
        raise InvalidProblem(
            f"features is a {type(features).__name__}", "Give jm.features.Features(matrix)"
        )
    require_discounted(problem.world, "an a-priori guarantee of SGD-AL")
    if problem.gap_scale == 0:
        raise InvalidCosts("every cost is zero", "Give costs that distinguish policies")
    holding = default_radius(problem, features)
    ball = holding if radius is None else radius
    ball = require_between("radius", ball, 0.0, math.inf, InvalidSolver, "Give a positive number")
    return Surrogate(Reduced(problem, features), penalty, sampling), ball


def optimisation_rate(surrogate: Surrogate, radius: float, failure_probability: float) -> Rate:
    """(1 + k) opt as a function of T: Azuma's inequality for the noise of the sampled rows.

    The loss of the averaged iterate of T steps with learning rate rho/(K sqrt(T)) exceeds its
    minimum over the ball by more than rho (K + 2 sigma sqrt(2 log(1/delta)))/sqrt(T) with
    probability delta at most, where K bounds the sampled subgradients and sigma their noise.
    """
    noise = 2 * surrogate.noise_bound() * math.sqrt(2 * math.log(1 / failure_probability))
    scale = (1 + shortfall(surrogate)) * radius * (surrogate.subgradient_bound + noise)
    return Rate("optimisation", scale, "(1 + k) rho (K + 2 sigma sqrt(2 log(1/delta_opt)))/sqrt(T)")


def shortfall(surrogate: Surrogate) -> float:
    """k = max(0, 2 N' h/lambda_1 - 1, N' h/lambda_2 - 1), N' = N + lambda_3 sum_j |d_j|: by which
    share the penalties fall short of exact ones."""
    problem, penalties = surrogate.reduced.problem, surrogate.penalties
    h = problem.world.effective_horizon
    budgets = penalties.budgets * sum(budget.size for budget in problem.constraints)
    exact = problem.gap_scale / 2 + budgets * h
    short = max(2 * exact / penalties.pairs, exact / penalties.flow) - 1
    return short if short > 1e-12 else 0.0


def bias(surrogate: Surrogate, radius: float) -> float:
    """2 k rho K_psi: what penalties that fall short may cost however long one optimises."""
    return 2 * shortfall(surrogate) * radius * surrogate.matching_bound


def least_radius(rates: tuple[Rate, ...], num_trajectories: int) -> float:
    """The smallest radius over the variants; 0 when there is nothing to estimate."""
    return min((rate.at(num_trajectories) for rate in rates), default=0.0)


def require_accuracy(accuracy: float) -> float:
    return require_between(
        "accuracy", accuracy, 0.0, math.inf, InvalidProblem, "Give a gap in units of cost"
    )
