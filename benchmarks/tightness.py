"""How tight certificates are, and what they are made of.

Instance: slippery 16x16 grid, 16 costs, discount 0.95, uniform start, demonstrations of 150 steps
by an expert whose actions are 30 % random; the exact program's policy, failure probability 0.05.
The trivial bound is 40. Printed are medians over seeds of each way to bound the gap: the bound, its
ratio to the policy's true gap (known here by exact evaluation of the expert), its share of the
trivial bound, and its terms. Rows in brackets are radii that were not the smallest of those known
beforehand; they replace the sampling term of the plain mean. Below: the true gap of the exact
program's policy when its target is the plain mean and when it is the mean of shaped totals.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import journeyman as jm
from journeyman.certificate import Certificate, radii
from journeyman.certificate.expert_estimates import expert_estimates

SIZE, MACRO_CELLS, HORIZON, DELTA = 16, 4, 150, 0.05
TARGETS = {200: 0.18, 2_000: 0.03, 10_000: 0.01}
"""Largest share of the trivial bound, by number of demonstrations."""
AIMS = {2_000: 0.025}
SHAPED_FACTOR = 2.0
"""By how much shaped totals are to shrink the true gap at 200 demonstrations."""
PLAIN = "plain mean, "


@dataclass(frozen=True)
class Row:
    """One way to bound the gap on one instance."""

    name: str
    bound: float
    ratio: float
    share: float
    terms: dict[str, float]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="instances for the bounds")
    parser.add_argument("--gap-seeds", type=int, default=10, help="instances for the two targets")
    parser.add_argument("--demonstrations", type=int, nargs="+", default=[200, 2_000, 10_000])
    options = parser.parse_args(arguments)
    print(
        f"Tightness of certificates on the {SIZE}x{SIZE} grid (seeds 0..{options.seeds - 1}, "
        f"medians, failure probability {DELTA})"
    )
    for count in options.demonstrations:
        _bounds(count, range(options.seeds))
    _targets_compared(range(options.gap_seeds))


def _bounds(count: int, seeds: range) -> None:
    per_name: dict[str, list[Row]] = {}
    shares = []
    for seed in seeds:
        world, basis, expert = _instance(seed)
        demos = _recorded(world, expert, count, seed)
        certificate = jm.learn(world, basis, demos, failure_probability=DELTA).certificate
        true_gap = _truth(world, basis, expert).gap(certificate.policy)
        for row in _rows(certificate, true_gap):
            per_name.setdefault(row.name, []).append(row)
        shares.append(certificate.bound / certificate.trivial_bound)
    print(f"\n{count:,} demonstrations")
    print(f"  {'evaluation, estimate':<38}{'bound':>8}{'/true':>8}{'/trivial':>10}   terms")
    for name, rows in sorted(per_name.items(), key=lambda item: _median(item[1], "bound")):
        numbers = (_median(rows, what) for what in ("bound", "ratio", "share"))
        text = "{:>8.3f}{:>8.1f}{:>10.1%}".format(*numbers)
        print(f"  {name:<38}{text}   {_terms(rows)}", flush=True)
    _verdict(count, float(np.median(shares)), max(shares))


def _rows(certificate: Certificate, true_gap: float) -> list[Row]:
    """Every combination, and the radii that were passed over."""

    def row(name: str, bound: float, terms: dict[str, float]) -> Row:
        return Row(name, bound, bound / true_gap, bound / certificate.trivial_bound, terms)

    problem, found = certificate.problem, []
    assert isinstance(problem, jm.Apprenticeship)
    shares = {one.name: one.failure_probability for one in expert_estimates(problem, DELTA)}
    for way in certificate.combinations:
        terms = {term.name: term.value for term in way.terms}
        found.append(row(f"{way.kind}, {way.estimate}", way.bound, terms))
        rates = radii(problem, shares[way.estimate], two_sided=False)
        names = [PLAIN + rate.name for rate in rates]
        if way.estimate not in names:
            continue
        for rate, name in zip(rates, names, strict=True):
            if name != way.estimate:
                other = {**terms, "sampling": rate.at(problem.expectation.num_trajectories or 1)}
                found.append(row(f"({way.kind}, {name})", sum(other.values()), other))
    return found


def _terms(rows: Sequence[Row]) -> str:
    """Medians of the terms that are visible, the largest first."""
    medians = {name: float(np.median([row.terms[name] for row in rows])) for name in rows[0].terms}
    visible = sorted(
        ((value, name) for name, value in medians.items() if value >= 5e-4), reverse=True
    )
    return ", ".join(f"{name} {value:.3f}" for value, name in visible)


def _verdict(count: int, share: float, worst: float) -> None:
    limit = TARGETS.get(count)
    if limit is None:
        return
    aim = f"; aim {AIMS[count]:.1%} {_met(share <= AIMS[count])}" if count in AIMS else ""
    print(
        f"  target at {count:,}: at most {limit:.1%} of the trivial bound: median {share:.2%}, "
        f"worst {worst:.2%}: {_met(worst <= limit)}{aim}",
        flush=True,
    )


def _targets_compared(seeds: range) -> None:
    gaps: dict[str, list[float]] = {"plain": [], "shaped": []}
    methods: dict[str, jm.demonstrations.MonteCarlo | jm.demonstrations.ControlVariate]
    methods = {
        "plain": jm.demonstrations.MonteCarlo(),
        "shaped": jm.demonstrations.ControlVariate(),
    }
    for seed in seeds:
        world, basis, expert = _instance(seed)
        demos, truth = _recorded(world, expert, 200, seed), _truth(world, basis, expert)
        for name, method in methods.items():
            target = jm.ExpertExpectation.from_demonstrations(demos, basis, world, method=method)
            policy = jm.solve(jm.Apprenticeship(world, basis, target)).policy
            gaps[name].append(truth.gap(policy))
    plain, shaped = (float(np.median(gaps[name])) for name in methods)
    print(
        f"\n200 demonstrations, seeds 0..{seeds[-1]}: median true gap {plain:.3f} with the plain "
        f"mean as target, {shaped:.3f} with shaped totals: {plain / shaped:.2f} times smaller; "
        f"target {SHAPED_FACTOR:g} {_met(plain >= SHAPED_FACTOR * shaped)}",
        flush=True,
    )


def _instance(seed: int) -> tuple[jm.World, jm.CostBasis, jm.Policy]:
    world, basis, expert = jm.gallery.grid(SIZE, macro_cells=MACRO_CELLS, seed=seed)
    return world, basis, expert


def _recorded(world: jm.World, expert: jm.Policy, count: int, seed: int) -> jm.Demonstrations:
    return jm.record(world, expert, trajectories=count, horizon=HORIZON, seed=seed)


def _truth(world: jm.World, basis: jm.CostBasis, expert: jm.Policy) -> jm.Apprenticeship:
    exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    return jm.Apprenticeship(world, basis, exact)


def _median(rows: Sequence[Row], what: str) -> float:
    return float(np.median([getattr(row, what) for row in rows]))


def _met(held: bool) -> str:
    return "met" if held else "MISSED"


if __name__ == "__main__":
    main(sys.argv[1:])
