"""Tiny worlds in which everything about agreement is enumerated: all episodes of an expert who sees
a hidden state, remembers its last action and draws a habit at the start."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class TinyWorld:
    """Hidden states 0..n-1 and an end n; the policy sees `seen[state]` only."""

    step: np.ndarray
    """(n, actions, n + 1)"""
    start: np.ndarray
    seen: np.ndarray
    expert: np.ndarray
    """(habits, n, last action or none, actions)"""
    habits: np.ndarray
    policy: np.ndarray
    """(observations, actions)"""
    cost: np.ndarray
    spread: float
    discount: float
    recorded: int
    """Steps after which records are cut off."""

    @classmethod
    def drawn(cls, seed):
        rng = np.random.default_rng(seed)
        n, num_actions = 3, 2
        step = rng.dirichlet(np.full(n + 1, rng.choice([0.3, 1.0])), size=(n, num_actions))
        expert = rng.dirichlet(
            np.full(num_actions, rng.choice([0.05, 0.5, 2.0])), size=(2, n, num_actions + 1)
        )
        seen = rng.integers(0, n, n) if rng.random() < 0.5 else np.arange(n)
        policy = np.full((n, num_actions), 0.5)
        for one in range(n):
            best = expert[:, seen == one].sum(axis=(0, 1, 2)).argmax() if one in seen else 0
            policy[one] = 0.02 / num_actions
            policy[one, best] += 0.98
        low, high = np.sort(rng.uniform(-1, 1, 2))
        cost = np.where(rng.random((n, num_actions)) < 0.5, low, high)
        return cls(
            step, rng.dirichlet(np.ones(n)), seen, expert, rng.dirichlet(np.ones(2)), policy, cost,
            max(high, 0) - min(low, 0), float(rng.choice([0.5, 0.8, 0.9])), int(rng.integers(1, 5)),
        )  # fmt: skip

    @classmethod
    def missed_end(cls, discount):
        """Action 0 ends, action 1 stays at cost 1; the expert ends, the policy never does."""
        step = np.array([[[0.0, 1.0], [1.0, 0.0]]])
        return cls._plain(step, [[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 1.0]], 1.0, discount, 3)

    @classmethod
    def early_end(cls, discount):
        """The same with -2 a step: the policy ends at once, the expert is paid for ever."""
        step = np.array([[[0.0, 1.0], [1.0, 0.0]]])
        return cls._plain(step, [[0.0, 1.0]], [[1.0, 0.0]], [[-2.0, -2.0]], 2.0, discount, 3)

    @classmethod
    def late_difference(cls, discount, recorded):
        """They agree in state 0 and differ ever after in state 1."""
        step = np.array([[[0.0, 1.0, 0.0]] * 2, [[0.0, 1.0, 0.0]] * 2])
        expert, policy = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
        return cls._plain(step, expert, policy, [[0, 0], [0, 1.0]], 1.0, discount, recorded)

    @classmethod
    def hidden_information(cls, discount):
        """Two hidden states that look alike; the expert takes the right action in each, which looks
        like a fair coin; the policy throws one. All episodes end after a step."""
        step = np.zeros((2, 2, 3))
        step[:, :, 2] = 1.0
        expert = np.eye(2)[np.newaxis, :, np.newaxis, :].repeat(3, axis=2)
        return cls(
            step, np.array([0.5, 0.5]), np.array([0, 0]), expert, np.ones(1),
            np.full((1, 2), 0.5), 1 - np.eye(2), 1.0, discount, 3,
        )  # fmt: skip

    @classmethod
    def _plain(cls, step, expert, policy, cost, spread, discount, recorded):
        n, num_actions = len(step), step.shape[1]
        laws = np.array(expert)[np.newaxis, :, np.newaxis, :].repeat(num_actions + 1, axis=2)
        return cls(
            step, np.eye(n)[0], np.arange(n), laws, np.ones(1), np.array(policy),
            np.array(cost, dtype=float), spread, discount, recorded,
        )  # fmt: skip

    def episodes(self):
        """Every recorded episode: observations (the end is the last number), actions, whether it
        terminated, the expert's probabilities, and how likely it is."""
        n = self.cost.shape[0]

        def onward(habit, states, actions, chances, weight):
            s, last = states[-1], actions[-1] if actions else self.cost.shape[1]
            if len(actions) == self.recorded or s == n:
                seen = [int(self.seen[one]) if one < n else n for one in states]
                yield seen, actions, s == n, chances, weight
                return
            for a, chance in enumerate(self.expert[habit, s, last]):
                for y, moved in enumerate(self.step[s, a]):
                    if chance * moved > 0:
                        yield from onward(
                            habit, [*states, y], [*actions, a], [*chances, chance],
                            weight * chance * moved,
                        )  # fmt: skip

        for habit, share in enumerate(self.habits):
            for s, start in enumerate(self.start):
                if start > 0:
                    yield from onward(habit, [s], [], [], share * start)

    @cached_property
    def gap(self):
        """What the policy costs more than the expert, exactly."""
        n, num_actions = self.cost.shape
        acts = self.policy[self.seen]
        chain = np.einsum("sa,sat->st", acts, self.step[:, :, :n])
        own = self.start @ np.linalg.solve(
            np.eye(n) - self.discount * chain, (acts * self.cost).sum(axis=1)
        )
        theirs = 0.0
        for habit, law in zip(self.habits, self.expert, strict=True):
            size = n * (num_actions + 1)
            moves, paid, first = np.zeros((size, size)), np.zeros(size), np.zeros(size)
            for s in range(n):
                first[s * (num_actions + 1) + num_actions] = self.start[s]
                for last in range(num_actions + 1):
                    row = s * (num_actions + 1) + last
                    for a in range(num_actions):
                        paid[row] += law[s, last, a] * self.cost[s, a]
                        for y in range(n):
                            moves[row, y * (num_actions + 1) + a] += (
                                law[s, last, a] * self.step[s, a, y]
                            )
            values = np.linalg.solve(np.eye(size) - self.discount * moves, paid)
            theirs += habit * float(first @ values)
        return float(own) - theirs

    def bound(self, *, logged=False, marginal=False, after_ends=True, after_cuts=True):
        """D E Z over all episodes; with the terms of ends or cuts left out it may be false."""
        discount, n = self.discount, self.cost.shape[0]
        h = 1 / (1 - discount)

        def onward(habit, s, last, t, product):
            if t == self.recorded:
                return discount**t * h * after_cuts
            found = 0.0
            for a in range(self.cost.shape[1]):
                chance = self.expert[habit, s, last, a]
                if chance <= 0:
                    continue
                agree = self.policy[self.seen[s], a]
                if logged:
                    agree = min(1.0, agree / chance)
                if marginal:
                    alike = self.seen == self.seen[s]
                    shown = (self.start * alike) @ self.expert[habit, :, last, a]
                    agree = min(1.0, agree / (shown / self.start[alike].sum()))
                left = product * agree
                z = discount**t * (1 - left)
                end = self.step[s, a, n] * (1 - left) * discount ** (t + 1) * h * after_ends
                for y in range(n):
                    if self.step[s, a, y] > 0:
                        z += self.step[s, a, y] * onward(habit, y, a, t + 1, left)
                found += chance * (z + end)
            return found

        none = self.cost.shape[1]
        return self.spread * sum(
            weight * start * onward(habit, s, none, 0, 1.0)
            for habit, weight in enumerate(self.habits)
            for s, start in enumerate(self.start)
            if start > 0
        )
