"""A corridor of callables in which one promise can be broken, with features over it."""

import numpy as np
from scipy import sparse

import journeyman as jm


class Corridor:
    """States 0 to 6; action 1 goes up and slips down with a chance of 1/5, action 0 goes down.

    Both ends hold whoever would leave. `bug` breaks one promise:

    - "forgotten": predecessors forget that the last state can be stayed in;
    - "invented": the last state lists a pair that does not lead there;
    - "chance": a predecessor is listed with another probability;
    - "starts": the initial law is not that of the draws.
    """

    num_states, num_actions, discount = 7, 2, 0.9

    def __init__(self, bug=None):
        self.bug = bug

    def draw_initial(self, rng, count):
        return rng.integers(2, size=count)

    def initial_probability(self, states):
        chances = (0.9, 0.1) if self.bug == "starts" else (0.5, 0.5)
        return np.select([states == 0, states == 1], chances, 0.0)

    def successors(self, states, actions):
        up, down = np.minimum(states + 1, 6), np.maximum(states - 1, 0)
        climbs = np.where(actions == 1, 0.8, 0.0)
        return jm.world.Successors(
            np.column_stack([up, down]), np.column_stack([climbs, 1 - climbs])
        )

    def predecessors(self, states):
        listed = [self._before(int(state)) for state in states]
        offsets = np.concatenate([[0], np.cumsum([len(some) for some in listed])])
        flat = [step for some in listed for step in some]
        x, a, p = (np.array([step[k] for step in flat]) for k in range(3))
        return jm.world.Predecessors(
            offsets.astype(np.int64), x.astype(np.int64), a.astype(np.int64), p.astype(float)
        )

    def _before(self, state):
        steps = []
        for x in range(7):
            if state == min(x + 1, 6):
                steps.append((x, 1, 0.8))
            if state == max(x - 1, 0):
                steps += [(x, 1, 0.2), (x, 0, 1.0)]
        steps = [
            (x, a, sum(p for y, b, p in steps if (y, b) == (x, a)))
            for x, a in dict.fromkeys((x, a) for x, a, _ in steps)
        ]
        if self.bug == "forgotten" and state == 6:
            steps = [step for step in steps if step[:2] != (6, 1)]
        if self.bug == "invented" and state == 6:
            steps.append((2, 1, 0.8))
        if self.bug == "chance" and state == 3:
            steps = [(x, a, 0.5 * p) for x, a, p in steps]
        return steps


class Columns(jm.features.DrawnFeatures):
    """Three columns over the pairs, each of mass 10. `bug` breaks one promise:

    - "draws": pairs are drawn evenly, whatever the columns say;
    - "columns": the first column is drawn too often;
    - "mass": one column has twice its mass;
    - "unknown": a pair is drawn where all columns are zero.
    """

    def __init__(self, world, bug=None):
        self.world, self.num_features, self.bug = world, 3, bug
        rng = np.random.default_rng(0)
        table = rng.dirichlet(np.full(13, 0.5), size=3).T * 10
        self.table = np.vstack([table[:12], np.zeros(3), table[12:]])
        if bug == "mass":
            self.table[:, 1] *= 2

    def rows(self, states, actions):
        return sparse.csr_array(self.table[2 * np.asarray(states) + np.asarray(actions)])

    def draw(self, rng, count):
        shares = np.array([0.6, 0.2, 0.2] if self.bug == "columns" else [1, 1, 1]) / 1.0
        law = self.table / self.table.sum(axis=0) @ (shares / shares.sum())
        if self.bug == "draws":
            law = np.where(np.arange(14) == 12, 0.0, 1 / 13)
        if self.bug == "unknown":
            law = np.full(14, 1 / 14)
        drawn = rng.choice(14, size=count, p=law)
        return drawn // 2, drawn % 2


class EveryPair(jm.features.DrawnFeatures):
    """A column for every pair."""

    def __init__(self, world):
        self.world, self.num_features = world, world.num_states * world.num_actions

    def rows(self, states, actions):
        places = self.world.num_actions * np.asarray(states) + np.asarray(actions)
        table = sparse.eye_array(self.num_features, format="csr") / (1 - self.world.discount)
        return sparse.csr_array(table[places])

    def draw(self, rng, count):
        drawn = rng.integers(self.num_features, size=count)
        return drawn // self.world.num_actions, drawn % self.world.num_actions


def high_up(states, actions):
    return (np.asarray(states) >= 5).astype(float)[:, np.newaxis]


def high_costs():
    return jm.CostFunctions(high_up, ["high up"], lowest=0, highest=1)


def made(world_bug=None, feature_bug=None):
    """World, costs and features, each with a promise to break."""
    world = Corridor(world_bug)
    return {"world": world, "costs": high_costs(), "features": Columns(world, feature_bug)}


class Choosing:
    """Goes up or down for good, by a number drawn with the first observation.

    `shared` is how it was written for one environment: one number for the whole batch.
    """

    def __init__(self, shared, rng=None):
        self.shared, self.rng = shared, rng

    def seeded(self, rng):
        return Choosing(self.shared, rng)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        if state is None:
            size = 1 if self.shared else len(observation)
            state = np.resize(self.rng.integers(2, size=size), len(observation))
        return state, state


class Changing(Choosing):
    """Draws anew every few steps; the first time, for each walk."""

    def seeded(self, rng):
        return Changing(self.shared, rng)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        time, chosen = (0, None) if state is None else state
        if time % 3 == 0:
            size = 1 if self.shared and time else len(observation)
            chosen = np.resize(self.rng.integers(2, size=size), len(observation))
        return chosen, (time + 1, chosen)


class Rule:
    """Tosses a coin, for each observation or, with `size=` forgotten, for all of them."""

    def __init__(self, shared):
        self.shared = shared

    def __call__(self, observations, rng):
        if self.shared:
            return np.full(len(observations), rng.integers(2))
        return rng.integers(2, size=len(observations))


class Tables(jm.FunctionPolicy):
    """Probabilities; those of a `shared` one are normalised over the batch."""

    def __init__(self, shared):
        def law(states):
            high = (states - states.mean() if shared else states - 3) > 0
            return np.where(high[:, np.newaxis], [[0.9, 0.1]], [[0.1, 0.9]])

        super().__init__(law, 2)


class AboveMean:
    """Up where the state is above that of the others, or above 2."""

    def __init__(self, shared):
        self.shared = shared

    def __call__(self, observations, rng):
        limit = observations.mean() if self.shared else 2
        return (observations > limit).astype(int)


POLICIES = {
    "choosing": Choosing, "changing": Changing, "rule": Rule, "tables": Tables, "mean": AboveMean,
}  # fmt: skip


class OneStart(Corridor):
    """All walks of a batch start in the same state."""

    def draw_initial(self, rng, count):
        return np.full(count, rng.integers(2))


class OneStep(Corridor):
    """Can only be sampled; all walks of a batch climb or slip together."""

    successors = predecessors = property()

    def step(self, rng, states, actions):
        up = np.where(rng.random() < 0.8, actions, 0)
        return np.where(up == 1, np.minimum(states + 1, 6), np.maximum(states - 1, 0))


WORLDS = {"corridor": Corridor, "one start": OneStart, "one step": OneStep}


def walked(policy="rule", shared=False, world="corridor"):
    """A world, costs that tell where walks are, and a policy."""
    costs = jm.CostFunctions(
        lambda x, a: np.column_stack([x / 6, x >= 5]).astype(float), ["height", "top"],
        lowest=0, highest=1,
    )  # fmt: skip
    return {"world": WORLDS[world](), "costs": costs, "policy": POLICIES[policy](shared)}
