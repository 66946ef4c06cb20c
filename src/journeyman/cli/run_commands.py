"""Commands on results: `journeyman certify` (a certificate for any policy, wherever it comes from),
`journeyman audit` (every number of a run derived again, by code that shares none with it) and
`journeyman report` (a run as one HTML page) and `journeyman transfer` (the cost that a run has
inferred, planned with in another world).
"""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

import journeyman as jm
from journeyman.cli.exit_codes import NOT_CERTIFIED
from journeyman.cli.options import (
    AsJson,
    AverageCost,
    Budgets,
    CostClassName,
    CostsSource,
    DemonstrationsFormat,
    DemonstrationsSource,
    ExpertIs,
    Gap,
    Horizon,
    Probability,
    Regret,
    Rewards,
    StepDiscount,
    TerminalState,
    TruncatedAt,
    WorldOption,
    WorldSource,
    parsed_options,
)
from journeyman.cli.output import certificate_text, failed_premises, notify, require_level, show
from journeyman.errors import InvalidCosts, InvalidProblem, NotCertified


def certify(
    policy: Annotated[Path, typer.Argument(help="A policy file (NPZ, CSV), or a run directory.")],
    world: WorldSource,
    costs: CostsSource,
    demonstrations: DemonstrationsSource,
    demonstrations_format: DemonstrationsFormat = None,
    truncated_at: TruncatedAt = None,
    terminal_state: TerminalState = None,
    horizon: Horizon = None,
    step_discount: StepDiscount = None,
    average_cost: AverageCost = False,
    option: WorldOption = None,
    cost_class: CostClassName = "infinity-ball",
    rewards: Rewards = None,
    budget: Budgets = None,
    expert_is: ExpertIs = None,
    failure_probability: Probability = 0.05,
    gap: Gap = None,
    regret: Regret = None,
    save: Annotated[Path | None, typer.Option(help="A new directory for the evidence.")] = None,
    as_json: AsJson = False,
) -> None:
    """Certify how far a policy can fall short of the expert.

    Exit 4 when what was asked for is not certified, 6 when the records contradict --expert-is.
    """
    from journeyman.runs.description import BudgetDescription, RunDescription, parsed_budget
    from journeyman.runs.learning import certificate_result
    from journeyman.runs.run_inputs import Inputs, policy_from

    description = RunDescription(
        world=world,
        costs=costs,
        demonstrations=demonstrations,
        demonstrations_format=demonstrations_format,
        truncated_at=truncated_at,
        terminal_state=terminal_state,
        horizon=horizon,
        step_discount=step_discount,
        average_cost=average_cost,
        cost_class=cost_class,
        rewards=rewards,
        expert_is=expert_is or "",
        failure_probability=failure_probability,
        world_options=parsed_options(option),
        budgets=tuple(BudgetDescription(**parsed_budget(one)) for one in budget or ()),
    )
    problem = Inputs.of(description).problem()
    given = policy_from(policy, problem.world)
    certificate = jm.certify(problem, given, failure_probability)
    if save is not None:
        certificate.save(save)
    result = certificate_result(certificate)
    show(result, certificate_text(result), as_json=as_json)
    require_level(result, gap, regret)


def audit(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    gap: Gap = None,
    regret: Regret = None,
    trust_code: Annotated[
        bool,
        typer.Option(
            "--trust-code",
            help="Call the functions that a run in a simulator or a large world names.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Derive every number of a run again, by other code.

    Exit 4 when one does not follow from the saved inputs or what was asked for is not certified, 6
    when the records contradict what was declared about the expert.
    """
    from journeyman.adapters.cost_sources import modules_here
    from journeyman.runs.run_directory import evidence_in

    evidence = evidence_in(run)
    with modules_here() if trust_code else nullcontext():
        outcome = jm.audit(evidence, trust_code=trust_code)
    result = {
        "run": str(run), "passed": outcome.passed, "findings": list(outcome.findings),
        "checked": outcome.checked, "complete": outcome.complete,
        "not_derived": list(outcome.not_derived),
    }  # fmt: skip
    if not outcome.passed:
        show(result, str(outcome), as_json=as_json)
        raise typer.Exit(NOT_CERTIFIED)
    facts = json.loads((evidence / "certificate.json").read_bytes())
    claims = {"gap": facts, "regret": facts["regret"]}
    result["claims"] = {
        name: None if claim is None else {"valid": claim["valid"], "bound": claim["bound"]}
        for name, claim in claims.items()
    }
    words = [str(outcome), _gap_in_words(facts), *_regret_in_words(facts["regret"])]
    show(result | {"bound": facts["bound"]}, "\n".join(words), as_json=as_json)
    if (gap is not None or regret is not None) and not outcome.complete:
        raise NotCertified(
            "Not every claim was derived again, see above. What needs the code of the run is "
            "derived with --trust-code, if you trust it."
        )
    if not (outcome.complete or trust_code) and (evidence / "code.json").exists():
        notify("What is left needs the code of the run, if you trust it: --trust-code calls it.")
    require_level(facts, gap, regret, lambda: _advice(evidence))


def _advice(evidence: Path) -> str:
    """What would lower the bound, from the saved certificate."""
    from journeyman.report.saved_run import read_run

    return read_run(evidence).certificate.advice()


def _gap_in_words(facts: dict[str, Any]) -> str:
    if not facts["valid"]:
        return f"Gap to the expert: not certified, a premise failed ({failed_premises(facts)})."
    level = 1 - facts["failure_probability"]
    word = "vacuous" if facts["vacuous"] else "weak"
    strength = f", which is {word}" if facts["weak"] else ""
    return (
        f"Gap to the expert, under every cost: with probability {level:g} at most "
        f"{float(facts['bound']):.6g}{strength}."
    )


def _regret_in_words(claim: dict[str, Any] | None) -> list[str]:
    if claim is None:
        return []
    what = "Regret to the optimum, under the expert's own cost"
    if not claim["valid"]:
        return [f"{what}: not certified, a premise failed ({failed_premises(claim)})."]
    chance = claim["failure_probability"]
    often = f"with probability {1 - chance:g} " if chance else ""
    return [f"{what}: {often}at most {float(claim['bound']):.6g}."]


def report(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    output: Annotated[
        Path | None, typer.Option("--output", help="The HTML file; RUN/report.html by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a self-contained HTML page about a run.

    There is nothing to install for it, and nothing is fetched.
    """
    from journeyman.report import write_report
    from journeyman.runs.run_directory import RunDirectory, evidence_in

    evidence = evidence_in(run)
    place = RunDirectory(run)
    beside = run.resolve().with_suffix(".html")  # in a directory of evidence it would be foreign
    path = output or (place.report if evidence == place.certified else beside)
    clinical = place.was_begun and "icu" in str(place.stored().get("world", ""))
    note = "Not for clinical use." if clinical else ""
    write_report(evidence, path, note=note, found=_found(place))
    show({"run": str(run), "report": str(path)}, str(path), as_json=as_json)


def _found(place: Any) -> dict[str, str]:
    """Solver, status and time, which stand in a run directory beside the evidence."""
    from journeyman.report.numbers import seconds
    from journeyman.runs.run_directory import last_elapsed

    if not place.has_ended:
        return {}
    result = place.result()
    if "status" not in result:  # a clone is fitted, not solved for
        return {}
    outcome = {
        "solver": str(result.get("engine")),
        **({"chosen for": str(result["reason"])} if result.get("reason") else {}),
        "status": f"{result.get('status')}: {result.get('message')}",
    }
    if result.get("candidates"):
        used = [one for one in result["candidates"] if one["weight"] > 0]
        shares = (f"{one['candidate']} {one['weight']:.1%}" for one in used)
        outcome["mixture"] = ", ".join(shares)
    elapsed = last_elapsed(place.metrics)
    return outcome if elapsed is None else outcome | {"solving": seconds(elapsed)}


def transfer(
    run: Annotated[Path, typer.Argument(help="The run directory of a method that infers costs.")],
    world: WorldSource,
    costs: CostsSource,
    option: WorldOption = None,
    temperature: Annotated[
        float,
        typer.Option(help="0 for the optimal policy, 1 for choices like the expert's.", min=0),
    ] = 0.0,
    output: Annotated[
        Path | None, typer.Option("--output", help="A file for the policy (NPZ).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan in another world with the cost that a run has inferred.

    The costs of the new world are matched by name; a cost that is a nonlinear function of them has
    no weights and is computed anew. What is known about the new policy is that it is
    optimal for the inferred cost; nothing about the expert is certified there.
    """
    import numpy as np

    from journeyman.report.saved_run import read_run
    from journeyman.runs.run_directory import evidence_in
    from journeyman.runs.run_inputs import costs_from, world_from

    data = read_run(evidence_in(run))
    if data.recovered is None and data.nonlinear is None:
        raise InvalidProblem(
            f"{run} holds no inferred cost",
            "Learn with --solver maximum-likelihood, maximum-entropy or another inverse method",
        )
    known = data.certificate.problem.basis
    options = parsed_options(option)
    there = world_from(world, options)
    basis = costs_from(costs, there, options if costs == world else {}, rewards=known.rewards)
    if set(basis.names) != set(known.names):
        raise InvalidCosts(
            f"--costs has {', '.join(basis.names)}, and the cost of the run is one of "
            f"{', '.join(known.names)}",
            "Give the same costs, by the same names, for the new world",
        )
    weights: dict[str, float] = {}
    if data.nonlinear is not None:
        cost = data.nonlinear.on(there, basis)
    else:
        assert data.recovered is not None
        weights = dict(zip(known.names, data.recovered.tolist(), strict=True))
        cost = np.asarray(basis.on(there) @ np.array([weights[name] for name in basis.names]))
    plan = (
        jm.policy.soft_plan(there, cost, temperature=temperature)
        if temperature
        else jm.plan(there, cost)
    )
    if output is not None:
        plan.policy.save(output)
    visits = jm.occupancy(there, plan.policy)
    totals = visits.expectations(basis)
    listed = [
        {"name": name, "weight": weights.get(name), "expected": float(total)}
        for name, total in zip(basis.names, totals, strict=True)
    ]
    result = {
        "run": str(run), "costs": listed, "expected_cost": float(visits.measure @ cost),
        "temperature": temperature, "policy": None if output is None else str(output),
    }  # fmt: skip
    width = max(len(name) for name in basis.names)
    lines = [f"{'':<{width}}  {'weight':>12}  {'expected total':>14}"]
    for one in listed:
        weight = "" if one["weight"] is None else f"{one['weight']:.6g}"
        lines.append(f"{one['name']:<{width}}  {weight:>12}  {one['expected']:>14.6g}")
    lines.append(f"Expected total of the inferred cost: {result['expected_cost']:.6g}")
    show(result, "\n".join(lines), as_json=as_json)
