"""A process that learns, certifies, audits and reports for the studio: `python -m` this module.

It reads one JSON object a line from standard input and writes such lines to standard output:

    in    {"id": 3, "kind": "certify", ...}    {"stop": 3}
    out   {"id": 3, "event": {...}}  ...  {"id": 3, "result": {...}}  or  {"id": 3, "error": "..."}

Jobs are done one after the other. When standard input ends, because the server did, so does the
process. That the studio answers key presses at once while a program is solved is what it is for:
engines hold the interpreter's lock.
"""

import json
import os
import queue
import shutil
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

import numpy as np

from journeyman.apprentice import Apprentice, learn
from journeyman.certificate import Certificate
from journeyman.certificate.presentation import premises_of_the_regret, regret_strength
from journeyman.costs.registry import cost_class_from
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidInput, JourneymanError
from journeyman.policy import Policy, occupancy
from journeyman.problem import Apprenticeship, cost_ranges
from journeyman.problem.expert_premises import (
    Deterministic,
    ExpertPremise,
    Rational,
)
from journeyman.problem.rational import RationalSet
from journeyman.progress import Event
from journeyman.report.grid_maps import recorded_visits
from journeyman.report.saved_run import read_run
from journeyman.runs.description import SolverDescription
from journeyman.runs.interruption import Stop
from journeyman.runs.learning import ResumableSolver
from journeyman.runs.run_directory import evidence_in
from journeyman.runs.run_inputs import world_digest
from journeyman.runs.solver_choice import chosen_solver
from journeyman.solvers import Answer
from journeyman.solvers.running import Watch
from journeyman.storage import digest
from journeyman.studio.session import (
    CERTIFIED,
    CHECKPOINTS,
    COSTS,
    MOST_EPISODES,
    MOST_RECORDED,
    NOTE,
    PREMISES,
    REPORT,
    WORLD,
    Episode,
    Refused,
    Session,
    Settings,
    adopt,
    load_basis,
)
from journeyman.studio.worlds import MOST_STEPS, Stage, board_of, require_size
from journeyman.world import World

RANGES_UP_TO = 40_000
"""Pairs times costs up to which ranges of weights are found after every episode."""
LISTED_STATES = 300
"""States in the table of a policy that has no map."""
EVERY = 0.1
"""Seconds between two reports of progress."""
CHOSEN_STARTS = (
    "{count} of the {all} demonstrations began in a state that was chosen, not drawn. The bound on "
    "the regret under the expert's own cost holds wherever demonstrations begin. The bound on the "
    "gap to the expert supposes drawn starts, so do not rely on it here."
)


class StoppableSolver(ResumableSolver):
    """A solver that another thread can ask to stop."""

    watch: Watch | None = None
    asked = False

    def run(self, problem: Apprenticeship, watch: Watch, /) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        self.watch = watch
        watch.interrupted = self.asked
        return super().run(problem, watch)

    def stop(self) -> None:
        """Ask the solve, or the next one, to stop."""
        self.asked = True
        if self.watch is not None:
            self.watch.interrupted = True


@dataclass
class Worker:
    """Jobs from one stream, answers to another."""

    out: TextIO
    jobs: "queue.Queue[dict[str, Any]]" = field(default_factory=queue.Queue)
    stopped: set[int] = field(default_factory=set)
    solver: StoppableSolver | None = None
    running: int | None = None
    _worlds: dict[str, tuple[World, Any]] = field(default_factory=dict)

    def listen(self, lines: Any) -> None:
        """Read jobs until the stream ends; then end the process, whatever it does."""
        for line in lines:
            order = json.loads(line)
            if "stop" in order:
                self.stopped.add(order["stop"])
                if self.running == order["stop"] and self.solver is not None:
                    self.solver.stop()
            else:
                self.jobs.put(order)
        os._exit(0)

    def run(self) -> None:
        """Do the jobs, one after the other."""
        while True:
            job = self.jobs.get()
            number = int(job["id"])
            self.running, self.solver = number, None
            try:
                if number in self.stopped:
                    raise Stop
                self.send(number, result=self.done(job))
            except Stop:
                self.send(number, result={"stopped": True})
            except JourneymanError as fault:
                self.send(number, error=str(fault))
            except (OSError, MemoryError) as fault:
                self.send(number, error=f"{fault}. Free some space or memory, then resume.")
            except Exception as fault:  # a bug must not end the studio
                self.send(number, error=f"internal error: {type(fault).__name__}: {fault}")
            self.stopped.discard(number)

    def send(self, number: int, **content: Any) -> None:
        self.out.write(json.dumps({"id": number, **content}, allow_nan=False, default=float) + "\n")
        self.out.flush()

    def done(self, job: dict[str, Any]) -> dict[str, Any]:
        """The result of one job."""
        kinds: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "warm": self.warm, "certify": self.certify, "point": self.point, "solve": self.solve,
            "audit": self.audit, "report": self.report, "import": self.import_run,
            "replay": self.replay,
        }  # fmt: skip
        return kinds[job["kind"]](job)

    # Learning

    def problem_of(self, job: dict[str, Any]) -> tuple[World, Any, Demonstrations]:
        """World, costs and demonstrations of a job."""
        place = Path(job["session"])
        if str(place) not in self._worlds:
            while len(self._worlds) >= 4:
                self._worlds.pop(next(iter(self._worlds)))
            self._worlds[str(place)] = World.load(place / WORLD), load_basis(place / COSTS)
        world, basis = self._worlds[str(place)]
        episodes = [Episode(**one) for one in job["episodes"]]
        demos = Demonstrations.from_arrays(
            [one.states for one in episodes],
            [one.actions for one in episodes],
            [one.terminated for one in episodes],
        )
        return world, basis, demos

    def learned(
        self, job: dict[str, Any], asked: SolverDescription, observer: Callable[[Event], None]
    ) -> Apprentice:
        """The apprentice of a job; `Stop` where it was asked to."""
        settings = Settings.of(job["settings"])
        world, basis, demos = self.problem_of(job)
        declared = premise_of(settings)
        chosen = cost_class_from({"name": settings.cost_class})
        problem = Apprenticeship(world, basis, demos, chosen, (), declared)
        place = Path(job["session"]) / CHECKPOINTS / job.get("method_key", "quick")
        every = 1.0 if asked.name == "sgd-al" else None
        solver = StoppableSolver(
            chosen_solver(asked, problem, 0), place, lambda words: observer_words(observer, words),
            every,
        )  # fmt: skip
        self.solver = solver
        if job["id"] in self.stopped:
            solver.stop()

        def watching(event: Event, /) -> None:
            observer(event)
            solver.keep()

        return learn(
            world, basis, demos, cost_class=chosen, expert_is=declared, solver=solver,
            failure_probability=settings.failure_probability, observer=watching,
        )  # fmt: skip

    def certify(self, job: dict[str, Any]) -> dict[str, Any]:
        """The certificate for what was recorded: at once as numbers, then saved, then ranges."""
        return (job["restore"] and self._restored(job)) or self._certified(job, SolverDescription())

    def _restored(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """What the saved run of a session certifies, if it is that of the job."""
        place = Path(job["session"]) / CERTIFIED
        if not place.is_dir():
            return None
        world, _, demos = self.problem_of(job)
        try:
            certificate = read_run(place).certificate
            problem, recorded = certificate.problem, certificate.problem.demonstrations
            same = (
                recorded is not None
                and _alike(settings_of(certificate), Settings.of(job["settings"]))
                and world_digest(problem.world) == world_digest(world)
                and digest(recorded.states, recorded.actions, recorded.offsets)
                == digest(demos.states, demos.actions, demos.offsets)
                and np.array_equal(recorded.terminated, demos.terminated)
            )
        except JourneymanError:
            return None
        if not same:
            return None
        view = view_of(certificate, job, 0.0)
        self.send(job["id"], event={"view": view, "point": point_of(view)})
        return {"ranges": ranges_of(certificate)}

    def solve(self, job: dict[str, Any]) -> dict[str, Any]:
        """The same by a method of one's choice, which may take long and can be continued."""
        asked = SolverDescription(**job["solver"])
        found = self._certified(job, asked)
        shutil.rmtree(Path(job["session"]) / CHECKPOINTS, ignore_errors=True)
        return found

    def _certified(self, job: dict[str, Any], asked: SolverDescription) -> dict[str, Any]:
        started = perf_counter()
        apprentice = self.learned(job, asked, self._reporter(job["id"]))
        view = view_of(apprentice, job, perf_counter() - started)
        self.send(job["id"], event={"view": view, "point": point_of(view)})
        fresh = Path(job["session"]) / job.get("aside", f".{CERTIFIED}")
        if fresh.exists():
            shutil.rmtree(fresh)
        apprentice.save(fresh)
        if "aside" not in job:
            adopt(fresh, view["note"])
        stopped = job["id"] in self.stopped
        return {"ranges": None if stopped else ranges_of(apprentice.certificate)}

    def _reporter(self, number: int) -> Callable[[Event], None]:
        last = 0.0

        def report(event: Event, /) -> None:
            nonlocal last
            if perf_counter() - last < EVERY:
                return
            last = perf_counter()
            words = {
                "task": event.task, "seconds": round(event.elapsed, 1),
                "iteration": event.iteration, "objective": event.objective,
                "lower_bound": event.lower_bound,
            }  # fmt: skip
            self.send(number, event={"progress": words})

        return report

    def point(self, job: dict[str, Any]) -> dict[str, Any]:
        """One point of the curve."""
        apprentice = self.learned(job, SolverDescription(), lambda event: None)
        return {"key": job["key"], "point": point_of(claims_of(apprentice.certificate, job))}

    def warm(self, job: dict[str, Any]) -> dict[str, Any]:
        """Compile and import what a first certificate needs, on a world of a few states."""
        from journeyman.gallery import grid

        world, basis, expert = grid(4, macro_cells=2)
        demos = import_module("journeyman").record(world, expert, trajectories=3, horizon=8, seed=0)
        for premise in PREMISES:
            declared = premise_of(Settings(premise=premise))
            apprentice = learn(world, basis, demos, expert_is=declared)
            view_of(apprentice, {"key": "", "episodes": [], "settings": {}}, 0.0)
            ranges_of(apprentice.certificate)
        return {}

    # Saved runs

    def audit(self, job: dict[str, Any]) -> dict[str, Any]:
        """Whether the claims of a saved run follow from its evidence."""
        found = import_module("journeyman.checker").audit(evidence_in(Path(job["session"])))
        return {"passed": bool(found.passed), "text": str(found)}

    def report(self, job: dict[str, Any]) -> dict[str, Any]:
        """Write the report beside the run."""
        from journeyman.report import write_report

        place = Path(job["session"])
        note = (place / NOTE).read_text(encoding="utf-8") if (place / NOTE).exists() else ""
        write_report(place / CERTIFIED, place / REPORT, title=job["title"], note=note)
        return {}

    def replay(self, job: dict[str, Any]) -> dict[str, Any]:
        """An episode of the apprentice from the start of a recorded one."""
        from journeyman.world.sampling import walk

        place = Path(job["session"])
        world = World.load(place / WORLD)
        starts = np.zeros(world.num_states)
        starts[job["start"]] = 1.0
        policy = Policy.load(place / CERTIFIED / "policy.npz")
        found = walk(
            World(world.transition, starts, world.discount, choice_offsets=world.pairs),
            policy.on(world), 1, job["steps"], np.random.default_rng(job["seed"]),
        )  # fmt: skip
        return {
            "states": found.states.tolist(), "actions": found.actions.tolist(),
            "terminated": bool(world.absorbing[found.states[-1]]),
        }  # fmt: skip

    def import_run(self, job: dict[str, Any]) -> dict[str, Any]:
        """A session that goes on where a saved run of other origin has ended."""
        source = evidence_in(Path(job["run"]))
        certificate = read_run(source).certificate
        if not certificate.is_exact or certificate.problem.demonstrations is None:
            raise Refused(
                "the run holds no explicit world with demonstrations",
                "Look at it with journeyman report",
            )
        session = _session_of(certificate, Path(job["directory"]), Path(job["run"]).name)
        session.save()
        shutil.copytree(source, session.directory / CERTIFIED)
        return {"name": session.name}


def observer_words(observer: Callable[[Event], None], words: str) -> None:
    """A remark of a solver as progress."""
    observer(Event(words, 0.0, 0))


def premise_of(settings: Settings) -> tuple[ExpertPremise, ...]:
    """The premise behind a switch."""
    if settings.premise == "rational":
        return (Rational(regret_per_step=settings.regret_per_step),)
    return (Deterministic(),) if settings.premise == "deterministic" else ()


def _session_of(certificate: Certificate, directory: Path, title: str) -> Session:
    problem, demos = certificate.problem, certificate.problem.demonstrations
    assert demos is not None
    world = problem.world
    require_size(world)
    if len(demos) > MOST_EPISODES or demos.num_steps > MOST_RECORDED:
        raise Refused(
            f"the run has {len(demos):,} demonstrations of {demos.num_steps:,} steps, more than "
            f"the {MOST_EPISODES:,} and {MOST_RECORDED:,} of a session",
            "Look at it with journeyman report",
        )
    if problem.constraints:
        raise Refused("the run has budgets, which a session has not", "Use journeyman report")
    stage = Stage(title, world, problem.basis, board_of(world), MOST_STEPS)
    session = Session.begin(directory, stage, settings_of(certificate))
    for number in range(len(demos)):
        states, actions = (tuple(map(int, part)) for part in demos.episode(number))
        ended = bool(demos.terminated[number])
        session.episodes.append(Episode(number + 1, states, actions, ended))
    session.next_number = len(demos) + 1
    return session


def _alike(one: Settings, other: Settings) -> bool:
    """Whether two settings ask for the same; without its premise the regret is of no matter."""
    if one.premise != "rational":
        one = replace(one, regret_per_step=other.regret_per_step)
    return one == other


def settings_of(certificate: Certificate) -> Settings:
    """The switches of the page as they stood when `certificate` was made."""
    problem = certificate.problem
    declared = {type(one): one for one in problem.expert_is}
    if set(declared) - {Rational, Deterministic} or len(declared) > 1:
        raise Refused("the run declares what no switch of the page says", "Use journeyman report")
    premise = {Rational: "rational", Deterministic: "deterministic"}.get(
        next(iter(declared), type(None)), "none"
    )
    rational = declared.get(Rational)
    own = {"regret_per_step": rational.regret_per_step} if isinstance(rational, Rational) else {}
    return Settings.of({
        "premise": premise, "cost_class": problem.cost_class.name,
        "failure_probability": certificate.failure_probability, **own,
    })  # fmt: skip


# What the page shows


def claims_of(certificate: Certificate, job: dict[str, Any]) -> dict[str, Any]:
    """The bounds, and what they are worth."""
    chosen = sum(bool(one.get("chosen")) for one in job["episodes"])
    regret = certificate.regret
    gap = {
        "bound": certificate.bound, "share": certificate.share,
        "strength": certificate.strength, "valid": certificate.valid and not chosen,
        "possible": certificate.trivial_bound,
    }  # fmt: skip
    own = None
    if regret is not None:
        own = {
            "bound": regret.bound, "share": regret.share, "valid": regret.valid,
            "strength": regret_strength(certificate), "possible": regret.trivial_bound,
            "uniform": regret.uniform,
        }  # fmt: skip
    steps = () if regret is None else regret.contradiction
    named = [(job["episodes"][episode], step) for episode, step in steps]
    contradiction = [
        [one["number"], step + 1, one["states"][step], one["actions"][step]] for one, step in named
    ]
    return {"gap": gap, "regret": own, "chosen": chosen, "contradiction": contradiction}


def point_of(claims: dict[str, Any]) -> dict[str, Any]:
    """A point of the curve: the regret where one is certified, else the gap."""
    main = claims["regret"] or claims["gap"]
    return {"share": main["share"], "bound": main["bound"], "valid": main["valid"]}


def view_of(found: Apprentice | Certificate, job: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Everything about an apprentice that the page draws."""
    certificate = found.certificate if isinstance(found, Apprentice) else found
    problem, policy = certificate.problem, certificate.policy
    claims = claims_of(certificate, job)
    premises = certificate.premises
    if certificate.regret is not None:
        premises = (*premises_of_the_regret(certificate), *premises)
    listed = {one.name: one for one in premises}
    number = len(job["episodes"])
    note = CHOSEN_STARTS.format(count=claims["chosen"], all=number) if claims["chosen"] else ""
    start = None if certificate.regret is None else next_start(certificate)
    return {
        **claims, "key": job["key"], "episodes": number, "settings": job["settings"],
        "note": note, "advice": certificate.advice().split("\n"),
        "summary": certificate.summary(),
        "failure_probability": certificate.failure_probability,
        "premises": [
            {"name": one.name, "status": one.status.value, "detail": one.detail}
            for one in listed.values()
        ],
        "terms": [
            {"name": term.name, "value": term.value}
            for term in (certificate.regret or certificate).terms
        ],
        "next_start": start, "seconds": round(seconds, 3),
        "solver": _solver_words(found), "ranges": None,
        **_behaviour(problem, policy),
        "costs": [
            {"name": name, "expert": float(theirs), "apprentice": float(ours)}
            for name, theirs, ours in zip(
                problem.basis.names, problem.basis.as_given(problem.target),
                problem.basis.as_given(certificate.expectations), strict=True,
            )
        ],
    }  # fmt: skip


def next_start(certificate: Certificate) -> int | None:
    """The advised start: a state in which something can be chosen."""
    regret, problem = certificate.regret, certificate.problem
    assert regret is not None
    if regret.contributions is None and regret.valid:  # of a run that was read back
        given = RationalSet.of(problem, (), certificate.failure_probability)
        member = given.solved(certificate.expectations)[1]
        regret = replace(regret, contributions=given.openness(member))
    return regret.next_start(np.flatnonzero(~problem.world.absorbing).astype(float))


def _solver_words(found: Apprentice | Certificate) -> str:
    if not isinstance(found, Apprentice):
        return "as saved"
    return f"{found.answer.engine}: {found.answer.status.message}"


def _behaviour(problem: Apprenticeship, policy: Policy) -> dict[str, Any]:
    """Visits of both and the policy: of every state, or of the most visited ones."""
    world, demos = problem.world, problem.demonstrations
    assert demos is not None
    measure = occupancy(world, policy)
    ours = measure.of_states / measure.steps
    theirs = recorded_visits(world, demos)
    order = np.argsort(-(ours + theirs), kind="stable")
    order = order[~world.absorbing[order]]
    few = world.num_states <= 2_000
    states = np.arange(world.num_states) if few else np.sort(order[:LISTED_STATES])
    law, offsets, numbers = policy.on(world), world.pairs.offsets, world.pairs.actions
    return {
        "states": states.tolist(), "most_visited": order[:LISTED_STATES].tolist(),
        "visits": {"expert": np.round(theirs[states], 6).tolist(),
                   "apprentice": np.round(ours[states], 6).tolist()},
        "policy": [
            [[int(numbers[pair]), round(float(law[pair]), 4)]
             for pair in range(offsets[state], offsets[state + 1]) if law[pair] > 5e-5]
            for state in states.tolist()
        ],
    }  # fmt: skip


def ranges_of(certificate: Certificate) -> list[dict[str, Any]] | None:
    """Between which numbers the weights of the expert's own cost lie; None where that would take
    long, is not known or makes no sense."""
    problem, regret = certificate.problem, certificate.regret
    large = problem.world.num_pairs * problem.num_costs > RANGES_UP_TO
    if regret is None or not regret.valid or large:
        return None
    try:
        found = cost_ranges(problem, failure_probability=certificate.failure_probability)
    except InvalidInput:
        return None
    ends = np.array([(one.low, one.high) for one in found])
    if not np.isfinite(ends).all():
        return None
    if problem.basis.rewards:  # what is worth having has a negative weight
        ends = -ends[:, ::-1]
    return [
        {"name": one.name, "low": low, "high": high}
        for one, (low, high) in zip(found, ends.tolist(), strict=True)
    ]


def main() -> None:
    """Serve until standard input ends."""
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what engines print must not meet the answers
    worker = Worker(out)
    threading.Thread(target=worker.listen, args=(sys.stdin,), daemon=True).start()
    with suppress(BrokenPipeError, KeyboardInterrupt):
        worker.run()


if __name__ == "__main__":
    main()
