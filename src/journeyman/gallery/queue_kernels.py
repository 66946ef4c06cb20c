"""Compiled loops over the states of a queue network: the ways in, and the rules of its servers."""

from typing import NamedTuple

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.compiled import kernel


class Ways(NamedTuple):
    """Columns that lead to a state: a move under an action. The last move is staying, whose rate
    depends on state and action.

    Move k needs lengths[queues[k, i]] between least[k, i] and most[k, i].
    """

    move: IntArray
    action: IntArray
    shift: IntArray
    rate: FloatArray
    queues: IntArray
    least: IntArray
    most: IntArray


@kernel
def ways_in(
    states: IntArray, lengths: IntArray, ways: Ways, staying: FloatArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Offsets per state, and the pairs that lead there with their probabilities."""
    last = ways.queues.shape[0] - 1
    offsets = np.zeros(states.size + 1, np.int64)
    left = np.empty(states.size * ways.move.size, np.int64)
    actions, rates = np.empty_like(left), np.empty(left.size)
    possible = np.empty(last + 1, np.bool_)
    used = 0
    for row in range(states.size):
        _mark_possible(lengths[row], ways, possible)
        for column in range(ways.move.size):
            move, action = ways.move[column], ways.action[column]
            if possible[move]:
                rate = staying[row, action] if move == last else ways.rate[column]
                if rate > 0.0:
                    left[used] = states[row] - ways.shift[column]
                    actions[used], rates[used] = action, rate
                    used += 1
        offsets[row + 1] = used
    return offsets, left[:used], actions[:used], rates[:used]


@kernel
def _mark_possible(lengths: IntArray, ways: Ways, possible: BoolArray) -> None:
    for k in range(possible.size):
        possible[k] = True
        for i in range(ways.queues.shape[1]):
            length = lengths[ways.queues[k, i]]
            possible[k] &= ways.least[k, i] <= length <= ways.most[k, i]


@kernel
def rest_of_rates(
    lengths: IntArray,
    buffers: IntArray,
    arrivals: FloatArray,
    services: FloatArray,
    serving: IntArray,
    rounding: float,
) -> FloatArray:
    """(states x actions): the probability that nothing changes."""
    rest = np.empty((lengths.shape[0], serving.shape[0]))
    for row in range(lengths.shape[0]):
        arriving = 0.0
        for queue in range(buffers.size):
            if lengths[row, queue] < buffers[queue]:
                arriving += arrivals[queue]
        for action in range(serving.shape[0]):
            moving = arriving
            for server in range(serving.shape[1]):
                queue = serving[action, server]
                if lengths[row, queue] > 0:
                    moving += services[queue]
            rest[row, action] = 1.0 - moving if 1.0 - moving > rounding else 0.0
    return rest


@kernel
def longest_queues(lengths: IntArray, servers: IntArray, choices: IntArray) -> IntArray:
    """The action in which every server works on the first of its longest queues.

    Row k of `servers` has the queues of server k, filled up with -1; `choices` is by how much the
    number of an action grows with the position of each server's choice.
    """
    actions = np.zeros(lengths.shape[0], np.int64)
    for row in range(lengths.shape[0]):
        for server in range(servers.shape[0]):
            chosen = 0
            for place in range(1, servers.shape[1]):
                queue = servers[server, place]
                if queue >= 0 and lengths[row, queue] > lengths[row, servers[server, chosen]]:
                    chosen = place
            actions[row] += chosen * choices[server]
    return actions


@kernel
def first_waiting(
    lengths: IntArray, servers: IntArray, order: IntArray, choices: IntArray
) -> IntArray:
    """The action in which every server works on the first queue with a job, in the given order of
    its places, or on the first of all."""
    actions = np.zeros(lengths.shape[0], np.int64)
    for row in range(lengths.shape[0]):
        for server in range(servers.shape[0]):
            chosen = order[server, 0]
            for rank in range(servers.shape[1]):
                place = order[server, rank]
                if place >= 0 and lengths[row, servers[server, place]] > 0:
                    chosen = place
                    break
            actions[row] += chosen * choices[server]
    return actions
