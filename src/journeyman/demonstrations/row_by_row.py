"""Whether a policy and a world answer row by row: walks of a batch must share nothing.

Walks take their steps together, so whoever answers for a whole batch at once (one random number
for all, a state meant for one environment, values normalised over the batch) makes of a thousand
walks one. Asked are, with generators of their own,

    copies     a batch of equal states, several times. Where actions, starts or steps of a batch
               always agree and those of two batches do not, one number was drawn for all: with a
               number for each row that has a probability below 4^-32
    others     states alone and among others: probabilities and laws must be the same, and actions
               that never change in the one case must not be others in the other (with a number for
               each row that has a probability below 32 x 4^-16)

*Not seen*: walks that share their luck later, or partly. Rollouts are tested for that
(`certificate.separate_walks`), and the rest is declared.
"""

from typing import Any, cast

import numpy as np

from journeyman.arrays import IntArray
from journeyman.errors import InvalidPolicy, InvalidWorld
from journeyman.policy.acting import Actor, AnyPolicy
from journeyman.world.large_world import (
    AnyWorld,
    LargeWorld,
    first_states,
    sampled_step,
    successor_laws,
)

STREAM = 0x726F7773
COPIES, DRAWS = 32, 16
WALK = 8
"""Steps behind which states are looked for, under even actions."""
ALONE = 3
"""States that are asked alone."""
TOLERANCE = 1e-4
"""Between probabilities: networks in single precision differ by less."""


def require_row_by_row(policy: AnyPolicy, world: AnyWorld) -> None:
    """Refuse a policy, or a world, that does not answer each walk by itself."""
    rng = _stream(0)
    starts = first_states(world, rng, COPIES)
    _require_own_numbers(policy, np.repeat(starts[:1], COPIES))
    states = starts
    for _ in range(WALK):
        actions = rng.integers(world.num_actions, size=COPIES)
        states = np.where(
            rng.random(COPIES) < 0.2, states, sampled_step(world, rng, states, actions)
        )
    _require_same_alone(policy, states)
    _require_own_draws(world, states)
    if hasattr(world, "successors"):
        _require_same_laws(cast(LargeWorld, world), states, rng)


def _require_own_numbers(policy: AnyPolicy, states: IntArray) -> None:
    drawn = _drawn(policy, states)
    one_for_all = (drawn == drawn[:, :1]).all()
    if one_for_all and not (drawn == drawn[:1]).all():
        raise InvalidPolicy(
            f"{policy!r} takes one action in all {COPIES} walks of a batch and another one in all "
            f"walks of the next, in state {states[0]} of each: its walks are not independent",
            "Draw one number for each observation, for example rng.integers(2, "
            "size=len(observations)); a state that predict carries along needs a row for each",
        )


def _require_own_draws(world: AnyWorld, states: IntArray) -> None:
    """Starts, and steps from equal pairs: `draw_initial` and `step` draw for each walk."""
    batches = [first_states(world, _stream(1 + number), COPIES) for number in range(DRAWS)]
    found = {"draw_initial": np.stack(batches)}
    if hasattr(world, "step"):
        x, a = np.repeat(states[:1], COPIES), np.zeros(COPIES, dtype=np.int64)
        for action in range(min(world.num_actions, ALONE)):
            steps = [
                sampled_step(world, _stream(1 + number), x.copy(), a + action)
                for number in range(DRAWS)
            ]
            found[f"step from state {x[0]}, action {action}"] = np.stack(steps)
    for name, drawn in found.items():
        if (drawn == drawn[:, :1]).all() and not (drawn == drawn[:1]).all():
            raise InvalidWorld(
                f"{name} leads all {COPIES} walks of a batch to one state, and all walks of the "
                "next to another: walks are not independent",
                "Draw one number for each walk, for example rng.random(count)",
            )


def _require_same_alone(policy: AnyPolicy, states: IntArray) -> None:
    asked = np.unique(states)[:: max(1, np.unique(states).size // ALONE)][:ALONE]
    places = [int(np.argmax(states == state)) for state in asked]
    if hasattr(policy, "sample") and hasattr(policy, "probabilities"):
        laws = np.asarray(policy.probabilities(states))
        for k in places:
            alone = np.asarray(policy.probabilities(states[[k]]))
            missing = laws.shape[1] - alone.shape[1]  # a rule has columns up to its last action
            one = np.pad(alone, ((0, 0), (0, max(missing, 0))))
            if missing < 0 or not np.allclose(one, laws[[k]], rtol=0, atol=TOLERANCE):
                raise _depends("probabilities", states[k])
        return
    among = _drawn(policy, states)
    for k in places:
        alone = _drawn(policy, states[[k]])[:, 0]
        for_others = among[:, k]
        steady = (alone == alone[:1]).all() and (for_others == for_others[:1]).all()
        if steady and (alone[0] != for_others[0]).any():
            raise _depends("actions", states[k])


def _depends(what: str, state: int) -> InvalidPolicy:
    return InvalidPolicy(
        f"the {what} of state {state} differ when it is asked alone and among others",
        "Let the answer for a state depend on that state only, not on the rest of the batch",
    )


def _require_same_laws(world: LargeWorld, states: IntArray, rng: np.random.Generator) -> None:
    actions = rng.integers(world.num_actions, size=states.size)
    together = successor_laws(world, states, actions)
    for k in range(ALONE):
        alone = successor_laws(world, states[[k]], actions[[k]])
        laws = [
            _as_law(part.states[row], part.probabilities[row])
            for part, row in ((alone, 0), (together, k))
        ]
        if laws[0].keys() != laws[1].keys() or any(
            abs(laws[0][state] - laws[1][state]) > TOLERANCE for state in laws[0]
        ):
            raise InvalidWorld(
                f"successors of state {states[k]}, action {actions[k]} differ when it is asked "
                "alone and among others",
                "Let the answer depend on states and actions only, one by one",
            )


def _as_law(states: IntArray, chances: Any) -> dict[int, float]:
    law: dict[int, float] = {}
    for state, chance in zip(states.tolist(), chances.tolist(), strict=True):
        if chance > 0:
            law[state] = law.get(state, 0.0) + chance
    return law


def _drawn(policy: AnyPolicy, states: IntArray) -> Any:
    """First actions of `DRAWS` batches: (batches x walks x numbers)."""
    found = [
        Actor(policy, _stream(1 + number)).sample(states.copy()).reshape(len(states), -1)
        for number in range(DRAWS)
    ]
    return np.stack(found)


def _stream(number: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(0, spawn_key=(STREAM, number)))
