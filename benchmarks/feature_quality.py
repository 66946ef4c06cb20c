"""How good the policies are that features can express, apart from any algorithm's patience.

The surrogate with exact penalties is minimised exactly. Printed are median and worst, over seeds,
of the least loss (a bound on the gap to the demonstrated expectations) and of the policy's gap to
the true expert by exact evaluation. Instance: slippery grid, 16 costs, discount 0.95, uniform
start, 200 demonstrations of 150 steps by an expert whose actions are 30 % random; the trivial bound
is 40.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

import journeyman as jm
from journeyman.arrays import FloatArray
from journeyman.features.base import Features, concatenate, occupancies
from journeyman.features.cells import Bumps, HardCells
from journeyman.features.partition import Flat, SmoothedVisits, partition
from journeyman.features.tensor import tensor
from journeyman.problem.reduced import Reduced
from journeyman.problem.surrogate import ReducedWitness, Surrogate, reduced_lower_bound
from journeyman.solvers.exact.engines import Engine, HighsModel
from journeyman.solvers.exact.occupancy_program import LinearModel
from journeyman.solvers.running import Watch

Builder = Callable[[jm.World, jm.Demonstrations], Features]

VARIANTS: dict[str, Builder] = {
    "default: hats, cloned visits": partition,
    "  bumps": lambda world, demos: partition(world, demos, membership=Bumps()),
    "  hard cells": lambda world, demos: partition(world, demos, membership=HardCells()),
    "  16 cells": lambda world, demos: partition(world, demos, num_cells=16),
    "  without coordinates": lambda world, demos: partition(_bare(world), demos),
    "  and the cloned occupancy": lambda world, demos: concatenate(
        [partition(world, demos), occupancies(world, [jm.clone(demos, world)])]
    ),
    "tensor, 8 knots a factor": lambda world, demos: tensor(world, demos, 8),
    "bumps, smoothed visits": lambda world, demos: partition(
        world, demos, membership=Bumps(), base=SmoothedVisits()
    ),
    "  discounted": lambda world, demos: partition(
        world, demos, membership=Bumps(), base=SmoothedVisits(discounted=True)
    ),
    "bumps, flat": lambda world, demos: partition(world, demos, membership=Bumps(), base=Flat()),
}


@dataclass(frozen=True)
class Instance:
    """An apprenticeship problem and the expectations of the expert behind it."""

    problem: jm.Apprenticeship
    demos: jm.Demonstrations
    truth: jm.Apprenticeship

    @classmethod
    def of(cls, size: int, seed: int, randomness: float) -> "Instance":
        world, basis, expert = jm.gallery.grid(
            size, macro_cells=4, randomness=randomness, seed=seed
        )
        assert isinstance(expert, jm.Policy)
        demos = jm.record(world, expert, trajectories=200, horizon=150, seed=seed)
        exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
        return cls(
            jm.Apprenticeship(world, basis, demos), demos, jm.Apprenticeship(world, basis, exact)
        )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32])
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=10, help="how many instances")
    parser.add_argument("--randomness", type=float, default=0.3, help="of the expert")
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"Features under exact minimisation (seeds {seeds[0]}..{seeds[-1]}; median, worst)")
    print(f"{'':32}{'grid':>8}{'d':>6}{'nnz/row':>9}{'loss':>14}{'gap':>14}")
    for size in options.sizes:
        instances = [Instance.of(size, seed, options.randomness) for seed in seeds]
        for name, build in VARIANTS.items():
            _row(name, size, build, instances)
        errors = [item.truth.cost_class.gap(item.problem.target - item.truth.target)
                  for item in instances]  # fmt: skip
        print(f"{'error of the estimated target':32}{_square(size):>8}{_pair(errors):>43}")


def _row(name: str, size: int, build: Builder, instances: Sequence[Instance]) -> None:
    losses, gaps = [], []
    for instance in instances:
        problem = instance.problem
        features = build(problem.world, instance.demos)
        coefficients, loss = least_loss(Surrogate(Reduced(problem, features)))
        policy = jm.policy.extract(problem.world, features.measure(coefficients))
        losses.append(loss)
        gaps.append(instance.truth.gap(policy))
    density = sparse.csr_array(features.matrix).nnz / features.num_pairs
    counts = f"{_square(size):>8}{features.num_features:>6}{density:>9.1f}"
    print(f"{name:32}{counts}{_pair(losses):>14}{_pair(gaps):>14}", flush=True)


def least_loss(surrogate: Surrogate) -> tuple[FloatArray, float]:
    """Minimiser and minimum of L for `InfinityBall`, through its dual over a box:

    maximise -<target, w> - <nu, y>  with  G'w + D'y - Phi'z = 0,  |w| <= 1, |y| <= lambda_2,
    0 <= z <= lambda_1; theta are the multipliers of the equations.
    """
    reduced, penalties = surrogate.reduced, surrogate.penalties
    blocks = [reduced.matching, reduced.flow_rows, -reduced.pair_rows]
    sizes = [block.shape[0] for block in blocks]
    upper = np.repeat([1.0, penalties.flow, penalties.pairs], sizes)
    equations = np.zeros(reduced.num_features)
    model = LinearModel(
        columns=sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr"),
        cost=np.concatenate([reduced.matching_target, reduced.flow_target, -reduced.floor]),
        lower=np.where(np.arange(upper.size) < sizes[0] + sizes[1], -upper, 0.0),
        upper=upper,
        row_lower=equations,
        row_upper=equations,
    )
    for engine in (Engine.HIPO, Engine.SIMPLEX):
        found = HighsModel(model, engine, 1).run(Watch("features", lambda event: None))
        w, y, z = np.split(found.columns / upper, np.cumsum(sizes[:2]))
        loss = surrogate.value(found.row_duals)
        bound = reduced_lower_bound(surrogate, ReducedWitness(w, y, z), radius=1.0)
        if loss - bound <= 1e-5 * max(1.0, loss):
            return found.row_duals, loss
    raise RuntimeError(f"no engine closed the gap: {loss} against {bound}")


def _bare(world: jm.World) -> jm.World:
    return jm.World(world.transition, world.initial, world.discount)


def _square(size: int) -> str:
    return f"{size}x{size}"


def _pair(numbers: Sequence[float]) -> str:
    return f"{np.median(numbers):.2f}, {max(numbers):.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
