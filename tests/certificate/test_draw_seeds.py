"""Nobody chooses the numbers that a certificate draws, nor which episodes train its estimate."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.demonstrations.reading_order import split
from journeyman.problem import draw_seeds
from journeyman.testing.random_worlds import Shape, random_policy, random_world
from mixtures import random_policies, small_world

WORLD = random_world(4, Shape.ABSORBING, num_states=5, num_actions=2, discount=0.9)
BASIS = jm.CostBasis(np.random.default_rng(0).uniform(0, 1, (WORLD.num_pairs, 2)))
POLICY = random_policy(WORLD, 1)
EXPERT = jm.ExpertExpectation([1.0, 1.0])


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_best_of_many_seeds_is_the_bound_of_every_seed(delta):
    problem = jm.Apprenticeship(WORLD, BASIS, EXPERT, jm.Simplex())
    with pytest.warns(DeprecationWarning, match="the seed of Rollouts has no influence"):
        bounds = {
            jm.certify(problem, POLICY, delta, evaluation=jm.Rollouts(20, 5, seed)).bound
            for seed in range(30)
        }
    assert bounds == {jm.certify(problem, POLICY, delta, evaluation=jm.Rollouts(20, 5)).bound}


def test_a_seed_that_is_given_is_said_to_have_no_influence():
    features = jm.features.Features(np.ones((WORLD.num_pairs, 1)))
    makers = {
        "Rollouts": lambda: jm.Rollouts(5, 5, seed=1),
        "SampledRows has": lambda: jm.SampledRows(rows=5, seed=1),
        "SampledRows": lambda: jm.SampledRows(features, [1.0], 5, 1),
        "MixtureRollouts": lambda: jm.problem.MixtureRollouts(5, 5, 1),
    }
    for name, make in makers.items():
        with pytest.warns(DeprecationWarning, match=f"seed of {name}") as caught:
            made = make()
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert repr(make()) == repr(made) or name == "SampledRows"
        assert "seed" not in vars(made)


def moved(**change):
    parts = {"transition": WORLD.transition, "initial": WORLD.initial, "discount": WORLD.discount}
    return jm.World(**{**parts, **change}, choice_offsets=WORLD.pairs.offsets)


def test_the_seed_is_that_of_world_and_policy_and_of_nothing_else():
    seed = draw_seeds.explicit_seed(WORLD, POLICY)
    again = jm.World(WORLD.transition.toarray(), WORLD.initial.tolist(), WORLD.discount)
    assert (
        draw_seeds.explicit_seed(again, jm.Policy(POLICY.per_pair.tolist(), [0, 2, 4, 6, 8, 10]))
        == seed
    )
    other = POLICY.per_pair.copy()
    other[:2] = other[:2][::-1]
    changed = {
        draw_seeds.explicit_seed(moved(discount=0.91), POLICY),
        draw_seeds.explicit_seed(moved(initial=np.roll(WORLD.initial, 1)), POLICY),
        draw_seeds.explicit_seed(WORLD, jm.Policy(other, WORLD.pairs.offsets)),
    }
    assert len({seed, *changed}) == 4
    assert 0 <= seed < 2**60


def test_rollouts_of_another_problem_in_the_same_world_are_the_same():
    """Renaming costs, another expert or another level give nobody a second try."""
    one = jm.Apprenticeship(WORLD, BASIS, EXPERT)
    names = jm.CostBasis(BASIS.matrix, names=["x", "y"])
    two = jm.Apprenticeship(WORLD, names, jm.ExpertExpectation([2.0, 0.5]), jm.Simplex())
    statistics = [
        jm.certify(problem, POLICY, delta, evaluation=jm.Rollouts(30, 10)).best.statistics[0]
        for problem, delta in ((one, 0.05), (two, 0.05), (one, 0.2))
    ]
    assert len({(one.seed, one.means) for one in statistics}) == 1


def test_figures_of_policies_in_large_worlds_decide_the_seed():
    world, costs, _ = small_world()
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation([1.0, 1.0, 1.0]))
    tables = random_policies(world, 2, seed=0)
    rules = [jm.FunctionPolicy(one.probabilities, world.num_actions) for one in tables]
    mixtures = [jm.policy.MixturePolicy(tables, weights) for weights in ([0.5, 0.5], [0.4, 0.6])]
    seeds = [draw_seeds.large_seed(problem, one) for one in (*tables, *mixtures, *rules)]
    assert len(set(seeds[:4])) == 4
    assert seeds[4] == seeds[5]
    unused = jm.policy.MixturePolicy([tables[0], rules[0]], [1.0, 0.0])
    alone = jm.policy.MixturePolicy([tables[0]], [1.0])
    assert draw_seeds.large_seed(problem, unused) == draw_seeds.large_seed(problem, alone)


def test_the_seed_is_honest():
    """Of many policies, as many bounds fail as may."""
    problem = jm.Apprenticeship(WORLD, BASIS, EXPERT, jm.Simplex())
    short = 0
    for k in range(200):
        policy = random_policy(WORLD, k)
        bound = jm.certify(problem, policy, 0.3, evaluation=jm.Rollouts(10, 60)).best.bound
        short += bound < problem.gap(policy)
    assert short <= 60


# Which episodes train


def records(count, seed=0):
    return jm.record(WORLD, random_policy(WORLD, 3), trajectories=count, horizon=12, seed=seed)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(10, 80))
def test_the_order_of_the_episodes_decides_nothing(seed, count):
    demos = records(count)
    order = np.random.default_rng(seed).permutation(count)

    def contents(some):
        return sorted(
            (*(part.tolist() for part in some.episode(j)), some.terminated[j])
            for j in range(len(some))
        )

    for one, other in zip(split(demos, WORLD), split(demos.subset(order), WORLD), strict=True):
        assert contents(demos.subset(one)) == contents(demos.subset(order).subset(other))


def test_the_bound_does_not_depend_on_the_order():
    demos = records(600)
    policy = jm.clone(demos, WORLD)
    bounds = [
        jm.certify(jm.Apprenticeship(WORLD, BASIS, demos.subset(order)), policy).bound
        for order in (np.arange(600), *np.random.default_rng(0).permuted(
            np.tile(np.arange(600), (5, 1)), axis=1))
    ]  # fmt: skip
    assert np.ptp(bounds) <= 1e-12 * bounds[0]


def test_every_episode_is_on_one_side_and_the_share_trains():
    training, applied = split(records(500), WORLD)
    assert (training.size, applied.size) == (82, 418)
    assert sorted([*training, *applied]) == list(range(500))


def test_equal_episodes_are_told_apart():
    """With two kinds of episodes both sides have both, in the shares that chance gives: were equal
    episodes kept together, what is measured would not be what the expert does."""
    world = jm.World([[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]], [1, 0, 0], 0.9,
                     choice_offsets=[0, 2, 3, 4])  # fmt: skip
    rng, off = np.random.default_rng(0), []
    for _ in range(300):
        count = rng.integers(300, 700)
        kinds = (rng.random(count) < 0.3).astype(int)
        states = np.column_stack([np.zeros(count, int), 1 + kinds]).ravel()
        demos = jm.Demonstrations(states, kinds, np.arange(count + 1), np.ones(count))
        _, applied = split(demos, world)
        off.append((kinds[applied].mean() - 0.3) / np.sqrt(0.21 / applied.size))
    assert abs(np.mean(off)) < 4 / np.sqrt(300)
    assert np.std(off) == pytest.approx(1, rel=0.15)
