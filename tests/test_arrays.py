"""Values own their arrays: nobody can change them from outside."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.arrays import generator, integer_array, real_array, real_matrix
from journeyman.errors import InvalidInput

ROWS = np.array([[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]])
OFFSETS = np.array([0, 2, 3])
WORLD = jm.World(
    ROWS, [1.0, 0.0], 0.9, choice_offsets=OFFSETS, coordinates=np.array([[0.0], [1.0]])
)
UNIFORM = jm.Policy.uniform(WORLD)
DEMOS = jm.record(WORLD, UNIFORM, trajectories=3, horizon=4, seed=0)
BASIS = jm.CostBasis(np.eye(2))
PROBLEM = jm.Apprenticeship(
    WORLD, BASIS, DEMOS, jm.EuclideanBall(scale=[1.0, 2.0]), [jm.Budget([1.0, 0.0], 9.0)]
)

OWNERS = {
    "dense world": (lambda given: jm.World(given, [1, 0], 0.9, choice_offsets=OFFSETS), ROWS),
    "initial": (lambda given: jm.World(np.eye(2), given, 0.9), np.array([0.5, 0.5])),
    "choice offsets": (lambda given: jm.World(ROWS, [1, 0], 0.9, choice_offsets=given), OFFSETS),
    "coordinates": (
        lambda given: jm.World(np.eye(2), [1, 0], 0.9, coordinates=given),
        np.array([[0.0], [1.0]]),
    ),
    "table policy": (jm.Policy, np.array([[0.5, 0.5], [0.25, 0.75]])),
    "pair policy": (lambda given: jm.Policy(given, OFFSETS), np.array([0.5, 0.5, 1.0])),
    "cost table": (jm.CostBasis, ROWS),
    "cost vector": (jm.CostBasis, ROWS[:, 0]),
    "rewards": (jm.CostBasis.from_rewards, ROWS),
    "scale": (jm.InfinityBall, np.array([1.0, 2.0])),
    "budget": (lambda given: jm.Budget(given, 1.0), np.array([1.0, 2.0])),
    "expectation": (jm.ExpertExpectation, np.array([1.0, 2.0])),
    "witness": (lambda given: jm.problem.Witness(given, given, given), np.array([1.0, 2.0])),
    "states": (lambda given: jm.Demonstrations(given, [0], [0, 1]), np.array([0, 1])),
    "actions": (lambda given: jm.Demonstrations([0, 0, 1], given, [0, 2]), np.array([1, 0])),
    "episode offsets": (lambda given: jm.Demonstrations([0, 1], [0], given), np.array([0, 1])),
    "terminated": (lambda given: jm.Demonstrations([0, 1], [0], [0, 1], given), np.array([True])),
}

VALUES = {
    "world": WORLD,
    "gymnasium world": jm.World.from_gymnasium([[[(1.0, 0, 0.0, False)]]], 0.9, initial=[1.0]),
    "flow": WORLD.flow,
    "policy": UNIFORM,
    "dense costs": BASIS,
    "sparse costs": jm.CostBasis(sparse.csr_array(ROWS)),
    "dense rewards": jm.CostBasis.from_rewards(ROWS),
    "sparse rewards": jm.CostBasis.from_rewards(sparse.csr_array(ROWS)),
    "demonstrations": DEMOS,
    "plan": jm.plan(WORLD, [1.0, 0.0]),
    "plan of a free world": jm.plan(WORLD, [0.0, 0.0]),
    "problem": PROBLEM,
    "answer": jm.solve(PROBLEM),
}


def arrays_of(value):
    """Every array stored in the fields of a value, and in theirs."""
    if isinstance(value, np.ndarray):
        return [value]
    if sparse.issparse(value):
        return [value.data, value.indices, value.indptr]
    parts = value if isinstance(value, tuple) else ()
    if is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
    return [array for part in parts for array in arrays_of(part)]


@pytest.mark.parametrize("name", OWNERS)
def test_a_value_does_not_change_with_the_array_it_was_made_of(name):
    make, content = OWNERS[name]
    given = content.copy()
    value = make(given)
    before = [array.copy() for array in arrays_of(value)]
    given[...] = 0
    for array, old in zip(arrays_of(value), before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize(
    "make", [lambda given: jm.World(given, [1, 0], 0.9, choice_offsets=OFFSETS), jm.CostBasis]
)
def test_a_value_does_not_change_with_the_sparse_matrix_it_was_made_of(make, form):
    given = form(ROWS)
    value = make(given)
    before = [array.copy() for array in arrays_of(value)]
    given.data[...] = 0
    for array, old in zip(arrays_of(value), before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_the_sparse_matrix_a_world_was_made_of_stays_as_it_was(form):
    given = form(ROWS)
    jm.World(given, [1, 0], 0.9, choice_offsets=OFFSETS)
    assert given.data.flags.writeable
    np.testing.assert_array_equal(given.toarray(), ROWS)


@pytest.mark.parametrize("name", VALUES)
def test_the_arrays_of_a_value_are_read_only(name):
    arrays = arrays_of(VALUES[name])
    assert arrays
    assert not any(array.flags.writeable for array in arrays)


def test_a_field_of_a_value_cannot_be_set():
    with pytest.raises(AttributeError):
        WORLD.discount = 0.5


@pytest.mark.parametrize("ids", [[0, 3], [0.0, 3.0], np.array([0, 3], np.uint8), (0, 3)])
def test_whole_numbers_of_every_kind_serve_as_ids(ids):
    checked = integer_array("ids", ids, refusal=InvalidInput)
    assert checked.dtype == np.int64
    assert checked.tolist() == [0, 3]


def test_a_vector_serves_as_a_matrix_of_one_column():
    assert real_matrix("matrix", [1, 2, 3], InvalidInput).tolist() == [[1.0], [2.0], [3.0]]


def test_repeated_sparse_entries_add_up():
    given = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    matrix = real_matrix("matrix", given, InvalidInput)
    assert matrix.nnz == 1
    assert matrix.toarray().tolist() == [[0.0, 3.0]]


def test_numbers_of_other_kinds_become_float64():
    assert real_array("values", [True, 2], ndim=1, refusal=InvalidInput).dtype == np.float64


def test_a_seed_is_a_number_or_a_generator_that_goes_on():
    assert generator(7).random() == generator(7).random()
    rng = generator(7)
    assert generator(rng) is rng
