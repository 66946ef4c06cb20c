"""A run in a large world on disk: figures as files, code by reference.

    code.json            which functions made the world, its costs, features and policies, with
                         which arguments, and the SHA-256 of their source files
    problem.npz          sizes, names and ranges of the costs, cost class, declared expectations
    demonstrations.npz   what the expert did, unless its expectations were declared
    totals.npz           what every demonstration cost
    policy.npz           coefficients, weights or probabilities
    certificate.json     every term of every combination, premises, how the policy was evaluated,
                         and the SHA-256 of the files above

`jm.audit` derives from these what needs no code; with `trust_code=True` it makes the world again
and derives the rest.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from journeyman.certificate.certificate import Certificate
from journeyman.certificate.claims import gap_claims, number
from journeyman.certificate.code_references import DEMONSTRATIONS, CodeIndex, Reference
from journeyman.certificate.expert import expert_totals
from journeyman.certificate.run_directory import LARGE_KIND, canonical, finish, prepared, write
from journeyman.certificate.saved_policy import CODE, CODE_KIND, CODE_VERSION, POLICY, described
from journeyman.certificate.saved_policy import KIND as POLICY_KIND
from journeyman.errors import InvalidProblem
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.storage import PathLike, save_arrays

VERSION = 2
"""Of the schema; also of the rules by which the figures are to be derived again."""
INPUT_VERSION = 1
"""Of the files beside the certificate."""
PROBLEM, TOTALS = "problem.npz", "totals.npz"


def save_large_run(
    certificate: Certificate,
    directory: PathLike,
    *,
    code: Reference | Sequence[Reference],
    evaluation: MixtureRollouts | None = None,
    seed: int | None = None,
) -> None:
    """Write a certificate and all it rests on into `directory`; nothing is written if the code
    cannot be told by reference."""
    problem = certificate.problem
    if problem.constraints:
        raise InvalidProblem(
            "a run with budgets that were evaluated by rollouts or drawn rows cannot be saved: a "
            "saved run has no evidence for them",
            "Save a certificate of the problem without its constraints",
        )
    told = evaluation_facts(certificate, evaluation)
    demos = problem.demonstrations
    index = CodeIndex(code, demos)
    for name, part in _code_of(problem).items():
        index.add(name, part)
    form, arrays = described(certificate.policy, index)
    place = prepared(directory)
    save_arrays(place / POLICY, POLICY_KIND, INPUT_VERSION, arrays, policy=form)
    _save_problem(certificate, place / PROBLEM)
    written = [CODE, POLICY, PROBLEM]
    records = None if problem.expectation.is_declared else expert_totals(problem)
    if records is not None:
        save_arrays(place / TOTALS, "totals", INPUT_VERSION, vars(records))
        written.append(TOTALS)
    if demos is not None:
        demos.save(place / DEMONSTRATIONS)
        written.append(DEMONSTRATIONS)
    facts = {
        "kind": CODE_KIND, "version": CODE_VERSION, "calls": index.calls, "parts": index.parts,
        "sources": index.sources,
    }  # fmt: skip
    write(place / CODE, canonical(facts))
    finish(place, _facts(certificate) | {"evaluation": told, "seeds": {"solver": seed}}, written)


def evaluation_facts(
    certificate: Certificate, evaluation: MixtureRollouts | None
) -> dict[str, Any]:
    """How the policy was evaluated: enough to draw the same again."""
    best = certificate.best
    first = best.statistics[0]
    if first.horizon is None:
        return {"kind": "rows", "rows": first.count, "seed": first.seed}
    facts = {"trajectories": first.count, "horizon": first.horizon, "seed": first.seed}
    if best.kind == "E":
        return {"kind": "rollouts", **facts}
    default = MixtureRollouts(first.count, first.horizon)
    drawn = default if evaluation is None else evaluation
    if not isinstance(drawn, MixtureRollouts) or not _is_paid_by(certificate, drawn):
        raise InvalidProblem(
            "the certificate rests on rollouts of another evaluation",
            "Give evaluation= exactly what certify was given; for the answer of PolicyMixture that "
            "is answer.rollouts",
        )
    rounds = None if drawn.rounds is None else list(drawn.rounds)
    return {"kind": "mixture", **facts, "rounds": rounds, "most_rounds": drawn.most_rounds}


def _is_paid_by(certificate: Certificate, rollouts: MixtureRollouts) -> bool:
    """Whether every candidate has the part of the failure probability that its round has."""
    policy: Any = certificate.policy
    delta = certificate.failure_probability
    assert isinstance(policy, MixturePolicy)
    share = delta if certificate.problem.expectation.is_declared else delta / 2
    if rollouts.rounds is not None and sum(rollouts.rounds) < len(policy.candidates):
        return False
    parts = rollouts.parts(len(policy.candidates))
    drawn = [part for part, weight in zip(parts, policy.weights, strict=True) if weight > 0]
    wanted = (rollouts.trajectories, rollouts.horizon)
    return all(
        (one.count, one.horizon) == wanted and one.failure_probability == float(part) * share
        for part, one in zip(drawn, certificate.best.statistics, strict=True)
    )


def _code_of(problem: Any) -> dict[str, Any]:
    """What of a problem is code."""
    if problem.has_states:
        return {"world": problem.world, "costs": problem.costs}
    return {"simulator": problem.simulator}


def _facts(certificate: Certificate) -> dict[str, Any]:
    return gap_claims(certificate, certificate.failure_probability) | {
        "kind": LARGE_KIND, "version": VERSION, "lower_bound": number(certificate.lower_bound),
    }  # fmt: skip


def _save_problem(certificate: Certificate, path: Any) -> None:
    problem = certificate.problem
    basis, world = problem.basis, problem.world if problem.has_states else None
    simulator = problem.simulator
    most = float(np.maximum(np.abs(simulator.lowest), np.abs(simulator.highest)).sum())
    arrays = {
        "lowest": simulator.lowest, "highest": simulator.highest,
        "largest": np.array(problem.cost_functions.largest if problem.has_states else most),
        "extremes": np.asarray(basis.matrix),
    }  # fmt: skip
    arrays |= {name: np.asarray(given) for name, given in problem.cost_class.parameters().items()}
    if problem.expectation.is_declared:
        arrays["target"] = problem.target
    save_arrays(
        path, "large problem", INPUT_VERSION, arrays,
        names=list(basis.names), cost_class=type(problem.cost_class).__name__,
        discount=float(simulator.discount), declared=problem.expectation.is_declared,
        num_states=None if world is None else int(world.num_states),
        num_actions=None if world is None else int(world.num_actions),
    )  # fmt: skip
