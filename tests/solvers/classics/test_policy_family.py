"""Products with scores and the Fisher matrix, against matrices that are written out."""

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.solvers.classics.policy_family import PolicyFamily
from journeyman.testing import Shape, random_world

SHAPES = (Shape.RAGGED, Shape.DENSE, Shape.SINGLE_ACTION)


def family_of(world, kind, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "tabular":
        return PolicyFamily(world)
    columns = rng.normal(size=(world.num_pairs, 4)) * [1.0, 50.0, 1e-3, 1.0]
    if kind == "sparse":
        columns = sparse.csr_array(columns * (rng.random(columns.shape) < 0.5))
    base = rng.normal(size=world.num_pairs) if kind == "dense" else None
    return PolicyFamily(world, jm.features.Features(columns, base))


def scores_of(family, theta, size=1e-6):
    """grad log pi by central differences: (pairs x parameters)."""
    steps = size * np.eye(theta.size)
    return np.column_stack(
        [(family.log_law(theta + e) - family.log_law(theta - e)) / (2 * size) for e in steps]
    )


@pytest.mark.parametrize("kind", ["tabular", "dense", "sparse"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_products_are_those_of_the_written_out_matrices(shape, kind):
    world = random_world(1, shape)
    family = family_of(world, kind)
    rng = np.random.default_rng(2)
    theta, v = rng.normal(size=(2, family.num_parameters))
    u, mass = rng.normal(size=world.num_pairs), rng.random(world.num_states)
    law, scores = family.law(theta), scores_of(family, theta)
    fisher = scores.T @ np.diag(world.pairs.spread(mass) * law) @ scores
    assert np.allclose(world.pairs.total(law), 1.0)
    assert np.allclose(family.scores_times(law, v), scores @ v, atol=1e-7)
    assert np.allclose(family.gradient(law, u), scores.T @ u, atol=1e-7)
    assert np.allclose(family.fisher_times(law, mass, v), fisher @ v, atol=1e-7)
    assert (family.fisher_scale(law, mass) >= np.diag(fisher) - 1e-9).all()


def test_columns_are_brought_to_one_size():
    world = random_world(0)
    columns = np.random.default_rng(0).normal(size=(world.num_pairs, 2))
    theta = np.array([0.3, -0.7])
    small = PolicyFamily(world, jm.features.Features(columns)).law(theta)
    large = PolicyFamily(world, jm.features.Features(columns * [1e6, 1e-6])).law(theta)
    assert np.allclose(small, large, atol=1e-12)


def test_a_rare_action_can_come_back():
    world = random_world(0, Shape.DENSE)
    family = PolicyFamily(world)
    theta = np.zeros(world.num_pairs)
    theta[0] = 1e9
    law = family.law(family.restrained(theta))
    assert 0 < law[1] < 1e-12
    assert law[0] == pytest.approx(1.0)


def test_features_of_zeros_are_refused():
    world = random_world(0)
    with pytest.raises(jm.errors.InvalidSolver, match="zero"):
        PolicyFamily(world, jm.features.Features(np.zeros((world.num_pairs, 2))))


def test_a_large_grid_needs_no_matrix_over_parameters():
    world = jm.gallery.grid(128, stay=True, macro_cells=8).world
    family = PolicyFamily(world)
    law = family.law(np.zeros(world.num_pairs))
    mass = np.full(world.num_states, 1 / world.num_states)
    product = family.fisher_times(law, mass, np.ones(world.num_pairs))
    assert np.allclose(product, 0.0, atol=1e-15)  # equal logits are one policy
