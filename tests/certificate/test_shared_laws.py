"""The error of laws that pairs share: one for each group, and what tests that they do."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.certificate.model_error import information_radii, transition_radii
from journeyman.certificate.premises import ONE_LAW_A_GROUP, shared_evidence, world_premises
from journeyman.certificate.terms import PremiseStatus
from journeyman.world import SharedLaws

BINS = 12
WEAR = SharedLaws.increments(BINS, [0, 1, 2], num_actions=2, resets={1: 0})
LAW = np.array([0.3, 0.6, 0.1])


def truth():
    return jm.gallery.engine_replacement(BINS, increments=LAW, discount=0.9)


def learned(count=600, seed=0, shared=WEAR, law=lambda x, a: LAW):
    """From steps of uniformly drawn pairs."""
    rng = np.random.default_rng(seed)
    x, a = rng.integers(BINS, size=count), rng.integers(2, size=count)
    drawn = [rng.choice(3, p=law(i, j)) for i, j in zip(x, a, strict=True)]
    y = WEAR.targets[x, a, drawn]
    return jm.World.from_transitions(x, a, y, 0.9, initial=np.eye(BINS)[0], shared=shared)


def divergence(p, q):
    used = p > 0
    return float((p[used] * np.log(p[used] / q[used])).sum())


def test_every_pair_has_the_error_of_its_group():
    world = learned()
    error = transition_radii(world, 0.05)
    tally = world.shared.group_tallies
    wanted = information_radii(sparse.csr_array(tally.astype(float)), [3], 1, 0.05)[0]
    inner = world.support.sum(axis=1) > 1
    np.testing.assert_allclose(error.evidence.allowed[inner], wanted, rtol=1e-12)
    assert (error.evidence.allowed[~inner] == 0).all()
    assert (error.transition[~inner] == 0).all()
    np.testing.assert_allclose(error.transition[inner], math.sqrt(2 * wanted), rtol=1e-12)


def test_groups_and_not_pairs_share_the_failure_probability():
    groups = SharedLaws.increments(BINS, [0, 1, 2], num_actions=2, resets={1: 0}, per_action=True)
    world = learned(shared=groups)
    for k, tally in enumerate(world.shared.group_tallies):
        n, S = tally.sum(), 3
        mixture = [
            math.lgamma(S * a) - math.lgamma(n + S * a)
            + sum(math.lgamma(c + a) - math.lgamma(a) for c in tally)
            for a in (1 / 2, 1 / 3)
        ]  # fmt: skip
        log_q = np.logaddexp(*mixture) - math.log(2)
        likelihood = sum(c * math.log(c / n) for c in tally)
        wanted = (math.log(2 / 0.05) + likelihood - log_q) / n
        found = transition_radii(world, 0.05).evidence.allowed[
            np.flatnonzero(world.shared.of(world.pairs) == k)[0]
        ]
        assert found == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_no_pair_is_further_from_the_truth_than_its_group(seed):
    world, true = learned(count=40, seed=seed), truth().world
    apart = divergence(
        world.shared.group_tallies[0] / world.shared.group_tallies.sum(), LAW
    )  # fmt: skip
    rows, exact = world.transition.toarray(), true.transition.toarray()
    found = [divergence(p, q) for p, q in zip(rows, exact, strict=True)]
    assert max(found) == pytest.approx(apart)
    assert min(found) == pytest.approx(0)


def test_shared_laws_make_the_model_term_small():
    bus = truth()
    demos = jm.record(bus.world, bus.expert, trajectories=50, horizon=80, seed=1)
    own = np.where(WEAR.tells, np.arange(2 * BINS).reshape(BINS, 2), 0)
    labels = np.unique(own, return_inverse=True)[1].reshape(BINS, 2)
    term = {}
    for name, shared in (("together", WEAR), ("apart", SharedLaws(labels, WEAR.targets))):
        certificate = jm.learn(learned(4000, shared=shared), bus.basis, demos).certificate
        assert certificate.valid
        term[name] = sum(one.value for one in certificate.terms if one.name == "model")
    assert 0 < term["together"] < 0.4 * term["apart"]


# Whether pairs share a law


def naive_evidence(tallies, groups, outcomes):
    """By every draw in its turn, the k-th bet on by (times seen + 1/2)/(k + outcomes/2)."""

    def mixture(tally):
        drawn = [o for o, times in enumerate(tally) for _ in range(times)]
        value, seen = 1.0, [0] * len(tally)
        for k, o in enumerate(drawn):
            value *= (seen[o] + 0.5) / (k + outcomes / 2)
            seen[o] += 1
        return value

    def likeliest(tally):
        return math.prod((t / sum(tally)) ** t for t in tally if t)

    used = [k for k, tally in enumerate(tallies) if sum(tally)]
    sums = {g: [sum(tallies[k][o] for k in used if groups[k] == g) for o in range(outcomes)]
            for g in {groups[k] for k in used}}  # fmt: skip
    every = math.prod(mixture(tallies[k]) for k in used)
    every /= math.prod(likeliest(tally) for tally in sums.values())
    single = []
    for k in used:
        rest = [whole - own for whole, own in zip(sums[groups[k]], tallies[k], strict=True)]
        single.append(mixture(tallies[k]) * mixture(rest) / likeliest(sums[groups[k]]))
    return (every + sum(single) / len(single)) / 2


@pytest.mark.parametrize("seed", range(8))
def test_the_evidence_is_that_of_bets_in_turn(seed):
    rng = np.random.default_rng(seed)
    groups = np.array([[0, 1], [0, 1], [1, 1]])
    targets = np.broadcast_to(np.arange(3), (3, 2, 3))
    tallies = rng.integers(0, 5, (3, 2, 3))
    found, _ = shared_evidence(SharedLaws(groups, targets, tallies))
    wanted = naive_evidence(tallies.reshape(6, 3).tolist(), groups.ravel().tolist(), 3)
    assert math.exp(found) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("plan", [(1, 1), (4, 4), (2, 6), (3, 2, 3)])
def test_the_evidence_against_pairs_that_share_a_law_is_at_most_one_in_the_mean(p, plan):
    """All records of a few draws, enumerated."""
    pairs, mean = len(plan), 0.0
    groups = np.zeros((max(pairs, 2), 1), int)
    targets = np.broadcast_to(np.arange(2), (max(pairs, 2), 1, 2))
    for counts in itertools.product(*(range(n + 1) for n in plan)):
        tallies = np.array([[[n - c, c]] for n, c in zip(plan, counts, strict=True)])
        chance = math.prod(
            math.comb(n, c) * p**c * (1 - p) ** (n - c)
            for n, c in zip(plan, counts, strict=True)
        )  # fmt: skip
        mean += chance * math.exp(shared_evidence(SharedLaws(groups, targets, tallies))[0])
    assert mean <= 1 + 1e-12


def premise(world):
    problem = jm.Apprenticeship(
        world, jm.CostBasis(np.ones((BINS, 1))), jm.ExpertExpectation([5.0])
    )
    return {one.name: one for one in world_premises(problem)}[ONE_LAW_A_GROUP]


def test_one_pair_that_differs_from_its_group_is_found():
    other = np.array([0.05, 0.15, 0.8])
    assert premise(learned(2000)).status is PremiseStatus.TESTED
    found = premise(learned(2000, law=lambda x, a: other if (x, a) == (3, 0) else LAW))
    assert found.status is PremiseStatus.FAILED
    assert "state 3, action 0" in found.detail


def test_a_trend_over_all_pairs_is_found():
    def law(x, a):
        share = x / BINS
        return (1 - share) * LAW + share * np.array([0.6, 0.2, 0.2])

    assert premise(learned(6000, law=law)).status is PremiseStatus.FAILED
