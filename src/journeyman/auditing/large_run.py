"""A run in a large world as the auditor has read it, before any code is made."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.expert import Estimate, mean_estimates
from journeyman.auditing.large_inputs import (
    Episodes,
    Form,
    LargeQuestion,
    Walked,
    read_episodes,
    read_form,
    read_large_question,
    read_walked,
)
from journeyman.auditing.reading import Refused
from journeyman.auditing.references import Code, read_code
from journeyman.auditing.stored import Sample, Stored, stored_combinations

Part = TypeVar("Part")
ALWAYS = ("code.json", "policy.npz", "problem.npz")
DEMONSTRATIONS, TOTALS = SOMETIMES = ("demonstrations.npz", "totals.npz")
WALKS, MIXTURE, ROWS = "rollouts", "mixture", "rows"
KINDS = {"E": WALKS, "E (mixture)": MIXTURE, "A (sampled)": ROWS}
"""Of evaluations, and what they draw."""
FACTS = {
    WALKS: {"kind", "trajectories", "horizon", "seed"},
    MIXTURE: {"kind", "trajectories", "horizon", "seed", "rounds", "most_rounds"},
    ROWS: {"kind", "rows", "seed"},
}


@dataclass(frozen=True, eq=False)
class LargeRun:
    """All inputs, what the certificate claims to have combined, and how the policy was walked."""

    question: LargeQuestion
    episodes: Episodes | None
    walked: Walked | None
    form: Form
    code: Code
    claimed: list[Stored]
    samples: list[Sample]
    evaluation: dict[str, Any]
    failure_probability: float
    same_numpy: bool
    """Whether the run names the version of numpy that is used now."""

    @property
    def kind(self) -> str:
        """What was drawn."""
        return str(self.evaluation["kind"])

    @property
    def shares(self) -> tuple[float, float]:
        """Of the failure probability, for the expert and for the evaluation."""
        delta = self.failure_probability
        return (0.0, delta) if self.episodes is None else (delta / 2, delta / 2)

    @property
    def drawn(self) -> list[int]:
        """Numbers of the candidates that were rolled out; of a single policy, none."""
        return [int(k) for k in np.flatnonzero(self.weights)] if self.kind == MIXTURE else []

    @property
    def weights(self) -> Any:
        weights = self.form.figures("weights", "policy")
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-8:
            raise Refused("the weights of the candidates are no law")
        return weights

    def places(self) -> list[tuple[int, int]]:
        """Round, from 1, and number within it of every candidate."""
        count = self.weights.size
        sizes = self.evaluation["rounds"] or [count]
        if sum(sizes) < count:
            raise Refused("the rounds have fewer candidates than the mixture")
        places = [(r, k) for r, size in enumerate(sizes, 1) for k in range(size)]
        return places[:count]

    def parts(self) -> list[Fraction]:
        """Of the evaluation's failure probability, of every candidate: 1/(r (r + 1)) for all of
        round r, 1/R in the last of R."""
        count = self.weights.size
        sizes = self.evaluation["rounds"] or [count]
        most = self.evaluation["most_rounds"] or len(sizes)
        rounds = [Fraction(1, r if r == most else r * (r + 1)) for r in range(1, len(sizes) + 1)]
        return [rounds[r - 1] / sizes[r - 1] for r, _ in self.places()]

    def estimates(self, *, centred: bool) -> list[Estimate]:
        """The estimates of the expert by one reading."""
        question = self.question
        if question.target is not None:
            return [Estimate("known", "declared", question.target, ())]
        if self.episodes is None:
            raise Refused("the expert's expectations were estimated from nothing")
        first, second = (part * self.shares[0] for part in protocol.PLAIN_PARTS)
        return mean_estimates(
            question.costs, question.horizon, self.episodes.totals, self.episodes.missing,
            (first, second), centred=centred,
        )  # fmt: skip


def read_large_run(files: dict[str, bytes], facts: dict[str, Any]) -> LargeRun:
    """The inputs among `files`; the first that cannot be used is `Refused`, with its name."""
    claimed, evaluation = stored_combinations(facts), facts["evaluation"]
    question = _named("problem.npz", lambda: read_large_question(files["problem.npz"]))
    form = _named("policy.npz", lambda: read_form(files["policy.npz"]))
    code = _named("code.json", lambda: read_code(files["code.json"]))
    episodes: Episodes | None = None
    walked: Walked | None = None
    if TOTALS in files:
        episodes = _named(TOTALS, lambda: read_episodes(files[TOTALS], question))
    if DEMONSTRATIONS in files:
        walked = _named(DEMONSTRATIONS, lambda: read_walked(files[DEMONSTRATIONS], question))
    if (question.target is None) != (episodes is not None):
        raise Refused("totals of demonstrations and the kind of target do not go together")
    if episodes is not None and (question.sizes is None) != (walked is None):
        raise Refused("demonstrations and the kind of problem do not go together")
    samples = _samples(claimed, _kind_of(evaluation))
    return LargeRun(
        question, episodes, walked, form, code, claimed, samples, evaluation,
        facts["failure_probability"], facts["software"]["numpy"] == np.__version__,
    )  # fmt: skip


def _kind_of(evaluation: Any) -> str:
    kind = evaluation.get("kind") if isinstance(evaluation, dict) else None
    if kind not in FACTS or set(evaluation) != FACTS[kind]:
        raise Refused(f"an evaluation of the kind {kind!r} cannot be audited")
    counts = [evaluation[name] for name in FACTS[kind] - {"kind", "rounds", "most_rounds"}]
    rounds = evaluation.get("rounds") or []
    most = evaluation.get("most_rounds")
    whole = all(type(one) is int and one >= 0 for one in (*counts, *rounds, most or 1))
    if not whole or any(size < 1 for size in rounds) or (most or len(rounds)) < len(rounds):
        raise Refused("a count or a seed of the evaluation is no whole number, or too small")
    return str(kind)


def _samples(claimed: list[Stored], kind: str) -> list[Sample]:
    """What all combinations share."""
    told = [one.statistics for one in claimed]
    if not told or any(KINDS.get(one.kind) != kind for one in claimed):
        raise Refused("the combinations do not rest on the evaluation that is told")
    if any(one != told[0] for one in told) or not told[0]:
        raise Refused("two combinations rest on different samples, or on none")
    return [Sample.read(one) for one in told[0]]


def _named(name: str, read: Callable[[], Part]) -> Part:
    try:
        return read()
    except Exception as fault:  # zipfile, zlib, numpy and json have many ways to say "damaged"
        words = f"it lacks {fault}" if isinstance(fault, KeyError) else fault
        raise Refused(f"{name}: {words or type(fault).__name__}") from fault
