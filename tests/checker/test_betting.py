"""The checker's bets beside those of certificates: means, directions, errors over all of them."""

import numpy as np
import pytest

import journeyman as jm
from class_examples import NAMES, example
from journeyman.certificate import betting_means
from journeyman.checker import betting
from journeyman.checker.costs import read_class
from journeyman.costs import Polytope
from journeyman.costs.cost_class import Totals
from journeyman.demonstrations.reading_order import reading_order


def cost_class(name, num_costs):
    plain = {"infinity": jm.InfinityBall, "euclidean": jm.EuclideanBall, "simplex": jm.Simplex}
    return plain[name]() if name in plain else example(name, num_costs)


def both_classes(name, num_costs, matrix):
    own = cost_class(name, num_costs)
    vertices = own.vertices if isinstance(own, Polytope) else None
    return own, read_class(own.describe(), matrix, vertices)


@pytest.mark.parametrize("count", [1, 2, 5, 63, 64, 65, 300])
@pytest.mark.parametrize("delta", [0.3, 1e-6])
def test_means(count, delta):
    x = np.random.default_rng(count).beta(0.5, 2.0, (count, 7))
    assert betting.lower_means(x, delta) == pytest.approx(
        betting_means.lower_means(x, delta), abs=1e-9
    )


@pytest.mark.parametrize("name", ["infinity", "euclidean", "simplex", *NAMES])
@pytest.mark.parametrize("num_costs", [1, 3, 5])
def test_directions_of_classes(name, num_costs):
    rng = np.random.default_rng(num_costs)
    matrix = rng.uniform(-1, 1, (12, num_costs))
    own, other = both_classes(name, num_costs, matrix)
    mine, theirs = own.probes(num_costs), other.probes()
    assert len(mine) == len(theirs)
    for one, two in zip(mine, theirs, strict=True):
        assert np.unique(one.round(12), axis=0) == pytest.approx(np.unique(two.round(12), axis=0))
    tops = rng.normal(size=len(mine))
    assert own.combined(tops) == pytest.approx(other.combined(list(tops)))
    assert (own.is_symmetric, own.is_round) == (other.symmetric, other.round)
    axes = [one for one in (own.axes(num_costs), other.axes()) if one is not None]
    assert len(axes) == 2 * own.is_round
    z = rng.normal(size=(1000, num_costs))
    for one in axes:
        largest = [own.combined(np.array([(z @ d.T).max() for d in mine])) for z in z[:, None]]
        assert largest + np.linalg.norm(one * z, axis=1) == pytest.approx([own.gap(v) for v in z])
    points = mine[0] if mine else np.eye(num_costs)
    low, high = Totals(jm.CostBasis(matrix), 1.0).ends_of(points)
    assert low == pytest.approx((matrix @ points.T).min(axis=0))
    assert np.array([low, high]) == pytest.approx(np.array(other.ends_of(points)))


@pytest.mark.parametrize("count", [1, 2, 50])
@pytest.mark.parametrize("delta", [0.3, 1e-6])
def test_means_in_a_ball(count, delta):
    rng = np.random.default_rng(count)
    y, blur = rng.normal(size=(count, 3)), rng.random(count) / 10
    values, error = betting.mean_in_ball(y, blur, 5.0, delta)
    mine = betting_means.mean_in_ball(y, blur, 5.0, delta)
    assert values == pytest.approx(mine[0])
    assert error == pytest.approx(mine[1])


@pytest.mark.parametrize("num_costs", [17, 40])
def test_many_signs_in_parts(num_costs):
    matrix = np.random.default_rng(0).uniform(-1, 1, (4, num_costs))
    own, other = both_classes("infinity", num_costs, matrix)
    mine, theirs = own.probes(num_costs), other.probes()
    assert [len(one) for one in mine] == [len(one) for one in theirs]
    assert sum(np.log2(len(one)) for one in mine) == num_costs


@pytest.mark.parametrize("seed", range(4))
def test_ends_of_too_many_products(seed, monkeypatch):
    """Wider than the exact ones, never narrower, and the same on both sides."""
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(-1, 1, (30, 4)) if seed % 2 else np.eye(4)[rng.integers(0, 4, 30)]
    own, other = both_classes("infinity", 4, matrix)
    (points,), known = own.probes(4), Totals(jm.CostBasis(matrix), 1.0)
    exact = known.ends_of(points)
    for module in ("journeyman.costs.cost_class", "journeyman.checker.costs"):
        monkeypatch.setattr(f"{module}.MOST_PRODUCTS", 0)
    low, high = known.ends_of(points)
    assert (low <= exact[0] + 1e-12).all()
    assert (high >= exact[1] - 1e-12).all()
    assert np.array([low, high]) == pytest.approx(np.array(other.ends_of(points)))
    if not seed % 2:
        assert float((high - low).max()) <= 2.0 + 1e-12


@pytest.mark.parametrize(("count", "num_costs"), [(1, 1), (3, 2), (40, 3), (300, 8), (700, 9)])
def test_errors_over_all_directions(count, num_costs):
    rng = np.random.default_rng(count)
    d = jm.InfinityBall().probes(num_costs)[0]
    samples = rng.dirichlet(np.full(num_costs, 0.4), count) + 0.01 * rng.random((count, num_costs))
    reach = np.full(len(d), 1.3)
    centre = d @ samples.mean(axis=0)
    given = d, centre, samples, -reach, reach, 0.05 / len(d)
    shares = (samples @ d.T + reach) / (2 * reach)
    brute = centre - 2 * reach * betting_means.lower_means(shares, 0.05 / len(d)) + reach
    assert betting_means.largest_error(*given) == pytest.approx(float(brute.max()), abs=1e-9)
    assert betting.largest_error(*given) == pytest.approx(float(brute.max()), abs=1e-9)


def test_orders():
    rng = np.random.default_rng(0)
    episodes = [bytes(rng.integers(0, 3, 4).astype(np.uint8)) for _ in range(200)]
    order = reading_order(episodes)
    assert order.tolist() == betting.reading_order(episodes).tolist()
    assert sorted(order) == list(range(200))
    again = rng.permutation(200)
    moved = reading_order([episodes[k] for k in again])
    assert [episodes[again[k]] for k in moved] == [episodes[k] for k in order]
