"""Values take the noise out of expected costs and nothing else."""

import itertools

import numpy as np
import pytest

import journeyman as jm
from journeyman.demonstrations import stepped_control_variate as shaping
from journeyman.demonstrations.stepped_control_variate import discounted_totals
from journeyman.gallery.queue_network import QueuePlan

TINY = jm.gallery.queues(
    QueuePlan((1, 1), (0.3, 0.0), (0.4, 0.25), (1, None), ((0, 1),)), discount=0.8
)
NETWORK = jm.gallery.queues(4, buffers=(5, 4, 4, 5), discount=0.9)


@pytest.fixture(autouse=True)
def _fewer_starts(monkeypatch):
    monkeypatch.setattr(shaping, "STARTS", 1 << 14)


def every_trajectory(horizon):
    """All records of the uniform policy in the tiny world, with their probabilities."""
    world, _ = TINY.explicit()
    matrix = world.transition.toarray()
    states, actions, law = [], [], []
    for path in itertools.product(range(4), repeat=horizon + 1):
        for taken in itertools.product(range(2), repeat=horizon):
            steps = zip(path[:-1], taken, path[1:], strict=True)
            chance = np.prod([matrix[2 * x + a, y] / 2 for x, a, y in steps])
            if chance > 0:
                states.extend(path)
                actions.extend(taken)
                law.append(chance * world.initial[path[0]])
    offsets = np.arange(len(law) + 1) * horizon
    demos = jm.Demonstrations(np.array(states), np.array(actions), offsets)
    return demos, np.array(law)


def shaped_totals(demos, costs, world):
    """M of every trajectory; each half is shaped by values of the other."""
    totals = np.empty((len(demos), costs.num_costs))
    for half, _, shaped in shaping.halves(demos, costs, world):
        totals[half] = shaped
    return totals


def test_shaped_totals_have_the_expectation_they_are_said_to_have():
    demos, law = every_trajectory(3)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    coefficients = np.random.default_rng(0).normal(size=(10, 3))
    values = shaping.QuadraticValues(TINY.costs, 2, coefficients)
    shaped = shaping._totals(demos, TINY.costs, TINY.world, values)
    plain = discounted_totals(demos, TINY.costs, 0.8)
    start, end = demos.first_states, demos.states.reshape(-1, 4)[:, -1]
    wanted = law @ (plain + 0.8**3 * values.at(end) - values.at(start))
    np.testing.assert_allclose(law @ shaped, wanted, rtol=0, atol=1e-12)
    assert np.abs(shaped - plain).max() > 0.1


def test_the_mean_is_the_experts_and_varies_less():
    world, basis = NETWORK.explicit()
    expert = jm.Policy(NETWORK.longer.probabilities(np.arange(world.num_states)))
    truth = jm.occupancy(world, expert).expectations(basis)
    demos = jm.record(NETWORK.world, NETWORK.longer, trajectories=1000, horizon=80, seed=0)
    shaped = shaped_totals(demos, NETWORK.costs, NETWORK.world)
    plain = discounted_totals(demos, NETWORK.costs, 0.9)
    errors = shaped.std(axis=0, ddof=1) / np.sqrt(len(demos))
    spread_of_starts = plain.std(axis=0) / np.sqrt(1 << 14)
    assert (np.abs(shaped.mean(axis=0) - truth) < 5 * (errors + spread_of_starts) + 0.01).all()
    assert (shaped[:, :4].std(axis=0) < 0.8 * plain[:, :4].std(axis=0)).all()


def test_values_are_never_made_from_the_trajectory_they_shape():
    first, second = (
        jm.record(NETWORK.world, policy, trajectories=20, horizon=40, seed=seed)
        for policy, seed in ((NETWORK.longer, 0), (NETWORK.uniform, 1))
    )
    records = [first.subset([k]) for k in range(20)]
    for replaced, stays in ((2, True), (3, False)):
        mixed = [*records]
        mixed[replaced] = second.subset([replaced])
        joined = jm.Demonstrations(
            np.concatenate([one.states for one in mixed]),
            np.concatenate([one.actions for one in mixed]), np.arange(21) * 40,
        )  # fmt: skip
        totals = [shaped_totals(demos, NETWORK.costs, NETWORK.world) for demos in (first, joined)]
        assert np.array_equal(totals[0][0], totals[1][0]) is stays


def test_fitted_values_are_what_is_paid_from_a_state_on():
    """A world without luck whose value is linear in its cost: nothing is left to vary."""
    demos = jm.record(NETWORK.world, NETWORK.longer, trajectories=60, horizon=60, seed=0)
    paid = shaping._paid_from(demos, NETWORK.costs.at(demos.step_states, demos.actions), 0.9)
    starts = demos.offsets[:-1]
    np.testing.assert_allclose(
        paid[starts], discounted_totals(demos, NETWORK.costs, 0.9), rtol=1e-12
    )
    constant = jm.CostFunctions(
        lambda x, a: np.full((len(x), 1), 0.5), ["always"], lowest=0, highest=1
    )
    shaped = shaped_totals(demos, constant, NETWORK.world)
    assert shaped.std() < 1e-9


def test_a_problem_blends_completed_and_shaped_totals_cost_by_cost():
    many = jm.record(NETWORK.world, NETWORK.longer, trajectories=60, horizon=60, seed=0)
    better = jm.Apprenticeship(NETWORK.world, NETWORK.costs, many).expectation
    assert isinstance(better.method, jm.demonstrations.Blend)
    spread = discounted_totals(many, NETWORK.costs, 0.9).std(axis=0, ddof=1)
    assert (better.spread <= 1.02 * spread).all()
    assert better.spread.sum() < 0.9 * spread.sum()
    assert better.truncation_mass == pytest.approx(0.9**60 * 10)


class Sampled:
    """The network when its laws cannot be asked for."""

    num_states, num_actions = NETWORK.world.num_states, NETWORK.world.num_actions
    discount = NETWORK.world.discount

    def draw_initial(self, rng, count):
        return NETWORK.world.draw_initial(rng, count)

    def initial_probability(self, states):
        return NETWORK.world.initial_probability(states)

    def step(self, rng, states, actions):
        following = NETWORK.world.successors(states, actions)
        places = (np.cumsum(following.probabilities, axis=1) < rng.random((states.size, 1))).sum(1)
        return following.states[np.arange(states.size), places]


@pytest.mark.parametrize("count", [19, 60])
@pytest.mark.parametrize("horizon", [4, 10])
@pytest.mark.parametrize("world", [NETWORK.world, Sampled()], ids=["laws", "samples"])
def test_records_that_are_cut_off_are_completed(count, horizon, world):
    """What lies behind a record is not free of cost."""
    explicit, basis = NETWORK.explicit()
    expert = jm.Policy(NETWORK.longer.probabilities(np.arange(explicit.num_states)))
    truth = jm.occupancy(explicit, expert).expectations(basis)
    errors, plain = [], []
    for seed in range(6):
        demos = jm.record(
            NETWORK.world, NETWORK.longer, trajectories=count, horizon=horizon, seed=seed
        )
        target = jm.Apprenticeship(world, NETWORK.costs, demos).expectation.values
        errors.append(np.abs(target - truth).sum())
        plain.append(
            np.abs(discounted_totals(demos, NETWORK.costs, 0.9).mean(axis=0) - truth).sum()
        )
    assert np.mean(errors) < 0.6 * np.mean(plain)


def test_known_tails_of_terminated_records_are_exact():
    """A state that costs 1 forever, reached after one step."""
    world = jm.World([[0, 1], [0, 1]], [1, 0], 0.9)
    costs = jm.CostFunctions(lambda x, a: 1.0 * (x == 1)[:, None], ["rest"], lowest=0, highest=1)
    demos = jm.Demonstrations.from_arrays([[0, 1]] * 3, [[0]] * 3, [True] * 3)
    found = jm.Apprenticeship(world, costs, demos).expectation
    np.testing.assert_allclose(found.values, [9.0], rtol=1e-9)
