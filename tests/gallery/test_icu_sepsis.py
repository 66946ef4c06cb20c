from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import journeyman as jm

PACKAGE = Path(find_spec("icu_sepsis").submodule_search_locations[0])
ASSETS = PACKAGE / "envs" / "assets"
EXAMPLE = jm.gallery.icu_sepsis()
WORLD, BASIS, EXPERT = EXAMPLE
PAIRS = WORLD.pairs
DEATH, SURVIVAL, END = 713, 714, 715
ILL = PAIRS.states < DEATH


@pytest.fixture(scope="module")
def published():
    with np.load(ASSETS / "dynamics.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def admissible():
    """The admissible actions of each state, as the text file lists them."""
    lines = (ASSETS / "admissible_actions.txt").read_text(encoding="ascii").splitlines()
    return [[int(word) for word in line.split()] for line in lines[1:]]


def chain(policy):
    """The matrix of steps from patients' states under a policy of our world."""
    weighted = WORLD.transition.multiply(policy.on(WORLD)[:, np.newaxis]).tocsr()
    return np.add.reduceat(weighted.toarray(), PAIRS.offsets[:-1])[:DEATH]


def visits(steps):
    """Expected visits of patients' states without discounting."""
    return np.linalg.solve((np.eye(DEATH) - steps[:, :DEATH]).T, WORLD.initial[:DEATH])


def survival(policy):
    steps = chain(policy)
    return float(visits(steps) @ steps[:, SURVIVAL])


def test_survival_is_the_published_one():
    far = jm.gallery.icu_sepsis(discount=0.999999).world
    surviving = WORLD.transition[:, [SURVIVAL]].toarray().ravel() * ILL
    best = jm.plan(far, -surviving).policy
    found = [survival(policy) for policy in (EXPERT, jm.Policy.uniform(WORLD), best)]
    assert found == pytest.approx([0.7818, 0.7801, 0.8751], abs=1e-4)
    assert [round(value, 2) for value in found] == [0.78, 0.78, 0.88]


def test_the_published_rewards_are_the_survivals(published):
    expected = np.einsum("sax,sax->sa", published["tx_mat"], published["r_mat"])
    surviving = WORLD.transition[:, [SURVIVAL]].toarray().ravel()[ILL]
    states, actions = PAIRS.states[ILL], WORLD.observed_actions[ILL]
    np.testing.assert_allclose(expected[states, actions], surviving, atol=1e-12)


def test_the_actions_are_the_admissible_ones():
    assert (WORLD.num_states, WORLD.num_pairs, PAIRS.max_actions) == (716, 2241, 13)
    offered = np.split(WORLD.observed_actions, PAIRS.offsets[1:-1])
    assert [part.tolist() for part in offered[:DEATH]] == admissible()[:DEATH]
    assert [part.tolist() for part in offered[DEATH:]] == [[0]] * 3


def test_the_laws_of_admissible_actions_are_the_published_ones(published):
    laws = published["tx_mat"][PAIRS.states[ILL], WORLD.observed_actions[ILL]]
    np.testing.assert_allclose(WORLD.transition.toarray()[ILL], laws, atol=1e-14)
    np.testing.assert_array_equal(WORLD.initial, published["d_0"])
    assert WORLD.normalisation_error < 1e-14


def test_the_stay_ends_with_death_or_survival():
    assert np.flatnonzero(WORLD.absorbing).tolist() == [DEATH, SURVIVAL, END]
    assert WORLD.state_names[DEATH:] == ("death", "survival", "end")
    assert not WORLD.transition.toarray()[ILL, END].any()
    assert visits(chain(EXPERT)).sum() == pytest.approx(9.22, abs=0.05)


def test_costs_are_death_doses_and_sofa(published):
    death, fluids, vasopressors, sofa = BASIS.matrix[ILL].T
    states, actions = PAIRS.states[ILL], WORLD.observed_actions[ILL]
    assert BASIS.names == ("death", "fluids", "vasopressors", "SOFA")
    np.testing.assert_allclose(death, published["tx_mat"][states, actions, DEATH])
    np.testing.assert_array_equal(5 * (4 * fluids) + 4 * vasopressors, actions)
    np.testing.assert_allclose(sofa, published["sofa_scores"][states] / 24)


def test_costs_lie_between_zero_and_one_and_the_ends_cost_nothing():
    assert BASIS.lowest.tolist() == [0, 0, 0, 0]
    assert (BASIS.highest <= 1).all()
    assert BASIS.highest[1:3].tolist() == [1, 1]
    assert not BASIS.matrix[~ILL].any()
    assert (BASIS.matrix[ILL, 3] > 0).all()


def test_the_expert_moves_patients_like_the_published_policy(published):
    policy = published["expert_policy"][:DEATH]
    steps = np.einsum("sa,sax->sx", policy, published["tx_mat"][:DEATH])
    np.testing.assert_allclose(chain(EXPERT), steps, atol=1e-14)


def test_what_the_expert_leaves_out_is_as_documented(published):
    """The numbers of the module's docstring."""
    policy = published["expert_policy"][:DEATH]
    stay = visits(chain(EXPERT))
    doses = np.column_stack(np.divmod(np.arange(25), 5)) / 4
    mine = PAIRS.total(EXPERT.per_pair[:, np.newaxis] * BASIS.matrix)[:DEATH, 1:3]
    assert stay @ policy @ doses == pytest.approx([4.25, 0.81], abs=0.005)
    assert stay @ mine == pytest.approx([4.24, 0.36], abs=0.005)
    left_out = np.array([row.sum() for row in map(np.delete, policy, admissible())])
    assert stay @ left_out / stay.sum() == pytest.approx(0.12, abs=0.005)


def test_doses_distinguish_the_clinicians_from_uniform_choices():
    death, fluids, vasopressors, _ = abs(
        jm.occupancy(WORLD, EXPERT).expectations(BASIS)
        - jm.occupancy(WORLD, jm.Policy.uniform(WORLD)).expectations(BASIS)
    )
    assert death < 0.01
    assert fluids > 0.1
    assert vasopressors > 0.1


def test_demonstrations_end_where_the_stay_ends():
    demos = jm.record(WORLD, EXPERT, trajectories=400, horizon=500, seed=0)
    assert demos.terminated.all()
    assert set(demos.last_states) == {DEATH, SURVIVAL}
    survived = np.mean(demos.last_states == SURVIVAL)
    assert survived == pytest.approx(0.7818, abs=5 * np.sqrt(0.17 / 400))


def test_demonstrations_from_elsewhere_are_read_in_published_numbers():
    own = jm.record(WORLD, EXPERT, trajectories=20, horizon=500, seed=0)
    episodes = [own.episode(j) for j in range(len(own))]
    states = [visited for visited, _ in episodes]
    actions = [taken for _, taken in episodes]
    assert max(part.max() for part in actions) > PAIRS.max_actions
    elsewhere = jm.Demonstrations.from_arrays(states, actions, own.terminated)
    np.testing.assert_array_equal(elsewhere.pairs_in(WORLD), own.pairs_in(WORLD))


def test_an_inadmissible_action_is_refused():
    state = next(k for k, offered in enumerate(admissible()) if 24 not in offered)
    strange = jm.Demonstrations.from_arrays([[state, state]], [[24]])
    with pytest.raises(jm.errors.InvalidDemonstrations, match=f"action 24 .* in state {state}"):
        strange.pairs_in(WORLD)


def test_published_numbers_survive_a_file(tmp_path):
    WORLD.save(tmp_path / "world.npz")
    again = jm.World.load(tmp_path / "world.npz")
    np.testing.assert_array_equal(again.observed_actions, WORLD.observed_actions)
    assert not again.is_estimated


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.Simplex()], ids=repr)
def test_an_apprentice_of_the_clinicians_can_be_found(cost_class):
    demos = jm.record(WORLD, EXPERT, trajectories=100, horizon=500, seed=0)
    problem = jm.Apprenticeship(WORLD, BASIS, demos, cost_class)
    answer = jm.solve(problem, jm.ColumnGeneration())
    assert answer.status is jm.Status.OPTIMAL
    costs = jm.occupancy(WORLD, answer.policy).expectations(BASIS)
    slack = costs - problem.expectation.values
    if isinstance(cost_class, jm.Simplex):
        assert slack.max() == pytest.approx(answer.value)
        assert slack.max() < -0.05
    else:
        assert abs(slack).max() < 1e-3


def test_it_says_that_it_is_not_for_clinical_use():
    assert "Not for clinical use" in EXAMPLE.description
    assert "not for clinical use" in repr(EXAMPLE)
    assert "not for clinical use" in jm.gallery.icu_sepsis.__doc__
    assert isinstance(EXAMPLE, jm.gallery.Example)
    with pytest.raises(AttributeError):
        EXAMPLE.description = "safe"


def test_without_discounting_survival_is_as_published():
    """0.78 of the clinicians, 0.78 of random treatment, 0.88 at best; every stay ends."""
    world, basis, clinicians = jm.gallery.icu_sepsis(discount=1.0)
    policies = (clinicians, jm.Policy.uniform(world))
    died = [jm.occupancy(world, one).expectations(basis)[0] for one in policies]
    assert [round(1 - share, 4) for share in died] == [0.7818, 0.7801]
    best = float(world.initial @ jm.plan(world, basis.matrix[:, 0]).values)
    assert 1 - best == pytest.approx(0.8751, abs=1e-4)
    assert world.effective_horizon < 40
    assert jm.gallery.icu_sepsis(discount=0.9).world.discount == 0.9
