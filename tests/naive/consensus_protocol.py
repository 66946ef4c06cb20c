"""The shared coin of Aspnes and Herlihy's randomised consensus, as in the PRISM benchmark suite.

N processes flip coins and move one counter up or down until it is within N of an end of its range
0..2 (K + 1) N; who sees that has decided. The scheduler, which is the policy, picks the process
that takes the next step. Published expected steps until all have decided (min, max): N = 2, K = 2:
48 and 75; N = 4, K = 4: 768 and 1083 (43,136 states).

Reference: Aspnes and Herlihy, "Fast randomized consensus using shared memory", Journal of
Algorithms, 1990; Kwiatkowska, Norman and Segala, "Automated verification of a randomized
distributed consensus protocol using Cadence SMV and PRISM", CAV 2001.
"""

import numpy as np
from scipy import sparse

import journeyman as jm

FLIP, WRITE, CHECK, DONE = range(4)
START = (FLIP, 0)


def moved(counter, process, *, low, high):
    """Where a step of a process leads: (probability, counter, process)."""
    phase, coin = process
    if phase == FLIP:
        return [(0.5, counter, (WRITE, 0)), (0.5, counter, (WRITE, 1))]
    if phase == WRITE:
        return [(1.0, counter + (1 if coin else -1), (CHECK, 0))]
    if counter <= low:
        return [(1.0, counter, (DONE, 0))]
    return [(1.0, counter, (DONE, 1) if counter >= high else START)]


def consensus(N, K):
    """The world with discount 1, and the cost of one per step."""
    low, high = N, 2 * (K + 1) * N - N
    first = ((K + 1) * N, (START,) * N)
    number, states = {first: 0}, [first]
    data, columns, rows, offsets = [], [], [0], [0]
    for counter, processes in states:
        able = [i for i, (phase, _) in enumerate(processes) if phase != DONE]
        for i in able or [None]:
            outcomes = [(1.0, counter, None)] if i is None else moved(
                counter, processes[i], low=low, high=high
            )  # fmt: skip
            for probability, new, process in outcomes:
                others = list(processes)
                if i is not None:
                    others[i] = process
                state = (new, tuple(others))
                if state not in number:
                    number[state] = len(states)
                    states.append(state)
                data.append(probability)
                columns.append(number[state])
            rows.append(len(columns))
        offsets.append(len(rows) - 1)
    count = len(states)
    finished = [all(phase == DONE for phase, _ in processes) for _, processes in states]
    P = sparse.csr_array((data, columns, rows), shape=(len(rows) - 1, count))
    world = jm.World(P, np.eye(1, count)[0], 1, choice_offsets=offsets, sink=finished.index(True))
    return world, np.where(finished, 0.0, 1.0)
