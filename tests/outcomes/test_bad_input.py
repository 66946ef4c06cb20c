"""Wrong input raises where it is given: what is wrong, where it is, and what to do."""

import errno
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from gymnasium.envs.toy_text.taxi import TaxiEnv
from numpy.lib import format as npy
from scipy import sparse

import journeyman as jm
from journeyman import storage

NAN, INF = float("nan"), float("inf")
GO, STAY, REST = [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]
ROWS = [GO, STAY, REST]
"""State 0 can go or stay, state 1 rests for ever."""
OFFSETS = [0, 2, 3]
WORLD = jm.World(ROWS, [1, 0], 0.9, choice_offsets=OFFSETS)
POLICY = jm.Policy.uniform(WORLD)
BASIS = jm.CostBasis([1.0, 0.0])
PROBLEM = jm.Apprenticeship(WORLD, BASIS, jm.ExpertExpectation([1.0]))
EXPERT = jm.ExpertExpectation([1.0])
PROBLEM = jm.Apprenticeship(WORLD, BASIS, EXPERT)
LOOP = [(1.0, 0, 0.0, False)]
RECTANGULAR = jm.Policy([[0.5, 0.5], [1.0, 0.0]])


class Case(NamedTuple):
    name: str
    wrong: Callable[[], object]
    refusal: type[jm.errors.InvalidInput]
    where: str
    remedy: str


def world(transition: Any = ROWS, initial: Any = (1, 0), discount: Any = 0.9, **more: Any) -> Any:
    return jm.World(transition, initial, discount, **{"choice_offsets": OFFSETS, **more})


def damaged(part: str, position: int, value: int, form: Any = sparse.csr_array) -> Any:
    matrix = form(ROWS)
    getattr(matrix, part)[position] = value
    return matrix


def table(rows: Any, **more: Any) -> Any:
    return jm.World.from_gymnasium(rows, 0.9, **{"initial": np.eye(len(rows))[0], **more})


def imitate(**changes: Any) -> Any:
    return jm.Apprenticeship(**{"world": WORLD, "costs": BASIS, "expert": EXPERT, **changes})


def replay(states: Any, actions: Any, offsets: Any, terminated: Any = None) -> Any:
    return jm.Demonstrations(states, actions, offsets, terminated).pairs_in(WORLD)


def record(expert: Any = POLICY, trajectories: Any = 1, horizon: Any = 3) -> Any:
    return jm.record(WORLD, expert, trajectories=trajectories, horizon=horizon, seed=0)


def load(content: bytes, reader: Callable[[Path], Any] = jm.Policy.load, name: str = "file") -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return reader(path)


def load_csv(*lines: str) -> Any:
    return load("\n".join(lines).encode(), jm.Demonstrations.load, "demos.csv")


def saved(value: Any) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "value"
        value.save(path)
        return path.read_bytes()


def altered(value: Any, kind: str, arrays: Any = (), **facts: Any) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "value"
        value.save(path)
        old_facts, old_arrays = storage.load_arrays(path, kind, 1)
        storage.save_arrays(path, arrays={**old_arrays, **dict(arrays)}, **{**old_facts, **facts})
        return path.read_bytes()


def zipped(member: bytes = b"", header: Any = None, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        facts = {"kind": "policy", "version": 1} if header is None else header
        archive.writestr("header.json", json.dumps(facts))
        archive.writestr("probabilities.npy", member)
    return stream.getvalue()


def announced(descr: Any, shape: tuple[int, ...], body: bytes = b"") -> bytes:
    stream = io.BytesIO()
    facts = {"descr": descr, "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(stream, facts)
    return stream.getvalue() + body


def pickled() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{}, {}], dtype=object), allow_pickle=True)
    return stream.getvalue()


def foreign() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, probabilities=[1.0])
    return stream.getvalue()


def broken_deflate() -> bytes:
    content = bytearray(saved(POLICY))
    content[30 + len("header.json")] = 0b111
    return bytes(content)


BAD_WORLD = [
    ("three axes", lambda: world(np.ones((2, 1, 2))), "three axes", r"from_arrays\("),
    ("name of an environment", lambda: jm.World.from_gymnasium("FrozenLake-v1", 0.9),
     "is a name", r"gymnasium\.make"),
    ("text discount", lambda: world(discount="0.9"), "discount = '0.9' is not a number", "0.99"),
    ("one axis", lambda: world(GO),
     r"transition has 1 axes \(shape \(2,\)\), expected 2", "Give a "),
    ("text", lambda: world([["a", "b"]]), "transition is not an array of real", "plain numbers"),
    ("uneven rows", lambda: world([GO, [1.0]]), "transition is not an array of real", "plain numb"),
    ("complex", lambda: world(np.array(ROWS) * 1j), "transition is not an array of real", "plain"),
    ("no state", lambda: world(np.zeros((0, 0))), r"is empty \(shape \(0, 0\)\)", "at least one"),
    ("nan", lambda: world([GO, [NAN, 1], REST]), r"transition .* at \(1, 0\): nan", "Replace"),
    ("infinity", lambda: world([[0, INF], STAY, REST]),
     r"transition .* at \(0, 1\): inf", "Replace"),
    ("nan in CSR", lambda: world(sparse.csr_array([GO, [NAN, 0], REST])), "at 1: nan", "Replace"),
    ("negative probability", lambda: world([GO, [-0.5, 1.5], REST]),
     "probability -0.5 from state 0, action 1 to state 0", "between 0 and 1"),
    ("probability above one", lambda: world([GO, STAY, [0, 1.5]]),
     "probability 1.5 from state 1, action 0 to state 1", "between 0 and 1"),
    ("row sum too large", lambda: world([GO, STAY, [0.5, 0.500001]]),
     r"row 2 \(state 1, action 0\) sums to 1\.000001", "sum to 1 within 1e-8"),
    ("row sum too small", lambda: world([GO, [0.999999, 0], REST]),
     r"row 1 \(state 0, action 1\) sums to 0\.999999", "absorbing state"),
    ("row without entry", lambda: world([GO, [0, 0], REST]),
     r"row 1 .* sums to 0\.0", "missing mass"),
    ("too few rows", lambda: world(choice_offsets=None),
     "transition has 3 rows, no multiple of its 2 columns", "choice_offsets"),
    ("offsets of one state", lambda: world(choice_offsets=[0, 3]),
     "describe 1 states and 3 pairs, transition has 2 columns and 3 rows", "num_states"),
    ("offsets end early", lambda: world(choice_offsets=[0, 1, 2]),
     "2 states and 2 pairs", "end at"),
    ("offsets start late", lambda: world(choice_offsets=[1, 2, 3]), r"offsets\[0\] = 1", "at 0"),
    ("offsets fall", lambda: world(choice_offsets=[0, 3, 2]),
     "state 1 without", "at least one act"),
    ("state without action", lambda: world(choice_offsets=[0, 0, 3]),
     "state 0 without", "self-loop"),
    ("offsets of no state", lambda: world(choice_offsets=[0]),
     "describes no state", "at least one"),
    ("fractional offset", lambda: world(choice_offsets=[0, 1.5, 3]),
     r"\[1\] = 1.5 is not", "integer"),
    ("nan offset", lambda: world(choice_offsets=[0, NAN, 3]),
     "offsets is not finite at 1", "Replace"),
    ("offsets in a table", lambda: world(choice_offsets=[OFFSETS]),
     "offsets has 2 axes", "Give a "),
    ("uneven offsets", lambda: world(choice_offsets=[[0], [2, 3]]),
     "choice_offsets", "plain numbers"),
    ("column beyond", lambda: world(damaged("indices", 2, 2)), "not a sound sparse", "coo_array"),
    ("column below", lambda: world(damaged("indices", 0, -1)), "not a sound sparse", "coo_array"),
    ("falling indptr", lambda: world(damaged("indptr", 1, 3)), "not a sound sparse", "coo_array"),
    ("indptr beyond", lambda: world(damaged("indptr", 3, 9)), "not a sound sparse", "coo_array"),
    ("indptr not from 0", lambda: world(damaged("indptr", 0, 1)),
     "not a sound sparse", "coo_array"),
    ("CSC row beyond", lambda: world(damaged("indices", 2, 9, sparse.csc_array)),
     "sound", "coo_array"),
    ("COO column beyond", lambda: world(damaged("col", 2, 2, sparse.coo_array)),
     "sound", "coo_array"),
    ("complex CSR", lambda: world(sparse.csr_array(ROWS) * 1j),
     "transition is not", "plain numbers"),
    ("initial too short", lambda: world(initial=[1]), "initial has 1 entries, expected 2", "each"),
    ("initial negative", lambda: world(initial=[1.5, -0.5]), r"initial\[1\] = -0.5", "at least 0"),
    ("initial sum", lambda: world(initial=[0.5, 0.25]),
     r"initial sums to 0\.75", "sum to 1 within"),
    ("initial nan", lambda: world(initial=[1, NAN]), "initial is not finite at 1: nan", "Replace"),
    ("initial inf", lambda: world(initial=[INF, 0]), "initial is not finite at 0: inf", "Replace"),
    ("initial in a table", lambda: world(initial=[[1, 0]]), "initial has 2 axes", "Give a "),
    ("discount 0", lambda: world(discount=0), r"discount = 0\.0", "0.99"),
    ("discount 1", lambda: world(discount=1), "discount = 1 and no goal is given", "0.99"),
    ("discount 1.5", lambda: world(discount=1.5), r"discount = 1\.5", "0.99"),
    ("discount nan", lambda: world(discount=NAN), "discount = nan", "0.99"),
    ("discount text", lambda: world(discount="x"), "discount = 'x' is not a number", "0.99"),
    ("few state names", lambda: world(state_names=["a"]), "state_names has 1 .* 2", "each once"),
    ("many action names", lambda: world(action_names="abc"),
     "action_names has 3 .* 2", "each once"),
    ("few coordinates", lambda: world(coordinates=[[0]]), "coordinates has 1 .* 2", "one entry"),
    ("flat coordinates", lambda: world(coordinates=[0, 1]), "coordinates has 1 axes", "Give a "),
    ("nan coordinates", lambda: world(coordinates=[[0], [NAN]]),
     r"coordinates .* \(1, 0\)", "Replace"),
    ("restless sink", lambda: world(sink=0), "sink = 0 is not an absorbing state", "stays there"),
    ("sink beyond", lambda: world(sink=2), "sink = 2 is not", "stays there"),
    ("sink below", lambda: world(sink=-1), "sink = -1 is not", "stays there"),
    ("fractional sink", lambda: world(sink=0.5), "sink = 0.5 is not", "stays there"),
    ("sink by name", lambda: world(sink="end"), "sink = 'end' is not", "stays there"),
]  # fmt: skip

BAD_ARRAYS = [
    ("layout", lambda: jm.World.from_arrays([[GO]], [1, 0], 0.9, layout="sas"), "'sas'", "s state"),
    ("two axes", lambda: jm.World.from_arrays(ROWS, [1, 0], 0.9), "transition has 2 axes", "World"),
    ("text array", lambda: jm.World.from_arrays("abc", [1], 0.9), "transition", "plain numbers"),
    ("uneven array", lambda: jm.World.from_arrays([[GO], [[1.0]]], [1, 0], 0.9),
     "trans", "plain num"),
    ("not square", lambda: jm.World.from_arrays([[[1, 0, 0]]] * 2, [1, 0], 0.9),
     "'sax' the array has 2 states but 3 next states", "order of the letters"),
    ("sparse list as sax", lambda: jm.World.from_arrays([sparse.eye_array(2)], [1, 0], 0.9),
     "'asx', not 'sax'", "matrix per action"),
    ("sparse shapes differ", lambda: jm.World.from_arrays(
        [sparse.eye_array(2), sparse.eye_array(3)], [1, 0], 0.9, layout="asx"),
     r"different shapes \[\(2, 2\), \(3, 3\)\]", "every action"),
    ("sparse not square", lambda: jm.World.from_arrays(
        [sparse.eye_array(2, 3)] * 3, [1, 0, 0], 0.9, layout="asx"),
     r"\(2, 3\)", r"\(states x states\)"),
]  # fmt: skip

BAD_TABLE = [
    ("no table", lambda: jm.World.from_gymnasium(object(), 0.9),
     "object has no .* table P", "finite"),
    ("empty table", lambda: jm.World.from_gymnasium({}, 0.9),
     "dict has no transition table P", "finite table"),
    ("missing state", lambda: table({0: [LOOP], 2: [LOOP]}), "P lacks state 1", "without gaps"),
    ("unequal actions", lambda: table([[LOOP, LOOP], [LOOP]]),
     "state 1 of table P has 1 actions, state 0 has 2", "choice_offsets"),
    ("missing action", lambda: table([{0: LOOP, 2: LOOP}]), r"P\[0\].* action 1", "without gaps"),
    ("short branch", lambda: table([[LOOP], [[(1.0, 0)]]]),
     r"P\[1\]\[0\] holds \(1\.0, 0\)", "branch"),
    ("number as branch", lambda: table([[LOOP], [[0.5]]]),
     r"P\[1\]\[0\] holds 0\.5", "A branch is"),
    ("text in branch", lambda: table([[[("x", 0, 0.0, False)]]]),
     r"P\[0\]\[0\] holds", "A branch is"),
    ("target beyond", lambda: table([[LOOP], [[(1.0, 7, 0.0, False)]]]),
     r"P\[1\]\[0\] leads to state 7, outside 0\.\.1", "from 0"),
    ("mass missing", lambda: table([[LOOP], [[(0.5, 0, 0.0, False)]]]),
     r"state 1, action 0\) sums to 0\.5", "sum to 1"),
    ("last state without branch", lambda: table([[LOOP], [[]]]), "state 1, action 0", "sum to 1"),
    ("no branch at all", lambda: table([[[]]]), "state 0, action 0", "sum to 1"),
    ("fickle passenger", lambda: jm.World.from_gymnasium(
        TaxiEnv(fickle_passenger=True), 0.9),
     "fickle_passenger=True", "fickle_passenger=False"),
    ("no initial law", lambda: table([[LOOP]], initial=None),
     "no initial_state_distrib", "initial="),
    ("initial of table too long", lambda: table([[LOOP]], initial=[1, 0, 0]),
     "has 3 entries", "each"),
    ("initial of table as text", lambda: table([[LOOP]], initial="x"), "initial", "plain numbers"),
]  # fmt: skip

BAD_COSTS = [
    ("nan cost", lambda: jm.CostBasis([[0.0], [NAN]]), r"basis .* at \(1, 0\): nan", "Replace"),
    ("nan sparse cost", lambda: jm.CostBasis(sparse.csr_array([[1.0], [NAN]])),
     "at 1: nan", "Repl"),
    ("hostile sparse cost", lambda: jm.CostBasis(damaged("indices", 0, 9)),
     "cost basis", "coo_array"),
    ("no cost", lambda: jm.CostBasis(np.zeros((2, 0))),
     r"empty \(shape \(2, 0\)\)", "at least one"),
    ("cost cube", lambda: jm.CostBasis(np.ones((2, 2, 2))), "cost basis has 3 axes", "Give a "),
    ("uneven costs", lambda: jm.CostBasis([[1.0, 2.0], [3.0]]),
     "cost basis is not", "plain numbers"),
    ("same name twice", lambda: jm.CostBasis(ROWS, ["a", "a"]), "named 'a'", "its own name"),
    ("three names", lambda: jm.CostBasis(ROWS, ["a", "b", "c"]),
     "3 names for 2 costs", "each cost"),
    ("basis of another world", lambda: jm.CostBasis(np.ones(7)).on(WORLD),
     "cost basis has 7 rows, but the world has 2 states and 3", "one row per pair"),
    ("problem with such a basis", lambda: imitate(costs=jm.CostBasis(np.ones(7))),
     "cost basis has 7 rows", "one row per pair"),
    ("forward cost too long", lambda: jm.Forward(WORLD, np.ones(7)), "7 rows", "one row per pair"),
    ("planning cost too long", lambda: jm.plan(WORLD, np.ones(7)),
     "cost has 7 rows", "row per pair"),
    ("planning cost nan", lambda: jm.plan(WORLD, [0, NAN]), "cost is not finite at 1", "Replace"),
    ("expected cost too long", lambda: jm.expected_cost(WORLD, POLICY, np.ones(7)),
     "7 rows", "row"),
    ("scale zero", lambda: jm.InfinityBall(scale=[1, 0]), r"scale\[1\] = 0.0 is not", "positive"),
    ("scale negative", lambda: jm.EuclideanBall(scale=[-1]), r"scale\[0\] = -1.0", "positive"),
    ("scale nan", lambda: jm.Simplex(scale=[NAN]), "scale is not finite at 0", "Replace"),
    ("two scales, one cost", lambda: imitate(cost_class=jm.Simplex(scale=[1, 2])),
     "has 2 scales, the basis 1 costs", "one scale per cost"),
    ("two costs, one known", lambda: imitate(
        costs=jm.CostBasis(ROWS), expert=jm.ExpertExpectation([1, 1]),
        cost_class=jm.costs.KnownCost()),
     "one cost, not 2", "Combine the columns"),
    ("endless budget", lambda: jm.Budget([1.0], INF, "wear"),
     "at_most of budget 'wear' = inf", "without a limit"),
    ("nan budget", lambda: jm.Budget([1.0], NAN), "at_most of budget .* = nan", "without a limit"),
    ("text budget", lambda: jm.Budget([1.0], "low"), "at_most .* = 'low'", "without a limit"),
    ("empty budget", lambda: jm.Budget([], 1.0, "wear"), "'wear' is empty", "one entry per pair"),
    ("nan in budget", lambda: jm.Budget([0, NAN], 1.0, "wear"), "'wear' .* at 1: nan", "Replace"),
    ("budget of another world", lambda: imitate(constraints=[jm.Budget(np.ones(7), 1.0, "wear")]),
     "cost of budget 'wear' has 7 rows", "one row per pair"),
]  # fmt: skip

BAD_POLICY = [
    ("negative chance", lambda: jm.Policy([[1.0, 0.0], [-0.5, 1.5]]),
     "probability -0.5 in state 1, action 0", "at least 0"),
    ("chances short of one", lambda: jm.Policy([[1.0, 0.0], [0.5, 0.25]]),
     r"state 1 sum to 0\.75", "within 1e-8 in every state"),
    ("nan chance", lambda: jm.Policy([[1.0], [NAN]]), r"not finite at \(1, 0\)", "Replace"),
    ("no chance", lambda: jm.Policy(np.zeros((0, 2))), r"shape \(0, 2\)", "one row per state"),
    ("flat chances", lambda: jm.Policy([1.0, 1.0]), "probabilities has 1 axes", "Give a "),
    ("too few chances", lambda: jm.Policy([1.0, 1.0], OFFSETS), "2 entries, expected 3", "each"),
    ("policy of another world", lambda: jm.occupancy(WORLD, RECTANGULAR),
     "for 2 states and 4 pairs, the world has 2 and 3", "made for this world"),
    ("recording another world's", lambda: record(RECTANGULAR),
     "and 4 pairs", "made for this world"),
    ("state beyond", lambda: POLICY.probabilities([0, 2]),
     r"states\[1\] = 2 .* 0\.\.1", "zero-based"),
    ("state below", lambda: POLICY.sample([-1], seed=0),
     r"states\[0\] = -1 is outside", "zero-based"),
    ("fractional state", lambda: POLICY.predict([0.5]), r"states\[0\] = 0.5 is not", "integer ids"),
    ("state beyond integers", lambda: POLICY.probabilities([1e30]), r"states\[0\] = 1e\+30", "ids"),
    ("single state id", lambda: POLICY.probabilities(0), "states has 0 axes", "Give a "),
    ("uneven state ids", lambda: POLICY.probabilities([[0], [0, 1]]), "states", "plain numbers"),
    ("share above one", lambda: POLICY.mixed_with(POLICY, 2), "share = 2", "between 0 and 1"),
    ("mixing worlds", lambda: POLICY.mixed_with(RECTANGULAR, 0.5), "different", "of one world"),
    ("short measure", lambda: jm.policy.extract(WORLD, [1.0]),
     "measure has 1 entries, expected 3", "each"),
    ("nan measure", lambda: jm.policy.extract(WORLD, [0, NAN, 0]),
     "measure is not finite at 1", "Replace"),
]  # fmt: skip

BAD_DEMONSTRATIONS = [
    ("offsets not from 0", lambda: replay([0, 1], [0], [1, 2]),
     "do not start at 0", "one more offset"),
    ("no episode", lambda: replay([], [], [0]), "offsets do not start", "one more offset"),
    ("empty episode", lambda: replay([0, 1, 0], [0], [0, 1, 1]),
     "episode 1 has no action", "Leave out"),
    ("falling episode offsets", lambda: replay([0], [0], [0, 2, 1]),
     "episode 1 has no", "Leave out"),
    ("uneven episode offsets", lambda: replay([0], [0], [[0], [1, 2]]), "offsets", "plain numbers"),
    ("state missing", lambda: replay([0], [0], [0, 1]), "states has 1 entries, expected 2", "each"),
    ("action missing", lambda: replay([0, 0, 1], [1], [0, 2]), "actions has 1 .* 2", "each"),
    ("fractional visit", lambda: replay([0, 0.5], [0], [0, 1]),
     r"states\[1\] = 0.5", "integer ids"),
    ("flags too many", lambda: replay([0, 1], [0], [0, 1], [0, 1]),
     r"\(2,\), expected \(1,\)", "each"),
    ("flags as text", lambda: replay([0, 0], [1], [0, 1], ["no"]),
     r"terminated\[0\]", "each episode"),
    ("impossible step", lambda: replay([0, 1, 0, 0, 1], [0, 1, 1], [0, 1, 3]),
     "episode 1, step 1: the step from state 0 by action 1 to state 1", "number states"),
    ("restless end", lambda: replay([0, 0], [1], [0, 1], [1]),
     "episode 0 is marked terminated but ends in state 0", "Mark it truncated"),
    ("unknown action", lambda: replay([0, 1, 1], [0, 1], [0, 2]),
     "episode 0, step 1: state 1, action 1 is not a pair", "action numbers from 0"),
    ("unknown state", lambda: replay([0, 5, 1], [1, 0], [0, 2]),
     "episode 0, step 1: state 5", "ids"),
    ("negative visit", lambda: replay([-1, 1], [0], [0, 1]), "episode 0, step 0: state -1", "ids"),
    ("unknown end", lambda: replay([0, 9], [0], [0, 1]),
     r"episode 0 ends in state 9.* 0\.\.1", "ids"),
    ("episodes without actions", lambda: jm.Demonstrations.from_arrays([[0, 1]], []),
     "1 arrays of states and 0 of actions", "both for each"),
    ("no last state", lambda: jm.Demonstrations.from_arrays([[0, 1], [0]], [[0], [0]]),
     "episode 1 has 1 states and 1 actions", "one state more"),
    ("mixed axes", lambda: jm.Demonstrations.from_arrays([[0, 1], [[0], [1]]], [[0], [0]]),
     r"observations of part 1 have shape \(1,\), those of part 0 \(\)", "one shape"),
    ("more flags than episodes", lambda: jm.Demonstrations.from_arrays(
        [[0, 1]], [[0]], [0, 1], terminal_state=1),
     r"terminated has shape \(2,\)", "each episode"),
    ("nothing to join", lambda: jm.Demonstrations.concatenate([]), "nothing", "at least one part"),
    ("no trajectory", lambda: record(trajectories=0), "trajectories = 0", "whole number"),
    ("no horizon", lambda: record(horizon=0), "horizon = 0", "whole number"),
    ("expert acts beyond", lambda: record(lambda *_: 5),
     "action 5 in state 0, which has 2", "from 0"),
    ("expert acts below", lambda: record(lambda *_: -1), "action -1 in state 0", "from 0"),
    ("expert acts half", lambda: record(lambda *_: 0.5), "action 0.5 in state 0", "from 0"),
    ("expert forgets to act", lambda: record(lambda *_: None), "action None in state 0", "from 0"),
    ("negative smoothing", lambda: jm.clone(record(), smoothing=-1), "smoothing = -1", "from 0"),
    ("nan smoothing", lambda: jm.clone(record(), smoothing=NAN), "smoothing = nan", "finite"),
    ("cloning without action sets", lambda: jm.clone(jm.Demonstrations([0, 1], [0], [0, 1])),
     "do not say how many states", "Give the world"),
    ("cloning an unknown action", lambda: jm.clone(
        jm.Demonstrations([0, 1], [4], [0, 1], choice_offsets=OFFSETS)),
     r"actions\[0\] = 4, but state 0 has actions 0\.\.1", "from 0"),
    ("nan expectation", lambda: jm.ExpertExpectation([1, NAN]), "not finite at 1: nan", "Replace"),
    ("expectation table", lambda: jm.ExpertExpectation([[1.0]]), "has 2 axes", "Give a "),
    ("nan reward", lambda: jm.ExpertExpectation.from_rewards([NAN]), "finite at 0: nan", "Replace"),
]  # fmt: skip

BAD_PROBLEM = [
    ("lists instead of values", lambda: jm.Apprenticeship(WORLD, ROWS, jm.ExpertExpectation([1])),
     "costs is a list", "a World, a CostBasis"),
    ("a file instead of values", lambda: jm.Apprenticeship("laws.csv", ROWS, None),
     "world is a str", "jm.read_world"),
    ("a simulator without ranges", lambda: jm.Apprenticeship(
        SimpleNamespace(names=("a",), discount=0.9, totals=None), None, None),
     "has no lowest, highest, observation_axes", "A simulator has names"),
    ("rewards declared as costs", lambda: jm.Apprenticeship(
        WORLD, jm.CostBasis.from_rewards(np.ones(3)), jm.ExpertExpectation([10.0])),
     "'cost 0' has the sign of a reward", "from_rewards"),
    ("a world is no problem", lambda: jm.solve(WORLD), "World cannot be solved", "Apprenticeship"),
    ("two expectations, one cost", lambda: imitate(expert=jm.ExpertExpectation([1, 2])),
     "2 expectations, there are 1 costs", "one expectation per cost"),
    ("policy as expert", lambda: imitate(expert=POLICY), "the expert is a Policy", "jm.record"),
    ("pair as budget", lambda: imitate(constraints=[([1.0], 2)]), "holds a tuple", "jm.Budget"),
    ("class as cost class", lambda: imitate(cost_class=jm.Simplex), "cost_class", r"Simplex\(\)"),
    ("two known costs", lambda: jm.Forward(WORLD, ROWS), "one cost, not 2", "Combine the columns"),
    ("witness of two weights",
     lambda: jm.problem.lower_bound(PROBLEM, jm.problem.Witness([1, 1], [0, 0])),
     "2 weights and 0 prices, the problem 1 costs", "of this problem"),
    ("witness of one value", lambda: jm.problem.lower_bound(PROBLEM, jm.problem.Witness([1], [0])),
     "values of the witness has 1 entries, expected 2", "each"),
    ("nan witness", lambda: jm.problem.Witness([NAN], [0, 0]),
     "cost_weights is not finite at 0", "Replace"),
]  # fmt: skip

BAD_SOLVER = [
    ("a class is no solver", lambda: jm.solve(PROBLEM, jm.LinearProgram),
     "LinearProgram'> is not a solver", r"LinearProgram\(\)"),
    ("a word is no solver", lambda: jm.solve(PROBLEM, "highs"), "'highs' is not a solver", "value"),
    ("a flag is no observer", lambda: jm.solve(PROBLEM, observer=True), "observer = True", "Event"),
    ("no thread", lambda: jm.LinearProgram(threads=0), "threads = 0", "whole number from 1"),
    ("no time", lambda: jm.LinearProgram(time_limit=0), "time_limit = 0", "above 0, or None"),
    ("nan time", lambda: jm.LinearProgram(time_limit=NAN), "time_limit = nan", "above 0, or None"),
    ("tolerance 2", lambda: jm.LinearProgram(tolerance=2), r"tolerance = 2\.0", "1e-7"),
    ("tolerance 0", lambda: jm.LinearProgram(tolerance=0), r"tolerance = 0\.0", "1e-7"),
    ("engine by name", lambda: jm.LinearProgram(engine="hipo"), "engine = 'hipo'", "Engine"),
]  # fmt: skip

BAD_GALLERY = [
    ("wall outside", lambda: jm.gallery.grid(4, walls=[(0, 0), (9, 0)]),
     r"wall at \(9, 0\) is outside the 4 x 4 grid", "from 0"),
    ("walls everywhere", lambda: jm.gallery.grid(1, macro_cells=1, walls=[(0, 0)]),
     "no free", "room"),
    ("start in a wall", lambda: jm.gallery.grid(4, walls=[(0, 0)], initial=(0, 0)),
     r"start \(0, 0\) is not a free cell", "without a wall"),
    ("start outside", lambda: jm.gallery.grid(4, initial=(4, 0)),
     r"start \(4, 0\)", "without a wall"),
    ("slip above one", lambda: jm.gallery.grid(4, slip=2), "slip=2", "between 0 and 1"),
    ("macro cells too small", lambda: jm.gallery.grid(2), "size=2, macro_cells=4", "size >= macro"),
    ("garnet of no branch", lambda: jm.gallery.garnet(5, 2, 0),
     r"garnet\(5, 2, 0", "between 1 and"),
    ("garnet of many branches", lambda: jm.gallery.garnet(5, 2, 6),
     r"garnet\(5, 2, 6", "between 1"),
    ("map without coordinates", lambda: jm.report.policy_map(WORLD, POLICY),
     "a policy map", "coordi"),
]  # fmt: skip

HEAD = "episode,t,state,action,terminated"
BAD_CSV = [
    ("column missing", lambda: load_csv("episode,t,state", "0,0,0"),
     "column.* action", "first line"),
    ("gap in t", lambda: load_csv(HEAD, "0,0,0,0,", "0,2,1,,"),
     "line 3: t is 2, expected 1", "Add what is missing"),
    ("no last row", lambda: load_csv(HEAD, "0,0,0,0,"),
     "episode 0 has no last row", "End each episode"),
    ("next episode too soon", lambda: load_csv(HEAD, "0,0,0,0,", "1,0,0,0,"),
     "line 3: episode 0 has no last row", "last row of an episode has no action"),
    ("episode resumed", lambda: load_csv(HEAD, "0,0,0,0,", "0,1,1,,", "0,0,0,0,"),
     "line 4: episode 0 goes on", "Sort the rows"),
    ("episode without action", lambda: load_csv(HEAD, "7,0,0,,"),
     "line 2: episode 7 has no", "A row"),
    ("text as state", lambda: load_csv(HEAD, "0,0,up,0,"), "line 2: state is 'up'", "Number"),
    ("text as time", lambda: load_csv(HEAD, "0,noon,0,0,"), "line 2: t is 'noon'", "A row is"),
    ("fraction as action", lambda: load_csv(HEAD, "0,0,0,0.5,"),
     "line 2: action is '0.5'", "A row is"),
    ("negative id", lambda: load_csv(HEAD, "0,0,-1,0,"), "line 2: state is -1", "A row is"),
    ("id beyond integers", lambda: load_csv(HEAD, f"0,0,{2**63},0,"),
     "line 2: state is 9", "A row is"),
    ("row cut short", lambda: load_csv(HEAD, "0,0"), "line 2: state is empty", "A row is"),
    ("flag", lambda: load_csv(HEAD, "0,0,0,0,", "0,1,1,,maybe"),
     "line 3: terminated is 'maybe'", "row"),
    ("empty file", load_csv, "column.* episode, t, state, action", "first line"),
    ("header alone", lambda: load_csv(HEAD), "holds no episode", "at least one"),
    ("not text", lambda: load(b"\xff\xfe\x00", jm.Demonstrations.load, "x.csv"), "x.csv", "UTF-8"),
    ("no such text", lambda: jm.Demonstrations.load("nowhere.csv"), "nowhere.csv does not", "path"),
]  # fmt: skip

BAD_FILE = [
    ("no such file", lambda: jm.World.load("nowhere"), "nowhere does not exist", "Check the path"),
    ("table as world", lambda: jm.World.load("laws.csv"), "laws.csv is a table", "jm.read_world"),
    ("directory", lambda: jm.World.load("."), "is not a whole journeyman file", "Write it again"),
    ("not a zip", lambda: load(b"hello"), "is not a whole journeyman file", "Write it again"),
    ("cut short", lambda: load(saved(POLICY)[:-30]), "is not a whole", "Write it again"),
    ("damaged inside", lambda: load(broken_deflate()), "is not a whole", "Write it again"),
    ("foreign", lambda: load(foreign()), "no readable header.json", "Give a policy file"),
    ("world as policy", lambda: load(saved(WORLD)), "holds a 'world'", "Give a policy file"),
    ("newer", lambda: load(zipped(header={"kind": "policy", "version": 99})),
     "version 99", "Upgrade"),
    ("endless version", lambda: load(zipped(header={"kind": "policy", "version": INF})),
     "no readable header.json", "Give a policy file"),
    ("list as header", lambda: load(zipped(header=[])), "no readable header.json", "Give a policy"),
    ("array missing", lambda: load(zipped(announced("<f8", (1,), bytes(8)))),
     "lacks the array 'choice_offsets'", "Write it again"),
    ("lying length", lambda: load(zipped(announced("<f8", (10**12,)))),
     "probabilities.npy announces 1000000000000 items of float64 but holds 0", "doubtful"),
    ("negative lengths", lambda: load(zipped(announced("<f8", (-2, -4), bytes(64)))),
     "probabilities.npy announces", "doubtful origin"),
    ("items of no size", lambda: load(zipped(announced("|V0", (10**12,)))),
     "probabilities.npy announces", "doubtful origin"),
    ("nested items", lambda: load(zipped(announced(("<f8", (2,)), (2,), bytes(32)))),
     "probabilities.npy announces", "doubtful origin"),
    ("not an array", lambda: load(zipped(b"hello")), "probabilities.npy is not an array", "Write"),
    ("pickle inside", lambda: load(zipped(pickled())), "items of object", "doubtful origin"),
    ("pointers inside", lambda: load(zipped(announced("|O", (1,), bytes(8)))),
     "items of object", "doubtful origin"),
    ("zip bomb", lambda: load(zipped(bytes(1 << 22), method=zipfile.ZIP_BZIP2)),
     "probabilities.npy would unpack to 4194304 bytes", "doubtful origin"),
]  # fmt: skip

BAD_WORLD_FILE = [
    ("hostile indices in a file", lambda: load(
        altered(WORLD, "world", {"indices": np.array([9, 0, 1])}), jm.World.load),
     "transition is not a sound sparse matrix", "coo_array"),
    ("indptr of text in a file", lambda: load(
        altered(WORLD, "world", {"indptr": np.array(["a"])}), jm.World.load),
     "transition is not a sound sparse matrix", "Write the file again"),
    ("text sink in a file", lambda: load(altered(WORLD, "world", sink="end"), jm.World.load),
     "sink = 'end'", "stays there"),
    ("no discount in a file", lambda: load(altered(WORLD, "world", discount=None), jm.World.load),
     "discount = None is not a number", "0.99"),
]  # fmt: skip

CORPUS = {
    jm.errors.InvalidWorld: BAD_WORLD + BAD_ARRAYS + BAD_TABLE + BAD_GALLERY + BAD_WORLD_FILE,
    jm.errors.InvalidCosts: BAD_COSTS,
    jm.errors.InvalidPolicy: BAD_POLICY,
    jm.errors.InvalidDemonstrations: BAD_DEMONSTRATIONS,
    jm.errors.InvalidProblem: BAD_PROBLEM,
    jm.errors.InvalidSolver: BAD_SOLVER,
    jm.errors.InvalidFile: BAD_CSV + BAD_FILE,
}
CASES = [
    Case(name, wrong, refusal, where, remedy)
    for refusal, cases in CORPUS.items()
    for name, wrong, where, remedy in cases
]

HOSTILE = {
    "COO row": "coo = sparse.coo_array(eye); coo.row[0] = 9 * 10**8; jm.World(coo, [1, 0], 0.9)",
    "LIL column": "lil = sparse.lil_array(eye); lil.rows[0] = [10**9]; jm.World(lil, [1, 0], 0.9)",
    "list of CSR": "csr = sparse.csr_array(eye); csr.indptr[1] = 9 * 10**8; "
    "jm.World.from_arrays([csr], [1, 0], 0.9, layout='asx')",
}

DEMOS = jm.Demonstrations([0, 0, 1], [1, 0], [0, 2], [True])
VALUES = {"world": WORLD, "policy": POLICY, "demonstrations": DEMOS, "demonstrations.csv": DEMOS}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong_input_is_refused_with_the_place_and_the_remedy(case):
    with pytest.raises(jm.errors.InvalidInput) as caught:
        case.wrong()
    assert type(caught.value) is case.refusal
    assert re.search(case.where, caught.value.what)
    assert re.search(case.remedy, caught.value.remedy)


def test_every_message_ends_with_the_remedy_as_a_sentence():
    for case in CASES:
        with pytest.raises(jm.errors.InvalidInput) as caught:
            case.wrong()
        what, remedy = caught.value.what, caught.value.remedy
        assert str(caught.value) == f"{what}. {remedy}."
        assert remedy[0].isupper()
        assert not {what[-1], remedy[-1]} & set(".!? ")


def test_the_corpus_visits_every_refusal():
    refusals = jm.errors.InvalidInput.__subclasses__()
    assert set(CORPUS) == {one for one in refusals if one.__module__ == jm.errors.__name__}


@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_sparse_matrix_is_refused_before_compiled_code_trusts_it(attack):
    setting = "import journeyman as jm, numpy as np; from scipy import sparse; eye = np.eye(2); "
    command = [sys.executable, "-c", setting + attack]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "InvalidWorld: transition is not a sound sparse matrix" in ran.stderr


@pytest.mark.parametrize("name", VALUES)
def test_a_save_without_its_directory_is_refused_and_makes_nothing(name, tmp_path):
    with pytest.raises(jm.errors.InvalidFile, match=r"absent.*Create"):
        VALUES[name].save(tmp_path / "absent" / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", VALUES)
def test_a_failing_save_keeps_the_old_file_and_leaves_no_other(name, tmp_path, monkeypatch):
    def full_disk(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / name
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        VALUES[name].save(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
