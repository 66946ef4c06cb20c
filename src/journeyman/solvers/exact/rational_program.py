"""The minimax policy for an expert whose recorded actions are declared to be good.

    minimise over policies   R(policy) = max over (w, V) in K of <Psi' mu, w> - <initial, V>

where K (`problem.rational`) holds the costs of the class, with values, under which the expert acted
as declared: R bounds the regret of the policy to the *optimum* under the expert's own cost. The
program is solved in the form

    maximise <initial, V2> - <initial, V>   over (w, V) in K,  E V2 <= Psi w

and the policy is read off the prices of its last rows. With budgets <mu, d_j> <= b_j the policy
keeps them, and is compared with policies that do: both values become <initial, V> - <b, xi>, for
the cost Psi w + D xi with prices xi >= 0 of their own.

R is decided by the worst cost alone, and many policies are about as good against it. So a second
stage minimises R + share <mu, c> for the cost c of a point well inside of K, the largest share of a
few whose policy has a bound of at most 1 + `slack` times the least one: the true regret of that
policy was half as large in experiments, for a bound .4 % above the least
(`python -m benchmarks.rational_experts tightness`).

Guarantee. The bound returned is added up for the returned policy from prices; the lower bound is
the regret of the best policy at one member of K, which is in K to within `violation`. OPTIMAL means
that the least bound, of the first stage, is above it by at most `tolerance` times
2N/(1 - discount), and that the policy of the first stage keeps budgets as exactly. The policy that
is returned is mixed with one strictly inside them by as little as it takes to keep them.

Cost. Two rows per pair, two variables per state and one per cost, solved twice: two to three times
the exact program's time at 64 x 64 states with 64 costs, the test of the premise included. Where
the premise is refuted, R is zero for every policy and says nothing; the exact program is solved in
its place, and the log says so. So it is where no policy was found that is strictly inside all the
budgets: nothing bounds their prices then.

Reference: Ng and Russell, "Algorithms for inverse reinforcement learning", 2000, for the rows of K;
Syed and Schapire, "A game-theoretic approach to apprenticeship learning", 2007, for the game;
Schlaginhaufen and Kamgarpour, "Identifiability and generalizability in constrained inverse
reinforcement learning", 2023, for experts within known budgets.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from journeyman.arrays import FloatArray, require_between
from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.policy import Policy, extract, occupancy
from journeyman.problem import Apprenticeship, best_witness
from journeyman.problem.bounds import plain_bound
from journeyman.problem.expert_premises import ABOUT_A_COST
from journeyman.problem.rational import Average, Found, Member, RationalPrices, RationalSet
from journeyman.solvers.answer import Answer, Details, RegretSolution, Solution
from journeyman.solvers.exact.linear_program import LinearProgram
from journeyman.solvers.running import Status, Watch, require_not_negative, require_time_limit

SHARE = 0.01
"""Of the tolerance, asked of the engine: bound and lower bound then differ by less than it."""
ROOM = 1e-9
"""Of a mixture, beyond what it takes to keep budgets: for rounding."""
TILTS = (1.0, 0.3, 0.1)
"""Shares of the central cost, one try after the other."""
REFUTED = (
    "no cost under which policies differ agrees with the premise about the expert's cost, "
    "estimated expectations taken at their values, so the exact program was solved without it"
)


NOT_INSIDE = (
    "no policy was found that is strictly inside all the budgets, so their prices have no bound "
    "and the exact program was solved without the premise about the expert's cost"
)


@dataclass(frozen=True)
class RationalProgram:
    """The policy of least certified regret, for a problem with `Rational`, `SoftRational` or
    `NearlyOptimal` among its premises.

    Args:
        tolerance: asked-for difference of least bound and lower bound, relative to
            2N/(1 - discount).
        slack: by what share the bound of the policy may exceed the least one, for the benefit of
            the cost in the middle; 0 for a minimax policy.
        failure_probability: of the limits of a `SoftRational` expert; give the certificate's.
        time_limit: seconds.

    An estimated average (`NearlyOptimal`) is taken at its value here; the certificate has its
    radius.
    """

    tolerance: float = 1e-7
    slack: float = 0.01
    failure_probability: float = 0.05
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_between("tolerance", self.tolerance, 0, 1, InvalidSolver, "Use for example 1e-7")
        require_between(
            "failure_probability", self.failure_probability, 0, 1, InvalidSolver, "Use 0.05"
        )
        require_not_negative("slack", self.slack)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        if not any(isinstance(one, ABOUT_A_COST) for one in problem.expert_is):
            raise InvalidProblem(
                "no premise of the problem is about the expert's own cost",
                "Declare one, for example expert_is=jm.Rational(regret_per_step=0.01), or use "
                "another solver",
            )
        started = time.perf_counter()
        averages = (Average(problem.target, 0.0),)
        given = RationalSet.of(problem, averages, self.failure_probability)
        built = time.perf_counter()
        if problem.constraints and not (given.spare > 0).all():
            return self._plainly(problem, watch, NOT_INSIDE)
        settings: dict[str, Any] = {"tolerance": SHARE * self.tolerance, "stop": watch.report}
        with watch.engine():
            least = _candidate(given, given.solved(None, **settings))
        lower = given.least_regret(least.member)
        known = watch.must_stop or given.shows_a_cost(least.member, lower)
        if not known and given.is_refuted:
            return self._plainly(problem, watch, REFUTED)
        allowed = self.tolerance * problem.gap_scale
        short = least.bound - lower > allowed or not self._keeps_budgets(problem, least)
        if short and not watch.must_stop:  # the quick search can fall short
            with watch.engine():
                finer = {**settings, "tolerance": SHARE * settings["tolerance"]}
                again = _candidate(given, given.solved(None, careful=True, **finer))
            lower = max(lower, given.least_regret(again.member))
            least = min(
                least, again, key=lambda one: (not self._keeps_budgets(problem, one), one.bound)
            )
        best = least
        if self.slack and not watch.must_stop:
            best = self._second_stage(given, least, settings, watch)
        best, member = _inside(given, best), least.member
        witness = best_witness(problem, member.weights, member.response)
        solution = Solution.of(problem, best.policy, witness)
        close = least.bound - lower <= allowed and self._keeps_budgets(problem, least)
        status = Status.OPTIMAL if close else Status.INACCURATE
        if watch.must_stop:
            status = watch.stop_status
        found = RegretSolution(best.bound, lower, member.weights, member.violation)
        return Answer(
            problem, status, _engine(), solution, Details(regret=found),
            build_seconds=built - started, solve_seconds=time.perf_counter() - built,
        )  # fmt: skip

    def _plainly(self, problem: Apprenticeship, watch: Watch, why: str) -> Answer:
        """The exact program, and why."""
        plainly = LinearProgram(time_limit=self.time_limit).run(problem, watch)
        return replace(plainly, log=f"{why}\n{plainly.log}")

    def _keeps_budgets(self, problem: Apprenticeship, one: "Candidate") -> bool:
        sizes = 2 * problem.budget_units * problem.world.effective_horizon
        return bool((problem.overspending(one.measure) <= self.tolerance * sizes).all())

    def _second_stage(
        self, given: RationalSet, least: "Candidate", settings: dict[str, Any], watch: Watch
    ) -> "Candidate":
        """The policy that is best for the central cost among those of about the least bound."""
        problem = given.problem
        most = (1 + self.slack) * least.bound + self.tolerance * problem.gap_scale
        with watch.engine(), watch.aside("second stage"):
            central = problem.cost_of(given.central_weights(watch.report))
        for share in TILTS:
            if watch.must_stop:
                break
            with watch.engine(), watch.aside("second stage"):
                found = _candidate(given, given.solved(None, tilt=share * central, **settings))
            if found.bound <= most:
                return found
        return least


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy with its measure, the bound that prices prove, and the member of K it was played
    against."""

    policy: Policy
    measure: FloatArray
    prices: RationalPrices
    bound: float
    member: Member


def _candidate(given: RationalSet, found: Found) -> Candidate:
    prices, member, measure = found
    world = given.problem.world
    policy = Policy.uniform(world)
    if measure is not None and np.isfinite(measure).all():
        policy = extract(world, np.maximum(measure, 0.0))
    return _of_policy(given, policy, prices, member)


def _of_policy(
    given: RationalSet, policy: Policy, prices: RationalPrices, member: Member
) -> Candidate:
    visits = occupancy(given.problem.world, policy)
    expectations = np.asarray(visits.expectations(given.problem.basis))
    bound = min(given.bound(expectations, prices).value, plain_bound(given.problem, None))
    return Candidate(policy, visits.measure, prices, bound, member)


def _inside(given: RationalSet, one: Candidate) -> Candidate:
    """The same policy, or one that is mixed with the random policy until budgets are kept."""
    over = np.maximum(given.problem.overspending(one.measure), 0.0)
    if not over.any():
        return one
    share = min(1.0, float(np.max(over / (over + given.spare))) * (1 + ROOM) + ROOM)
    mixed = (1 - share) * one.measure + share * given.random_visits.measure
    return _of_policy(given, extract(given.problem.world, mixed), one.prices, one.member)


def _engine() -> str:
    import clarabel

    return f"rational program by Clarabel {clarabel.__version__}"
