"""Claims about premises: names, levels, outcomes, and every word of their texts (`TEXTS`).

Tests are bets. The certificate computes the wealth of a bet from counts and gamma functions; here
every draw is bet on in its turn: before its k-th draw of a law the bet rows(kappa) holds
q(x) = (draws of x so far + kappa P(x))/(k - 1 + kappa), and its wealth is multiplied by q(x)/P(x).

Whether an episode was copied: c of the j episodes before it equal it, p is the probability of its
start and steps by the laws, and the bet copies(kappa) is multiplied by (kappa + c/p)/(kappa + j).

Demonstrations against an estimated model: half of the level is for the distances of the model, half
for those of the demonstrations; what both allow together is to be kept by every pair and, where
they are an estimate, by the starts.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.checker.archives import Floats, Ints
from journeyman.checker.consistency import (
    DETERMINISTIC,
    ONE_ACTION,
    ONE_LAW,
    STATIONARY,
    check_laws_of_actions,
)
from journeyman.checker.explicit import FAILED, ExplicitRun
from journeyman.checker.findings import Findings, Refused, number
from journeyman.checker.inputs import MODEL_PART, Records, StoredWorld, divergence, pinsker
from journeyman.checker.policy import ROLLOUTS

LEVEL = 1e-3
CONCENTRATIONS = (1.0, 10.0, 100.0, 1e3, 1e4)
WRONG_SHARES = (1.0, 1e-2, 1e-4)
TEMPERS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0)
START_BLOCKS = (4, 32, 256)
LITTLE_CHANCE = "the laws leave too little to chance to distinguish a copy from an equal episode"
UNKNOWN_CHANCE = "laws that are estimates cannot say how likely equal episodes are"
COPY_SCALES = tuple(10.0**k for k in range(13))

DECLARED, TESTED = "declared", "tested, not refuted"
GIVEN = "the declared expectations are those of the expert"
INDEPENDENT = "independent trajectories"
COPIED = "no episode was copied"
EXACT_LAWS = "the laws of the world are exact"
NEAR_LAWS = "the true laws are as near as the model says"
KNOWN_SUPPORT = "the support was known before recording"
STARTS, STEPS = "start states follow the initial law", "steps follow the transition law"
MODEL = "the expert acts in the world the model describes"
AGREES = "demonstrations agree with the estimated laws"
FRESH_ROLLOUTS = "fresh rollouts are independent of the policy"
FRESH_ROWS = "fresh rows are independent of the coefficients"
SUPPORT = "support of q: every row that counts can be drawn"
ALARM = "a policy of this world can have made the demonstrations"
ONE_STATE = "the expert chooses by the present state alone"
IN_TIME = "no more steps are expected than declared"
RANGES = "costs lie in their declared range"
POSSIBLE_STARTS, POSSIBLE_STEPS = "start states are possible", "steps are possible"
SIMULATOR = "the simulator is the world the expert acted in"
CANDIDATES = "rollouts are independent of the candidates"
TABLES = "costs of one factor are those of their tables"
AGREE, DRAWN = "successors and predecessors agree", "draws of features follow their law"
TAKEN = "features and predecessors are what they declare"
SEPARATE = "rollouts are independent of one another"
ONE_LAW_A_GROUP = "pairs of a group share one law of outcomes"
DECLARATIONS = {
    GIVEN, INDEPENDENT, MODEL, FRESH_ROLLOUTS, FRESH_ROWS, EXACT_LAWS, NEAR_LAWS, KNOWN_SUPPORT,
    IN_TIME, ONE_STATE,
}  # fmt: skip
PARTS = {"name", "status", "detail", "level"}

# Texts: # is any number, <word> what a run gives; a premise has one text for each outcome, or more

VISITED = "# of # states were visited"
COUNTED = "# of # draws, frequency #, expected #"
ODD_STEP = f"<tendency>most out of line is state #, action # to state #: {COUNTED}"
ODD_START = f"<tendency>most out of line is a start in <states>: {COUNTED}"
ODD_BLOCK = "# blocks by <by>; most out of line is block #, with # of # starts, # expected"
IMPOSSIBLE = "episode # starts in state #, of initial probability 0"
SEEN = "p-value # from 16 batches of 8 walks<each>, refuted up to 0.001"
UNLISTED = (
    "state #, action # leads to state # with probability #, and the predecessors of state # "
    "<contrary>"
)


def _bet(name: str, sample: str, *odd: str, unseen: str = "") -> list[tuple[str, str, str]]:
    """The texts of a test by an e-value, and what it can find most out of line."""
    text = f"e-value # from {sample}, refuted from 1000 on"
    return [(name, TESTED, text + unseen), *((name, FAILED, f"{text}; {one}") for one in odd)]


TEXTS = [
    (GIVEN, DECLARED, "they were given as numbers, and are taken as exact"),
    (RANGES, DECLARED, "checked in every pair that was ever evaluated"),
    (INDEPENDENT, DECLARED, "the <episodes> episodes are taken to be independent records of one "
     "expert, <ended>none left out for what it shows"),
    (COPIED, DECLARED, "not tested, for <cause>: <repeats> of <episodes> episodes <equal>"),
    *_bet(COPIED, "<episodes> episodes, <repeats> of which equal an earlier one",
          "episodes # and # are equal, which has probability # at most. Leave copies out",
          unseen="; only copies that are equal in every step are tested for"),
    *_bet(STARTS, "<episodes> starts", "<odd start>"),
    (STARTS, FAILED, IMPOSSIBLE),
    *_bet(STEPS, "<sample of steps>", ODD_STEP),
    (MODEL, DECLARED, "<untested> cannot be tested exactly, for the model is only an estimate of "
     "their law, made of independent draws, with no more states than are known, and the expert "
     "takes no action where the model does not offer it, recorded or not; demonstrations simulated "
     "in the model break this premise"),
    *((AGREES, outcome, "<never seen>closest to the limit is <place>: # draws at distance #, # is "
       "allowed") for outcome in (TESTED, FAILED)),
    (IN_TIME, DECLARED, "wherever the expert has got to, also where a record of it was cut off, it "
     "is taken to expect at most <most steps> further steps"),
    (ONE_STATE, DECLARED, "long-run averages are those of a stationary policy, and lengths of "
     "records are taken to have been fixed beforehand; neither is tested"),
    (EXACT_LAWS, DECLARED, "they were given, and nothing here tests them"),
    (NEAR_LAWS, DECLARED, "<near>"),
    (KNOWN_SUPPORT, DECLARED, "<support>"),
    *_bet(ONE_LAW_A_GROUP, "# steps that show their outcome",
          "most out of line with its group is state #, action #. Give it another group"),
    (FRESH_ROLLOUTS, DECLARED, "<draws> rollouts from seed <seed>, a digest of problem and policy; "
     "the policy is taken not to have been chosen because of them"),
    (FRESH_ROWS, DECLARED, "<draws> rows for each sum from seed <seed>, a digest of problem and "
     "policy; the coefficients are taken not to have been chosen because of them"),
    (SUPPORT, TESTED, "no row of probability zero adds to V1, V2 or r+"),
    (SUPPORT, FAILED, "row # counts in <sum> but is never drawn"),
    *((ALARM, outcome, "<alarm>") for outcome in (TESTED, FAILED)),
    (SIMULATOR, DECLARED, "its episodes are taken to be independent, and to cost after their end "
     "what was declared"),
    (POSSIBLE_STARTS, TESTED, "<episodes> starts have positive probability"),
    (POSSIBLE_STARTS, FAILED, IMPOSSIBLE),
    (POSSIBLE_STEPS, TESTED, "<steps> steps have positive probability"),
    (POSSIBLE_STEPS, FAILED, "step #: state #, action # to # has probability 0"),
    (POSSIBLE_STEPS, DECLARED, "the world can only be sampled"),
    (CANDIDATES, DECLARED, "<draws> rollouts of each from seed <seed>, in rounds of <rounds> "
     "candidates; the seed is a digest of problem and policy, which are taken not to have been "
     "chosen because of it"),
    (SEPARATE, TESTED, f"{SEEN}; what the test does not see is taken to be independent"),
    (SEPARATE, FAILED, f"{SEEN}: walks of a batch share their luck"),
    (TABLES, DECLARED, "<tables>: checked in <draws> pairs that were drawn"),
    (AGREE, TESTED, "<followed> steps were followed there and back"),
    (AGREE, FAILED, UNLISTED),
    (AGREE, FAILED, "predecessors of state # list state #, action # with probability #, and its "
     "successors give #"),
    *_bet(DRAWN, "<draws> rows", "<again> are drawn again too often",
          "column # has a share of # in the draws, # is its mass",
          "the initial law has a mass of # in the draws, it should be 1"),
    (ONE_LAW, DECLARED, f"not tested; {VISITED}"),
    (ONE_ACTION, DECLARED, f"not tested, for no state was visited twice; {VISITED}"),
    (ONE_ACTION, TESTED, f"{VISITED}; # of them again, always with the same action"),
    (ONE_ACTION, FAILED, "in state # step # of episode # takes action # and step # of episode # "
     "action #; # states have such steps"),
    (TAKEN, DECLARED, "predecessors are taken to be complete, columns to have mass 1/(1 - "
     "discount), draws to follow their law also where no row was drawn twice"),
]  # fmt: skip
NUMBER = r"(?:10\^)?[-+]?(?:\d+(?:\.\d+)?(?:e[-+]\d+)?|inf)"
CHOICES = {
    "tendency": "(?:unlikely states come too (?:rarely|often); )?",
    "states": r"(?:state \d+|states \d+ to \d+)",
    "by": "(?:number|initial probability)",
    "place": r"(?:nothing|the law of the starts|state \d+, action \d+)",
    "sum": r"(?:V1|V2|r\+)",
    "contrary": f"(?:do not list it|give it {NUMBER})",
    "again": "(?:pairs|states)",
}
UNDECIDED = 1e-6
"""Of the logarithm of an e-value, or of a distance: so close to the threshold rounding decides."""
PRINTED = 0.01
"""Relative error of a number in a text."""
NOTHING = 1e-9
"""The distance of one certain law from itself."""


def check_texts(findings: Findings, premises: list[dict[str, Any]], given: dict[str, Any]) -> None:
    """The parts of every premise, and its text, word for word. `given` are texts and numbers that
    the run decides; patterns among them are compiled."""
    known = {word: one.pattern if isinstance(one, re.Pattern) else re.escape(str(one))
             for word, one in given.items()}  # fmt: skip
    words = CHOICES | known
    for stated in premises:
        if not findings.equal("the parts of a premise", sorted(stated), sorted(PARTS)):
            continue
        name, detail = stated["name"], str(stated["detail"])
        texts = [text for one, status, text in TEXTS if (one, status) == (name, stated["status"])]
        findings.check(
            any(re.fullmatch(filled(text, words), detail) for text in texts),
            f"the text of the premise that {name} is not what its inputs give",
        )


def filled(text: str, words: dict[str, str] = CHOICES) -> str:
    """The pattern of a text; of what is not known any number will do."""
    parts = [part for part in re.split("(#|<[a-z ]+>)", text) if part]
    return "".join(
        words.get(part.strip("<>"), NUMBER) if part[0] in "#<" else re.escape(part)
        for part in parts
    )


def check_premises(findings: Findings, facts: dict[str, Any], run: ExplicitRun) -> None:
    """That the list is complete, and each of its entries."""
    names = [one["name"] for one in facts["premises"]]
    if not findings.equal("the list of premises", names, _names(run)):
        return
    stated = dict(zip(names, facts["premises"], strict=True))
    check_texts(findings, facts["premises"], _given(facts, run))
    for name in DECLARATIONS & set(names):
        check_outcome(findings, stated[name], DECLARED, None)
    world, records = run.world, run.records
    if records is not None and INDEPENDENT in stated:
        _check_record(findings, stated, world.of_records, records, anywhere=world.base is not None)
    groups = world.knowledge.groups
    if groups is not None:
        count = int(groups.tally.sum())
        check_test(findings, stated[ONE_LAW_A_GROUP], groups.evidence(), count)
    if run.features is not None:
        outcome = TESTED if run.features.is_supported(world) else FAILED
        check_outcome(findings, stated[SUPPORT], outcome, 0.0)
    if records is not None:
        check_laws_of_actions(findings, stated, world, records)
    if ALARM in stated:
        outcome = FAILED if facts["alarm"] else TESTED
        check_outcome(findings, stated[ALARM], outcome, run.failure_probability)


def _given(facts: dict[str, Any], run: ExplicitRun) -> dict[str, Any]:
    """What the texts of an explicit run say of it."""
    world, known, records = run.world, run.world.knowledge, run.records
    untested = ["starts"] * (not known.exact_starts) + ["steps"] * (not known.exact_steps)
    counted = known.counts is not None or known.starts is not None
    found: dict[str, Any] = {
        "untested": " and ".join(untested), "support": _support_text(world),
        "alarm": _alarm_text(facts["lower_bounds"]), "never seen": "",
        "most steps": f"{world.steps_at_most or 0:g}",
        "near": "what was counted is taken to be independent draws of one law per pair, with no "
        "more states than are known" if counted else "the distances of the true laws were declared",
    }  # fmt: skip
    if run.sampling is not None:
        found |= {"draws": run.samples[0].count, "seed": run.samples[0].seed}
    if records is None:
        return found
    if known.counts is not None:
        seen = np.asarray(world.rows[records.pair, records.next_state]).ravel() > 0
        count, total = int((~seen).sum()), seen.size
        share = f"{count} of {total} steps ({count / max(total, 1):.0%})"
        found["never seen"] = f"{share} were never seen in the record of the model; "
    sample = f"{records.pair.size} steps from {np.unique(records.pair).size} pairs"
    cause = LITTLE_CHANCE if not untested else UNKNOWN_CHANCE
    odd = re.compile(filled(ODD_START))
    return found | episode_texts(records, cause) | {"sample of steps": sample, "odd start": odd}


def episode_texts(records: Records, cause: str) -> dict[str, Any]:
    """What is said of recorded episodes."""
    equal = rf"equal an earlier one, and the whole record copied would have an e-value of {NUMBER}"
    return {
        "episodes": len(records), "steps": records.state.size, "cause": cause,
        "repeats": copies_of(records, None).repeats, "equal": re.compile(equal),
        "ended": "none ended with foresight, ",
    }  # fmt: skip


def _alarm_text(bounds: dict[str, Any]) -> str:
    least, radius = number(bounds["without_budgets"]), number(bounds["expert_radius"])
    if least > radius:
        return (
            f"every policy has a gap of {least:.4g} or more on the data, but a policy of this "
            f"world that made them would have at most {radius:.4g}"
        )
    return f"{max(least, 0.0):.4g} from the data is possible, {radius:.4g} is to be expected"


def _support_text(world: StoredWorld) -> str:
    """Whether the support is the pattern of the record, and how many laws are exact by it."""
    equal, sure = world.knowledge.observed_support(world.rows)
    text = "which next states are possible is taken as known whatever was recorded"
    if equal:
        text += (
            "; every one of them was observed: the support equals the observed pattern, and was "
            "probably taken from the record, which would make the bound too small"
        )
    if sure:
        text += f"; {sure} recorded pairs have one possible next state, and error 0 by that"
    return text


def _check_record(
    findings: Findings, stated: dict[str, Any], world: StoredWorld, records: Records, *,
    anywhere: bool,
) -> None:  # fmt: skip
    check_copies(findings, stated[COPIED], copies_in(world, records, anywhere=anywhere))
    if STARTS in stated:
        check_test(findings, stated[STARTS], starts_evidence(world, records), len(records))
    if STEPS in stated:
        draws = Draws.of(world.rows, records.pair, records.next_state)
        check_test(findings, stated[STEPS], steps_evidence(draws), records.pair.size)
    if AGREES in stated:
        _check_agreement(findings, stated[AGREES], world, records)


def _names(run: ExplicitRun) -> list[str]:
    """Which premises the run rests on, in their order."""
    known, found = run.world.knowledge, []
    if run.problem.estimated:
        starts = known.exact_starts and run.world.base is None
        found = [ONE_STATE] * (run.world.base is not None)
        found += [INDEPENDENT, COPIED, *[STARTS] * starts, *[STEPS] * known.exact_steps]
        found += [MODEL, AGREES] * known.is_estimate
    found += [IN_TIME] * (run.world.steps_at_most is not None)
    if not run.problem.estimated:
        found = [GIVEN] * (run.problem.expectation.get("kind") == "declared") + found
        found.append(NEAR_LAWS if known.is_estimate else EXACT_LAWS)
    if known.support is not None:
        found.append(KNOWN_SUPPORT)
    if known.groups is not None:
        found.append(ONE_LAW_A_GROUP)
    laws = {DETERMINISTIC: ONE_ACTION, STATIONARY: ONE_LAW}
    found += [laws[one] for one in run.problem.expert_is if one in laws]
    if run.sampling is not None:
        found += [FRESH_ROLLOUTS] if run.sampling == ROLLOUTS else [FRESH_ROWS, SUPPORT]
    return [*found, *[ALARM] * run.problem.estimated]


def check_outcome(
    findings: Findings, stated: dict[str, Any], outcome: str, level: float | None
) -> None:
    both = (stated["status"], stated["level"])
    findings.equal(f"the premise that {stated['name']}", both, (outcome, level))


def check_test(findings: Findings, stated: dict[str, Any], log_value: float, count: int) -> None:
    """A test refutes its premise from an e-value of 1/level on."""
    name, threshold = stated["name"], -math.log(LEVEL)
    findings.equal(f"the level of the test that {name}", stated["level"], LEVEL)
    if abs(log_value - threshold) > UNDECIDED:
        outcome = FAILED if log_value > threshold else TESTED
        findings.equal(f"the status that {name}", stated["status"], outcome)
    if log_value == math.inf:
        impossible = "of initial probability 0" in stated["detail"]
        findings.check(impossible, f"that {name} fails for another reason than is stated")
        return
    says = re.match(r"e-value (10\^)?(\S+) from (\d+) ", stated["detail"])
    if says is None:
        findings.check(False, f"the test that {name} names no e-value")
        return
    agrees = _prints(says[1], float(says[2]), log_value)
    findings.check(agrees, f"the test that {name} names another e-value than exp({log_value!r})")
    findings.equal(f"the sample of the test that {name}", int(says[3]), count)


def printed_log(stated: dict[str, Any]) -> float:
    """The logarithm of the e-value that a test names."""
    says = re.match(r"e-value (10\^)?(\S+) from ", stated["detail"])
    if says is None:
        raise Refused(f"the test that {stated['name']} names no e-value")
    value = float(says[2])
    return value * math.log(10) if says[1] else math.log(value) if value > 0 else -math.inf


def _prints(power: str | None, printed: float, log_value: float) -> bool:
    """Whether a printed number, or power of ten, is the one whose logarithm is given."""
    if power:
        return abs(printed - log_value / math.log(10)) <= 1
    value = math.exp(min(log_value, 700.0))
    return abs(printed - value) <= PRINTED * value


# Bets


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the rows of a matrix of laws, in the order in which they happened."""

    laws: Any
    row: Ints
    outcome: Ints
    probability: Floats

    @classmethod
    def of(cls, laws: Any, row: Ints, outcome: Ints) -> "Draws":
        return cls(laws, row, outcome, np.asarray(laws[row, outcome]).ravel())

    def on_counts(self, kappa: float) -> Floats:
        """Log wealth of rows(kappa), for every row that was drawn from."""
        before = rank(self.row)
        seen = rank(self.row * self.laws.shape[1] + self.outcome)
        gain = np.log1p(seen / (kappa * self.probability)) - np.log1p(before / kappa)
        _, place = np.unique(self.row, return_inverse=True)
        return np.bincount(place, gain).astype(float)

    def on_temper(self, beta: float) -> float:
        """Log wealth of a bet on P^beta, made a law."""
        laws, place = self._drawn_from
        law_of = np.arange(laws.shape[0]).repeat(np.diff(laws.indptr))
        totals = np.bincount(law_of, laws.data**beta)
        gain = (beta - 1) * np.log(self.probability) - np.log(totals[place])
        return math.fsum(gain)

    @cached_property
    def _drawn_from(self) -> tuple[Any, Ints]:
        """The laws that were drawn from, each once, and the place of each draw's among them."""
        rows, place = np.unique(self.row, return_inverse=True)
        return self.laws[rows], place


def rank(labels: Ints) -> Ints:
    """How often each entry's label occurred before it."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    fresh = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    ranks = np.arange(labels.size) - fresh.repeat(np.diff(np.append(fresh, labels.size)))
    found = np.empty_like(ranks)
    found[order] = ranks
    return found


def steps_evidence(draws: Draws) -> float:
    """log E against the laws of many rows; of a share of them each."""
    on_rows = []
    for kappa in CONCENTRATIONS:
        wealth = draws.on_counts(kappa)
        for share in WRONG_SHARES:
            hedged = (
                np.logaddexp(math.log1p(-share), math.log(share) + wealth) if share < 1 else wealth
            )
            on_rows.append(math.fsum(hedged))
    return log_mean([log_mean(on_rows), log_mean([draws.on_temper(beta) for beta in TEMPERS])])


def starts_evidence(world: StoredWorld, records: Records) -> float:
    """log E against the initial law; infinite when a start was impossible. Bets are made on single
    states and on blocks of consecutive states of about equal probability."""
    initial, starts = world.initial, records.starts
    if (initial[starts] <= 0).any():
        return math.inf
    middle, every = np.cumsum(initial) - initial / 2, []
    for number_ in (None, *START_BLOCKS):
        label = np.arange(world.num_states)
        if number_ is not None:
            label = np.unique(np.floor(middle * number_), return_inverse=True)[1].astype(np.int64)
        law = sparse.csr_array(np.bincount(label, initial)[np.newaxis])
        every.append(Draws.of(law, np.zeros_like(starts), label[starts]))
    on_counts = [math.fsum(draws.on_counts(kappa)) for draws in every for kappa in CONCENTRATIONS]
    return log_mean([log_mean(on_counts), log_mean([every[0].on_temper(beta) for beta in TEMPERS])])


def log_mean(logs: Sequence[float]) -> float:
    """The log of the mean of numbers whose logs are given."""
    return _log_sum(list(logs)) - math.log(len(logs))


def _log_sum(logs: list[float]) -> float:
    top = max(logs, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(one - top) for one in logs))


# Copies


@dataclass(frozen=True)
class Copies:
    """log e-values of the record and of the record repeated (None where only code could say), and
    how many of its episodes equal an earlier one."""

    log_value: float | None
    log_twice: float | None
    episodes: int
    repeats: int


def copies_in(world: StoredWorld, records: Records, *, anywhere: bool = False) -> Copies:
    """Of a record in a world whose laws are known, or count as certain where they are not; no law
    is known of starts that may be `anywhere`."""
    known = world.knowledge
    starts = world.initial[records.starts] if known.exact_starts and not anywhere else None
    steps = None
    if known.exact_steps:
        steps = np.asarray(world.rows[records.pair, records.next_state]).ravel()
    return copies_of(records, log_chances(records, starts, steps))


def log_chances(records: Records, starts: Floats | None, steps: Floats | None) -> Floats:
    """Logarithms of the probabilities of episodes. What is impossible is the affair of other
    premises, and counts as certain like what nobody knows."""
    found = np.zeros(len(records))
    if starts is not None:
        found += np.log(np.where(starts > 0, starts, 1.0))
    if steps is not None:
        logs = np.log(np.where(steps > 0, steps, 1.0))
        found += np.bincount(records.episode, logs, minlength=len(records))
    return found


def copies_of(records: Records, chances: Floats | None) -> Copies:
    """Of episodes by their contents, and the logarithms of their probabilities."""
    columns = np.column_stack([records.state, records.action, records.next_state])
    stops = np.cumsum(records.lengths)
    first = stops - records.lengths
    keys = [columns[low:high].tobytes() for low, high in zip(first, stops, strict=True)]
    repeats = len(keys) - len(set(keys))
    if chances is None:
        return Copies(None, None, len(keys), repeats)
    found = chances.tolist()
    once, twice = copies_evidence(keys, found), copies_evidence(2 * keys, 2 * found)
    return Copies(once, twice, len(keys), repeats)


def copies_evidence(keys: Sequence[Any], log_chance: Sequence[float]) -> float:
    """The log of the mean of both kinds of bets: on copies, and on pairs of equal episodes."""
    seen: Counter[Any] = Counter()
    ratios, chance_of = [], dict(zip(keys, log_chance, strict=True))
    for key in keys:
        ratios.append(math.log(seen[key]) - chance_of[key] if seen[key] else -math.inf)
        seen[key] += 1
    count = len(ratios)
    if count < 2:
        return 0.0
    equal = [math.log(n * (n - 1) / 2) - chance_of[key] for key, n in seen.items() if n > 1]
    rows = [
        math.fsum(
            _log_sum([math.log(kappa), ratio]) - math.log(kappa + j)
            for j, ratio in enumerate(ratios)
        )
        for kappa in COPY_SCALES
    ]
    if not equal:
        return log_mean(rows) - math.log(2)
    pairs = _log_sum(equal) - math.log(count) - math.log(count - 1) + math.log(2)
    return log_mean([pairs, log_mean(rows)])


def check_copies(findings: Findings, stated: dict[str, Any], found: Copies) -> None:
    """Tested where the record, repeated as a whole, would be refuted; otherwise declared."""
    threshold, episodes = -math.log(LEVEL), found.episodes
    if found.log_value is None or found.log_twice is None:
        return
    largest = max(found.log_value, found.log_twice)
    if abs(largest - threshold) <= UNDECIDED:
        return
    if largest > threshold:
        check_test(findings, stated, found.log_value, episodes)
        return
    check_outcome(findings, stated, DECLARED, None)
    says = re.search(r" an e-value of (10\^)?(\S+)$", stated["detail"])
    agrees = says is not None and _prints(says[1], float(says[2]), found.log_twice)
    findings.check(agrees, f"the premise that {COPIED} names another e-value")


# Estimated worlds


def _check_agreement(
    findings: Findings, stated: dict[str, Any], world: StoredWorld, records: Records
) -> None:
    """The test refutes its premise when a distance exceeds what is allowed."""
    name, detail = stated["name"], stated["detail"]
    excess = _largest_excess(world, records)
    findings.equal(f"the level of the test that {name}", stated["level"], LEVEL)
    if abs(excess) > UNDECIDED:
        outcome = FAILED if excess > 0 else TESTED
        findings.equal(f"the status that {name}", stated["status"], outcome)
    says = re.search(r"draws at distance (\S+), (\S+) is allowed$", detail)
    sizes = (float(says[1]), float(says[2])) if says else (math.nan, math.nan)
    close = abs(sizes[0] - sizes[1] - excess) <= PRINTED * sum(sizes) + UNDECIDED
    findings.check(close, f"the test that {name} names other distances: {excess!r} is the excess")


def _largest_excess(world: StoredWorld, records: Records) -> float:
    """By how much the distance that is closest to its limit, or furthest beyond it, exceeds it."""
    known, found = world.knowledge, list[float]()
    model = known.distances(world.rows, world.initial, LEVEL / 2 / MODEL_PART)
    assert model is not None
    part = LEVEL / 2 if known.exact_starts or known.exact_steps else LEVEL / 4
    if not known.exact_starts:
        tally = np.bincount(records.starts, minlength=world.num_states)
        drawn = tally / len(records)
        info = divergence(tally[tally > 0].tolist(), world.num_states, 1, part)
        allowed_start = model.initial + float(pinsker(np.array([info]))[0])
        found.append(float(np.abs(world.initial - drawn).sum()) - allowed_start)
    if not known.exact_steps:
        counts = np.bincount(records.pair, minlength=world.num_pairs)
        ones, places = np.ones(records.pair.size), (records.pair, records.next_state)
        drawn = sparse.coo_array((ones, places), shape=world.rows.shape).tocsr()
        share = sparse.diags_array(1 / np.maximum(counts, 1)) @ drawn
        apart = np.asarray(abs(world.rows - share).sum(axis=1)).ravel()
        own = pinsker(known.divergences(drawn, part))
        kept = np.ones(world.num_pairs, bool)
        if known.support is not None:
            inside = np.asarray(drawn.multiply(known.support).sum(axis=1)).ravel()
            kept = inside >= counts
        allowed = (model.transition + own) * kept
        matters = (counts > 0) & ((allowed > 0) | (apart > NOTHING))
        found += (apart - allowed)[matters].tolist() or [0.0]
    return max(found, default=0.0)
