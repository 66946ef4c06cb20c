"""The driving simulator of Syed and Schapire: an expert that can be improved upon.

A blue car drives at one of three speeds on a three-lane road and meets a red car, which approaches
by 20, 40 or 80 units a step; the only control is to move five units left or right. Three features
are rewards: speed, absence of a collision, staying on the road. The published expert is bad: it
drives at the middle speed and collides. The infinity ball copies it exactly; the simplex finds
policies at least as good in every feature and better in some.

Reference: Syed, Schapire, "A game-theoretic approach to apprenticeship learning", 2007.
"""

from itertools import product

import numpy as np
from scipy import sparse

from journeyman.costs import CostBasis
from journeyman.demonstrations import ExpertExpectation
from journeyman.gallery.example import PublishedExample
from journeyman.world import World

POSITIONS = tuple(range(120, 201, 5))
APPROACH = (20, 40, 80)
LANES = (140, 160, 180)
DISTANCES = tuple(range(10, 191, 20))
STEPS = (-5, 0, 5)
START_POSITION = 160
BAD_EXPERT = (5.25, 4.15, 5.0)
FEATURES = ("speed", "no collision", "on road")

SHAPE = (len(POSITIONS), len(APPROACH), len(LANES), len(DISTANCES))
START = int(np.prod(SHAPE))
"""The extra state in which the action picks the speed."""


def driving() -> PublishedExample:
    """World, reward features and the published expectations of the bad expert.

    >>> world, basis, expert = driving()
    >>> world.num_states, basis.names
    (1531, ('speed', 'no collision', 'on road'))
    """
    initial = np.zeros(START + 1)
    initial[START] = 1.0
    world = World(_transition(), initial, 0.9, action_names=("left", "straight", "right"))
    basis = CostBasis.from_rewards(_rewards(), FEATURES)
    return PublishedExample(world, basis, ExpertExpectation.from_rewards(BAD_EXPERT))


def _state(position: int, speed: int, lane: int, distance: int) -> int:
    return int(np.ravel_multi_index((position, speed, lane, distance), SHAPE))


def _transition() -> sparse.coo_array:
    """A new red car appears at the far end, in a uniform lane, once the last one has passed."""
    entries: list[tuple[int, int, float]] = []

    def meet_new_car(pair: int, position: int, speed: int) -> None:
        share = 1.0 / len(LANES)
        entries.extend(
            (pair, _state(position, speed, lane, 0), share) for lane in range(len(LANES))
        )

    for position, speed, lane, distance in product(*(range(count) for count in SHAPE)):
        for action, step in enumerate(STEPS):
            pair = _state(position, speed, lane, distance) * len(STEPS) + action
            moved = min(max(POSITIONS[position] + step, POSITIONS[0]), POSITIONS[-1])
            there = POSITIONS.index(moved)
            approached = DISTANCES[distance] + APPROACH[speed]
            if approached > DISTANCES[-1]:
                meet_new_car(pair, there, speed)
            else:
                target = _state(there, speed, lane, DISTANCES.index(approached))
                entries.append((pair, target, 1.0))
    for speed in range(len(APPROACH)):
        meet_new_car(START * len(STEPS) + speed, POSITIONS.index(START_POSITION), speed)
    pairs, targets, probabilities = zip(*entries, strict=True)
    shape = ((START + 1) * len(STEPS), START + 1)
    return sparse.coo_array((probabilities, (pairs, targets)), shape=shape)


def _rewards() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Features per state, each at most one."""
    rewards = np.zeros((START + 1, len(FEATURES)))
    for position, speed, lane, distance in product(*(range(count) for count in SHAPE)):
        x = POSITIONS[position]
        rewards[_state(position, speed, lane, distance)] = (
            (speed / 2 + 1) / 2,
            0.0 if _collides(x, LANES[lane], DISTANCES[distance]) else 0.5,
            0.5 if LANES[0] <= x <= LANES[-1] else 0.0,
        )
    rewards[START] = (0.75, 0.5, 0.5)
    return rewards


def _collides(x: int, lane: int, distance: int) -> bool:
    """Whether blue [x-19, x-1] x [131, 169] and red [lane-20, lane] x [distance-40, distance]
    overlap; touching does not count."""
    sideways = x - 19 < lane and lane - 20 < x - 1
    lengthways = distance > 131 and distance - 40 < 169
    return sideways and lengthways
