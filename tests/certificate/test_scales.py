"""Units have no meaning: bounds scale with the costs; a cost that never varies adds nothing."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.certificate.betting_means import upper_mean
from journeyman.certificate.expert_estimates import shaped_estimate
from journeyman.certificate.terms import total

WORLD, _, EXPERT = jm.gallery.grid(4)
DEMOS = jm.record(WORLD, EXPERT, trajectories=120, horizon=60, seed=0)
COSTS = np.random.default_rng(0).uniform(-1, 1, (WORLD.num_states, 3))


def shaped_radius(costs, kind):
    target = jm.ExpertExpectation.from_demonstrations(
        DEMOS, jm.CostBasis(costs), WORLD, method=jm.demonstrations.MonteCarlo()
    )
    problem = jm.Apprenticeship(WORLD, jm.CostBasis(costs), target, kind)
    return total(shaped_estimate(problem, 0.05).terms)


@pytest.mark.parametrize("kind", [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()])
@pytest.mark.parametrize("scale", [1e-90, 1e-30, 1e30, 1e90])
def test_the_radius_has_the_unit_of_the_costs(kind, scale):
    """Variances of squares of such costs are beyond float64."""
    assert shaped_radius(scale * COSTS, kind) == pytest.approx(
        scale * shaped_radius(COSTS, kind), rel=1e-6
    )


@pytest.mark.parametrize("kind", [jm.InfinityBall(), jm.EuclideanBall()])
@pytest.mark.parametrize("scale", [1.0, 0.01, 1e-6])
def test_a_constant_cost_hardly_adds_to_the_radius(kind, scale):
    more = np.column_stack([scale * COSTS, np.zeros(WORLD.num_states)])
    assert shaped_radius(more, kind) <= 1.05 * shaped_radius(scale * COSTS, kind)


def test_an_upper_mean_stays_within_its_width():
    samples = np.array([0.0, 1e-300, 2e-300])
    assert 1e-300 < upper_mean(samples, 2e-300, 0.05) <= 2e-300
    assert upper_mean(np.zeros(5), 0.0, 0.05) == 0.0


def test_to_a_one_sided_target_policies_are_not_called_alike():
    """The target is the worst there is: no policy is worse, many are better."""
    world = jm.World([[1, 0], [0, 1], [0, 1], [1, 0]], [1, 0], 0.5)
    basis = jm.CostBasis([[1.0, 1.0], [0.0, 0.0]])
    worst = jm.ExpertExpectation([2.0, 2.0])
    problem = jm.Apprenticeship(world, basis, worst, jm.Simplex())
    certificate = jm.certify(problem, jm.Policy([[1.0, 0.0], [1.0, 0.0]]))
    assert certificate.trivial_bound == pytest.approx(0, abs=1e-6)
    assert "alike" not in certificate.summary()
    better = jm.certify(problem, jm.Policy([[0.0, 1.0], [1.0, 0.0]]))
    assert better.bound == pytest.approx(-1.0)
    assert not better.vacuous


def test_a_copied_record_in_an_estimated_world_is_spoken_of():
    """Estimated laws cannot distinguish copies from chance: the summary says how many there are."""
    world, basis, expert = jm.gallery.grid(3, macro_cells=1)
    demos = jm.record(world, expert, trajectories=12, horizon=20, seed=0)
    rng = np.random.default_rng(0)
    counts = np.full(world.num_pairs, 400)
    laws = [rng.multinomial(400, row) / 400 for row in world.transition.toarray()]
    model = jm.World(np.array(laws), world.initial, world.discount, transition_counts=counts)
    copied = jm.Demonstrations.concatenate([demos] * 5)
    policy = jm.Policy.uniform(model)
    found = jm.certify(jm.Apprenticeship(model, basis, copied), policy)
    assert found.valid
    words = "48 of the 60 demonstrations equal an earlier one: if they were copied"
    assert words in found.summary()
    honest = jm.certify(jm.Apprenticeship(model, basis, demos), policy)
    assert "equal an earlier one" not in honest.summary()
