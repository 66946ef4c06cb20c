import numpy as np
import pytest

import journeyman as jm


def test_wear_grows_by_the_same_law_and_starts_anew():
    world, basis, expert = jm.gallery.engine_replacement(6, increments=[0.2, 0.5, 0.3])
    rows = world.transition.toarray().reshape(6, 2, 6)
    assert rows[1, 0].tolist() == [0, 0.2, 0.5, 0.3, 0, 0]
    assert rows[4, 0] == pytest.approx([0, 0, 0, 0, 0.2, 0.8])
    assert rows[5, 0].tolist() == [0, 0, 0, 0, 0, 1]
    assert (rows[:, 1] == [0.2, 0.5, 0.3, 0, 0, 0]).all()
    assert basis.matrix.reshape(6, 2, 2)[3].tolist() == [[0.003, 0], [0, 1]]
    assert expert.pairs == world.pairs


def test_the_expert_is_the_logit_of_the_value_iteration_of_the_literature():
    """V(x) = -log(exp(-c(x) - g E V(x + o)) + exp(-RC - g E V(o))), iterated."""
    increments, (theta, price), discount = [0.35, 0.6, 0.05], (20.0, 2.0), 0.9
    example = jm.gallery.engine_replacement(
        12, increments=increments, weights=(theta, price), discount=discount
    )
    values = np.zeros(12)
    for _ in range(600):
        later = [sum(p * values[min(x + o, 11)] for o, p in enumerate(increments))
                 for x in range(12)]  # fmt: skip
        keep = np.array([0.001 * theta * x + discount * later[x] for x in range(12)])
        replace = price + discount * later[0]
        values = -np.logaddexp(-keep, -replace)
    wanted = 1 / (1 + np.exp(replace - keep))
    found = example.expert.probabilities(np.arange(12))[:, 1]
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize(
    "arguments",
    [{"bins": 1}, {"increments": [0.5, 0.6]}, {"weights": [1.0]}, {"bins": 2.5}],
)
def test_what_makes_no_sense_is_refused(arguments):
    with pytest.raises(jm.errors.InvalidWorld):
        jm.gallery.engine_replacement(**arguments)
