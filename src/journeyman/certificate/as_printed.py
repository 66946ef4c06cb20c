"""The constants of the paper exactly as it prints them. Some are wrong: see docs/errata.md.

    lambda = 1/eps
    K      = |Phi|_2 sum_i |psi_i|_2 + lambda (C_1 + C_2)
    m      = 32 n^2 log(4n/delta)/((1 - gamma) eps^2)            in the theorem
    m      = 32 n log(4n/delta)/(2 (1 - gamma) eps^2)            in its proof
    Delta  = K + sqrt(10 log(2/delta)) + sqrt(5 d log(1 + rho^2 T/d))
    T      = (4 rho^2/eps^2) (2N/(lambda (1 - gamma)) + 1)^2 Delta^2,      eta = rho/(K sqrt(T))
    excess = (2N/(1 - gamma)) (N |Phi|_1 rho sqrt(d) + n/(1 - gamma)) eps + eps

where n is the number of costs, d of features, N = |Psi|_inf, rho the radius. T is on both sides:
sqrt(T)/Delta(T) grows with T, so T <- ceil(c Delta(T)^2) from T = 1 rises to the least valid T.

They are here to be compared with: a `Figure` shows one beside the corrected value, under a heading
that says so. Nothing is computed from them.

*Reference*: Kamoutsi, Banjac and Lygeros, arXiv:2201.00039, Theorem 1 and its proof.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.costs import InfinityBall
from journeyman.problem.surrogate import Surrogate

ROUNDING = 1e-12


@dataclass(frozen=True)
class AsPrinted:
    """The paper's figures for one problem; labelled "as printed" wherever they are shown."""

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
    """The paper's figures, or None where the paper prints none (see `in_scope`).

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
    """Whether the paper prints figures for this case: the infinity ball over costs in [-1, 1],
    features without a base measure, no budgets, and an accuracy below 1."""
    reduced = surrogate.reduced
    problem = reduced.problem
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    return (
        isinstance(problem.cost_class, InfinityBall)
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


def printed_optimisation_error(
    K: float, radius: float, num_features: int, steps: int, delta: float
) -> float:
    """What the proof claims for L(average) - min L, with probability 1 - delta/2."""
    spread = 2 * math.log(2 / delta) + num_features * math.log(1 + radius**2 * steps / num_features)
    noise = math.sqrt((1 + 4 * radius**2 * steps) / steps**2 * spread)
    return radius * K / math.sqrt(steps) + noise


@dataclass(frozen=True)
class Figure:
    """One figure of a guarantee: corrected, and as the paper prints it."""

    name: str
    value: float
    formula: str
    as_printed: float | None = None
    printed_formula: str | None = None
    note: str = ""
    """In one line, what is wrong with the printed figure; empty when nothing is."""


def beside_the_paper(figures: Iterable[Figure]) -> str:
    """A table of figures: corrected value, value as printed, note."""
    rows = [("figure", "corrected", "as printed", "")]
    rows += [
        (figure.name, _shown(figure.value), _shown(figure.as_printed), figure.note)
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {printed:>{widths[2]}}  {note}".rstrip()
        for name, value, printed, note in rows
    )


def beside(printed: AsPrinted | None, name: str, value: float, formula: str) -> Figure:
    """A corrected figure with the printed one of the same name, if the paper has it."""
    if name not in _PRINTED:
        return Figure(name, value, formula)
    field, printed_formula, note = _PRINTED[name]
    if printed is None or field is None:
        return Figure(name, value, formula, None, printed_formula, note if field is None else "")
    return Figure(name, value, formula, getattr(printed, field), printed_formula, note)


def verdict(name: str, excess: float, trivial_bound: float) -> str:
    """One line that says whether a guarantee says anything."""
    said = "vacuous, " if excess >= trivial_bound else ""
    most = f"while gaps of two policies differ by at most {trivial_bound:.6g}"
    return f"{name}: {said}excess {excess:.6g}, {most}"


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
"""The field of `AsPrinted`, the printed formula, and what is wrong with it, by figure."""
