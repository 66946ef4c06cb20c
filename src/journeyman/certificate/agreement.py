"""Agreement: a bound on the gap from held-out demonstrations alone.

    gap  <=  S E Z,     Z = sum_t discount^t (1 - prod_{s <= t} pi(a_s | x_s))

where S is the width of the declared range of costs (zero, the cost after an end, included), the
expectation is over episodes of the expert, and pi is fixed before the episodes are looked at.

*Proof*. Let the policy act beside the expert in the same episode, with the same randomness of the
world, until it first takes another action. It draws with randomness of its own, so given the
expert's whole episode it has not differed up to step t with probability prod_{s <= t} pi(a_s|x_s).
Until then the costs are equal; afterwards they differ by at most S in every step. This supposes
nothing about the expert, who may remember, draw, and see what the record does not hold; nothing
about the world, except that the recorded actions are all that the expert does to it; and nothing
about the costs but their range: the bound is for the worst of them.

*Ends*. An episode that terminated after T steps adds (1 - prod_{s < T} pi) discount^T h, with
h = 1/(1 - discount), for a policy that has differed may go on. One that was cut off after T steps,
for whatever reason, adds discount^T h. So Z lies in [0, h], and the mean of independent Z is
bounded from above by betting (`betting_means`), in the order of the record.

*Logged probabilities*. Where the probability pi_E(a_s) with which the expert took its action is
known, conditional on everything it acted on, the two can be made to agree more often (a maximal
coupling): pi is replaced by min(1, pi/pi_E). A probability averaged over what the expert saw and
the record does not hold makes this false.

*Mixtures*, which draw one of their policies where an episode starts: the gap is the weighted mean
of the gaps. Cross-fitted, every policy is tested on its own fold, each at its part of the failure
probability, and the bounds are averaged with the sizes of the folds.

*What it costs*. The bound is vacuous once a difference within the horizon is likely: about 15 % of
the trivial bound needs 1.7 % disagreement a step at discount 0.9, 0.18 % at 0.99. Experts who draw
their actions pay for that unless their probabilities were logged.

*Cost*: one look at every recorded step.
"""

import hashlib
import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.arrays import FloatArray, IntArray, read_only
from journeyman.certificate.betting_means import upper_mean
from journeyman.certificate.certificate import Certificate
from journeyman.certificate.lower_bounds import LowerBounds
from journeyman.certificate.terms import (
    EPSILON,
    Combination,
    Premise,
    PremiseStatus,
    Term,
    above,
    declared,
    total,
)
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.cross_fitting import CrossFitted
from journeyman.errors import InvalidFile, InvalidProblem
from journeyman.policy import Policy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.policy.observation_policy import ObservationPolicy
from journeyman.problem import Apprenticeship
from journeyman.problem.policy_forms import form_of, policy_of, require_words
from journeyman.storage import Arrays, load_arrays, save_arrays, take
from journeyman.world import Pairs
from journeyman.world.records import Records

KIND, ESTIMATE = "agreement", "held-out episodes"
HELD_OUT = "the policy is independent of the held-out episodes"
INDEPENDENT = "independent episodes"
COMPLETE = "the record shows what the expert did"
RANGE = "costs lie in their declared range"
ENDS = "terminated episodes have ended"
LOGGED = "logged probabilities are conditional on all that the expert acted on"
MOST_REPEATED = 200_000
"""Episodes up to which a repeated record is bet on."""
LARGE = 0.1
"""Of the disagreement: a part above it is worth a word."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """What recorded actions say of a policy: enough to compute the bound again."""

    probabilities: FloatArray
    """(policies x steps): how likely each policy takes the recorded action."""
    weights: FloatArray
    """(folds x policies): of the policies that an episode of a fold is compared with."""
    folds: IntArray
    """Of every episode."""
    disagreement: FloatArray
    """Z of every episode, rounded up."""
    truncated: FloatArray
    """The part of it that lies behind the ends of records that were cut off."""

    per_step: float
    """The mean probability, over all recorded steps, that the policy takes another action."""

    @classmethod
    def of(
        cls,
        demos: Demonstrations,
        probabilities: FloatArray,
        weights: FloatArray,
        folds: IntArray,
        world: Records,
    ) -> "Agreement":
        """All numbers from the probabilities of the recorded actions."""
        agreeing, shares = probabilities, weights[folds].T
        if world.use_probabilities:
            assert demos.probabilities is not None
            agreeing = np.minimum(1.0, probabilities / demos.probabilities)
        every = np.array([disagreements(demos, row, world.discount) for row in agreeing])
        z = np.minimum((shares * every).sum(axis=0), world.effective_horizon)
        cut = np.minimum(unrecorded(demos, world.discount), z)
        same = (shares[:, demos.step_episodes] * probabilities).sum(axis=0)
        return cls(
            read_only(probabilities), read_only(weights), read_only(folds), read_only(z),
            read_only(cut), 1.0 - float(same.mean()),
        )  # fmt: skip

    def fold_parts(self) -> list[tuple[float, FloatArray]]:
        """Share of the episodes and Z of every fold."""
        return [
            (float((self.folds == k).mean()), self.disagreement[self.folds == k])
            for k in range(len(self.weights))
        ]


def recorded_certificate(
    problem: Apprenticeship, answer: Any, failure_probability: float
) -> Certificate:
    """The certificate of a policy in a world of which nothing but records is known."""
    world: Any = problem.world
    demos = problem.demonstrations
    assert isinstance(world, Records)
    assert demos is not None
    policy = _policy(answer)
    found = agreement(demos, policy, world)
    delta, horizon = failure_probability, world.effective_horizon
    upper = upper_disagreement(found, horizon, delta)
    mean, cut = float(found.disagreement.mean()), float(found.truncated.mean())
    unit = world.spread
    source = f"{len(demos)} held-out episodes"
    terms = (
        Term("disagreement", unit * (mean - cut), "S mean(Z - cut)", source),
        Term("truncation", unit * cut, "S mean(cut)", "recorded lengths"),
        Term("sampling", unit * max(upper - mean, 0.0), "S (U - mean(Z))", source),
    )
    return Certificate(
        problem=problem,
        policy=policy,
        failure_probability=delta,
        combinations=(Combination(KIND, ESTIMATE, terms, total(terms)),),
        trivial_bound=above(unit * horizon),
        premises=_premises(demos, policy, world),
        lower_bounds=LowerBounds(0.0, 0.0, 0.0, math.inf),
        expectations=read_only(np.zeros(0)),
        agreement=found,
    )


def agreement(demos: Demonstrations, policy: Any, world: Records) -> Agreement:
    """The policy beside the recorded actions, every episode with policies that never saw it."""
    members, weights, folds = _tested(demos, policy)
    seen, taken, episodes = demos.step_states, demos.actions, demos.step_episodes
    found = np.zeros((len(members), demos.num_steps))
    asked_of = weights[folds] > 0
    for k, member in enumerate(members):
        asked = asked_of[episodes, k]
        if not asked.any():
            continue
        found[k, asked] = ObservationPolicy(member).of_actions(seen[asked], taken[asked])
    return Agreement.of(demos, found, weights, folds, world)


def unrecorded(demos: Demonstrations, discount: float) -> FloatArray:
    """discount^T h of every episode that was cut off, else 0."""
    behind = discount ** demos.lengths.astype(float) / (1.0 - discount)
    return np.where(demos.terminated, 0.0, behind)


def disagreements(demos: Demonstrations, agreeing: FloatArray, discount: float) -> FloatArray:
    """Z of every episode, rounded up, for given probabilities of agreement at every step.

    Products and sums of T numbers in [0, 1] are off by at most T eps each, so 4 eps (T + 4) h is
    more than all rounding together.
    """
    horizon = 1.0 / (1.0 - discount)
    z = unrecorded(demos, discount)
    for episode, (start, stop) in enumerate(pairwise(demos.offsets)):
        length = int(stop - start)
        products = np.cumprod(agreeing[start:stop])
        times = discount ** np.arange(length, dtype=float)
        z[episode] += float(times @ (1.0 - products)) + 4 * EPSILON * (length + 4) * horizon
        if demos.terminated[episode]:
            z[episode] += float(1.0 - products[-1]) * discount**length * horizon
    return np.minimum(z, horizon)


def upper_disagreement(found: Agreement, horizon: float, failure_probability: float) -> float:
    """An upper bound on E Z of the policy: of every fold by betting, at its part of delta."""
    parts = found.fold_parts()
    return math.fsum(
        share * upper_mean(values, horizon, failure_probability / len(parts))
        for share, values in parts
    )


def advice(certificate: Certificate) -> list[str]:
    """What would halve the bound."""
    from journeyman.certificate.presentation import percent

    found = certificate.agreement
    assert found is not None
    count, mean = found.disagreement.size, float(found.disagreement.mean())
    world: Any = certificate.problem.world
    share = mean / world.effective_horizon
    sentences = [
        f"The policy takes another action than the expert in {percent(found.per_step)} of the "
        f"recorded steps; {percent(share)} of the discounted time lies after the first such step."
    ]
    needed = episodes_that_halve(certificate)
    if needed is not None:
        sentences.append(f"About {needed:,} held-out episodes like these (now {count:,}) halve it.")
    else:
        sentences.append(
            "More held-out episodes alone do not halve it: a policy that differs less often from "
            "the expert would"
            + ("." if world.use_probabilities else ", and so would logged probabilities of an "
            "expert who draws its actions (use_probabilities).")
        )  # fmt: skip
    cut = float(found.truncated.mean())
    if cut > LARGE * mean:
        sentences.append(
            f"{percent(cut / mean)} of it lies behind records that were cut off: longer ones help."
        )
    return sentences


def episodes_that_halve(certificate: Certificate) -> int | None:
    """How many held-out episodes like these would halve the bound; None where no number would.

    The record is imagined repeated, so that its mean and spread stay what they are.
    """
    found = certificate.agreement
    assert found is not None
    world: Any = certificate.problem.world
    horizon, delta = world.effective_horizon, certificate.failure_probability
    target = certificate.bound / 2 / world.spread if world.spread > 0 else 0.0
    if float(found.disagreement.mean()) >= target:
        return None

    parts, count = found.fold_parts(), found.disagreement.size

    def bound(factor: int) -> float:
        return math.fsum(
            share * upper_mean(np.tile(values, factor), horizon, delta / len(parts))
            for share, values in parts
        )

    high = 2
    while (reached := bound(high)) > target:
        if high * count > MOST_REPEATED:  # from there on the excess falls with the square root
            mean = float(found.disagreement.mean())
            return math.ceil(high * count * ((reached - mean) / (target - mean)) ** 2)
        high *= 2
    low = high // 2
    while high - low > max(1, low // 8):
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) > target else (low, middle)
    return high * count


# The policy


def _policy(answer: Any) -> Any:
    """What was certified: a policy, or the policy of an answer of ours."""
    if hasattr(answer, "certificate") or type(answer).__name__ == "Answer":
        return answer.policy
    if not isinstance(answer, MixturePolicy):
        ObservationPolicy(answer)
    return answer


def _tested(demos: Demonstrations, policy: Any) -> tuple[tuple[Any, ...], FloatArray, IntArray]:
    """Policies, their weights in every fold, and the fold of every episode."""
    one_fold = np.zeros(len(demos), dtype=np.int64)
    if isinstance(policy, CrossFitted):
        if same_episodes(policy.demonstrations, demos):
            return policy.candidates, np.eye(len(policy.candidates)), policy.folds
        _refuse_seen(policy.demonstrations, demos)
    if isinstance(policy, MixturePolicy):
        return policy.candidates, policy.weights[np.newaxis], one_fold
    return (policy,), np.ones((1, 1)), one_fold


def same_episodes(one: Demonstrations, other: Demonstrations) -> bool:
    """Whether two values hold the same episodes in the same order."""
    return one is other or (
        len(one) == len(other)
        and np.array_equal(one.offsets, other.offsets)
        and np.array_equal(one.actions, other.actions)
        and np.array_equal(one.states, other.states)
    )


def digests(demos: Demonstrations) -> list[bytes]:
    """A digest of every episode's observations and actions."""
    found = []
    for episode in range(len(demos)):
        states, actions = demos.episode(episode)
        seen = np.ascontiguousarray(states, dtype=np.float64).tobytes()
        found.append(hashlib.sha256(seen + actions.tobytes()).digest())
    return found


def _refuse_seen(fitted_to: Demonstrations, held_out: Demonstrations) -> None:
    """Refuse episodes that a cross-fitted policy was fitted to.

    Observations do not repeat by chance. Ids do, in small worlds: there episodes are refused if
    many more of them are among those that were fitted to than these repeat each other.
    """
    known, asked = Counter(digests(fitted_to)), Counter(digests(held_out))
    shared, count = sum((known & asked).values()), len(held_out)
    repeated = sum(times for times in known.values() if times > 1) / len(fitted_to)
    by_chance = 2 * repeated * count + min(5.0, count / 2) if held_out.has_ids else 0.0
    if shared > by_chance:
        raise InvalidProblem(
            f"{shared} of the {len(held_out)} held-out episodes are among those that the "
            "cross-fitted policy was fitted to",
            "Certify it on exactly the demonstrations given to cross_fit, in their order, where "
            "every episode meets a policy that never saw it; or on episodes that are all new",
        )


def _premises(demos: Demonstrations, policy: Any, world: Records) -> tuple[Premise, ...]:
    count, (low, high) = len(demos), world.cost_range
    ended = int(demos.terminated.sum())
    if isinstance(policy, CrossFitted) and same_episodes(policy.demonstrations, demos):
        held_out = Premise(
            HELD_OUT,
            PremiseStatus.TESTED,
            f"cross-fitted: each of the {count} episodes meets a policy that was fitted to the "
            "others; that fitting looked at nothing else is declared",
            0.0,
        )
    else:
        held_out = declared(
            HELD_OUT,
            f"none of the {count} episodes was used to fit, to tune or to choose the policy",
        )
    repeats = count - len(set(digests(demos)))
    found = [
        held_out,
        declared(
            INDEPENDENT,
            f"the {count} episodes are taken to be independent runs of one expert, from the starts "
            f"that the policy will meet, none left out for what it shows; {repeats} of them equal "
            "an earlier one",
        ),
        declared(
            COMPLETE,
            "the recorded actions are all that the expert does to the world, and the recorded "
            "states are what the policy will act on",
        ),
        declared(
            RANGE,
            f"every cost of a step lies between {low:g} and {high:g}, and is 0 after an end; the "
            f"discount is {world.discount:g}",
        ),
        declared(
            ENDS,
            f"{ended} of {count} episodes are marked terminated: nothing follows and nothing costs "
            "after them, for any policy that did the same; the others count as cut off",
        ),
    ]
    if world.use_probabilities:
        found.append(declared(LOGGED, "an average over what the record does not hold breaks it"))
    return tuple(found)


# Runs of which nothing but records is known, on disk and back.
#
#     problem.npz          discount, declared range of costs, whether logged probabilities count
#     demonstrations.npz   the held-out episodes
#     agreement.npz        how likely every policy takes every recorded action; weights; folds
#     policy.npz           the policies, where they are numbers: tables, clones, networks
#
# A policy that is neither, such as a network of another package, is not saved: its probabilities
# are, so that everything but them can be derived again.

AGREEMENT, DEMONSTRATIONS = "agreement.npz", "demonstrations.npz"
PROBLEM, POLICY = "problem.npz", "policy.npz"
PROBLEM_KIND, POLICY_KIND, VERSION = "problem of records", "policies beside records", 1
NOT_SAVED = "not saved"


def write_recorded(certificate: Certificate, place: Path) -> list[str]:
    """Write the files above into a directory that was prepared; their names."""
    world: Any = certificate.problem.world
    demos, found = certificate.problem.demonstrations, certificate.agreement
    assert demos is not None
    assert found is not None
    save_arrays(
        place / PROBLEM, PROBLEM_KIND, VERSION, {"cost_range": np.array(world.cost_range)},
        discount=world.discount, use_probabilities=world.use_probabilities,
    )  # fmt: skip
    demos.save(place / DEMONSTRATIONS)
    arrays = {
        "probabilities": found.probabilities, "weights": found.weights, "folds": found.folds,
    }  # fmt: skip
    save_arrays(place / AGREEMENT, "agreement", VERSION, arrays)
    arrays = {"weights": found.weights[found.folds].mean(axis=0)}
    forms = [_form(member, k, arrays) for k, member in enumerate(members(certificate.policy))]
    axes = demos.states.ndim - 1
    save_arrays(place / POLICY, POLICY_KIND, VERSION, arrays, policies=forms, observation_axes=axes)
    return [AGREEMENT, DEMONSTRATIONS, POLICY, PROBLEM]


def members(policy: Any) -> list[Any]:
    """The policies of a mixture, or the policy alone, as they were given."""
    parts = policy.candidates if isinstance(policy, MixturePolicy) else (policy,)
    return [one.policy if isinstance(one, ObservationPolicy) else one for one in parts]


def _form(policy: Any, number: int, arrays: dict[str, Any]) -> dict[str, Any]:
    """How a policy is saved; its arrays get its number in front of their names."""
    if isinstance(policy, Policy):
        parts: dict[str, Any] = {"law": policy.per_pair, "offsets": policy.pairs.offsets}
        if policy.pairs.numbers is not None:
            parts["numbers"] = policy.pairs.numbers
        form: dict[str, Any] = {"form": "table"}
    elif (found := form_of(policy)) is not None:
        form, parts = found.words, found.arrays
    else:
        form, parts = {"form": NOT_SAVED, "kind": type(policy).__name__}, {}
    arrays |= {f"{number}_{name}": part for name, part in parts.items()}
    return form


def read_problem(place: Path) -> Apprenticeship:
    """The problem of a saved run."""
    header, arrays = load_arrays(place / PROBLEM, PROBLEM_KIND, VERSION)
    low, high = take(place / PROBLEM, arrays, "cost_range")
    use = bool(header["use_probabilities"])
    world = Records(header["discount"], (low, high), use_probabilities=use)
    return Apprenticeship(world, None, Demonstrations.load(place / DEMONSTRATIONS))


def read_agreement(place: Path, problem: Apprenticeship) -> Agreement:
    """The evidence of a saved run, with the numbers that follow from it."""
    world: Any = problem.world
    path, demos = place / AGREEMENT, problem.demonstrations
    _, arrays = load_arrays(path, "agreement", VERSION)
    names = ("probabilities", "weights", "folds")
    chances, weights, folds = (take(path, arrays, name) for name in names)
    assert demos is not None
    assert isinstance(world, Records)
    return Agreement.of(demos, chances, weights, folds, world)


def load_recorded_policy(place: Path) -> Any:
    """The policy of a saved run: numbers only, no code is called."""
    path = place / POLICY
    header, arrays = load_arrays(path, POLICY_KIND, VERSION)
    forms, axes = header.get("policies"), header.get("observation_axes")
    if not isinstance(forms, list) or not forms or type(axes) is not int:
        raise InvalidFile(f"{path} names no policies", "Save the run again")
    for form in forms:
        require_words(path, form)
    found = [_made(path, form, k, arrays) for k, form in enumerate(forms)]
    if len(found) == 1:
        return found[0]
    wrapped = [ObservationPolicy(one, axes) for one in found]
    return MixturePolicy(wrapped, take(path, arrays, "weights"), axes)


def _made(path: Path, form: dict[str, Any], number: int, arrays: Arrays) -> Any:
    def part(name: str) -> Any:
        return take(path, arrays, f"{number}_{name}")

    if form["form"] == "table":
        return Policy(part("law"), Pairs(part("offsets"), arrays.get(f"{number}_numbers")))
    found = policy_of(form, part)
    if found is not None:
        return found
    raise InvalidFile(
        f"{path} does not hold policy {number}, a {form.get('kind', 'policy')} of another package",
        "Keep the policy yourself; the run holds how likely it takes the recorded actions",
    )
