"""The premises of a guarantee: what was declared, what was tested, and what has failed.

A bound from demonstrations supposes independent trajectories, x_0 ~ initial and
x_{t+1} ~ P(. | x_t, a_t). The two laws are tested by betting against them (`betting`), exactly, at
a stated level each, and so is that no episode was copied; a sound record is refused with
probability 3 level at most. In a stepped world starts and steps are first checked to be
possible. What a world cannot say is declared: of a simulator everything.

*Not tested*: that trajectories are independent in other ways, that one expert made them, that none
was left out because of what its expert did; nor the costs. A test that does not refute is no proof:
an error that is small, or in pairs never visited, goes unnoticed. A law that is only an estimate
cannot be bet against, for the expert acts in the true world: there the demonstrations are compared
with the observations behind the model (`model_error.agreement`), once for starts and steps. Where
no demonstrations test the laws of the world they are declared, and so is a support. That pairs of
an estimated world share laws is tested on the record behind it, at a level of its own.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

import numpy as np

from journeyman.arrays import FloatArray, require_between
from journeyman.certificate.betting import (
    MOST_STEPS,
    Repetitions,
    equal_episodes,
    repetitions,
    start_evidence,
    start_evidence_of_draws,
    step_evidence,
    step_evidence_of_laws,
)
from journeyman.certificate.model_error import agreement, num_unobserved
from journeyman.certificate.terms import Premise, PremiseStatus, declared, failed
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.simulation import EpisodeTotals
from journeyman.errors import InvalidProblem
from journeyman.problem import Apprenticeship
from journeyman.world import SharedLaws, World
from journeyman.world.estimation import observed_support
from journeyman.world.large_world import LargeWorld, successor_laws
from journeyman.world.levels import Level

LEVEL = 1e-3
"""With which probability, at most, a test refutes a true premise."""
BLOCK = 1 << 16
"""Steps whose possibility is checked at a time."""
NO_COPIES = "no episode was copied"
LITTLE_CHANCE = "the laws leave too little to chance to distinguish a copy from an equal episode"
STARTS_FOLLOW = "start states follow the initial law"
STEPS_FOLLOW = "steps follow the transition law"
ONE_LAW_A_GROUP = "pairs of a group share one law of outcomes"
MANY_EQUAL = 0.05
"""Of the demonstrations: so many equal ones are worth a word where copies cannot be tested."""


def expert_premises(problem: Apprenticeship, level: float = LEVEL) -> tuple[Premise, ...]:
    """What the estimates of the expert rest on; each test refutes a truth with probability
    `level` at most.

    >>> world = World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9)
    >>> demos = Demonstrations([0, 0] * 30, [0] * 30, range(31))
    >>> from journeyman.costs import CostBasis
    >>> for premise in expert_premises(Apprenticeship(world, CostBasis([[0], [1]]), demos)):
    ...     premise.name, premise.status.value
    ('independent trajectories', 'declared')
    ('no episode was copied', 'failed')
    ('start states follow the initial law', 'tested, not refuted')
    ('steps follow the transition law', 'failed')
    """
    require_between(
        "level", level, 0, 1, InvalidProblem, "Give a small probability, for example 0.001"
    )
    costs: tuple[Premise, ...] = ()
    if problem.level is not Level.EXPLICIT:
        name = "costs lie in their declared range"
        costs = (declared(name, "checked in every pair that was ever evaluated"),)
    if problem.expert is None:
        return costs
    if problem.expectation.is_declared:
        name = "the declared expectations are those of the expert"
        return *costs, declared(name, "they were given as numbers, and are taken as exact")
    if problem.records is not None:
        return *costs, *_of_totals(problem.records)
    demos = problem.demonstrations
    if demos is None:
        raise InvalidProblem(
            "the expectations were estimated, but the problem does not hold the demonstrations",
            "Give the demonstrations themselves to Apprenticeship",
        )
    independence = declared(
        "independent trajectories",
        f"the {len(demos)} episodes are taken to be independent records of one expert, none "
        "ended with foresight, none left out for what it shows",
    )
    if problem.level is not Level.EXPLICIT:
        return *costs, independence, *_stepped_tests(problem.world, demos, level)
    averages = problem.world.averages
    stationary = () if averages is None else (declared(STATIONARY, stationary_in_words()),)
    return *stationary, independence, *_explicit_tests(problem.world, demos, level)


def world_premises(problem: Apprenticeship, level: float = LEVEL) -> tuple[Premise, ...]:
    """What a bound rests on whoever the expert is: the simulator; the laws, where no record tests
    them; the support, where one is given; and that pairs share laws, which is tested."""
    if not problem.has_states:
        return (
            declared(
                "the simulator is the world the expert acted in",
                "its episodes are taken to be independent, and to cost after their end what was "
                "declared",
            ),
        )
    world, found = problem.world, []
    if getattr(world, "steps_at_most", None) is not None:
        found.append(declared(IN_TIME, in_time(world.effective_horizon)))
    if problem.expectation.is_declared:
        found.append(_laws(world))
    if getattr(world, "support", None) is not None:
        found.append(_support(world))
    if getattr(world, "shared", None) is not None:
        found.append(_one_law(world, level))
    return tuple(found)


STATIONARY = "the expert chooses by the present state alone"


def stationary_in_words() -> str:
    """What averages ask of an expert."""
    return (
        "long-run averages are those of a stationary policy, and lengths of records are taken to "
        "have been fixed beforehand; neither is tested"
    )


IN_TIME = "no more steps are expected than declared"


def in_time(steps: float) -> str:
    """What steps_at_most says, in words."""
    return (
        f"wherever the expert has got to, also where a record of it was cut off, it is taken to "
        f"expect at most {steps:g} further steps"
    )


def _laws(world: World) -> Premise:
    if not getattr(world, "is_estimated", False):
        detail = "they were given, and nothing here tests them"
        return declared("the laws of the world are exact", detail)
    counted = world.transition_counts is not None or world.initial_count is not None
    detail = "the distances of the true laws were declared"
    if counted:
        detail = (
            "what was counted is taken to be independent draws of one law per pair, with no more "
            "states than are known"
        )
    return declared("the true laws are as near as the model says", detail)


def _support(world: World) -> Premise:
    equal, sure = observed_support(world)
    detail = "which next states are possible is taken as known whatever was recorded"
    if equal:
        detail += (
            "; every one of them was observed: the support equals the observed pattern, and was "
            "probably taken from the record, which would make the bound too small"
        )
    if sure.any():
        detail += (
            f"; {int(sure.sum())} recorded pairs have one possible next state, and error 0 by that"
        )
    return declared("the support was known before recording", detail)


def _one_law(world: World, level: float) -> Premise:
    assert world.shared is not None
    log_value, pair = shared_evidence(world.shared)
    state, action = np.unravel_index(pair, world.shared.groups.shape)
    sample = f"{int(world.shared.group_tallies.sum())} steps that show their outcome"
    worst = (
        f"most out of line with its group is state {state}, action {action}. Give it another group"
    )
    return judged(ONE_LAW_A_GROUP, sample, log_value, worst, level)


def shared_evidence(shared: SharedLaws) -> tuple[float, int]:
    """The logarithm of an e-value against one law of outcomes for each group, and the pair that is
    most out of line.

        e = mean of  prod_s Q(s)/L        every pair has a law of its own
            and of   Q(s) Q(g - s)/L      averaged over the pairs s: one differs from its group g

    where Q is the Dirichlet mixture with 1/2 for every outcome of the group, Q(g - s) that of the
    group's other pairs, and L the largest likelihood that laws of groups can give to the record (of
    the group alone in the second line). L is at least the true likelihood, so that the mean of e
    is at most one whatever the laws are.
    """
    from scipy.special import gammaln, xlogy

    assert shared.tallies is not None
    label = shared.groups.ravel()
    tallies = shared.tallies.reshape(label.size, -1)
    counted = np.flatnonzero(tallies.sum(axis=1) > 0)
    label, own = label[counted], tallies[counted].astype(float)
    sizes = shared.outcomes.astype(float)

    def mixed(rows: FloatArray, of: FloatArray) -> FloatArray:
        whole = gammaln(of / 2) - gammaln(rows.sum(axis=1) + of / 2)
        return np.asarray(whole + (gammaln(rows + 0.5) - gammaln(0.5)).sum(axis=1))

    groups = shared.group_tallies.astype(float)
    totals = np.maximum(groups.sum(axis=1, keepdims=True), 1.0)
    likeliest = xlogy(groups, groups / totals).sum(axis=1)
    alone = mixed(own, sizes[label])
    apart = alone + mixed(groups[label] - own, sizes[label]) - likeliest[label]
    every = float(alone.sum() - likeliest[np.unique(label)].sum())
    single = float(np.logaddexp.reduce(apart) - math.log(apart.size))
    return float(np.logaddexp(every, single) - math.log(2)), int(counted[np.argmax(apart)])


def doubt_of_copies(premises: Iterable[Premise], demos: Demonstrations | None) -> list[str]:
    """A sentence where many episodes are equal and nothing shows whether they were copied."""
    untested = any(
        one.name == NO_COPIES and one.status is PremiseStatus.DECLARED for one in premises
    )
    if demos is None or not untested:
        return []
    count = len(demos)
    repeats = count - int(equal_episodes(demos).max()) - 1
    if repeats < MANY_EQUAL * count:
        return []
    return [
        f"{repeats} of the {count} demonstrations equal an earlier one: if they were copied, the "
        "bound is too small."
    ]


def _explicit_tests(world: World, demos: Demonstrations, level: float) -> tuple[Premise, ...]:
    """Bets against laws that are known; a comparison with those that are estimates. With average
    costs it does not matter where records start."""
    anywhere, world = world.averages is not None, world.of_records
    starts_known = not anywhere and world.initial_error is None and world.initial_count is None
    steps_known = world.transition_error is None and world.transition_counts is None
    tests = {"starts": (starts_known, _starts), "steps": (steps_known, _steps)}
    if anywhere:
        del tests["starts"]
    found = [test(world, demos, level) for known, test in tests.values() if known]
    untested = " and ".join(what for what, (known, _) in tests.items() if not known)
    cause = LITTLE_CHANCE
    if untested:
        cause = "laws that are estimates cannot say how likely equal episodes are"
        found.append(
            declared(
                "the expert acts in the world the model describes",
                f"{untested} cannot be tested exactly, for the model is only an estimate of their "
                "law, made of independent draws, with no more states than are known, and the "
                "expert takes no action where the model does not offer it, recorded or not; "
                "demonstrations simulated in the model break this premise",
            )
        )
        found.append(_agreement(world, demos, level))
    chances = np.zeros(len(demos))
    if starts_known:
        chances += log_or_zero(world.initial[demos.first_states])
    if steps_known:
        steps = np.asarray(world.transition[demos.pairs_in(world), demos.next_states]).ravel()
        chances += np.add.reduceat(log_or_zero(steps), demos.offsets[:-1])
    return no_copies(repetitions(demos, chances), level, cause), *found


def _stepped_tests(world: World, demos: Demonstrations, level: float) -> tuple[Premise, ...]:
    """Whether starts and steps are possible; bets against laws that can be asked for."""
    chances = _step_chances(world, demos)
    first = np.asarray(world.initial_probability(demos.first_states), dtype=float)
    starts, steps = _possible_starts(demos, first), _possible_steps(demos, chances)
    log_chances = log_or_zero(first)
    if chances is not None:
        log_chances = log_chances + np.add.reduceat(log_or_zero(chances), demos.offsets[:-1])
    cause = "the world can only be sampled" if chances is None else LITTLE_CHANCE
    bets = []
    if starts.status is PremiseStatus.TESTED:
        words, log_value = start_evidence_of_draws(world, demos.first_states)
        bets.append(judged(STARTS_FOLLOW, f"{len(demos)} starts", log_value, words, level))
    if steps.status is PremiseStatus.TESTED and demos.num_steps:
        words, log_value = step_evidence_of_laws(
            cast(LargeWorld, world),
            *(part[:MOST_STEPS] for part in (demos.step_states, demos.actions, demos.next_states)),
        )
        sample = f"{min(demos.num_steps, MOST_STEPS)} steps"
        bets.append(judged(STEPS_FOLLOW, sample, log_value, words, level))
    copied = no_copies(repetitions(demos, log_chances), level, cause)
    return copied, starts, steps, *bets


def _of_totals(records: EpisodeTotals) -> tuple[Premise, ...]:
    """What can only be declared where nothing but totals of episodes is at hand."""
    independence = declared(
        "independent trajectories",
        f"the {len(records)} episodes are taken to be independent records of one expert, none left "
        "out for what it shows",
    )
    repeats = len(records) - len(np.unique(records.totals, axis=0))
    copied = declared(
        NO_COPIES,
        f"not tested, for totals do not show it: {repeats} of {len(records)} episodes have the "
        "totals of another",
    )
    return independence, copied


def log_or_zero(probabilities: FloatArray) -> FloatArray:
    """Logarithms; 0 for what is impossible, which other premises speak of."""
    return np.log(np.where(probabilities > 0, probabilities, 1.0))


def no_copies(found: Repetitions, level: float, cause: str) -> Premise:
    """That no episode was copied: tested where the record, copied as a whole, would be refuted.

    Copies are episodes that are equal in all states and actions. One with a changed step goes
    unnoticed: any two records have steps in common, and how many is the expert's affair.
    """
    name, threshold = NO_COPIES, -math.log(level)
    count, repeats = found.num_episodes, found.num_repeats
    if found.log_value < threshold and found.log_twice < threshold:
        return declared(
            name,
            f"not tested, for {cause}: {repeats} of {count} episodes equal an earlier one, and the "
            f"whole record copied would have an e-value of {_number(found.log_twice)}",
        )
    sample = f"{count} episodes, {repeats} of which equal an earlier one"
    worst = ""
    if found.example is not None:
        first, second, log_chance = found.example
        worst = (
            f"episodes {first} and {second} are equal, which has probability "
            f"{_number(log_chance)} at most. Leave copies out"
        )
    judgement = judged(name, sample, found.log_value, worst, level)
    if judgement.status is PremiseStatus.FAILED:
        return judgement
    unseen = "only copies that are equal in every step are tested for"
    return replace(judgement, detail=f"{judgement.detail}; {unseen}")


def _starts(world: World, demos: Demonstrations, level: float) -> Premise:
    name, starts = STARTS_FOLLOW, demos.first_states
    impossible = world.initial[starts] <= 0
    if impossible.any():
        episode = int(np.argmax(impossible))
        detail = f"episode {episode} starts in state {starts[episode]}, of initial probability 0"
        return failed(name, detail, level)
    strongest, log_value = start_evidence(world, demos)
    _, outcome, frequencies = strongest.most_out_of_line()
    next_block = np.append(strongest.tally.laws.indices, world.num_states)
    behind = int(next_block[np.searchsorted(next_block, outcome, side="right")])
    last = outcome + int(np.flatnonzero(world.initial[outcome:behind])[-1])
    where = f"state {outcome}" if last == outcome else f"states {outcome} to {last}"
    worst = f"{strongest.tendency}most out of line is a start in {where}: {frequencies}"
    return judged(name, f"{starts.size} starts", log_value, worst, level)


def _steps(world: World, demos: Demonstrations, level: float) -> Premise:
    strongest, log_value = step_evidence(world, demos)
    pair, outcome, frequencies = strongest.most_out_of_line()
    sample = f"{demos.num_steps} steps from {strongest.tally.rows.size} pairs"
    where = f"{world.pairs.pair_in_words(pair)} to state {outcome}"
    worst = f"{strongest.tendency}most out of line is {where}: {frequencies}"
    return judged(STEPS_FOLLOW, sample, log_value, worst, level)


def _possible_starts(demos: Demonstrations, chances: FloatArray) -> Premise:
    name, starts = "start states are possible", demos.first_states
    impossible = ~(chances > 0)
    if impossible.any():
        episode = int(np.argmax(impossible))
        detail = f"episode {episode} starts in state {starts[episode]}, of initial probability 0"
        return failed(name, detail, 0.0)
    return Premise(
        name, PremiseStatus.TESTED, f"{starts.size} starts have positive probability", 0.0
    )


def _step_chances(world: World, demos: Demonstrations) -> FloatArray | None:
    """The probability of every recorded step; None where the world does not say."""
    if not hasattr(world, "successors"):
        return None
    before, after, actions = demos.step_states, demos.next_states, demos.actions
    found = np.zeros(before.size)
    for first in range(0, before.size, BLOCK):
        part = slice(first, first + BLOCK)
        following = successor_laws(cast(LargeWorld, world), before[part], actions[part])
        hit = following.states == after[part, np.newaxis]
        found[part] = np.where(hit, following.probabilities, 0.0).sum(axis=1)
    return found


def _possible_steps(demos: Demonstrations, chances: FloatArray | None) -> Premise:
    name = "steps are possible"
    if chances is None:
        return declared(name, "the world can only be sampled")
    impossible = ~(chances > 0)
    if impossible.any():
        at = int(np.argmax(impossible))
        step = (
            f"state {demos.step_states[at]}, action {demos.actions[at]} to {demos.next_states[at]}"
        )
        return failed(name, f"step {at}: {step} has probability 0", 0.0)
    return Premise(
        name, PremiseStatus.TESTED, f"{chances.size} steps have positive probability", 0.0
    )


def _agreement(world: World, demos: Demonstrations, level: float) -> Premise:
    closest, unobserved = agreement(world, demos, level), num_unobserved(world, demos)
    detail = str(closest)
    if unobserved is not None:
        share = unobserved / max(demos.num_steps, 1)
        counted = f"{unobserved} of {demos.num_steps} steps ({share:.0%})"
        detail = f"{counted} were never seen in the record of the model; {detail}"
    name = "demonstrations agree with the estimated laws"
    return Premise(
        name, PremiseStatus.FAILED if closest.is_refuted else PremiseStatus.TESTED, detail, level
    )


def judged(name: str, sample: str, log_value: float, worst: str, level: float) -> Premise:
    """Refuted when the e-value reaches 1/level."""
    detail = f"e-value {_number(log_value)} from {sample}, refuted from {1 / level:g} on"
    if log_value >= -math.log(level):
        return failed(name, f"{detail}; {worst}", level)
    return Premise(name, PremiseStatus.TESTED, detail, level)


def _number(log_value: float) -> str:
    """A number whose logarithm is given, however large or small."""
    small = abs(log_value) < 600
    return f"{math.exp(log_value):.3g}" if small else f"10^{log_value / math.log(10):.0f}"
