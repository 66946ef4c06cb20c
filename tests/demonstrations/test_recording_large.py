"""Recording in a world of callables whose laws are none: refused, with the first pair named."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.errors import InvalidWorld

UP = jm.policy.RulePolicy(np.ones_like, 2)


class Ladder:
    """Rungs 0 to 9; action 1 climbs with a chance of 3/4. One law can be replaced."""

    num_states, num_actions, discount = 10, 2, 0.9

    def __init__(self, wrong=None, at=4, first=0, start=1.0):
        self.wrong, self.at, self.first, self.start = wrong, at, first, start

    def draw_initial(self, rng, count):
        return np.full(count, self.first, dtype=np.int64)

    def initial_probability(self, states):
        return np.where(np.asarray(states) == self.first, self.start, 0.0)

    def successors(self, states, actions):
        up = np.minimum(states + 1, 9)
        down = np.maximum(states - 1, 0)
        laws = np.where(actions[:, np.newaxis] == 1, [[0.75, 0.25]], [[0.25, 0.75]])
        if self.wrong is not None:
            laws[(states == self.at) & (actions == 1)] = self.wrong
        return jm.world.Successors(np.column_stack([up, down]), laws)

    def predecessors(self, states):
        raise AssertionError("nobody asks")


class Stepping(Ladder):
    """The same by `step`, which may lead anywhere."""

    successors = predecessors = property()

    def __init__(self, reached):
        super().__init__()
        self.reached = reached

    def step(self, rng, states, actions):
        return np.full(states.shape, self.reached)


def recorded(world):
    return jm.record(world, UP, trajectories=20, horizon=30, seed=0)


def test_a_sound_world_is_recorded():
    demos = recorded(Ladder())
    assert len(demos) == 20
    assert demos.states.max() == 9
    assert recorded(Stepping(3)).states.max() == 3


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ([np.nan, 0.5], "NaN or negative"),
        ([np.nan, np.nan], "NaN or negative"),
        ([1.25, -0.25], "NaN or negative"),
        ([0.5, 0.4], "which sum to 0.9"),
        ([0.75, 0.75], "which sum to 1.5"),
        ([0.0, 0.0], "which sum to 0.0"),
        ([np.inf, 0.0], "which sum to inf"),
    ],
)
def test_a_law_that_is_none_is_refused_where_it_is_met(wrong, what):
    with pytest.raises(InvalidWorld, match=r"successors of state 4, action 1 have") as refusal:
        recorded(Ladder(wrong))
    assert what in str(refusal.value)
    assert recorded(Ladder(wrong, at=99)).states.max() == 9


def test_rollouts_meet_the_same_refusal():
    costs = jm.CostFunctions(
        lambda x, a: (x == 9)[:, None].astype(float), ["top"], lowest=0, highest=1
    )
    problem = jm.Apprenticeship(Ladder([0.5, 0.4]), costs, jm.ExpertExpectation([1.0]))
    with pytest.raises(InvalidWorld, match=r"state 4, action 1 .* sum to 0.9"):
        jm.certify(problem, UP, evaluation=jm.Rollouts(20, 30))


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (Ladder(start=np.nan), "state 0, whose initial_probability is nan"),
        (Ladder(start=-0.5), "initial_probability is -0.5"),
        (Ladder(start=0.0), "initial_probability is 0.0"),
        (Ladder(start=1.5), "initial_probability is 1.5"),
        (Ladder(first=12), r"draw_initial returns state 12, outside 0\.\.9"),
        (Stepping(-1), r"step returns state -1, outside 0\.\.9"),
        (Stepping(0.5), "step returns shape .* type float64"),
    ],
)
def test_starts_and_steps_that_no_law_has_are_refused(world, message):
    with pytest.raises(InvalidWorld, match=message):
        recorded(world)
