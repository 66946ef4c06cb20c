from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

import journeyman as jm
from class_examples import belongs
from journeyman.testing.strategies import cost_classes, seeds

CLASSES = (jm.InfinityBall, jm.EuclideanBall, jm.Simplex)
every = pytest.mark.parametrize("kind", CLASSES)


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def extreme_points(cost_class, num_costs):
    """The vertices of a polytope W; for the Euclidean ball of the plane a fine polygon."""
    scale = cost_class.scaling(num_costs)
    if isinstance(cost_class, jm.InfinityBall):
        return scale * np.array(list(product((-1, 1), repeat=num_costs)))
    if isinstance(cost_class, jm.Simplex):
        return np.diag(scale)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    return scale * np.column_stack([np.cos(angles), np.sin(angles)])


@given(st.booleans(), st.integers(1, 5), seeds)
def test_the_gap_over_a_box_or_simplex_is_a_linear_program(one_sided, num_costs, seed):
    rng = np.random.default_rng(seed)
    z, scale = rng.normal(size=num_costs), rng.uniform(0.1, 3, num_costs)
    if one_sided:
        optimum = linprog(-z, A_eq=[1 / scale], b_eq=[1], bounds=(0, None))
    else:
        optimum = linprog(-z, bounds=np.column_stack([-scale, scale]))
    cost_class = (jm.Simplex if one_sided else jm.InfinityBall)(scale)
    assert cost_class.gap(z) == pytest.approx(-optimum.fun, abs=1e-9)


@pytest.mark.parametrize("scale", [None, [0.3, 2.0]])
@pytest.mark.parametrize("seed", range(5))
def test_the_gap_over_the_euclidean_ball_is_the_maximum_over_its_boundary(scale, seed):
    z, ball = drawn(seed, 2), jm.EuclideanBall(scale)
    best = (extreme_points(ball, 2) @ z).max()
    assert best <= ball.gap(z) + 1e-12
    assert best >= ball.gap(z) * (1 - 1e-6)


@given(st.data(), st.integers(1, 5), seeds)
def test_the_worst_case_lies_in_the_class_and_attains_the_gap(data, num_costs, seed):
    cost_class, z = data.draw(cost_classes(num_costs)), drawn(seed, num_costs)
    worst = cost_class.worst_case(z)
    assert belongs(cost_class, worst)
    assert worst @ z == pytest.approx(cost_class.gap(z), abs=1e-12)


@every
def test_no_difference_is_no_gap(kind):
    assert kind().gap(np.zeros(3)) == 0
    assert belongs(kind(), kind().worst_case(np.zeros(3)))


def test_only_the_simplex_rewards_surpassing_the_expert():
    assert [kind().gap([-2.0, -1.0]) < 0 for kind in CLASSES] == [False, False, True]


@given(st.data(), st.integers(1, 5), seeds, st.sampled_from([1e-3, 1.0, 1e3]))
def test_admitted_weights_lie_in_the_class_and_are_admitted_unchanged(data, num_costs, seed, size):
    cost_class = data.draw(cost_classes(num_costs))
    admitted = cost_class.admit(size * drawn(seed, num_costs))
    assert belongs(cost_class, admitted)
    np.testing.assert_allclose(cost_class.admit(admitted), admitted, rtol=1e-14, atol=1e-15)


@given(st.data(), st.integers(1, 5), seeds)
def test_members_of_the_class_are_left_alone(data, num_costs, seed):
    cost_class = data.draw(cost_classes(num_costs))
    rng = np.random.default_rng(seed)
    corners = [cost_class.worst_case(rng.normal(size=num_costs)) for _ in range(4)]
    member = rng.dirichlet(np.ones(4)) @ corners
    np.testing.assert_allclose(cost_class.admit(member), member, rtol=1e-14, atol=1e-15)


def test_weights_that_point_nowhere_are_admitted_to_the_middle_of_the_simplex():
    assert jm.Simplex().admit([-1.0, 0.0]).tolist() == [0.5, 0.5]


@every
@pytest.mark.parametrize("scale", [None, [0.3, 2.0]])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_the_largest_values_over_the_class(kind, scale, seed):
    cost_class, matrix = kind(scale), drawn(seed, 6, 2)
    images = matrix @ extreme_points(cost_class, 2).T
    assert cost_class.pointwise_bound(matrix) == pytest.approx(np.abs(images).max(), rel=1e-6)
    largest = np.linalg.norm(images, axis=0).max()
    assert cost_class.image_bound(matrix) == pytest.approx(largest, rel=1e-6)


@pytest.mark.parametrize("num_costs", [1, 3, 11, 12, 13, 14])
def test_the_image_bound_of_the_infinity_ball_enumerates_all_signs(num_costs):
    matrix = np.abs(drawn(num_costs, 5, num_costs)) * (-1.0) ** np.arange(num_costs)
    signs = np.array(list(product((-1, 1), repeat=num_costs)))
    largest = np.linalg.norm(signs @ matrix.T, axis=1).max()
    assert jm.InfinityBall().image_bound(matrix) == pytest.approx(largest, rel=1e-12)


def test_beyond_twenty_costs_the_image_bound_of_the_infinity_ball_is_an_upper_bound():
    matrix = drawn(0, 5, 21)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(5000, 21))
    bound = jm.InfinityBall().image_bound(matrix)
    assert bound >= np.linalg.norm(signs @ matrix.T, axis=1).max()
    assert bound == pytest.approx(np.linalg.norm(matrix, axis=0).sum())


def test_up_to_twenty_costs_it_is_sharper_than_that():
    matrix = drawn(0, 5, 20)
    assert jm.InfinityBall().image_bound(matrix) < 0.99 * np.linalg.norm(matrix, axis=0).sum()


@every
@pytest.mark.parametrize("scale", [None, [0.3, 2.0, 1.0]])
def test_bounds_of_sparse_and_dense_matrices_agree(kind, scale):
    dense = drawn(2, 8, 3) * (drawn(3, 8, 3) > 0)
    cost_class, thin = kind(scale), sparse.csr_array(dense)
    for bound in (cost_class.pointwise_bound, cost_class.image_bound):
        assert bound(thin) == pytest.approx(bound(dense), rel=1e-12)


@every
def test_a_scale_acts_like_a_rescaled_basis(kind):
    scale, matrix, z = np.array([0.5, 3.0, 1.0]), drawn(0, 4, 3), drawn(1, 3)
    assert kind(scale).gap(z) == pytest.approx(kind().gap(scale * z))
    assert kind(scale).pointwise_bound(matrix) == pytest.approx(
        kind().pointwise_bound(matrix * scale)
    )
    np.testing.assert_allclose(kind(scale).worst_case(z), scale * kind().worst_case(scale * z))


def test_the_known_cost_has_one_weight():
    known, cost = jm.costs.KnownCost(), drawn(0, 5, 1)
    assert known.gap([-2.5]) == -2.5
    assert known.worst_case([-2.5]).tolist() == known.admit([7.0]).tolist() == [1.0]
    assert known.pointwise_bound(cost) == pytest.approx(np.abs(cost).max())
    assert known.image_bound(cost) == pytest.approx(np.linalg.norm(cost))


@every
@pytest.mark.parametrize(
    ("scale", "message"),
    [([1.0, 0.0], r"scale\[1\] = 0.0"), ([-1.0], r"scale\[0\] = -1.0"), ([np.inf], "not finite")],
)
def test_scales_are_positive_and_finite(kind, scale, message):
    with pytest.raises(jm.errors.InvalidCosts, match=message):
        kind(scale)


@every
def test_there_is_one_scale_per_cost(kind):
    with pytest.raises(jm.errors.InvalidCosts, match="2 scales, the basis 3 costs"):
        kind([1.0, 2.0]).gap(np.ones(3))
