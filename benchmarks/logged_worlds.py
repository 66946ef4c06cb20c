"""What it costs that a world is known from logs only.

Three worlds: random ones of 60 and 200 states with three actions and six possible next states, and
a slippery 10 x 10 grid. Each pair was recorded a given number of times; the expert's expectations
are given, so that the excess of the bound over the true gap is what the model's error costs.
Printed, for the policy that is optimal for a random cost in the model: bound, truth and excess in
percent of 2N/(1 - discount), medians over seeds, where the possible next states are known and where
they are not, and how many bounds were below the truth. The last column compares the excess with
that of 1-norm balls, the worst laws within

    err = sqrt(2 log((2^S - 2) K n (n + 1)/delta)/n)

of the frequencies of n draws on S possible states, for K laws and all n (Weissman et al. 2003, as
in journeyman 0.1), at the same delta.

    python -m benchmarks.logged_worlds --seeds 5
"""

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Sequence

import numpy as np

import journeyman as jm
from journeyman.certificate.model_error import (
    MODEL_SHARE,
    ModelError,
    model_term,
    robust_gap,
    robust_ranges,
    support_sizes,
)

COSTS, DISCOUNT = 4, 0.9


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--transitions", type=int, nargs="+", default=[200, 2_000, 10_000])
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for name, make in WORLDS.items():
        for count in options.transitions:
            for known in (False, True):
                _row(name, make, count, known, seeds)


def _row(
    name: str,
    make: Callable[[np.random.Generator], jm.World],
    count: int,
    known: bool,
    seeds: range,
) -> None:
    rows = np.array([_measured(make, count, known, seed) for seed in seeds])
    bound, gap, _ = 100 * np.median(rows, axis=0)
    excess = 100 * float(np.median(rows[:, 0] - rows[:, 1]))
    before = 100 * float(np.median(rows[:, 2] - rows[:, 1]))
    false = int((rows[:, 0] < rows[:, 1]).sum())
    support = "known support" if known else "any next state"
    print(f"{name:12} {count:6} a pair, {support:15} bound {bound:6.2f}%  truth {gap:5.2f}%  "
          f"excess {excess:6.2f}%  false {false}  1-norm balls {before:6.2f}%, ratio "
          f"{excess / before:.2f}", flush=True)  # fmt: skip


def _measured(
    make: Callable[[np.random.Generator], jm.World], count: int, known: bool, seed: int
) -> tuple[float, float, float]:
    rng = np.random.default_rng(seed)
    true = make(rng)
    basis = jm.CostBasis(rng.uniform(-1, 1, (true.num_pairs, COSTS)))
    expert = jm.plan(true, basis.matrix @ rng.uniform(-1, 1, COSTS)).policy
    laws = true.transition.toarray()
    drawn = np.array([rng.multinomial(count, law / law.sum()) for law in laws]) / count
    support = (laws > 0).astype(float) if known else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jm.errors.SupportWarning)
        model = jm.World(drawn, true.initial, DISCOUNT, transition_counts=count, support=support)
    target = jm.policy.occupancy(true, expert).expectations(basis)
    problem = jm.Apprenticeship(model, basis, jm.ExpertExpectation(target), jm.InfinityBall())
    policy = jm.plan(model, basis.matrix @ rng.uniform(-1, 1, COSTS)).policy
    certificate = jm.certify(problem, policy)
    own = jm.policy.occupancy(true, policy).expectations(basis)
    gap = problem.cost_class.gap(own - target)
    before, trivial = _bound_by_one_norm(problem, policy, target, count), problem.gap_scale
    return certificate.bound / trivial, gap / trivial, before / trivial


def _bound_by_one_norm(
    problem: jm.Apprenticeship, policy: jm.Policy, target: np.ndarray, count: int
) -> float:
    """The smaller of the bounds by worst laws and by visits."""
    world, delta = problem.world, MODEL_SHARE * 0.05
    sets = np.log(2.0 ** support_sizes(world) - 2)
    needed = sets + math.log(world.num_pairs * count * (count + 1) / delta)
    distances = np.minimum(np.sqrt(2 * needed / count), 2.0)
    error = ModelError(distances, 0.0, delta)
    visits = jm.policy.occupancy(world, policy)
    own = problem.cost_class.gap(visits.expectations(problem.basis) - target)
    worst = robust_gap(problem, robust_ranges(problem, policy, error), target)
    return min(worst, own + model_term(problem, visits, error), problem.gap_scale)


def _random(num_states: int) -> Callable[[np.random.Generator], jm.World]:
    def make(rng: np.random.Generator) -> jm.World:
        law = np.zeros((3 * num_states, num_states))
        for row in law:
            row[rng.choice(num_states, size=6, replace=False)] = rng.dirichlet(np.ones(6))
        return jm.World(law, rng.dirichlet(np.ones(num_states)), DISCOUNT)

    return make


def _grid(rng: np.random.Generator) -> jm.World:
    world, _, _ = jm.gallery.grid(10)
    return jm.World(world.transition, world.initial, DISCOUNT)


WORLDS = {"random 60": _random(60), "random 200": _random(200), "grid 10x10": _grid}

if __name__ == "__main__":
    main(sys.argv[1:])
