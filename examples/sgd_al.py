"""SGD-AL against its exact counterpart: the loss and the policy, step rule by step rule.

    python examples/sgd_al.py [--size 16] [--steps 100000] [--output docs/images/sgd_al.svg]

A slippery grid with 16 costs; 200 demonstrations of 150 steps by an expert whose actions are 30 %
random; partition features. Every step rule runs for more and more steps with all other settings at
their defaults, `Constant` with the step size that belongs to each number of steps. The chart has
the loss of the averaged coefficients, with the optimum of `ReducedProgram` as a line, and the gap
of their policy to the true expert, known in a synthetic world; the table has the longest runs.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np
from line_chart import Axis, HorizontalLine, Panel, Series, line_chart

import journeyman as jm
from journeyman.solvers.reduced.step_rules import StepRule

RULES = {
    "constant (paper)": jm.solvers.Constant(),
    "1/sqrt(t)": jm.solvers.InverseRoot(),
    "AdaGrad, norm": jm.solvers.NormAdaptive(),
    "AdaGrad, coordinates (default)": jm.solvers.CoordinateAdaptive(),
    "dual averaging": jm.solvers.DualAveraging(),
}
FEWEST_STEPS, POINTS_PER_DECADE = 100, 4


@dataclass(frozen=True)
class Setting:
    """A problem, its features, and the same problem with the expert's true expectations."""

    problem: jm.Apprenticeship
    truth: jm.Apprenticeship
    features: jm.features.Features
    cloned: jm.Policy

    @classmethod
    def of(cls, size: int) -> "Setting":
        world, basis, expert = jm.gallery.grid(size, macro_cells=4, seed=0)
        demos = jm.record(world, expert, trajectories=200, horizon=150, seed=0)
        exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
        return cls(
            jm.Apprenticeship(world, basis, demos),
            jm.Apprenticeship(world, basis, exact),
            jm.features.partition(world, demos),
            jm.clone(demos, world),
        )

    def true_gap(self, policy: jm.Policy) -> float:
        return self.truth.gap(jm.occupancy(self.truth.world, policy))

    @property
    def target_error(self) -> float:
        """How far the demonstrated averages are from the expert's true expectations."""
        return self.truth.cost_class.gap(self.problem.target - self.truth.target)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=16, help="cells along a side of the grid")
    parser.add_argument("--steps", type=int, default=100_000, help="of the longest runs")
    parser.add_argument("--output", type=Path, default=Path("docs/images/sgd_al.svg"))
    options = parser.parse_args(arguments)
    setting = Setting.of(options.size)
    best = jm.solve(setting.problem, jm.ReducedProgram(setting.features))
    counts = step_counts(options.steps)
    runs = {
        name: [descend(setting, rule, steps) for steps in counts] for name, rule in RULES.items()
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(picture(setting, best, counts, runs), encoding="utf-8")
    longest = {name: answers[-1] for name, answers in runs.items()}
    sys.stdout.write(f"{table(setting, best, longest)}\n\n{options.output}\n")


def step_counts(most: int) -> list[int]:
    """Numbers of steps that grow by a constant factor, up to `most`."""
    decades = np.log10(most / min(FEWEST_STEPS, most))
    shares = np.linspace(0, 1, 1 + int(np.ceil(POINTS_PER_DECADE * decades)))
    return sorted({round(most * 10 ** (-decades * (1 - share))) for share in shares})


def descend(setting: Setting, rule: StepRule, steps: int) -> jm.Answer:
    """All the steps with one rule; accuracy 0 never stops early."""
    solver = jm.StochasticSubgradient(setting.features, step_rule=rule, steps=steps, accuracy=0.0)
    return jm.solve(setting.problem, solver, seed=0)


def picture(
    setting: Setting, best: jm.Answer, counts: list[int], runs: dict[str, list[jm.Answer]]
) -> str:
    """Loss and true gap against steps, side by side."""
    losses = [Series(name, counts, [a.reduced.loss for a in runs[name]]) for name in runs]
    gaps = [Series(name, counts, [setting.true_gap(a.policy) for a in runs[name]]) for name in runs]
    steps = Axis("steps", log=True)
    least, cloned = setting.true_gap(best.policy), setting.true_gap(setting.cloned)
    return line_chart(
        "SGD-AL, step rule by step rule",
        f"Left: the surrogate loss against steps; the least loss is {best.reduced.loss:.3g}. "
        "Right: the gap of the policy to the true expert; the policy of the least loss has "
        f"{least:.3g}, a cloned one {cloned:.3g}.",
        [
            Panel(
                "Loss of the average", steps, Axis("loss (bounds the gap to the data)", log=True),
                losses, [HorizontalLine("ReducedProgram", best.reduced.loss)],
            ),
            Panel(
                "Its policy against the true expert", steps, Axis("gap", log=True),
                gaps, [HorizontalLine("ReducedProgram", least), HorizontalLine("cloning", cloned)],
            ),
        ],
    )  # fmt: skip


def table(setting: Setting, best: jm.Answer, longest: dict[str, jm.Answer]) -> str:
    """What is known about each answer."""
    rows = [
        f"{setting.features}; a gap is at most {setting.problem.trivial_bound:.3g}",
        f"error of the demonstrated averages {setting.target_error:.3f}; "
        f"cloning has a true gap of {setting.true_gap(setting.cloned):.3f}",
        "",
        f"{'':<31}{'steps':>8}{'loss':>9}{'proven':>9}{'in 95 %':>9}{'gap':>8}{'true gap':>10}",
        f"{'':<39}{'':>9}{'error':>9}{'error':>9}{'to data':>8}{'':>10}",
    ]
    for name, answer in {**longest, "ReducedProgram": best}.items():
        found, bound = answer.reduced, answer.optimisation
        steps, regret = ("", "") if bound is None else (bound.steps, f"{bound.regret_bound:.4g}")
        rows.append(
            f"{name:<31}{steps:>8}{found.loss:>9.3f}{found.optimisation_error:>9.3f}{regret:>9}"
            f"{answer.value:>8.3f}{setting.true_gap(answer.policy):>10.3f}"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    main()
