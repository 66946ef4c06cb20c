"""Totals of demonstrations and replicas of SGD-AL on three nodes: the bits of one process."""

import numpy as np
import pytest

import journeyman as jm
import task_work as work
from journeyman.demonstrations import expectation

WORLD, BASIS, EXPERT = jm.gallery.grid(5, macro_cells=5)
DEMOS = jm.record(WORLD, EXPERT, trajectories=40, horizon=40, seed=0)


@pytest.mark.parametrize(
    "method", [jm.demonstrations.MonteCarlo(), jm.demonstrations.ControlVariate()], ids=repr
)
def test_the_cluster_changes_no_bit_of_expectations(joined, monkeypatch, method):
    monkeypatch.setattr(expectation, "EPISODES_PER_TASK", 8)
    here, there = (
        jm.ExpertExpectation.from_demonstrations(
            DEMOS, BASIS, WORLD, method=method, executor=executor
        )
        for executor in (jm.Serial(), joined)
    )
    assert there.values.tobytes() == here.values.tobytes()
    assert there.spread.tobytes() == here.spread.tobytes()


@pytest.mark.parametrize("loses", [False, True])
def test_the_cluster_changes_no_bit_of_replicas(joined, tmp_path, loses):
    problem = jm.Apprenticeship(WORLD, BASIS, DEMOS)
    features = jm.features.partition(WORLD, DEMOS, num_cells=9)
    cluster = work.Losing(joined, tmp_path / "killed") if loses else joined
    here, there = (
        jm.solve(
            problem,
            jm.StochasticSubgradient(
                features, steps=2600, accuracy=0.0, seed=5, replicas=3, executor=executor
            ),
        )
        for executor in (jm.Serial(), cluster)
    )
    assert (tmp_path / "killed").exists() == loses
    assert there.reduced.coefficients.tobytes() == here.reduced.coefficients.tobytes()
    assert there.reduced.loss_lower_bound == here.reduced.loss_lower_bound
    assert there.optimisation.realised_regret == here.optimisation.realised_regret


def test_the_cluster_changes_no_bit_of_replicas_in_a_large_world(joined):
    network = jm.gallery.queues(4, buffers=(3, 2, 2, 3), discount=0.9)
    demos = jm.record(network.world, network.longer, trajectories=30, horizon=40, seed=0)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    features = jm.features.factored(network.world, network.radix, demos, [network.longer], 2)
    here, there = (
        jm.solve(
            problem,
            jm.StochasticSubgradient(features, steps=600, seed=5, replicas=3, executor=executor),
        )
        for executor in (jm.Serial(), joined)
    )
    assert there.reduced.coefficients.tobytes() == here.reduced.coefficients.tobytes()
    for one, other in zip(there.optimisation.trace, here.optimisation.trace, strict=True):
        assert one.step == other.step
        assert np.float64(one.loss).tobytes() == np.float64(other.loss).tobytes()
