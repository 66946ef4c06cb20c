"""What averaging replicas of SGD-AL is worth: mean losses beside one descent, short and long.

python -m benchmarks.replica_quality
"""

from dataclasses import replace

import numpy as np

import journeyman as jm

REPLICAS, SEEDS = 4, range(5)


def main() -> None:
    world, basis, expert = jm.gallery.grid(8)
    demos = jm.record(world, expert, trajectories=200, horizon=150, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    features = jm.features.partition(world, demos, num_cells=16)
    least = jm.solve(problem, jm.ReducedProgram(features))
    assert least.reduced is not None
    print(f"least loss {least.reduced.loss:.3f}; mean over {len(SEEDS)} seeds")
    print(f"{'steps':>8}{'batch':>8}{'one':>10}{REPLICAS:>3} averaged{REPLICAS:>3} x the steps")
    for batch in (1, 32):
        for steps in (2000, 8000):
            solver = jm.StochasticSubgradient(features, batch=batch, accuracy=0.0)
            numbers = [
                _mean_loss(problem, solver, run_steps, replicas)
                for run_steps, replicas in ((steps, 1), (steps, REPLICAS), (REPLICAS * steps, 1))
            ]
            print(f"{steps:>8}{batch:>8}{numbers[0]:>10.3f}{numbers[1]:>12.3f}{numbers[2]:>14.3f}")


def _mean_loss(
    problem: jm.Apprenticeship, solver: jm.StochasticSubgradient, steps: int, replicas: int
) -> float:
    losses = []
    for seed in SEEDS:
        answer = jm.solve(problem, replace(solver, steps=steps, replicas=replicas), seed=seed)
        assert answer.reduced is not None
        losses.append(answer.reduced.loss)
    return float(np.mean(losses))


if __name__ == "__main__":
    main()
