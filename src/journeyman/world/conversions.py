"""Worlds in the layouts of other packages: arrays with axes in any order, and Gymnasium's tables.

    P[s][a] = [(probability, next_state, reward, done), ...]

`done` is a property of the transition: the same state can be entered with and without it. So each
branch with `done` leads to one added absorbing state, the sink, where nothing costs anything. No
package is imported: whatever carries such a table serves.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix, compressed_rows, plain_array, real_array
from journeyman.errors import InvalidWorld


def state_major(transition: Any, layout: str) -> Any:
    """(state, action, next state) given with its axes in any order, as (pairs x states) rows."""
    if sorted(layout) != sorted("sax"):
        raise InvalidWorld(
            f"layout = {layout!r} is not a permutation of 'sax'",
            "Name the axes of the array: s state, a action, x next state",
        )
    if isinstance(transition, Sequence) and any(sparse.issparse(part) for part in transition):
        return _interleave(transition, layout)
    array = plain_array("transition", transition, InvalidWorld)
    if array.ndim != 3:
        raise InvalidWorld(
            f"transition has {array.ndim} axes (shape {array.shape}), layout {layout!r} needs 3",
            "Give an array with one axis per letter, or use World(...) for (pairs x states) rows",
        )
    ordered = array.transpose([layout.index(axis) for axis in "sax"])
    num_states, num_actions, num_targets = ordered.shape
    if num_states != num_targets:
        raise InvalidWorld(
            f"with layout {layout!r} the array has {num_states} states but {num_targets} next "
            "states",
            "Check the order of the letters in layout",
        )
    return ordered.reshape(num_states * num_actions, num_targets)


def _interleave(matrices: Sequence[Any], layout: str) -> SparseMatrix:
    """One sparse (states x states) matrix per action."""
    if layout != "asx":
        raise InvalidWorld(
            f"a list of sparse matrices has layout 'asx', not {layout!r}",
            "Give one (states x states) matrix per action",
        )
    parts = [
        compressed_rows(
            "transition", part if sparse.issparse(part) else sparse.csr_array(part), InvalidWorld
        )
        for part in matrices
    ]
    shapes = {part.shape for part in parts}
    num_states = parts[0].shape[0]
    if shapes != {(num_states, num_states)}:
        raise InvalidWorld(
            f"the matrices of the actions have {'different ' * (len(shapes) > 1)}shapes "
            f"{sorted(shapes)}",
            "Give every action a (states x states) matrix",
        )
    stacked = sparse.vstack(parts, format="csr")
    order = np.arange(len(matrices) * num_states).reshape(len(matrices), num_states).T.ravel()
    return stacked[order]


def untrusted_rows(parts: tuple[Any, Any, Any], num_states: int) -> SparseMatrix:
    """A CSR matrix from arrays of a file. Its structure is not believed before it is checked."""
    try:
        return sparse.csr_array(parts, shape=(parts[2].size - 1, num_states))
    except (TypeError, ValueError) as fault:
        raise InvalidWorld(
            f"transition is not a sound sparse matrix: {fault}", "Write the file again"
        ) from fault


@dataclass(frozen=True, eq=False)
class Table:
    """A rectangular world with the sink as its last state, and the mean reward of each pair."""

    transition: SparseMatrix
    initial: FloatArray
    rewards: FloatArray
    num_states: int


def read(source: Any, initial: ArrayLike | None = None) -> Table:
    """Convert an environment or a bare table."""
    table = _table_of(source)
    branches, num_actions = _branches(table)
    pairs, targets, probabilities, rewards, done = branches
    sink = len(table)
    _check_targets(pairs, targets, sink, num_actions)
    sink_pairs = np.arange(sink * num_actions, (sink + 1) * num_actions)
    transition = sparse.coo_array(
        (
            np.concatenate([probabilities, np.ones(num_actions)]),
            (
                np.concatenate([pairs, sink_pairs]),
                np.concatenate([np.where(done, sink, targets), np.full(num_actions, sink)]),
            ),
        ),
        shape=((sink + 1) * num_actions, sink + 1),
    ).tocsr()
    mean_rewards = np.zeros((sink + 1) * num_actions)
    np.add.at(mean_rewards, pairs, probabilities * rewards)
    return Table(transition, _initial_law(source, initial, sink), mean_rewards, sink + 1)


def expected_rewards(source: Any) -> FloatArray:
    """Mean reward of every pair of `World.from_gymnasium(source)`, zero in the sink."""
    uniform = np.ones(len(_table_of(source)))
    return read(source, uniform / uniform.size).rewards


def _table_of(source: Any) -> Any:
    if isinstance(source, str):
        raise InvalidWorld(
            f"{source!r} is a name, not an environment", f"Give gymnasium.make({source!r})"
        )
    environment = getattr(source, "unwrapped", source)
    if getattr(environment, "fickle_passenger", False):
        raise InvalidWorld(
            "this Taxi has fickle_passenger=True, which its table P does not contain",
            "Make the environment with fickle_passenger=False",
        )
    table = getattr(environment, "P", source)
    if not hasattr(table, "__getitem__") or not hasattr(table, "__len__") or not len(table):
        raise InvalidWorld(
            f"{type(environment).__name__} has no transition table P",
            "Only environments with a finite table can become an explicit world. Others are run: "
            "jm.GymnasiumSimulator, on the command line journeyman mixture",
        )
    return table


def _branches(table: Any) -> tuple[tuple[Any, ...], int]:
    """All branches as flat arrays: pair, target, probability, reward, done."""
    first = min(table) if hasattr(table, "keys") else 0
    num_actions = len(_entry(table, first, f"table P lacks state {first}"))
    if not num_actions:
        raise InvalidWorld("state 0 of table P has no action", "Give every state an action")
    rows: list[tuple[float, ...]] = []
    for state in range(len(table)):
        actions = _entry(table, state + first, f"table P lacks state {state + first}")
        if len(actions) != num_actions:
            raise InvalidWorld(
                f"state {state} of table P has {len(actions)} actions, state 0 has {num_actions}",
                "Give every state the same actions, or build World(...) with choice_offsets",
            )
        for action in range(num_actions):
            branches = _entry(actions, action, f"table P[{state}] lacks action {action}")
            pair, where = state * num_actions + action, f"table P[{state}][{action}]"
            rows.extend((pair, *_branch(branch, first, where)) for branch in branches)
    columns = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    pairs, targets, done = (columns[k].astype(np.int64) for k in (0, 1, 4))
    return (pairs, targets, columns[2], columns[3], done.astype(bool)), num_actions


def _entry(container: Any, key: int, complaint: str) -> Any:
    try:
        return container[key]
    except (KeyError, IndexError) as fault:
        raise InvalidWorld(complaint, "Number states and actions without gaps") from fault


def _branch(branch: Any, first: int, where: str) -> tuple[int, float, float, bool]:
    """(target, probability, reward, done) of one branch."""
    try:
        probability, target, reward, done = branch
        return operator.index(target) - first, float(probability), float(reward), bool(done)
    except (TypeError, ValueError) as fault:
        raise InvalidWorld(
            f"{where} holds {branch!r}", "A branch is (probability, next_state, reward, done)"
        ) from fault


def _check_targets(pairs: Any, targets: Any, num_states: int, num_actions: int) -> None:
    outside = (targets < 0) | (targets >= num_states)
    if outside.any():
        pair, target = pairs[outside][0], targets[outside][0]
        raise InvalidWorld(
            f"table P[{pair // num_actions}][{pair % num_actions}] leads to state {target}, "
            f"outside 0..{num_states - 1}",
            "Number the states from 0",
        )


def _initial_law(source: Any, initial: ArrayLike | None, sink: int) -> FloatArray:
    if initial is None:
        environment = getattr(source, "unwrapped", source)
        initial = getattr(environment, "initial_state_distrib", None)
    if initial is None:
        raise InvalidWorld(
            "the source has no initial_state_distrib", "Give initial= as a law over its states"
        )
    law = real_array("initial", initial, ndim=1, refusal=InvalidWorld)
    return np.append(law, 0.0) if law.size == sink else law
