"""Walks that share their luck are refused or refuted; independent ones pass."""

import numpy as np
import pytest

import journeyman as jm
from corridors import POLICIES, walked
from journeyman.certificate.rollouts import BATCHES, SEPARATE, WALKS, p_value
from journeyman.errors import InvalidPolicy, InvalidWorld
from seeding import drawn_from

ROLLOUTS = jm.Rollouts(200, 30)
HALF = jm.ExpertExpectation([1.0, 1.0])


def certified(parts, evaluation=ROLLOUTS, simulated=False):
    problem = jm.Apprenticeship(parts["world"], parts["costs"], HALF)
    if simulated:
        problem = jm.Apprenticeship(problem.simulator, None, HALF)
    return jm.certify(problem, parts["policy"], evaluation=evaluation)


def premise_of(certificate):
    (found,) = [one for one in certificate.premises if one.name == SEPARATE]
    return found


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_policies_that_draw_for_each_walk_pass(policy, simulated):
    if simulated and policy == "tables":
        policy = "rule"
    certificate = certified(walked(policy), simulated=simulated)
    premise = premise_of(certificate)
    assert certificate.valid
    assert premise.status is jm.certificate.PremiseStatus.TESTED
    assert "taken to be independent" in premise.detail
    assert SEPARATE in certificate.table()


@pytest.mark.parametrize("policy", ["choosing", "rule"])
def test_one_number_for_a_batch_is_refused_with_the_way_to_repair_it(policy):
    parts = walked(policy, shared=True)
    with pytest.raises(InvalidPolicy, match="its walks are not independent") as refusal:
        certified(parts)
    assert "one action in all 32 walks of a batch" in str(refusal.value)
    assert "size=len(observations)" in str(refusal.value)


@pytest.mark.parametrize(("policy", "what"), [("tables", "probabilities"), ("mean", "actions")])
def test_answers_that_depend_on_the_batch_are_refused(policy, what):
    with pytest.raises(InvalidPolicy, match=f"the {what} of state .* alone and among others"):
        certified(walked(policy, shared=True))


@pytest.mark.parametrize("policy", ["choosing", "changing", "rule"])
def test_where_nothing_but_totals_is_seen_the_premise_is_refuted(policy):
    certificate = certified(walked(policy, shared=True), simulated=True)
    premise = premise_of(certificate)
    assert premise.status is jm.certificate.PremiseStatus.FAILED
    assert "walks of a batch share their luck" in premise.detail
    assert not certificate.valid
    assert certificate.bound == certificate.trivial_bound


def test_luck_that_is_shared_later_is_refuted():
    assert not certified(walked("changing", shared=True)).valid


@pytest.mark.parametrize(
    ("world", "words"), [("one start", "draw_initial leads"), ("one step", "step from state")]
)
def test_worlds_that_draw_one_number_a_batch_are_refused(world, words):
    with pytest.raises(InvalidWorld, match=f"{words}.* walks are not independent"):
        certified(walked("tables", world=world))


def test_a_simulator_that_draws_one_number_a_batch_is_refuted():
    certificate = certified(walked("tables", world="one step"), simulated=True)
    assert premise_of(certificate).status is jm.certificate.PremiseStatus.FAILED


def test_candidates_of_a_mixture_are_tested_one_by_one():
    problem = jm.Apprenticeship(*(walked()[part] for part in ("world", "costs")), HALF)
    good, late = walked("rule")["policy"], walked("changing", shared=True)["policy"]
    evaluation = jm.problem.MixtureRollouts(100, 20)
    for members, valid in (([good, good], True), ([good, late], False)):
        mixture = jm.policy.MixturePolicy(members, [0.5, 0.5])
        certificate = jm.certify(problem, mixture, evaluation=evaluation)
        assert certificate.valid is valid
        assert "of each of 2 candidates" in premise_of(certificate).detail
    mixture = jm.policy.MixturePolicy([good, walked("rule", shared=True)["policy"]], [0.5, 0.5])
    with pytest.raises(InvalidPolicy, match="not independent"):
        jm.certify(problem, mixture, evaluation=evaluation)


def test_the_test_has_its_level():
    """Of independent walks at most a tenth has a p-value of a tenth or less."""
    rng = np.random.default_rng(0)
    values = [
        p_value(rng.exponential(size=(BATCHES * WALKS, 2)) ** 3, seed, 0) for seed in range(400)
    ]
    assert np.mean(np.array(values) <= 0.1) <= 0.15
    assert np.mean(np.array(values) <= 0.5) == pytest.approx(0.5, abs=0.1)
    assert p_value(np.ones((BATCHES * WALKS, 2)), 0, 0) == 1.0
    shared = np.repeat(rng.normal(size=(BATCHES, 1)), WALKS, axis=0)
    assert p_value(shared, 0, 0) == 1e-4
    mostly = shared + 1.5 * rng.normal(size=shared.shape)
    assert p_value(mostly, 0, 0) <= 1e-3


def test_experts_that_draw_one_number_a_batch_are_refused():
    parts = walked()

    class Shared:
        def probabilities(self, states):
            return np.full((len(states), 2), 0.5)

        def sample(self, states, seed):
            return np.full(len(states), np.random.default_rng(seed).integers(2))

    with pytest.raises(InvalidPolicy, match="not independent"):
        jm.record(parts["world"], Shared(), trajectories=5, horizon=5, seed=0)


def test_a_world_whose_laws_depend_on_the_batch_is_refused():
    parts = walked("tables")
    inner = parts["world"].successors

    def successors(states, actions):
        steps = inner(states, actions)
        return (
            steps
            if len(states) > 1
            else jm.world.Successors(steps.states[:, ::-1], steps.probabilities)
        )

    parts["world"].successors = successors
    with pytest.raises(InvalidWorld, match="alone and among others"):
        certified(parts)


@pytest.mark.parametrize("policy", ["choosing", "changing", "rule"])
def test_the_audit_passes_for_independent_walks(policy, tmp_path):
    code = jm.certificate.Reference("corridors:walked", policy=policy)
    certified(code.made).save(tmp_path / "run", code=code)
    assert jm.audit(tmp_path / "run", trust_code=True).require().complete


def test_the_audit_finds_walks_that_share_their_luck(tmp_path, monkeypatch):
    """A certificate that was made without the test."""
    from journeyman.certificate import rollouts

    code = jm.certificate.Reference("corridors:walked", policy="changing", shared=True)
    with monkeypatch.context() as patched:
        patched.setattr(rollouts, "p_value", lambda *_: 0.5)
        certificate = certified(code.made)
    assert certificate.valid
    certificate.save(tmp_path / "run", code=code)
    outcome = jm.audit(tmp_path / "run", trust_code=True)
    assert not outcome.passed
    assert "the status that rollouts are independent of one another" in str(outcome)


def test_the_certificate_does_not_depend_on_the_executor():
    problem = jm.Apprenticeship(*(walked()[part] for part in ("world", "costs")), HALF)
    policy = walked("rule")["policy"]
    found = [
        jm.certify(problem, policy, evaluation=ROLLOUTS, executor=executor)
        for executor in (None, jm.Serial())
    ]
    assert found[0].premises == found[1].premises
    assert found[0].best.statistics == found[1].best.statistics
    with drawn_from(5):
        other = jm.certify(problem, policy, evaluation=ROLLOUTS)
    assert other.best.statistics != found[0].best.statistics
