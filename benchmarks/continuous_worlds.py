"""Apprentices in worlds of continuous observations, from 10 demonstrations of a scripted expert.

Environments of Gymnasium: CartPole-v1 and Acrobot-v1 with 500 steps at most, MountainCar-v0 with
200; with continuous actions MountainCarContinuous-v0 (300 steps) and Pendulum-v1 (200 steps), where
the expert's own actions are continuous and apprentices choose from LISTED ones, which
`listed_actions` proposes from the demonstrations.

*Costs*: what a step costs is a handful of functions of the observation, each in [0, 1], that any
user would write down: whether the goal has not been reached yet (or the pole has fallen), where the
body is, how fast it moves, the effort. Apprentices match all of them within the infinity ball; the
environment's reward is never shown.

*Methods*, all from the same demonstrations: the clone (`clone_observations`), which takes its
likeliest action; the *drawing clone*, the same network with drawn actions; the grown mixture,
`PolicyMixture` with `LeastSquaresPlanner`, which begins with both and uniformly random actions and
whose planner explores around both; the same *without the clone*, which knows of the demonstrations
nothing but their mean costs and the listed actions. With `--peers` also *BC*, *GAIL* and *AIRL* of
the package `imitation`, each in a process of its own (`make bench-neural`): they act with the
environment's own actions, are shown no costs, and have as many CPU seconds as the mixture took with
the same seed; loading is not counted. Of the two policies of each of their networks, drawn actions
and the likeliest ones, the row shows the one of greater return.

*lost* is the part of the expert's lead over random actions that is lost, in the environment's own
undiscounted return: (J_expert - J)/(J_expert - J_random), from EVALUATED episodes of each, random
actions being uniform in the environment's own; below zero is better than the expert. *gap* is the
distance of the policy's costs from the expert's that rollouts show, without any error term; *bound*
and *share* are those of the certificate with 200 fresh demonstrations and CERTIFIED fresh rollouts,
discounted and as a part of the trivial bound. *agreement* is the share that the same 200
demonstrations certify without a simulator, where the environment's own actions are numbered: a
listed action is not what the expert did. *seconds* are CPU seconds of learning, with one thread;
evaluation is not counted. *rounds* are those of the mixture, of GAIL and AIRL, or passes of BC.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
    python -m benchmarks.continuous_worlds [--seeds 5] [--only CartPole-v1] [--demonstrations 10]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.demonstrations import clone_observations
from journeyman.policy.acting import Actor
from journeyman.policy.observation_policy import forward

EVALUATED = 60
"""Episodes by which returns are known."""
HELD_OUT, CERTIFIED = 200, 400
"""Demonstrations and rollouts of the certificate."""
LISTED = 5
"""Actions in a list."""
METHODS = ("clone", "drawing clone", "mixture", "without the clone")
PEERS = ("BC", "GAIL", "AIRL")
PEER = Path(".venv/imitation/bin/python")
CLOSE = 1e-4
"""How far answers of a peer's network may be from ours: it computes in single precision."""


@dataclass(frozen=True)
class Task:
    """An environment, its expert, and what a step may cost."""

    name: str
    expert: Callable[[Any], Any]
    costs: jm.costs.StepCosts
    discount: float
    horizon: int
    actions: Any = None
    """The listed ones, where the environment's own are continuous."""

    def made(self) -> Any:
        """The environment, with the horizon as its time limit."""
        return gymnasium.make(self.name, max_episode_steps=self.horizon, disable_env_checker=True)

    def shown(self, seen: Any, rng: np.random.Generator) -> Any:
        """The expert's actions."""
        return self.expert(seen)

    def listing(self, shown: "Episodes") -> "Task":
        """The same, with actions listed from the demonstrations if they are continuous."""
        taken = np.concatenate(shown.actions)
        if taken.dtype.kind != "f":
            return self
        return replace(self, actions=jm.demonstrations.listed_actions(taken, LISTED))

    def simulator(self, *, listed: bool) -> jm.GymnasiumSimulator:
        """With the listed actions, or those of the environment."""
        return jm.GymnasiumSimulator(
            self.made, self.costs, self.discount, num_envs=60,
            actions=self.actions if listed else None,
        )  # fmt: skip


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


CAR = "time, left slope, valley, right slope, speed"
TASKS = (
    Task("CartPole-v1", balance,
         _costs(cart_costs, "off centre, speed, lean, spin, fallen", after_end=1), 0.995, 500),
    Task("Acrobot-v1", pump,
         _costs(acrobot_costs, "time, low, middle, high, first speed, second speed"), 0.99, 500),
    Task("MountainCar-v0", with_velocity, _costs(car_costs, CAR), 0.99, 200),
    Task("MountainCarContinuous-v0", gently_with_velocity,
         _costs(driven_car_costs, CAR + ", effort"), 0.99, 300),
    Task("Pendulum-v1", swing_up,
         _costs(pendulum_costs, "angle, speed, effort, up, right"), 0.98, 200),
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
    envs = [task.made() for _ in range(count)]
    seen = np.stack([env.reset(seed=seed * 100_000 + k)[0] for k, env in enumerate(envs)])
    actor = Actor(policy, seed)
    listed = task.actions if numbers else None
    visited: list[list[Any]] = [[row] for row in seen]
    taken: list[list[Any]] = [[] for _ in envs]
    paid, ended, running = np.zeros(count), [False] * count, np.ones(count, dtype=bool)
    while running.any():
        chosen = actor.sample(seen)
        actions, seen = (chosen if listed is None else listed[chosen]), seen.copy()
        for k in np.flatnonzero(running):
            seen[k], reward, ended[k], cut, _ = envs[k].step(actions[k])
            visited[k].append(seen[k].copy())
            taken[k].append(actions[k])
            paid[k] += float(reward)
            running[k] = not (ended[k] or cut)
    return Episodes(
        [np.array(one) for one in visited], [np.array(one) for one in taken], ended, paid.tolist()
    )


def uniform(number: int) -> jm.policy.ObservationPolicy:
    return jm.policy.ObservationPolicy(lambda x: np.full((len(x), number), 1 / number))


def random_return(task: Task) -> float:
    space = task.made().action_space

    def anything(seen: Any, rng: np.random.Generator) -> Any:
        return rng.uniform(space.low, space.high, (len(seen), *space.shape))

    policy: Any = uniform(int(space.n)) if hasattr(space, "n") else anything
    return float(np.mean(play(task, policy, EVALUATED, 7_000, numbers=False).returns))


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A network's continuous actions: the mean, or drawn about it, within the environment's."""

    layers: tuple[Any, ...]
    mean: Any
    scale: Any
    spread: Any
    bounds: tuple[Any, Any]
    greedy: bool

    def means(self, seen: Any) -> Any:
        return forward(self.layers, (np.asarray(seen, float) - self.mean) / self.scale)[-1]

    def __call__(self, seen: Any, rng: np.random.Generator) -> Any:
        found = self.means(seen)
        if not self.greedy:
            found = found + self.spread * rng.normal(size=found.shape)
        return np.clip(found, *self.bounds).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Learned:
    """Policies to choose the better one of, how they came about, and how they act."""

    policies: Sequence[Any]
    seconds: float
    rounds: int
    numbers: bool = True


def trained(
    task: Task, shown: Episodes, method: str, seconds: float, seed: int, peer: Path
) -> Learned:
    """What a peer's process learns from the demonstrations."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "instance.npz", Path(folder) / "result.npz"
        np.savez(
            given, environment=task.name, horizon=task.horizon, discount=task.discount,
            observations=np.concatenate(shown.observations), actions=np.concatenate(shown.actions),
            offsets=np.cumsum([0, *map(len, shown.actions)]),
        )  # fmt: skip
        command = [str(peer), "-m", "benchmarks.neural_peer", str(given), str(found)]
        command += ["--method", method, "--seconds", str(seconds), "--seed", str(seed)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | threads
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        with np.load(found) as saved:
            result = dict(saved)
    policies: list[Any] = _network_policies(result, task.made().action_space)
    _require_same_answers(policies[0], result)
    numbers = "spread" not in result
    return Learned(policies, float(result["seconds"]), int(result["rounds"]), numbers)


def _network_policies(result: Mapping[str, Any], space: Any) -> list[Any]:
    """The network's two policies: drawn actions, and the likeliest ones."""
    layers = tuple(result[f"{kind}_{k}"] for k in range(3) for kind in ("weights", "biases"))
    units, ways = (result["mean"], result["scale"]), (False, True)
    if "spread" not in result:
        return [jm.policy.NetworkPolicy(layers, *units, greedy=greedy) for greedy in ways]
    bounds = space.low, space.high
    return [Gaussian(layers, *units, result["spread"], bounds, greedy) for greedy in ways]


def _require_same_answers(policy: Any, result: Mapping[str, Any]) -> None:
    """Refuse weights that do not answer here as they did in the peer's process."""
    seen = result["seen"]
    ours = policy.means(seen) if isinstance(policy, Gaussian) else policy.probabilities(seen)
    apart = float(np.abs(ours - result["answers"]).max())
    if not apart <= CLOSE * max(1.0, float(np.abs(result["answers"]).max())):
        raise RuntimeError(f"a peer's policy answers here by {apart:.1e} otherwise than there")


class Trial:
    """One environment and seed: what is shown, what is kept for certificates, every method."""

    def __init__(self, task: Task, seed: int, worst: float, options: argparse.Namespace) -> None:
        self.shown = play(task, task.shown, options.demonstrations, 2 * seed + 1, numbers=False)
        self.task, self.seed, self.worst, self.options = task, seed, worst, options
        self.task = task = task.listing(self.shown)
        self.simulator = task.simulator(listed=True)
        self.fresh = play(task, task.shown, HELD_OUT, 2 * seed + 2, numbers=False)
        self.found: dict[str, dict[str, float]] = {}

    def run(self) -> dict[str, dict[str, float]]:
        """The numbers of every method; those in the file of trials are not made again."""
        options = self.options
        settings = [self.task.name, self.seed, options.demonstrations, options.rollouts,
                    options.certified, options.budget, options.rounds, options.seconds]  # fmt: skip
        before = _read(options.kept)
        for method in options.methods:
            key = json.dumps([*settings, method])
            if key not in before:
                before[key] = self.judged(self.learned(method))
                _add(options.kept, key, before[key])
            self.found[method] = before[key]
        return self.found

    def learned(self, method: str) -> Learned:
        """What a method makes of the demonstrations."""
        if method in PEERS:
            seconds = self.found["mixture"]["seconds"]
            return trained(self.task, self.shown, method, seconds, self.seed, self.options.peer)
        if method == "without the clone":
            return self.grown(None)
        started = time.process_time()
        clone = clone_observations(self.shown.numbered(self.simulator), seed=self.seed)
        seconds = time.process_time() - started
        if method == "mixture":
            return self.grown(Learned([clone, clone.drawing], seconds, 1))
        return Learned([clone if method == "clone" else clone.drawing], seconds, 1)

    def grown(self, clone: Learned | None) -> Learned:
        """The mixture, with the clone or without it."""
        task, options = self.task, self.options
        started, candidates = time.process_time(), [uniform(len(self.simulator.action_numbers))]
        guides = [] if clone is None else list(clone.policies)
        solver = jm.PolicyMixture(
            [*guides, *candidates], rollouts=options.rollouts, horizon=task.horizon,
            seed=self.seed, budget=options.budget, rounds=options.rounds,
            planner=jm.solvers.LeastSquaresPlanner(task.horizon, guides=guides),
            time_limit=options.seconds,
        )  # fmt: skip
        problem = jm.Apprenticeship(self.simulator, None, self.shown.totals(task))
        answer = jm.solve(problem, solver)
        assert answer.candidates is not None
        seconds = time.process_time() - started + (0.0 if clone is None else clone.seconds)
        return Learned([answer.mixture], seconds, len(answer.candidates.trace))

    def judged(self, learned: Learned) -> dict[str, float]:
        """Return and certificates of the better one of the policies."""
        task, numbers = self.task, learned.numbers
        returns = [
            float(np.mean(play(task, one, EVALUATED, 9_000 + self.seed, numbers=numbers).returns))
            for one in learned.policies
        ]
        own, policy = max(returns), learned.policies[int(np.argmax(returns))]
        simulator = self.simulator if numbers else task.simulator(listed=False)
        checked = jm.Apprenticeship(simulator, None, self.fresh.totals(task))
        certificate = jm.certify(
            checked, policy, evaluation=jm.Rollouts(self.options.certified, task.horizon)
        )
        agreement = float("nan")
        if task.actions is None:
            world = jm.world.Records(task.discount, (0, 1))
            records = jm.Apprenticeship(world, None, self.fresh.numbered(self.simulator))
            agreement = jm.certify(records, policy).share
        theirs = float(np.mean(self.fresh.returns))
        return {
            "return": own, "lost": (theirs - own) / (theirs - self.worst),
            "bound": certificate.bound, "share": certificate.bound / certificate.trivial_bound,
            "gap": checked.cost_class.gap(certificate.expectations - checked.target),
            "agreement": agreement, "rounds": learned.rounds, "seconds": learned.seconds,
            "expert": theirs,
        }  # fmt: skip


COLUMNS = ("return", "lost", "gap", "bound", "share", "agreement", "rounds", "seconds")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", choices=[task.name for task in TASKS], nargs="*")
    parser.add_argument("--methods", choices=(*METHODS, *PEERS), nargs="*", default=list(METHODS))
    parser.add_argument("--peers", action="store_true", help="BC, GAIL and AIRL beside the mixture")
    parser.add_argument("--peer", type=Path, default=PEER, help="Python with imitation")
    parser.add_argument("--demonstrations", type=int, default=10)
    parser.add_argument("--rollouts", type=int, default=100, help="of each candidate")
    parser.add_argument("--certified", type=int, default=CERTIFIED, help="rollouts of certificates")
    parser.add_argument("--budget", type=int, default=20_000, help="steps of a plan")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, help="limit of a solve")
    parser.add_argument("--kept", type=Path, help="a file of trials: is read, and added to")
    options = parser.parse_args(arguments)
    if options.peers:
        options.methods = [*METHODS[:3], *PEERS]
    options.methods = [one for one in (*METHODS, *PEERS) if one in options.methods]
    if set(options.methods) & set(PEERS) and "mixture" not in options.methods:
        parser.error("peers have the time of the mixture, which is not among the methods")
    print(describe_machine())
    print(f"{options.demonstrations} demonstrations, {options.seeds} seeds: median (worst)")
    for task in TASKS:
        if not options.only or task.name in options.only:
            show(task, options)


def show(task: Task, options: argparse.Namespace) -> None:
    """The table of one environment."""
    worst = random_return(task)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    trials = [Trial(task, seed, worst, options).run() for seed in seeds]
    expert = statistics.median(one[options.methods[0]]["expert"] for one in trials)
    head = " ".join(f"{name:>16}" for name in COLUMNS)
    print(f"\n{task.name}: expert {expert:.1f}, random {worst:.1f}\n{'':20}{head}")
    for method in options.methods:
        cells = []
        for name in COLUMNS:
            values = [found[method][name] for found in trials]
            extreme = min(values) if name == "return" else max(values)
            cells.append(f"{statistics.median(values):.3g} ({extreme:.3g})")
        print(f"{method:20}" + " ".join(f"{cell:>16}" for cell in cells), flush=True)


def _read(file: Path | None) -> dict[str, dict[str, float]]:
    """What a file of trials holds, by their settings."""
    if file is None or not file.exists():
        return {}
    return dict(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def _add(file: Path | None, key: str, numbers: dict[str, float]) -> None:
    if file is not None:
        with file.open("a", encoding="utf-8") as stream:
            print(json.dumps([key, numbers]), file=stream)


if __name__ == "__main__":
    main(sys.argv[1:])
