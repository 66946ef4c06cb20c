"""Everything needed to reproduce a result: versions, seeds, SHA-256 of inputs, commands."""

import json
from collections.abc import Iterator

from journeyman.arrays import IntArray
from journeyman.certificate.certificate import Certificate
from journeyman.demonstrations import Demonstrations
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship
from journeyman.report.rendering import Section
from journeyman.report.report_data import ReportData
from journeyman.storage import digest
from journeyman.world import Pairs


def reproduction(data: ReportData, prefix: str) -> Section:
    """The last section of every report."""
    files = {} if data.run is None else dict(data.run.files)
    content = {
        "circumstances": list(_circumstances(data)),
        "digests": [
            ("SHA-256 of the contents, whatever file they are kept in", "what",
             list(_digests(data))),
            ("SHA-256 of the files of the run, checked when this report was made", "file",
             sorted(files.items())),
        ],
        "introduction": _introduction(data), "commands": _commands(data),
    }  # fmt: skip
    return Section("reproduction", "To reproduce this", content, link="Reproduction")


def _circumstances(data: ReportData) -> Iterator[tuple[str, str]]:
    problem = data.certificate.problem
    yield "problem", type(problem).__name__
    yield "world" if problem.has_states else "simulator", repr(problem.world)
    yield "costs", f"{problem.basis.num_costs} costs" if data.world is None else repr(problem.basis)
    yield "cost class", _class_name(data)
    demos = data.demonstrations
    if demos is not None:
        yield "demonstrations", repr(demos)
    elif not data.certificate.known_cost:
        yield "expert", "expectations, no demonstrations"
    method = problem.expectation.method
    if method is not None:
        yield "target", f"estimated by {method!r}"
    yield "failure probability", repr(data.certificate.failure_probability)
    for name, seed in data.seeds.items():
        if seed is not None:
            yield f"seed of the {name}", str(seed)
    for sample in data.certificate.best.statistics:
        yield f"seed of the {sample.name}", f"{sample.seed} ({sample.count:,} drawn)"
    if data.answer is not None:
        yield "solver", data.answer.engine
    yield "software", ", ".join(f"{name} {text}" for name, text in data.software.items())


def _class_name(data: ReportData) -> str:
    chosen = data.certificate.problem.cost_class
    given = ", ".join(f"{name}=..." for name in chosen.parameters())
    return f"{type(chosen).__name__}({given})"


def _digests(data: ReportData) -> Iterator[tuple[str, str]]:
    if data.world is not None:
        yield from _explicit_digests(data.certificate)
    demos = data.demonstrations
    if demos is not None:
        yield "demonstrations", _demonstrations_digest(demos)


def _explicit_digests(certificate: Certificate) -> Iterator[tuple[str, str]]:
    problem, policy = certificate.problem, certificate.policy
    world = problem.world
    laws = (world.transition, world.initial, world.discount)
    yield "world", digest(*laws, *_pairs_parts(world.pairs))
    yield "problem", _problem_digest(problem)
    if isinstance(policy, Policy):
        yield "policy", digest(policy.per_pair, *_pairs_parts(policy.pairs))


def _pairs_parts(pairs: Pairs) -> tuple[IntArray, ...]:
    """What distinguishes pairs; numbers of actions only where they are not 0, 1, 2, ..."""
    return (pairs.offsets,) if pairs.numbers is None else (pairs.offsets, pairs.numbers)


def _problem_digest(problem: Apprenticeship) -> str:
    """Costs, their class, the target and the budgets."""
    chosen, basis = problem.cost_class, problem.basis
    budgets = [(one.name, one.at_most, one.cost) for one in problem.constraints]
    return digest(
        basis.matrix, basis.names, basis.rewards, json.dumps(chosen.describe()),
        problem.target, budgets,
    )  # fmt: skip


def _demonstrations_digest(demos: Demonstrations) -> str:
    return digest(demos.states, demos.actions, demos.offsets, demos.terminated)


def _introduction(data: ReportData) -> str:
    if data.run is not None:
        return "The audit derives every number again, by other code, from the files of the run:"
    if data.world is None:
        return "The same call with the same seeds gives the same numbers:"
    return "Saved, the evidence can be audited: every number is derived again, by other code:"


def _commands(data: ReportData) -> str:
    if data.run is not None:
        trust = ", trust_code=True" if data.world is None else ""
        return f"import journeyman as jm\n\njm.audit({data.run.name!r}{trust})\n"
    delta = data.certificate.failure_probability
    if data.world is None:
        return f"jm.certify(problem, answer, failure_probability={delta!r}, evaluation=...)\n"
    if data.answer is None:
        return (
            f"certificate = jm.certify(problem, policy, failure_probability={delta!r})\n"
            'certificate.save("run/")\njm.audit("run/")\n'
        )
    seed = data.seeds.get("solver")
    return (
        "apprentice = jm.learn(\n"
        f"    world, basis, expert, cost_class=jm.{_class_name(data)},\n"
        f"    failure_probability={delta!r}, seed={seed!r},\n)\n"
        'apprentice.save("run/")\njm.audit("run/")\n'
    )
