import pickle

import numpy as np
import pytest

import journeyman as jm


def parity_and_effort(states, actions):
    return np.column_stack([states % 2, actions / 3])


def costs(function=parity_and_effort, names=("odd", "effort"), lowest=0, highest=1, **more):
    return jm.CostFunctions(function, names, lowest=lowest, highest=highest, **more)


def constant(*row):
    return lambda states, actions: np.tile(row, (states.size, 1))


def test_values_come_from_the_function():
    odd = costs()
    values = odd.at([7, 2**62, 3], [3, 0, 1])
    np.testing.assert_array_equal(values, [[1, 1], [0, 0], [1, 1 / 3]])
    assert values.dtype == np.float64
    assert (odd.num_costs, odd.names, odd.rewards) == (2, ("odd", "effort"), False)
    assert odd.at([], []).shape == (0, 2)
    assert repr(odd) == "CostFunctions(2 costs: odd, effort)"


def test_ranges_are_declared_for_all_costs_or_for_each():
    each = costs(lowest=[0, -2], highest=[1, 3])
    assert (each.lowest.tolist(), each.highest.tolist()) == ([0, -2], [1, 3])
    assert each.centre.tolist() == [0.5, 0.5]
    assert each.largest == 4.0
    assert costs(largest=1.5).largest == 1.5
    assert costs(largest=100).largest == 2.0


def test_the_function_gets_arrays_it_cannot_change():
    def vandal(states, actions):
        states[0] = 5
        return parity_and_effort(states, actions)

    with pytest.raises(ValueError, match="read-only"):
        costs(vandal).at(np.array([1]), np.array([0]))


def test_rounding_beyond_a_bound_is_brought_back():
    rounded = costs(constant(1 + 1e-14, -1e-14))
    assert rounded.at([0], [0]).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("value", [1.001, -0.001, np.nan, np.inf])
def test_a_value_outside_its_range_is_named(value):
    def rises(states, actions):
        return np.column_stack([np.zeros(states.size), np.where(states == 12, value, 0.5)])

    assert costs(rises).at([3], [0]).tolist() == [[0, 0.5]]
    with pytest.raises(
        jm.errors.InvalidCosts, match=f"'effort' is {value} in state 12, action 4, decl"
    ):
        costs(rises).at([3, 12], [0, 4])


def test_a_sum_beyond_the_largest_is_named():
    both = costs(constant(0.8, 0.9), largest=1.0)
    with pytest.raises(jm.errors.InvalidCosts, match="state 4, action 2 have absolute sum"):
        both.at([4], [2])


@pytest.mark.parametrize(
    "shape", [(2,), (2, 3), (1, 2), (2, 2, 1)], ids=str
)  # for two pairs and two costs
def test_a_result_of_another_shape_is_refused(shape):
    with pytest.raises(jm.errors.InvalidCosts, match=r"Return an array of shape \(2, 2\)"):
        costs(lambda states, actions: np.zeros(shape)).at([0, 1], [0, 0])


def test_costs_of_one_factor_are_kept():
    table = costs(by_factor={1: (3, [0, 0.5, 1])}).by_factor
    factor, values = table[1]
    assert (list(table), factor, values.tolist()) == ([1], 3, [0, 0.5, 1])
    assert costs().by_factor == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: costs(np.eye(2)), "function is a ndarray"),
        (lambda: costs(names=()), r"names = \(\)"),
        (lambda: costs(names="ab"), "names = 'ab'"),
        (lambda: costs(names=("a", "a")), "Name each cost once"),
        (lambda: costs(lowest=[0]), "lowest has 1 entries, expected 2"),
        (lambda: costs(highest=[1, np.nan]), "highest is not finite"),
        (lambda: costs(lowest=[0, 2]), "'effort' is declared between 2.0 and 1.0"),
        (lambda: costs(largest=-1), "largest = -1"),
        (lambda: costs(largest=np.inf), "largest is not finite"),
        (lambda: costs(lowest=0.6, largest=1), "no sum is below 1.2"),
        (lambda: costs(by_factor={2: (0, [0])}), "cost 2 depends on factor 0"),
        (lambda: costs(by_factor={0: (-1, [0])}), "depends on factor -1"),
        (lambda: costs(by_factor={0: (1, [0, 2])}), "'odd' is 2.0 when factor 1 is 1"),
        (lambda: costs().at([0], [0, 1]), "actions has 2 entries"),
        (lambda: costs().at([0.5], [0]), "not a whole number"),
    ],
)
def test_wrong_declarations_are_refused(wrong, message):
    with pytest.raises(jm.errors.InvalidCosts, match=message):
        wrong()


def test_costs_travel_to_other_processes():
    again = pickle.loads(pickle.dumps(costs(by_factor={0: (1, [0, 1])})))
    np.testing.assert_array_equal(again.at([3], [1]), costs().at([3], [1]))
    assert again.by_factor[0][1].tolist() == [0, 1]
