"""Wrong predecessors and wrong draws of features are found; sound ones pass."""

import numpy as np
import pytest

import journeyman as jm
from corridors import Columns, Corridor, made
from journeyman.certificate.sampled_rows import AGREE, DRAWN, TAKEN
from journeyman.errors import InvalidCosts
from seeding import drawn_from

DOWN = jm.policy.RulePolicy(np.zeros_like, 2)
THETA = [0.2, 0.5, 0.3]


def certified(parts, rows=3000, recorded=False):
    expert = jm.ExpertExpectation([0.0])
    if recorded:
        up = jm.policy.RulePolicy(np.ones_like, 2)
        expert = jm.record(parts["world"], up, trajectories=50, horizon=40, seed=0)
    problem = jm.Apprenticeship(parts["world"], parts["costs"], expert)
    policy = jm.policy.FeaturePolicy(parts["features"], THETA)
    return jm.certify(problem, policy, evaluation=jm.SampledRows(rows=rows))


def premises_of(certificate):
    return {one.name: one for one in certificate.premises}


def test_a_sound_world_with_sound_features_passes():
    jm.testing.check_world(Corridor())
    certificate = certified(made())
    found = premises_of(certificate)
    assert certificate.valid
    assert found[AGREE].status is found[DRAWN].status is jm.certificate.PremiseStatus.TESTED
    assert found[AGREE].detail == "6000 steps were followed there and back"
    assert found[TAKEN].status is jm.certificate.PremiseStatus.DECLARED
    assert "predecessors are taken to be complete" in found[TAKEN].detail
    assert TAKEN in certificate.table()


def test_sound_draws_are_seldom_refuted():
    """An e-value of 20 has probability 1/20 at most."""
    parts, large = made(), 0
    for seed in range(60):
        with drawn_from(seed):
            detail = premises_of(certified(parts, rows=200))[DRAWN].detail
        large += float(detail.split()[1]) >= 20
    assert large <= 8


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ("forgotten", "state 6, action 1 leads to state 6 with probability 0.8, and the "
                      "predecessors of state 6 do not list it"),
        ("invented", "predecessors of state 6 list state 2, action 1 with probability 0.8, and its "
                     "successors give 0"),
        ("chance", "predecessors of state 3 give it"),
    ],
)  # fmt: skip
def test_predecessors_that_contradict_successors_are_found(bug, words):
    certificate = certified(made(bug))
    premise = premises_of(certificate)[AGREE]
    assert premise.status is jm.certificate.PremiseStatus.FAILED
    assert words in premise.detail
    assert not certificate.valid
    assert certificate.bound == certificate.trivial_bound


def test_recorded_steps_are_looked_up_where_features_never_draw():
    """The columns have nothing in the upper half, the record does."""
    parts = made("forgotten")
    parts["features"].table[8:] = 0
    parts["features"].table *= 10 / parts["features"].table.sum(axis=0)
    unseen, seen = (certified(parts, rows=500, recorded=one) for one in (False, True))
    assert premises_of(unseen)[AGREE].status is jm.certificate.PremiseStatus.TESTED
    assert premises_of(seen)[AGREE].status is jm.certificate.PremiseStatus.FAILED
    assert "state 6, action 1" in premises_of(seen)[AGREE].detail


@pytest.mark.parametrize(
    ("world_bug", "feature_bug", "words"),
    [
        (None, "draws", "drawn again too often|has a share"),
        (None, "columns", "column 0 has a share of|drawn again"),
        (None, "mass", "has a share|drawn again"),
        ("starts", None, "the initial law has a mass|drawn again"),
    ],
)
def test_draws_of_another_law_are_found(world_bug, feature_bug, words):
    certificate = certified(made(world_bug, feature_bug), rows=10_000)
    premise = premises_of(certificate)[DRAWN]
    assert premise.status is jm.certificate.PremiseStatus.FAILED
    assert any(word in premise.detail for word in words.split("|")), premise.detail
    assert not certificate.valid


def test_one_column_of_a_wrong_mass_is_found_by_what_comes_again():
    """With one column all shares are one: only repetitions show it; the mass may err either way."""

    class One(Columns):
        def __init__(self, world, factor):
            super().__init__(world)
            self.num_features, self.table = 1, factor * self.table[:, :1]

        def draw(self, rng, count):
            drawn = rng.choice(14, size=count, p=self.table[:, 0] / self.table.sum())
            return drawn // 2, drawn % 2

    statuses = []
    for factor in (0.5, 1.0, 2.0):
        world = Corridor()
        problem = jm.Apprenticeship(world, made()["costs"], jm.ExpertExpectation([0.0]))
        policy = jm.policy.FeaturePolicy(One(world, factor), [1.0])
        certificate = jm.certify(problem, policy, evaluation=jm.SampledRows(rows=3000))
        statuses.append(
            premises_of(certificate)[DRAWN].status is jm.certificate.PremiseStatus.FAILED
        )
    assert statuses == [True, False, True]


def test_a_pair_that_no_column_has_is_refused():
    with pytest.raises(InvalidCosts, match="draw state 6, action 0, where all of them are 0"):
        certified(made(feature_bug="unknown"))


def saved(parts, place, code):
    problem = jm.Apprenticeship(parts["world"], parts["costs"], jm.ExpertExpectation([0.0]))
    policy = jm.policy.FeaturePolicy(parts["features"], THETA)
    jm.certify(problem, policy, evaluation=jm.SampledRows(rows=2000)).save(place, code=code)
    return jm.audit(place, trust_code=True)


def test_the_audit_passes_for_the_sound_world(tmp_path):
    code = jm.certificate.Reference("corridors:made")
    assert saved(code.made, tmp_path / "run", code).require().complete


@pytest.mark.parametrize("bug", ["forgotten", "invented", "chance"])
def test_the_audit_does_not_pass_for_a_world_that_contradicts_itself(bug, tmp_path):
    code = jm.certificate.Reference("corridors:made", world_bug=bug)
    outcome = saved(code.made, tmp_path / "run", code)
    assert not outcome.passed
    assert "the code of the world contradicts itself" in str(outcome)
