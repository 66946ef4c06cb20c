"""Certificates from records alone: whether they hold, and what they are worth.

*Coverage*: random worlds of 8 hidden states, 3 actions, an end and aliased observations; experts
who are deterministic, draw, or remember (a habit for the episode and the last action); records cut
off after 40 steps or terminated; cross-fitted clones with failure probability 0.05 (and 0.3, where
a wrong bound would show). Compared are the bound with the worst gap under any cost in [0, 1] of
states and actions, by exact evaluation, and the bound of E Z with its exact value.

*Gymnasium*: CartPole-v1 and Acrobot-v1, discount 0.95, scripted experts, deterministic or with some
random actions whose probabilities are logged; the network of `clone_observations` fitted to 300
episodes, 300 others held out. Printed are the bound's share of the trivial bound and the
disagreement per step of the network that takes its likeliest action; the share of the one that
draws, with the expert's probabilities (*with logs*); and the gap of the first under one known cost
in [0, 1], by rollouts, per step.

*Importance sampling*, written naively, on the same records and for that one known cost: the
per-decision estimate of the policy's total, with the interval that the central limit theorem
suggests, which is no guarantee, and with Hoeffding's for the range of its weights, which is one.
Where the expert is deterministic the estimate is biased: what the policy does after it has
differed is in no record. Where scope-rl is installed, `--only scope-rl` prints its intervals for
the same records (the first 200 steps of CartPole-v1).

    python -m benchmarks.agreement [--runs 400] [--seed 0] [--episodes 300] [--only coverage]
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import journeyman as jm
from journeyman.certificate.agreement import upper_disagreement
from journeyman.demonstrations.cross_fitting import clone_observations
from journeyman.demonstrations.expectation import clone_visited_states

STATES, ACTIONS, LENGTH = 8, 3, 40
EXPERTS = ("deterministic", "stochastic", "memory")


@dataclass(frozen=True, eq=False)
class RecordedWorld:
    """A world whose laws are known to the benchmark only; the last state is the end."""

    step: Any
    """(states, actions, states + 1)"""
    start: Any
    seen: Any
    """The observation of every state."""
    expert: Any
    """(habits, states, last action or none, actions)"""
    habits: Any
    discount: float

    @classmethod
    def drawn(cls, kind: str, rng: np.random.Generator, *, ending: bool) -> "RecordedWorld":
        step = rng.dirichlet(np.full(STATES + 1, 0.3), size=(STATES, ACTIONS))
        step[:, :, -1] *= 0.3 if ending else 0.0
        step /= step.sum(axis=2, keepdims=True)
        habits = 2 if kind == "memory" else 1
        sharp = rng.dirichlet(np.full(ACTIONS, 0.3), size=(habits, STATES, ACTIONS + 1))
        if kind == "deterministic":
            sharp = np.eye(ACTIONS)[sharp.argmax(axis=3)]
        if kind != "memory":
            sharp = np.repeat(sharp[:, :, :1], ACTIONS + 1, axis=2)
        else:
            rule = np.eye(ACTIONS)[rng.integers(0, ACTIONS, STATES)][np.newaxis, :, np.newaxis]
            sharp = 0.9 * rule + 0.1 * sharp
        seen = np.arange(STATES)
        seen[-1] = rng.choice([STATES - 1, 0])
        weights = np.array([0.8, 0.2]) if habits == 2 else np.ones(1)
        discount = float(rng.choice([0.8, 0.9, 0.95]))
        return cls(step, rng.dirichlet(np.ones(STATES)), seen, sharp, weights, discount)

    def record(self, count: int, rng: np.random.Generator) -> jm.Demonstrations:
        """Episodes of at most LENGTH steps, as observations see them."""
        states, actions, ended = [], [], []
        sums = np.cumsum(self.step, axis=2)
        for _ in range(count):
            habit = int(rng.choice(len(self.habits), p=self.habits))
            state, last = int(rng.choice(STATES, p=self.start)), ACTIONS
            visited = [int(self.seen[state])]
            taken: list[int] = []
            while len(taken) < LENGTH and state < STATES:
                last = int(rng.choice(ACTIONS, p=self.expert[habit, state, last]))
                state = min(int(np.searchsorted(sums[state, last], rng.random())), STATES)
                taken.append(last)
                visited.append(int(self.seen[state]) if state < STATES else STATES)
            states.append(visited)
            actions.append(taken)
            ended.append(state == STATES)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in actions])])
        return jm.Demonstrations(np.concatenate(states), np.concatenate(actions), offsets, ended)

    def worst_gap(self, policy: Any) -> float:
        """Over costs in [0, 1] of hidden states and actions: the positive part of the difference of
        the two occupancies."""
        own = np.zeros((STATES, ACTIONS))
        for member, weight in zip(policy.candidates, policy.weights, strict=True):
            acts = self._laws(member)
            chain = np.einsum("sa,sat->st", acts, self.step[:, :, :STATES])
            visits = np.linalg.solve(np.eye(STATES) - self.discount * chain.T, self.start)
            own += weight * visits[:, np.newaxis] * acts
        size = STATES * (ACTIONS + 1)
        theirs = np.zeros((STATES, ACTIONS))
        for habit, weight in enumerate(self.habits):
            law = self.expert[habit].reshape(size, ACTIONS)
            visits = np.linalg.solve(np.eye(size) - self.discount * self._moves(habit, law).T,
                                     self._first())  # fmt: skip
            theirs += weight * (visits[:, np.newaxis] * law).reshape(STATES, -1, ACTIONS).sum(1)
        return float(np.maximum(own - theirs, 0.0).sum())

    def disagreement(self, member: Any) -> float:
        """E Z of one policy, exactly, for records of at most LENGTH steps."""
        g, found, h = self.discount, 0.0, 1 / (1 - self.discount)
        size = STATES * (ACTIONS + 1)
        agree = np.repeat(self._laws(member), ACTIONS + 1, axis=0)
        ends = np.repeat(self.step[:, :, STATES], ACTIONS + 1, axis=0)
        for habit, weight in enumerate(self.habits):
            law = self.expert[habit].reshape(size, ACTIONS)
            whole, same = self._first(), self._first()
            moves, kept = self._moves(habit, law), self._moves(habit, law * agree)
            for t in range(LENGTH):
                alive, left = whole.sum(), (same @ (law * agree)).sum()
                found += weight * g**t * (alive - left)
                over = whole @ (law * ends).sum(axis=1) - same @ (law * agree * ends).sum(axis=1)
                found += weight * g ** (t + 1) * h * over
                whole, same = whole @ moves, same @ kept
            found += weight * g**LENGTH * h * whole.sum()
        return float(found)

    def _laws(self, member: Any) -> Any:
        laws = getattr(member, "policy", member).probabilities(self.seen)
        return np.pad(laws, ((0, 0), (0, ACTIONS - laws.shape[1])))

    def _first(self) -> Any:
        first = np.zeros((STATES, ACTIONS + 1))
        first[:, ACTIONS] = self.start
        return first.ravel()

    def _moves(self, habit: int, law: Any) -> Any:
        """From (state, last action) to (next state, action)."""
        rows = law.reshape(STATES, ACTIONS + 1, ACTIONS)
        moves = np.zeros((STATES, ACTIONS + 1, STATES, ACTIONS + 1))
        for a in range(ACTIONS):
            moves[:, :, :, a] = rows[:, :, a, np.newaxis] * self.step[:, np.newaxis, a, :STATES]
        size = STATES * (ACTIONS + 1)
        return moves.reshape(size, size)


@dataclass(frozen=True)
class Trial:
    """One cross-fitted clone and what is true of it."""

    share: float
    gap_holds: bool
    mean_holds: bool
    """Whether the bound of E Z, without the coupling's slack, holds."""
    tightness: float
    """Worst gap over bound."""


def trial(kind: str, seed: int, *, ending: bool, episodes: int, delta: float) -> Trial:
    rng = np.random.default_rng([seed, EXPERTS.index(kind), ending])
    world = RecordedWorld.drawn(kind, rng, ending=ending)
    demos = world.record(episodes, rng)
    records = jm.world.Records(world.discount, (0, 1))
    problem = jm.Apprenticeship(records, None, demos)
    policy = jm.demonstrations.cross_fit(demos, clone_visited_states, seed=seed)
    certificate = jm.certify(problem, policy, delta)
    found = certificate.agreement
    assert found is not None
    exact = sum(
        float((policy.folds == k).mean()) * world.disagreement(one)
        for k, one in enumerate(policy.candidates)
    )
    upper = upper_disagreement(found, records.effective_horizon, delta)
    gap = world.worst_gap(policy)
    return Trial(
        certificate.share, gap <= certificate.bound, exact <= upper, gap / certificate.bound
    )


def coverage(runs: int, seed: int) -> None:
    print(f"{'expert':<15}{'records':<12}{'delta':>6}{'share':>8}{'gap holds':>11}{'E Z holds':>11}"
          f"{'gap/bound':>11}")  # fmt: skip
    for kind in EXPERTS:
        for ending in (False, True):
            for delta in (0.05, 0.3):
                found = [
                    trial(kind, seed * 10_000 + run, ending=ending, episodes=100, delta=delta)
                    for run in range(runs)
                ]
                print(
                    f"{kind:<15}{'terminated' if ending else 'cut off':<12}{delta:>6}"
                    f"{np.median([one.share for one in found]):>8.3f}"
                    f"{np.mean([one.gap_holds for one in found]):>11.4f}"
                    f"{np.mean([one.mean_holds for one in found]):>11.4f}"
                    f"{max(one.tightness for one in found):>11.3f}"
                )


# Gymnasium


def balance(x: Any) -> Any:
    """CartPole: push to where the pole falls, and slowly back to the middle."""
    return (x[:, 2] + 0.35 * x[:, 3] + 0.02 * x[:, 0] + 0.06 * x[:, 1] > 0).astype(int)


def swing(x: Any) -> Any:
    """Acrobot: torque along the speed of the joint between the links."""
    return np.where(x[:, 4] + 0.3 * x[:, 5] < 0, 0, 2)


@dataclass(frozen=True)
class Task:
    """An environment, an expert, and a cost in [0, 1] to compare with."""

    name: str
    rule: Callable[[Any], Any]
    num_actions: int
    cost: Callable[[Any], Any]


TASKS = (
    Task("CartPole-v1", balance, 2, lambda x: np.minimum(np.abs(x[:, 2]) / 0.21, 1.0)),
    Task("Acrobot-v1", swing, 3, lambda x: np.ones(len(x))),
)


def play(task: Task, policy: Any, count: int, noise: float, seed: int) -> jm.Demonstrations:
    """Episodes of a policy (a rule with random actions, or a clone), with what was drawn logged."""
    import gymnasium

    env = gymnasium.make(task.name)
    rng = np.random.default_rng(seed)
    states, actions, chances, ended = [], [], [], []
    for episode in range(count):
        seen, _ = env.reset(seed=seed * 100_000 + episode)
        visited, over, cut = [seen], False, False
        taken: list[int] = []
        drawn: list[float] = []
        while not (over or cut):
            chosen = int(policy(seen[np.newaxis])[0])
            action = int(rng.integers(task.num_actions)) if rng.random() < noise else chosen
            share = noise / task.num_actions
            drawn.append(1 - noise + share if action == chosen else share)
            seen, _, over, cut, _ = env.step(action)
            visited.append(seen)
            taken.append(action)
        states.append(np.array(visited))
        actions.append(taken)
        chances.append(drawn)
        ended.append(over)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in actions])])
    return jm.Demonstrations(
        np.concatenate(states), np.concatenate(actions), offsets, ended,
        probabilities=np.concatenate(chances),
    )  # fmt: skip


def totals(demos: jm.Demonstrations, cost: Callable[[Any], Any], discount: float) -> Any:
    """Discounted cost of every episode."""
    paid = cost(demos.step_states) * discount**demos.step_times
    return np.add.reduceat(paid, demos.offsets[:-1])


def importance(
    demos: jm.Demonstrations, chances: Any, cost: Callable[[Any], Any], discount: float
) -> tuple[float, float, float]:
    """Per-decision importance sampling, naively: mean of sum_t g^t c_t prod_{s<=t} pi/pi_E, 1.64
    standard errors, and Hoeffding's radius for the largest weight that the record's length allows.
    """
    assert demos.probabilities is not None
    paid = cost(demos.step_states)
    values = []
    for start, stop in zip(demos.offsets, demos.offsets[1:], strict=False):
        total, weight = 0.0, 1.0
        for t, step in enumerate(range(start, stop)):
            weight *= chances[step] / demos.probabilities[step]
            total += discount**t * weight * paid[step]
        values.append(total)
    longest, least = int(demos.lengths.max()), float(demos.probabilities.min())
    logs = np.arange(longest) * np.log(discount) - np.arange(1, longest + 1) * np.log(least)
    width = float(np.exp(np.minimum(np.logaddexp.reduce(logs), 700.0)))
    hoeffding = width * np.sqrt(np.log(1 / 0.05) / (2 * len(values)))
    spread = 1.64 * float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return float(np.mean(values)), spread, float(hoeffding)


def gymnasium_table(episodes: int, seed: int, discount: float = 0.95) -> None:
    print(f"\n{'task':<13}{'expert':<18}{'share':>8}{'per step':>10}{'with logs':>10}"
          f"{'known cost: true gap':>22}{'PDIS gap':>10}{'CLT':>8}{'Hoeffding':>11}")  # fmt: skip
    for task in TASKS:
        for noise in (0.0, 0.02, 0.1):
            both = play(task, task.rule, 2 * episodes, noise, seed)
            fitted_to = both.subset(np.arange(episodes))
            held_out = both.subset(np.arange(episodes, 2 * episodes))
            clone = clone_observations(fitted_to, seed=seed)
            plain, logged = (
                jm.certify(
                    jm.Apprenticeship(
                        jm.world.Records(discount, (0, 1), use_probabilities=use), None, held_out
                    ),
                    clone.drawing if use else clone,
                )
                for use in (False, True)
            )
            assert plain.agreement is not None
            chances = plain.agreement.probabilities[0]
            own = play(task, lambda x, clone=clone: clone.sample(x, 0), 100, 0.0, seed + 1)
            theirs = totals(both, task.cost, discount).mean()
            gap = totals(own, task.cost, discount).mean() - theirs
            mean, spread, radius = importance(held_out, chances, task.cost, discount)
            certain = f"{radius * (1 - discount):.3f}" if radius * (1 - discount) < 1 else "vacuous"
            print(
                f"{task.name:<13}{f'{noise:.0%} random':<18}{plain.share:>8.3f}"
                f"{plain.agreement.per_step:>10.4%}{logged.share:>10.3f}"
                f"{gap * (1 - discount):>22.4f}{(mean - theirs) * (1 - discount):>10.4f}"
                f"{spread * (1 - discount):>8.4f}{certain:>11}",
                flush=True,
            )


def scope_rl_table(episodes: int, seed: int, discount: float = 0.95) -> None:
    """Intervals of scope-rl for the gap under the known cost, per step, at level 0.05."""
    basic_estimators = import_module("scope_rl.ope.discrete.basic_estimators")
    task, length = TASKS[0], 200
    estimators = ("PerDecisionImportanceSampling", "SelfNormalizedPDIS")
    names = ("expert", "estimator", "interval", "mean", "upper", "true gap", "bound, every cost")
    print("\n{:<13}{:<31}{:<12}{:>9}{:>10}{:>10}{:>19}".format(*names))
    for noise in (0.0, 0.02, 0.1):
        both = play(task, task.rule, 2 * episodes, noise, seed)
        held_out = both.subset(np.arange(episodes, 2 * episodes))
        clone = clone_observations(both.subset(np.arange(episodes)), seed=seed)
        records = jm.world.Records(discount, (0, 1))
        bound = jm.certify(jm.Apprenticeship(records, None, held_out), clone)
        own = play(task, lambda x, clone=clone: clone.sample(x, 0), 100, 0.0, seed + 1)
        theirs = totals(both, task.cost, discount).mean()
        gap = totals(own, task.cost, discount).mean() - theirs
        padded = _padded(task, held_out, clone, length)
        for name in estimators:
            for way in ("bootstrap", "ttest", "bernstein", "hoeffding"):
                found = getattr(basic_estimators, name)().estimate_interval(
                    step_per_trajectory=length, gamma=discount, ci=way, random_state=seed,
                    n_bootstrap_samples=1000, **padded,
                )  # fmt: skip
                (upper,) = [value for key, value in found.items() if "upper" in key]
                mean, upper = ((one - theirs) * (1 - discount) for one in (found["mean"], upper))
                print(
                    f"{f'{noise:.0%} random':<13}{name:<31}{way:<12}{mean:>9.4f}{upper:>10.4g}"
                    f"{gap * (1 - discount):>10.4f}{bound.share:>19.3f}",
                    flush=True,
                )


def _padded(task: Task, demos: jm.Demonstrations, clone: Any, length: int) -> dict[str, Any]:
    """Records of one length as scope-rl takes them; steps after an end cost nothing."""
    assert demos.probabilities is not None
    shape = (len(demos), length)
    action, reward, pscore = np.zeros(shape, dtype=int), np.zeros(shape), np.ones(shape)
    law = np.zeros((*shape, task.num_actions))
    law[:, :, 0] = 1.0
    paid, laws = task.cost(demos.step_states), clone.probabilities(demos.step_states)
    for episode, (start, stop) in enumerate(zip(demos.offsets, demos.offsets[1:], strict=False)):
        count = min(int(stop - start), length)
        part, here = slice(start, start + count), slice(0, count)
        action[episode, here], reward[episode, here] = demos.actions[part], paid[part]
        pscore[episode, here], law[episode, here] = demos.probabilities[part], laws[part]
    return {
        "action": action.ravel(), "reward": reward.ravel(), "pscore": pscore.ravel(),
        "evaluation_policy_action_dist": law.reshape(-1, task.num_actions),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--only", choices=("coverage", "gymnasium", "scope-rl"))
    asked = parser.parse_args()
    if asked.only in (None, "coverage"):
        coverage(asked.runs, asked.seed)
    if asked.only in (None, "gymnasium"):
        gymnasium_table(asked.episodes, asked.seed)
    if asked.only == "scope-rl":
        scope_rl_table(asked.episodes, asked.seed)


if __name__ == "__main__":
    main()
