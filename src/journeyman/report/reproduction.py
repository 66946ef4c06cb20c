"""Everything needed to reproduce a result: versions, seeds, SHA-256 of inputs, commands."""

from collections.abc import Iterator

from journeyman.arrays import IntArray
from journeyman.certificate.certificate import Certificate
from journeyman.demonstrations import Demonstrations
from journeyman.policy import Policy
from journeyman.problem import Program
from journeyman.report.drawing import Content, Element, tag
from journeyman.report.elements import Place, facts, table
from journeyman.report.report_data import Subject
from journeyman.storage import digest
from journeyman.world import Pairs


def reproduction(subject: Subject, place: Place) -> Element:
    """The last section of every report."""
    return place.section(
        "reproduction", "To reproduce this",
        facts("What was computed, and with what", list(_circumstances(subject))),
        _contents(subject), _files(subject),
        tag("p", _introduction(subject)),
        tag("pre", tag("code", _commands(subject))),
    )  # fmt: skip


def _circumstances(subject: Subject) -> Iterator[tuple[str, Content]]:
    problem = subject.certificate.problem
    yield "problem", type(problem).__name__
    world = getattr(problem, "world", None)
    if world is not None:
        yield "world", repr(world)
    yield "costs", repr(problem.basis) if subject.explicit else f"{problem.basis.num_costs} costs"
    yield "cost class", _class_name(subject)
    demos = subject.demonstrations
    if demos is not None:
        yield "demonstrations", repr(demos)
    elif subject.has_expert:
        yield "expert", "expectations, no demonstrations"
    method = getattr(getattr(problem, "expectation", None), "method", None)
    if method is not None:
        yield "target", f"estimated by {method!r}"
    yield "failure probability", repr(subject.certificate.failure_probability)
    for name, seed in subject.seeds.items():
        if seed is not None:
            yield f"seed of the {name}", str(seed)
    for sample in subject.certificate.best.statistics:
        yield f"seed of the {sample.name}", f"{sample.seed} ({sample.count:,} drawn)"
    if subject.answer is not None:
        yield "solver", subject.answer.engine
    yield "software", ", ".join(f"{name} {text}" for name, text in subject.software.items())


def _class_name(subject: Subject) -> str:
    chosen = subject.certificate.problem.cost_class
    return f"{type(chosen).__name__}({'' if chosen.scale is None else 'scale=...'})"


def _contents(subject: Subject) -> Element | None:
    """Digests of values, the same in whatever file they are kept."""
    words = dict(_digests(subject))
    if not words:
        return None
    rows = [(name, tag("code", word)) for name, word in words.items()]
    return table(
        "SHA-256 of the contents, whatever file they are kept in", ["what", "digest"], rows, words=2
    )


def _digests(subject: Subject) -> Iterator[tuple[str, str]]:
    if subject.explicit is not None:
        yield from _explicit_digests(subject.explicit)
    demos = subject.demonstrations
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
    """What tells pairs apart; numbers of actions only where they are not 0, 1, 2, ..."""
    return (pairs.offsets,) if pairs.numbers is None else (pairs.offsets, pairs.numbers)


def _problem_digest(problem: Program) -> str:
    """Costs, their class, the target and the budgets."""
    chosen, basis = problem.cost_class, problem.basis
    budgets = [(one.name, one.at_most, one.cost) for one in problem.constraints]
    return digest(
        basis.matrix, basis.names, basis.rewards, type(chosen).__name__, chosen.scale,
        problem.target, budgets,
    )  # fmt: skip


def _demonstrations_digest(demos: Demonstrations) -> str:
    return digest(demos.states, demos.actions, demos.offsets, demos.terminated)


def _files(subject: Subject) -> Element | None:
    if subject.run is None:
        return None
    rows = [(name, tag("code", word)) for name, word in sorted(subject.run.files.items())]
    return table(
        "SHA-256 of the files of the run, checked when this report was made", ["file", "digest"],
        rows, words=2,
    )  # fmt: skip


def _introduction(subject: Subject) -> str:
    if subject.run is not None:
        return "The audit derives every figure again, by other code, from the files of the run:"
    if subject.explicit is None:
        return "The same call with the same seeds gives the same figures:"
    return "Saved, the evidence can be audited: every figure is derived again, by other code:"


def _commands(subject: Subject) -> str:
    if subject.run is not None:
        trust = "" if subject.explicit is not None else ", trust_code=True"
        return f"import journeyman as jm\n\njm.audit({subject.run.name!r}{trust})\n"
    delta = subject.certificate.failure_probability
    if subject.explicit is None:
        return f"jm.certify(problem, answer, failure_probability={delta!r}, evaluation=...)\n"
    if subject.answer is None:
        return (
            f"certificate = jm.certify(problem, policy, failure_probability={delta!r})\n"
            'certificate.save("run/")\njm.audit("run/")\n'
        )
    seed = subject.seeds.get("solver")
    return (
        "apprentice = jm.learn(\n"
        f"    world, basis, expert, cost_class=jm.{_class_name(subject)},\n"
        f"    failure_probability={delta!r}, seed={seed!r},\n)\n"
        'apprentice.save("run/")\njm.audit("run/")\n'
    )
