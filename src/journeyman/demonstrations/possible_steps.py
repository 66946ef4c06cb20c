"""Whether a world allows what demonstrations show, and where it first does not."""

from typing import TYPE_CHECKING

import numpy as np

from journeyman.arrays import IntArray
from journeyman.errors import InvalidDemonstrations
from journeyman.world import World

if TYPE_CHECKING:
    from journeyman.demonstrations.demonstrations import Demonstrations


NEVER = "has probability 0"


def possible_pairs(demos: "Demonstrations", world: World) -> IntArray:
    """The pair of `world` behind every step, or an error that names the first impossible one.

    In an estimated world whose support is not known a step may lead where none was seen to lead.
    """
    _refuse_positions(demos, world)
    offered = world.pairs.offers(demos.step_states, demos.actions)
    if not offered.all():
        _name_unknown_pair(demos, world, int(np.argmin(offered)))
    pairs = world.pairs.index(demos.step_states, demos.actions, InvalidDemonstrations)
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


def _refuse_positions(demos: "Demonstrations", world: World) -> None:
    """Files of 0.1.0 may hold where an action stands among those of its state."""
    told, own = demos.pairs, world.pairs
    if told is None or own.numbers is None or told.numbers is not None:
        return
    if np.array_equal(told.offsets, own.offsets):
        state = int(own.states[np.argmax(own.actions != own.positions)])
        raise InvalidDemonstrations(
            "the demonstrations say that they number the actions of every state from 0, and the "
            f"world does not (state {state} has {own.actions_in_words(state)})",
            "If they were recorded with journeyman 0.1.0, record them again; if their actions have "
            "the world's numbers, give choice_offsets=world.pairs, or leave it out",
        )


def _name_unknown_pair(demos: "Demonstrations", world: World, step: int) -> None:
    state, action = int(demos.step_states[step]), int(demos.actions[step])
    if world.observed_actions is not None and 0 <= state < world.num_states:
        raise InvalidDemonstrations(
            f"{_where(demos, step)}: action {action} was never recorded in state {state}, so the "
            f"world does not offer it there ({world.pairs.actions_in_words(state)})",
            "Record what the action does there (without such episodes it is another expert)",
        )
    raise InvalidDemonstrations(
        f"{_where(demos, step)}: state {state}, action {action} is not a pair of the world "
        f"({world!r})",
        "Use the world's state ids, and action numbers from 0 within each state"
        if world.pairs.numbers is None
        else "Use the world's state ids and action numbers",
    )


def _refuse_impossible(demos: "Demonstrations", world: World, pairs: IntArray) -> None:
    laws = world.transition if world.support is None else world.support
    probability = np.asarray(laws[pairs, demos.next_states]).ravel()
    if (probability <= 0).any():
        step = int(np.argmax(probability <= 0))
        ending = world.sink is not None and world.transition[pairs[step], world.sink] > 0
        declared = world.support is not None
        if ending:
            remedy = (
                "This step ends the episode: mark it terminated and give terminal_state=world.sink"
                "; jm.read_demonstrations(path, world=world) does so"
            )
        elif declared:
            remedy = (
                "If the step is possible the support is wrong: allow it there, or leave the "
                "support out. Otherwise "
                "check that demonstrations and world number states and actions alike"
            )
        else:
            remedy = "Check that demonstrations and world number states and actions alike"
        raise InvalidDemonstrations(
            f"{_where(demos, step)}: the step from state {demos.step_states[step]} by action "
            f"{demos.actions[step]} to state {demos.next_states[step]} "
            + ("contradicts the declared support, which excludes it" if declared else NEVER),
            remedy,
        )


def _refuse_restless(demos: "Demonstrations", world: World) -> None:
    restless = demos.terminated & ~world.absorbing[demos.last_states]
    if not restless.any():
        return
    episode, longest = int(np.argmax(restless)), int(demos.lengths.max())
    alike = int((demos.lengths[restless] == longest).sum())
    remedy = "Mark it truncated if it has been stopped"
    if alike and longest > 1:
        which = (
            "It has" if restless.sum() == 1 else f"{alike} of {restless.sum()} such episodes have"
        )
        remedy = (
            f"{which} {longest} steps, and no episode has more: if that is a time limit, give "
            f"truncated_at={longest}, and ends there are read as truncated"
        )
    end = (
        "name the absorbing state with terminal_state="
        if world.sink is None
        else f"give terminal_state={world.sink}, the end that was added for terminated episodes"
    )
    raise InvalidDemonstrations(
        f"{demos.where(episode)} is marked terminated but ends in state "
        f"{demos.last_states[episode]}, which is not absorbing",
        f"{remedy}; if it has terminated, {end}",
    )


def _where(demos: "Demonstrations", step: int) -> str:
    return demos.where(int(demos.step_episodes[step]), int(demos.step_times[step]))
