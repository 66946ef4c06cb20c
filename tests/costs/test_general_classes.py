"""What every cost class promises, for classes that are not the paper's."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest

import journeyman as jm
from class_examples import NAMES, example, largest, membership
from journeyman.costs import L1Ball, Polytope, PriorBall
from journeyman.costs.cost_class import BALL, BOX, LARGEST, Totals
from journeyman.costs.registry import cost_class_from
from journeyman.errors import InvalidCosts

every = pytest.mark.parametrize("name", NAMES)
every_count = pytest.mark.parametrize("num_costs", [1, 2, 4])
PAPERS = (jm.InfinityBall(), jm.EuclideanBall([0.5, 2.0, 1.0]), jm.Simplex([1.0, 0.3, 2.0]))


def inside(cost_class, w, slack=1e-7):
    v = cp.Variable(w.size)
    program = cp.Problem(cp.Minimize(cp.norm(v - w, "inf")), membership(cost_class, v))
    return program.solve(solver=cp.CLARABEL) <= slack * (1 + np.abs(w).max())


@every
@every_count
def test_the_gap_is_the_largest_cost_over_the_class(name, num_costs):
    cost_class = example(name, num_costs)
    for z in np.random.default_rng(1).normal(size=(4, num_costs)):
        assert cost_class.gap(z) == pytest.approx(largest(cost_class, z), abs=1e-6)
        worst = cost_class.worst_case(z)
        assert worst @ z == pytest.approx(cost_class.gap(z), abs=1e-12)
        assert inside(cost_class, worst)


@every
@every_count
def test_admitted_weights_lie_in_the_class_and_members_are_left_alone(name, num_costs):
    cost_class, rng = example(name, num_costs), np.random.default_rng(2)
    for size in (1e-3, 1.0, 1e3):
        admitted = cost_class.admit(size * rng.normal(size=num_costs))
        assert inside(cost_class, admitted)
        again = cost_class.admit(admitted)
        np.testing.assert_allclose(again, admitted, rtol=1e-12, atol=1e-12)
    corners = [cost_class.worst_case(rng.normal(size=num_costs)) for _ in range(4)]
    member = rng.dirichlet(np.ones(4)) @ corners
    np.testing.assert_allclose(cost_class.admit(member), member, rtol=1e-9, atol=1e-9)


@every
@every_count
def test_bounds_hold_over_the_class(name, num_costs):
    cost_class, rng = example(name, num_costs), np.random.default_rng(3)
    matrix = rng.normal(size=(5, num_costs))
    exact = max(largest(cost_class, sign * row) for row in matrix for sign in (1, -1))
    assert cost_class.pointwise_bound(matrix) == pytest.approx(exact, abs=1e-6)
    members = [cost_class.worst_case(z) for z in rng.normal(size=(200, num_costs))]
    image = max(np.linalg.norm(matrix @ w) for w in members)
    assert cost_class.image_bound(matrix) >= image - 1e-12
    sizes = np.array([largest(cost_class, sign * e) for e in np.eye(num_costs) for sign in (1, -1)])
    widest = sizes.reshape(num_costs, 2).max(axis=1)
    np.testing.assert_allclose(cost_class.scaling(num_costs), widest, atol=1e-6)
    assert cost_class.contains_zero == inside(cost_class, np.zeros(num_costs), 1e-9)


@every
@every_count
def test_gaps_over_a_box_are_enclosed(name, num_costs):
    cost_class, rng = example(name, num_costs), np.random.default_rng(4)
    low = rng.normal(size=num_costs)
    high = low + rng.uniform(0, 2, num_costs)
    corners = np.array(list(product(*zip(low, high, strict=True))))
    most = max(cost_class.gap(corner) for corner in corners)
    assert most - 1e-12 <= cost_class.largest_gap(low, high)
    inner = rng.uniform(low, high, (300, num_costs))
    assert cost_class.least_gap(low, high) <= min(cost_class.gap(z) for z in inner) + 1e-12
    symmetric = max(cost_class.gap(high * signs) for signs in product((-1, 1), repeat=num_costs))
    assert cost_class.largest_gap(-np.abs(high), np.abs(high)) == pytest.approx(symmetric)


@every
@every_count
def test_the_quadratic_bound_holds(name, num_costs):
    cost_class, rng = example(name, num_costs), np.random.default_rng(5)
    spread = rng.uniform(0.1, 2, num_costs)
    weights, factor = cost_class.quadratic_bound(spread)
    for x in rng.normal(size=(100, num_costs)):
        both = max(cost_class.gap(x), cost_class.gap(-x))
        assert both <= factor * np.sqrt((x**2 / weights).sum()) + 1e-12
    assert cost_class.deviation(spread) > 0


@every
@every_count
@pytest.mark.parametrize("temperature", [0.01, 1.0])
def test_the_smoothed_gap_is_near_and_its_weights_are_its_gradient(name, num_costs, temperature):
    cost_class = example(name, num_costs)
    for z in np.random.default_rng(6).normal(size=(5, num_costs)):
        value, weights = cost_class.smoothed(z, temperature)
        error = cost_class.smoothing_error(num_costs) * temperature
        assert abs(value - cost_class.gap(z)) <= error + 1e-12
        assert inside(cost_class, weights)
        slopes = [
            (
                cost_class.smoothed(z + e, temperature)[0]
                - cost_class.smoothed(z - e, temperature)[0]
            )
            / 2e-6
            for e in 1e-6 * np.eye(num_costs)
        ]
        np.testing.assert_allclose(slopes, weights, atol=1e-5 / temperature)


@every
@every_count
def test_the_weight_set_is_the_class(name, num_costs):
    """Both a member made of v and the largest product over v."""
    check_weight_set(example(name, num_costs), num_costs)


@pytest.mark.parametrize("cost_class", PAPERS, ids=lambda one: one.name)
def test_the_weight_sets_of_the_papers_classes_are_they(cost_class):
    check_weight_set(cost_class, 3)


def check_weight_set(cost_class, num_costs):
    rng = np.random.default_rng(7)
    units = cost_class.scaling(num_costs)
    for chosen, unit in (
        (cost_class.weight_set(num_costs), np.ones(num_costs)),
        (cost_class.weight_set(num_costs).in_units(units), units),
    ):
        middle = chosen.middle()
        assert inside(cost_class, unit * chosen.weights(middle))
        np.testing.assert_allclose(chosen.equations @ middle, chosen.right, atol=1e-12)
        for z in rng.normal(size=(4, num_costs)):
            found = chosen.centre @ z + chosen.support(chosen.pulled(z))
            assert found == pytest.approx(cost_class.gap(z / unit), abs=1e-9)
            v = cp.Variable(chosen.size)
            rules = [chosen.equations @ v == chosen.right] if chosen.right.size else []
            rules += [v >= chosen.lower, v <= chosen.upper]
            if chosen.axes is not None:
                rules.append(cp.norm2(cp.multiply(1 / chosen.axes, v)) <= 1)
            program = cp.Problem(cp.Maximize(chosen.pulled(z) @ v), rules)
            program.solve(solver=cp.CLARABEL)
            assert program.value + chosen.centre @ z == pytest.approx(found, abs=1e-6)
        admitted = chosen.admit(rng.normal(size=chosen.size))
        assert inside(cost_class, unit * chosen.weights(admitted))
        np.testing.assert_allclose(chosen.equations @ admitted, chosen.right, atol=1e-9)


@every
@every_count
def test_compiled_loops_are_given_the_worst_case(name, num_costs):
    cost_class = example(name, num_costs)
    code, scale, centre, points = cost_class.kernel_form(num_costs)
    for z in np.random.default_rng(8).normal(size=(5, num_costs)):
        if code == BOX:
            weights = centre + scale * np.sign(z)
        elif code == BALL:
            weights = centre + scale * (scale * z) / np.linalg.norm(scale * z)
        else:
            assert code != LARGEST
            weights = points[np.argmax(points @ z)]
        assert weights @ z == pytest.approx(cost_class.gap(z), abs=1e-12)


@every
@every_count
def test_a_description_is_the_class_again(name, num_costs):
    cost_class = example(name, num_costs)
    twin = cost_class_from(cost_class.describe())
    assert twin.describe() == cost_class.describe()
    assert twin.same_as(cost_class, num_costs)
    z = np.random.default_rng(9).normal(size=num_costs)
    assert twin.gap(z) == cost_class.gap(z)


@every
@pytest.mark.parametrize("two_sided", [False, True])
def test_radii_cover_the_error_of_a_mean(name, two_sided):
    """Trajectories of two states, of which either is never left: the worst that can be."""
    num_costs, m, delta, runs = 3, 40, 0.1, 2000
    cost_class, rng = example(name, num_costs), np.random.default_rng(10)
    rows = rng.uniform(-1, 1, (2, num_costs))
    totals = Totals(jm.CostBasis(rows), 10.0)
    means = rng.binomial(m, 0.5, runs)[:, np.newaxis] / m
    errors = 10.0 * (means * rows[0] + (1 - means) * rows[1] - rows.mean(axis=0))
    gaps = np.array([cost_class.gap(error) for error in errors])
    if two_sided:
        gaps = np.maximum(gaps, [cost_class.gap(-error) for error in errors])
    for rate in cost_class.rates(totals, delta, two_sided=two_sided):
        assert (gaps > rate.at(m)).mean() <= delta
        assert rate.at(m) < 50 * np.quantile(gaps, 1 - delta) + 1e-9


@every
def test_rows_of_declared_ranges_are_as_large_as_any(name):
    cost_class, rng = example(name, 3), np.random.default_rng(11)
    low = rng.normal(size=3)
    high = low + rng.uniform(0, 2, 3)
    rows = cost_class.extreme_rows(low, high, np.inf)
    basis = jm.CostBasis(rows)
    np.testing.assert_allclose(basis.lowest, low)
    np.testing.assert_allclose(basis.highest, high)
    any_rows = rng.uniform(low, high, (500, 3))
    assert cost_class.pointwise_bound(rows) >= cost_class.pointwise_bound(any_rows) - 1e-12
    centred = cost_class.pointwise_bound(any_rows - basis.centre)
    assert cost_class.bound_about_middle(basis) >= centred - 1e-12


def test_the_l1_ball_counts_the_worst_cost_only():
    assert L1Ball().gap([1.0, -2.0, 0.5]) == 2.0
    assert L1Ball().worst_case([1.0, -2.0]).tolist() == [0.0, -1.0]


def test_a_prior_is_refused_without_sense():
    with pytest.raises(jm.errors.InvalidCosts, match="norm = 'taxicab'"):
        PriorBall([1.0], 0.5, "taxicab")
    with pytest.raises(jm.errors.InvalidCosts, match="radius"):
        PriorBall([1.0], 0.0)
    with pytest.raises(jm.errors.InvalidCosts, match="2 prior weights, the basis 3 costs"):
        PriorBall([1.0, 2.0], 0.5).gap(np.ones(3))
    with pytest.raises(jm.errors.InvalidCosts, match="beside a norm that is a ball"):
        PriorBall([1.0], 0.5, jm.EuclideanBall(), scale=[2.0])
    with pytest.raises(jm.errors.InvalidCosts, match="1 scales, the basis 2 costs"):
        PriorBall([1.0, 2.0], 0.5, scale=[1.0])


def test_a_polytope_is_bounded_and_not_empty():
    with pytest.raises(jm.errors.InvalidCosts, match="the weight of cost 1 grows without end"):
        Polytope([[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 1.0, 1.0])
    with pytest.raises(jm.errors.InvalidCosts, match="the weight of cost 0 falls without end"):
        Polytope([[1.0]], [1.0])
    with pytest.raises(jm.errors.InvalidCosts, match="no weights satisfy all rows"):
        Polytope([[1.0], [-1.0]], [-1.0, -1.0])
    with pytest.raises(jm.errors.InvalidCosts, match="the weight of cost 1 is zero in all"):
        Polytope([[1, 0], [-1, 0], [0, 1], [0, -1]], [1.0, 1.0, 0.0, 0.0])
    with pytest.raises(jm.errors.InvalidCosts, match="2 entries, the basis has 3 costs"):
        Polytope([[1, 0], [-1, 0], [0, 1], [0, -1]], np.ones(4)).gap(np.ones(3))


def test_polytopes_of_too_many_vertices_are_refused():
    with pytest.raises(jm.errors.InvalidCosts, match="more than 20,000 vertices"):
        Polytope(np.vstack([np.eye(30), -np.eye(30)]), np.ones(60))


def test_ratios_of_many_prices_have_few_vertices():
    count = 30
    chain = np.eye(count)[1:] - np.eye(count)[:-1]
    one = np.ones((1, count))
    falling = Polytope(
        np.vstack([-np.eye(count)[-1:], chain, one, -one]), np.r_[np.zeros(count), 1.0, -1.0]
    )
    assert len(falling.vertices) == count
    z = np.random.default_rng(0).normal(size=count)
    means = np.cumsum(z) / np.arange(1, count + 1)
    assert falling.gap(z) == pytest.approx(means.max())


def test_a_point_is_a_polytope_too():
    point = Polytope([[1, 0], [-1, 0], [0, 1], [0, -1]], [2.0, -2.0, 3.0, -3.0])
    np.testing.assert_allclose(point.vertices, [[2.0, 3.0]])
    assert point.gap([1.0, -1.0]) == pytest.approx(-1.0)


def test_polytopes_that_cannot_be_resolved_are_refused():
    """A vertex that is lost to rounding would make gaps, and so bounds, too small."""
    box = [[1, 0], [-1, 0], [0, 1], [0, -1]]
    with pytest.raises(InvalidCosts, match="too different for exact vertices"):
        Polytope(box, [2e8, -1e8, 1, -0.01])
    with pytest.raises(InvalidCosts, match="too thin"):
        Polytope(box, [1, -1 + 1e-7, 1, 0])
    assert Polytope(box, [200, -100, 0.24, -0.22]).gap([0, 1]) == pytest.approx(0.24, rel=1e-12)
    assert Polytope([*box, [0, 0]], [1, 1, 1, 1, 0]).vertices.shape == (4, 2)
    with pytest.raises(InvalidCosts, match="row 4 is zero"):
        Polytope([*box, [0, 0]], [1, 1, 1, 1, -1])


def test_members_of_a_prior_ball_are_left_alone_to_the_bit():
    rng = np.random.default_rng(0)
    for _ in range(50):
        prior = rng.normal(size=3)
        ball = PriorBall(prior, 1.1 * float(np.abs(prior).max()))
        assert ball.contains_zero
        assert not ball.admit(np.zeros(3)).any()


def test_weights_of_zero_leave_nothing_of_an_infinite_range():
    ends = np.array([-np.inf, -1.0]), np.array([np.inf, 1.0])
    flat = Polytope([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 0, 1, 0])
    assert flat.largest_gap(*ends) == np.inf
    assert PriorBall([0.0, 1.0], 1.0).largest_gap(*ends) == np.inf
    assert not np.isnan(flat.least_gap(*ends))


@pytest.mark.parametrize("norm", [["l1"], None, 2, {"norm": "l1"}])
def test_a_norm_that_is_no_word_and_no_ball_is_refused(norm):
    with pytest.raises(InvalidCosts, match=r"norm = .*Give one of infinity, euclidean, l1"):
        PriorBall([1.0], 1.0, norm=norm)


def test_a_prior_without_weights_is_refused():
    with pytest.raises(InvalidCosts, match=r"no weights.*Give one weight per cost"):
        PriorBall([], 1.0)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "kind", [PriorBall([1.0, 2.0], 0.5), Polytope([[1, 0], [0, 1], [-1, -1]], [1, 1, 0])]
)
def test_differences_of_another_size_are_refused_and_not_spread(kind, size):
    wrong, right = np.ones(size), np.ones(2)
    for ask in (
        lambda: kind.gap(wrong), lambda: kind.worst_case(wrong),
        lambda: kind.largest_gap(-wrong, wrong), lambda: kind.least_gap(-wrong, wrong),
        lambda: kind.largest_gap(-right, wrong), lambda: kind.least_gap(-wrong, right),
    ):  # fmt: skip
        with pytest.raises(InvalidCosts, match="cost"):
            ask()
