"""Apprentices in worlds of continuous observations, from 10 demonstrations of a scripted expert.

Environments of Gymnasium: CartPole-v1 and Acrobot-v1 with 500 steps at most, MountainCar-v0 with
200; with continuous actions MountainCarContinuous-v0 (300 steps; apprentices choose from five
forces) and Pendulum-v1 (200 steps, five torques), where the expert's own actions are continuous.

*Costs*: what a step costs is a handful of functions of the observation, each in [0, 1], that any
user would write down: whether the goal has not been reached yet (or the pole has fallen), where the
body is, how fast it moves, the effort. Apprentices match all of them within the infinity ball; the
environment's reward is never shown.

*Methods*, all from the same demonstrations: the clone (`clone_observations`); the grown mixture,
`PolicyMixture` with `LeastSquaresPlanner`, which begins with the clone and uniformly random actions
and whose planner explores around the clone; the same *without the clone*, which knows of the
demonstrations nothing but their mean costs.

*lost* is the part of the expert's lead over random actions that is lost, in the environment's own
undiscounted return: (J_expert - J)/(J_expert - J_random), from EVALUATED episodes of each; below
zero is better than the expert. *gap* is the distance of the policy's costs from the expert's that
rollouts show, without any error term; *bound* and *share* are those of the certificate with 200
fresh demonstrations, discounted and as a part of the trivial bound. *agreement* is the share that
the same 200 demonstrations certify without a simulator. *seconds* are CPU seconds of learning, with
one thread; evaluation is not counted.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \\
    python -m benchmarks.continuous_worlds [--seeds 5] [--only CartPole-v1] [--demonstrations 10]
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.demonstrations import clone_observations

EVALUATED = 60
"""Episodes by which returns are known."""
HELD_OUT = 200
"""Demonstrations of the certificate."""
METHODS = ("clone", "mixture", "without the clone")


@dataclass(frozen=True)
class Task:
    """An environment, its expert, and what a step may cost."""

    name: str
    expert: Callable[[Any], Any]
    costs: jm.costs.StepCosts
    discount: float
    horizon: int
    actions: tuple[tuple[float], ...] | None = None

    def made(self) -> Any:
        """The environment, with the horizon as its time limit."""
        return gymnasium.make(self.name, max_episode_steps=self.horizon, disable_env_checker=True)


def balance(x: Any) -> Any:
    """CartPole: push to where the pole falls, and slowly back to the middle."""
    return (x[:, 2] + 0.35 * x[:, 3] + 0.02 * x[:, 0] + 0.06 * x[:, 1] > 0).astype(int)


def pump(x: Any) -> Any:
    """Acrobot: torque along the speed of the joint between the links adds energy."""
    return np.where(x[:, 4] + 0.3 * x[:, 5] < 0, 0, 2)


def with_velocity(x: Any) -> Any:
    """MountainCar: accelerate in the direction of travel."""
    return np.where(x[:, 1] < 0, 0, 2)


def gently_with_velocity(x: Any) -> Any:
    """MountainCarContinuous: the same, as hard as the speed says, at least half."""
    return np.where(x[:, 1] < 0, -1.0, 1.0)[:, np.newaxis] * np.clip(
        0.5 + 15 * np.abs(x[:, 1:2]), 0, 1
    )


def swing_up(x: Any) -> Any:
    """Pendulum: add energy until it suffices to stand, then hold it there."""
    cosine, sine, speed = x[:, 0], x[:, 1], x[:, 2]
    energy = speed**2 / 6 + 5 * cosine
    hold = -(12 * np.arctan2(sine, cosine) + 3 * speed)
    add = np.where(speed >= 0, 2.0, -2.0) * np.clip(5 - energy, -1, 1)
    near = (cosine > 0.8) & (np.abs(speed) < 4)
    return np.clip(np.where(near, hold, add), -2, 2)[:, np.newaxis]


def cart_costs(o: Any, a: Any, after: Any, r: Any, end: Any) -> Any:
    scaled = np.abs(after) / [2.4, 3.0, 0.21, 3.0]
    return np.column_stack([np.minimum(scaled, 1), np.zeros(len(o))])


def acrobot_costs(o: Any, a: Any, after: Any, r: Any, end: Any) -> Any:
    height = -after[:, 0] - (after[:, 0] * after[:, 2] - after[:, 1] * after[:, 3])
    levels = [np.exp(-((height - level) ** 2)) for level in (-2, -0.5, 1)]
    speeds = np.minimum(np.abs(after[:, 4:]) / [12.6, 28.3], 1)
    return np.column_stack([np.ones(len(o)), *levels, speeds])


def car_costs(o: Any, a: Any, after: Any, r: Any, end: Any) -> Any:
    place = (after[:, :1] - [-1.0, -0.5, 0.0]) / 0.3
    speed = np.minimum(np.abs(after[:, 1]) / 0.07, 1)
    return np.column_stack([np.ones(len(o)), np.exp(-(place**2)), speed])


def driven_car_costs(o: Any, a: Any, after: Any, r: Any, end: Any) -> Any:
    return np.column_stack([car_costs(o, a, after, r, end), np.minimum(a[:, 0] ** 2, 1)])


def pendulum_costs(o: Any, a: Any, after: Any, r: Any, end: Any) -> Any:
    angle, speed = np.arctan2(after[:, 1], after[:, 0]) / np.pi, after[:, 2] / 8
    regions = [(1 + after[:, 0]) / 2, (1 + after[:, 1]) / 2]
    return np.column_stack([angle**2, np.minimum(speed**2, 1), a[:, 0] ** 2 / 4, *regions])


def _costs(function: Any, names: str, after_end: Any = 0.0) -> jm.costs.StepCosts:
    return jm.costs.StepCosts(function, names.split(", "), lowest=0, highest=1, after_end=after_end)


FORCES = ((-1.0,), (-0.5,), (0.0,), (0.5,), (1.0,))
TORQUES = ((-2.0,), (-1.0,), (0.0,), (1.0,), (2.0,))
CAR = "time, left slope, valley, right slope, speed"
TASKS = (
    Task("CartPole-v1", balance,
         _costs(cart_costs, "off centre, speed, lean, spin, fallen", after_end=1), 0.995, 500),
    Task("Acrobot-v1", pump,
         _costs(acrobot_costs, "time, low, middle, high, first speed, second speed"), 0.99, 500),
    Task("MountainCar-v0", with_velocity, _costs(car_costs, CAR), 0.99, 200),
    Task("MountainCarContinuous-v0", gently_with_velocity,
         _costs(driven_car_costs, CAR + ", effort"), 0.99, 300, FORCES),
    Task("Pendulum-v1", swing_up,
         _costs(pendulum_costs, "angle, speed, effort, up, right"), 0.98, 200, TORQUES),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Episodes:
    """Of an expert who acts by itself, with the actions it took and the environment's return."""

    observations: list[Any]
    actions: list[Any]
    terminated: list[bool]
    returns: list[float]

    def totals(self, task: Task) -> jm.EpisodeTotals:
        return jm.EpisodeTotals.of_episodes(
            self.observations, self.actions, self.terminated, task.costs, task.discount
        )

    def numbered(self, simulator: jm.GymnasiumSimulator) -> jm.Demonstrations:
        """With the nearest listed actions, to clone and to agree with."""
        actions = self.actions
        if simulator.actions is not None:
            actions = [simulator.nearest_actions(one) for one in actions]
        return jm.Demonstrations.from_arrays(self.observations, actions, self.terminated)


def play(task: Task, policy: Any, count: int, seed: int, *, numbers: bool) -> Episodes:
    """Episodes of a policy; `numbers` says that it returns numbers of listed actions."""
    env, found = task.made(), Episodes([], [], [], [])
    rng = np.random.default_rng(seed)
    for episode in range(count):
        seen, _ = env.reset(seed=seed * 100_000 + episode)
        actor: Any = policy.candidate(rng) if hasattr(policy, "candidate") else policy
        visited, taken, paid, over, cut = [seen], [], 0.0, False, False
        while not (over or cut):
            chosen = actor(seen[np.newaxis])[0]
            action = np.array(task.actions[chosen]) if numbers and task.actions else chosen
            seen, reward, over, cut, _ = env.step(action)
            visited.append(seen)
            taken.append(action)
            paid += float(reward)
        found.observations.append(np.array(visited))
        found.actions.append(np.array(taken))
        found.terminated.append(over)
        found.returns.append(paid)
    return found


@dataclass(frozen=True, eq=False)
class Drawn:
    """A mixture as it acts: a candidate is drawn for each episode."""

    mixture: jm.policy.MixturePolicy

    def candidate(self, rng: np.random.Generator) -> Callable[[Any], Any]:
        one: Any = self.mixture.candidates[int(self.mixture.draw(1, rng)[0])]
        return lambda seen: one.sample(seen, rng)


def alone(policy: Any) -> jm.policy.MixturePolicy:
    return jm.policy.MixturePolicy([policy], [1.0], 1)


def uniform(number: int) -> jm.policy.ObservationPolicy:
    return jm.policy.ObservationPolicy(lambda x: np.full((len(x), number), 1 / number))


def random_return(task: Task) -> float:
    space = task.made().action_space
    number = len(task.actions) if task.actions else int(space.n)
    found = play(task, Drawn(alone(uniform(number))), EVALUATED, 7_000, numbers=True)
    return float(np.mean(found.returns))


def trial(
    task: Task, seed: int, worst: float, options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """One seed: numbers of every method."""
    simulator = jm.GymnasiumSimulator(
        task.made, task.costs, task.discount, num_envs=60, actions=task.actions
    )
    number = len(simulator.action_numbers)
    shown = play(task, task.expert, options.demonstrations, 2 * seed + 1, numbers=False)
    fresh = play(task, task.expert, HELD_OUT, 2 * seed + 2, numbers=False)
    at_random = uniform(number)
    problem = jm.Apprenticeship(simulator, None, shown.totals(task))
    checked = jm.Apprenticeship(simulator, None, fresh.totals(task))
    records = jm.Apprenticeship(
        jm.world.Records(task.discount, (0, 1)), None, fresh.numbered(simulator)
    )
    theirs = float(np.mean(fresh.returns))
    lead = theirs - worst
    rollouts = jm.problem.MixtureRollouts(options.rollouts, task.horizon)
    started = time.process_time()
    clone = clone_observations(shown.numbered(simulator), seed=seed)
    cloning = time.process_time() - started
    found = {}
    for method in options.methods:
        started = time.process_time()
        policy, evaluation, size = alone(clone), rollouts, 1
        if method != "clone":
            knows = method == "mixture"
            planner = jm.solvers.LeastSquaresPlanner(task.horizon, guides=[clone] if knows else [])
            solver = jm.PolicyMixture(
                [clone, at_random] if knows else [at_random], rollouts=options.rollouts,
                horizon=task.horizon, seed=seed, planner=planner, budget=options.budget,
                rounds=options.rounds, time_limit=options.seconds,
            )  # fmt: skip
            answer = jm.solve(problem, solver)
            assert answer.mixture is not None
            assert answer.candidates is not None
            policy, evaluation = answer.mixture, answer.candidates.rollouts
            size = len(answer.candidates.trace)
        seconds = time.process_time() - started + (cloning if method != METHODS[2] else 0.0)
        own = play(task, Drawn(policy), EVALUATED, 9_000 + seed, numbers=True)
        certificate = jm.certify(checked, policy, evaluation=evaluation)
        found[method] = {
            "return": float(np.mean(own.returns)),
            "lost": (theirs - float(np.mean(own.returns))) / lead,
            "bound": certificate.bound, "share": certificate.bound / certificate.trivial_bound,
            "gap": checked.cost_class.gap(certificate.expectations - checked.target),
            "agreement": jm.certify(records, policy).share,
            "rounds": size, "seconds": seconds, "expert": theirs, "lead": lead,
        }  # fmt: skip
    return found


COLUMNS = ("return", "lost", "gap", "bound", "share", "agreement", "rounds", "seconds")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", choices=[task.name for task in TASKS], nargs="*")
    parser.add_argument("--methods", choices=METHODS, nargs="*", default=METHODS)
    parser.add_argument("--demonstrations", type=int, default=10)
    parser.add_argument("--rollouts", type=int, default=100, help="of each candidate")
    parser.add_argument("--budget", type=int, default=40_000, help="steps of a plan")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, help="limit of a solve")
    parser.add_argument("--each", action="store_true", help="print every trial as it ends")
    options = parser.parse_args(arguments)
    print(describe_machine())
    print(f"{options.demonstrations} demonstrations, {options.seeds} seeds: median (worst)")
    head = " ".join(f"{name:>16}" for name in COLUMNS)
    for task in TASKS:
        if options.only and task.name not in options.only:
            continue
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        worst = random_return(task)
        trials = []
        for seed in seeds:
            trials.append(trial(task, seed, worst, options))
            if options.each:
                print(task.name, seed, trials[-1], flush=True)
        one = trials[0][options.methods[0]]
        print(f"\n{task.name}: expert {one['expert']:.1f}, random "
              f"{worst:.1f}\n{'':20}{head}")  # fmt: skip
        for method in options.methods:
            cells = []
            for name in COLUMNS:
                values = [found[method][name] for found in trials]
                extreme = min(values) if name == "return" else max(values)
                cells.append(f"{statistics.median(values):.3g} ({extreme:.3g})")
            print(f"{method:20}" + " ".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
