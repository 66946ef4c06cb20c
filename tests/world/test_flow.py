import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from journeyman.testing.strategies import measures, worlds

PRECISION = 1e-12


def dense(world):
    """E = B - discount P, entry by entry."""
    matrix = -world.discount * world.transition.toarray()
    for pair, state in enumerate(world.pairs.states):
        matrix[pair, state] += 1.0
    return matrix


def state_vectors(world):
    return np.random.default_rng(world.num_pairs).normal(size=world.num_states)


@given(st.data())
def test_apply_is_the_transposed_product(data):
    world = data.draw(worlds())
    measure = data.draw(measures(world))
    scale = max(1.0, np.abs(measure).sum())
    expected = dense(world).T @ measure
    np.testing.assert_allclose(world.flow.apply(measure), expected, rtol=0, atol=PRECISION * scale)
    np.testing.assert_allclose(
        world.flow.residual(measure), world.initial - expected, rtol=0, atol=PRECISION * scale
    )


@given(worlds())
def test_adjoint_is_the_product(world):
    values = state_vectors(world)
    np.testing.assert_allclose(
        world.flow.adjoint(values), dense(world) @ values, rtol=0, atol=PRECISION
    )


@given(st.data())
def test_apply_and_adjoint_are_adjoint(data):
    world = data.draw(worlds())
    measure, values = data.draw(measures(world)), state_vectors(world)
    left, right = world.flow.apply(measure) @ values, measure @ world.flow.adjoint(values)
    scale = max(1.0, np.abs(measure).sum() * np.abs(values).max())
    assert abs(left - right) <= PRECISION * scale


@given(worlds())
def test_the_matrix_is_the_operator(world):
    np.testing.assert_allclose(world.flow.matrix().toarray(), dense(world), rtol=0, atol=PRECISION)


@given(worlds())
def test_the_columns_are_those_of_the_matrix(world):
    expected = dense(world)
    for state in range(world.num_states):
        rows, entries = world.flow.column(state)
        assert np.array_equal(rows, np.unique(rows))
        column = np.zeros(world.num_pairs)
        column[rows] = entries
        np.testing.assert_allclose(column, expected[:, state], rtol=0, atol=PRECISION)


@given(worlds())
def test_constant_values_lose_their_discount(world):
    np.testing.assert_allclose(
        world.flow.adjoint(np.ones(world.num_states)), 1 - world.discount, rtol=0, atol=PRECISION
    )
