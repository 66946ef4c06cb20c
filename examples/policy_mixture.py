"""A mixture of rules for a network of queues with a million states, certified by rollouts alone.

    python examples/policy_mixture.py [--demonstrations 100] [--rollouts 4000] [--processes 1]

Four queues, two servers, five costs: the lengths of the queues as shares of their buffers, and what
is lost by overflow. The expert tosses a coin in every step between two rules, LONGER and LBFS
(`jm.gallery.queues`). Candidates are both rules, the uniform policy, and what cloning makes of the
demonstrations. The table has their expectations and weights; then comes the certificate, for the
class `Simplex`: at least as good as the expert in every cost.
"""

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np

import journeyman as jm
from journeyman.gallery import Queues

STEPS, HORIZON = 400, 200
"""Of a demonstration, and of a rollout; beyond 200 steps lies 0.004 % of the discounted time."""


class CoinToss:
    """Each of two rules with probability 1/2, anew in every step."""

    def __init__(self, network: Queues) -> None:
        self.network = network

    def __call__(self, states: np.ndarray) -> np.ndarray:
        longer, lbfs = self.network.longer, self.network.lbfs
        return (longer.probabilities(states) + lbfs.probabilities(states)) / 2


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demonstrations", type=int, default=100)
    parser.add_argument("--rollouts", type=int, default=4000, help="of each candidate")
    parser.add_argument("--processes", type=int, default=1, help="that roll out")
    options = parser.parse_args(arguments)
    network = jm.gallery.queues(4)
    expert = jm.FunctionPolicy(CoinToss(network), network.world.num_actions)
    demos = jm.record(
        network.world, expert, trajectories=options.demonstrations, horizon=STEPS, seed=0
    )
    problem = jm.Apprenticeship(network.world, network.costs, demos, jm.Simplex())
    candidates = {
        "LONGER": network.longer,
        "LBFS": network.lbfs,
        "uniform": network.uniform,
        "cloned": jm.clone(demos, network.world),
    }
    executor = jm.Serial() if options.processes == 1 else jm.Processes(options.processes)
    with executor:
        solver = jm.PolicyMixture(
            list(candidates.values()), rollouts=options.rollouts, horizon=HORIZON, seed=1,
            executor=executor,
        )  # fmt: skip
        answer = jm.solve(problem, solver)
        certificate = jm.certify(problem, answer, executor=executor)
    share = certificate.bound / certificate.trivial_bound
    sys.stdout.write(
        f"{table(problem, answer, list(candidates))}\n\n{certificate.table()}\n\n"
        f"{certificate.summary()}\ncertified to {share:.1%} of the trivial bound\n"
    )


def table(problem: jm.Apprenticeship, answer: jm.Answer, names: list[str]) -> str:
    """Expectations cost by cost, of candidates, mixture and expert."""
    mixed = answer.mixture.weights @ answer.candidates.expectations
    rows = [
        *zip(names, answer.candidates.expectations, answer.mixture.weights, strict=True),
        ("mixture", mixed, 1.0),
    ]
    heading = "".join(f"{name:>10}" for name in problem.costs.names)
    lines = [f"{'':<10}{heading}{'weight':>10}"]
    for name, numbers, weight in rows:
        lines.append(f"{name:<10}{''.join(f'{x:>10.3f}' for x in numbers)}{weight:>10.3f}")
    lines.append(f"{'expert':<10}{''.join(f'{x:>10.3f}' for x in problem.target)}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
