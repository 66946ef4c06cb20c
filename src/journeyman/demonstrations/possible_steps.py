"""Whether a world allows what demonstrations show, and where it first does not."""

from typing import TYPE_CHECKING

import numpy as np

from journeyman.arrays import IntArray
from journeyman.errors import InvalidDemonstrations
from journeyman.world import World

if TYPE_CHECKING:
    from journeyman.demonstrations.demonstrations import Demonstrations


def possible_pairs(demos: "Demonstrations", world: World) -> IntArray:
    """The pair of `world` behind every step, or an error that names the first impossible one.

    In an estimated world whose support is not known a step may lead where none was seen to lead. If
    the world was made from a record, actions are read in the record's numbers, unless the
    demonstrations say that they know the world's own action sets.
    """
    actions = demos.actions
    if world.observed_actions is not None and demos.pairs != world.pairs:
        actions = _renumbered(demos, world)
    try:
        pairs = world.pairs.index(demos.step_states, actions, InvalidDemonstrations)
    except InvalidDemonstrations:
        _name_unknown_pair(demos, world)
        raise
    outside = (demos.last_states < 0) | (demos.last_states >= world.num_states)
    if outside.any():
        episode = int(np.argmax(outside))
        raise InvalidDemonstrations(
            f"{demos.where(episode)} ends in state {demos.last_states[episode]}, outside "
            f"0..{world.num_states - 1}",
            "Use the world's state ids",
        )
    steps_known = world.transition_error is None and world.transition_counts is None
    if steps_known or world.known_support:
        _refuse_impossible(demos, world, pairs)
    _refuse_restless(demos, world)
    return pairs


def _renumbered(demos: "Demonstrations", world: World) -> IntArray:
    assert world.observed_actions is not None
    width = 1 + int(max(world.observed_actions.max(), demos.actions.max()))
    offered = world.pairs.states * width + world.observed_actions
    unknown = ~np.isin(demos.step_states * width + demos.actions, offered)
    if unknown.any():
        step = int(np.argmax(unknown))
        raise InvalidDemonstrations(
            f"{_where(demos, step)}: action {demos.actions[step]} was never recorded in state "
            f"{demos.step_states[step]}, so the estimated world does not offer it there",
            "Record what the action does there (without such episodes it is another expert)",
        )
    return world.renumbered(demos.step_states, demos.actions)


def _name_unknown_pair(demos: "Demonstrations", world: World) -> None:
    states = demos.step_states
    known = (states >= 0) & (states < world.num_states)
    limit = world.pairs.actions_per_state[np.where(known, states, 0)]
    bad = ~known | (demos.actions < 0) | (demos.actions >= limit)
    step = int(np.argmax(bad))
    raise InvalidDemonstrations(
        f"{_where(demos, step)}: state {states[step]}, action {demos.actions[step]} is not a "
        f"pair of the world ({world!r})",
        "Use the world's state ids, and action numbers from 0 within each state",
    )


def _refuse_impossible(demos: "Demonstrations", world: World, pairs: IntArray) -> None:
    laws = world.transition if world.support is None else world.support
    probability = np.asarray(laws[pairs, demos.next_states]).ravel()
    if (probability <= 0).any():
        step = int(np.argmax(probability <= 0))
        ending = world.sink is not None and world.transition[pairs[step], world.sink] > 0
        raise InvalidDemonstrations(
            f"{_where(demos, step)}: the step from state {demos.step_states[step]} by action "
            f"{demos.actions[step]} to state {demos.next_states[step]} has probability 0",
            "This step ends the episode: mark it terminated and give terminal_state=world.sink; "
            "jm.read_demonstrations(path, world=world) does so"
            if ending
            else "Check that demonstrations and world number states and actions alike",
        )


def _refuse_restless(demos: "Demonstrations", world: World) -> None:
    restless = demos.terminated & ~world.absorbing[demos.last_states]
    if not restless.any():
        return
    episode, longest = int(np.argmax(restless)), int(demos.lengths.max())
    alike = int((demos.lengths[restless] == longest).sum())
    remedy = "Mark it truncated, or give terminal_state=world.sink"
    if alike == restless.sum() and longest > 1:
        which = "It has" if alike == 1 else f"All {alike} such episodes have"
        remedy = (
            f"{which} {longest} steps, and no episode has more: if that is a time limit, give "
            f"truncated_at={longest}, and ends there are read as truncated; if it has terminated, "
            "name the absorbing state with terminal_state="
        )
    raise InvalidDemonstrations(
        f"{demos.where(episode)} is marked terminated but ends in state "
        f"{demos.last_states[episode]}, which is not absorbing",
        remedy,
    )


def _where(demos: "Demonstrations", step: int) -> str:
    return demos.where(int(demos.step_episodes[step]), int(demos.step_times[step]))
