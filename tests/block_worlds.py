"""Worlds of callables for blocks of states; they stand in a module so that workers find them."""

import os
import signal
import time
from pathlib import Path

import numpy as np

import journeyman as jm


class Scattered:
    """Every action leads to some states anywhere, by tables that are drawn from a seed.

    `bug` breaks one promise: "sums", "shapes", "outside", "initial shape", "initial sum",
    "predecessors", "forgetful" (other rows at a second call).
    """

    def __init__(self, num_states=60, num_actions=3, branches=4, discount=0.9, seed=0, bug=None):
        rng = np.random.default_rng(seed)
        self.num_states, self.num_actions, self.discount = num_states, num_actions, discount
        self.reached = rng.integers(0, num_states, (num_states, num_actions, branches))
        self.laws = rng.dirichlet(np.ones(branches), (num_states, num_actions))
        self.start = rng.dirichlet(np.full(num_states, 0.5))
        self.bug, self.calls = bug, 0

    def draw_initial(self, rng, count):
        return rng.choice(self.num_states, count, p=self.start)

    def initial_probability(self, states):
        if self.bug == "initial shape":
            return self.start
        return self.start[states] * (2.0 if self.bug == "initial sum" else 1.0)

    def successors(self, states, actions):
        reached, laws = self.reached[states, actions], self.laws[states, actions]
        self.calls += 1
        if self.bug == "sums":
            laws = np.where(np.asarray(states)[:, np.newaxis] == 40, 0.9 * laws, laws)
        if self.bug == "shapes":
            laws = laws[:, 1:]
        if self.bug == "outside":
            reached = reached + self.num_states * (np.asarray(states)[:, np.newaxis] == 40)
        if self.bug == "forgetful" and self.calls > 7:
            reached = reached[:, ::-1]
        return jm.world.Successors(reached, laws)

    def predecessors(self, states):
        entering = self.matrix()[:, states].tocsc()
        entering.sum_duplicates()
        law = entering.data[::-1] if self.bug == "predecessors" else entering.data
        states, actions = np.divmod(entering.indices.astype(np.int64), self.num_actions)
        return jm.world.Predecessors(entering.indptr.astype(np.int64), states, actions, law)

    def matrix(self):
        from scipy import sparse

        pairs = self.num_states * self.num_actions
        rows = np.repeat(np.arange(pairs), self.reached.shape[2])
        entries = (self.laws.ravel(), (rows, self.reached.ravel()))
        return sparse.coo_array(entries, shape=(pairs, self.num_states)).tocsr()

    def explicit(self):
        return jm.World(self.matrix(), self.start, self.discount)


class Dying(Scattered):
    """Kills the process that asks for `member`, the `when`-th time that anybody does."""

    def __init__(self, folder, member, when, **more):
        super().__init__(**more)
        self.folder, self.member, self.when = str(folder), member, when

    def successors(self, states, actions):
        self._perhaps_die("successors")
        return super().successors(states, actions)

    def predecessors(self, states):
        self._perhaps_die("predecessors")
        return super().predecessors(states)

    def _perhaps_die(self, member):
        if member == self.member:
            place = Path(self.folder) / str(time.monotonic_ns())
            place.write_text(str(os.getpid()))
            if len(list(Path(self.folder).iterdir())) == self.when:
                os.kill(os.getpid(), signal.SIGKILL)


class Slow(Scattered):
    """Takes its time to make rows."""

    def successors(self, states, actions):
        time.sleep(0.05)
        return super().successors(states, actions)


def cost_table(world, num_costs=5, seed=1):
    rng = np.random.default_rng(seed)
    return rng.random((world.num_states, world.num_actions, num_costs))


class Tabled:
    """Costs from a table (states x actions x costs)."""

    def __init__(self, table):
        self.table = table

    def __call__(self, states, actions):
        return self.table[states, actions]


def functions_of(table):
    names = [f"cost {k}" for k in range(table.shape[2])]
    return jm.CostFunctions(Tabled(table), names, lowest=0, highest=1)


def twins(world, cost_class=None, budgets=(), num_costs=5, seed=1, thin=False):
    """The same problem in the world of callables and in the explicit one."""
    table = cost_table(world, num_costs, seed)
    if thin:
        table *= table > 0.8
    rng = np.random.default_rng(seed)
    horizon = 1 / (1 - world.discount)
    expert = jm.ExpertExpectation(rng.uniform(0.2, 0.4, num_costs) * horizon)
    chosen = cost_class or jm.InfinityBall()
    limits = [
        (rng.random((world.num_states, world.num_actions, 1)), share * horizon) for share in budgets
    ]
    known = [
        jm.Budget(functions_of(cost), limit, f"budget {k}")
        for k, (cost, limit) in enumerate(limits)
    ]
    blocked = jm.Apprenticeship(world, functions_of(table), expert, chosen, known)
    explicit = jm.Apprenticeship(
        world.explicit(), jm.CostBasis(table.reshape(-1, num_costs)), expert, chosen,
        [jm.Budget(cost.ravel(), limit, f"budget {k}") for k, (cost, limit) in enumerate(limits)],
    )  # fmt: skip
    return blocked, explicit
