"""DAgger: let the learner drive, ask the expert what it should have done, clone everything so far.

    for i = 1..n:   roll out pi_i: in each step the expert acts with probability beta_i, else pi^_i
                    ask the expert what to do in every state that was visited
                    pi^_{i+1} = the cloned policy of all decisions so far

where pi^_1 clones the problem's demonstrations, and is uniform when there are none. After the last
iteration pi^_{n+1} is rolled out once more, with questions, only to see how good it is.

What is returned is the iterate of least regret, or rather the latest one whose regret is no more
than a standard error above the least, since later ones know more. An iterate's regret is what the
expert's decisions on the states of its own rollouts cost it in surprise, -log pi^_i(a | x), beyond
what they cost the policy cloned from all decisions in hindsight. These rollouts are drawn after the
iterate is made and before it is improved, so they test it, at no question beyond those that DAgger
asks anyway. The theorem speaks of the best policy of the sequence, not of the last one.

Guarantee. Let d_pi be the discounted law of the states of pi, of mass one, and

    eps = E_{x ~ d_pi} |pi(. | x) - pi_E(. | x)|_1 / 2
    u   = max_{x, a, b} Q_E(x, a) - Q_E(x, b)         over the costs of the class

so u is what a single mistake can cost when the expert takes over after it. For every cost c

    <mu_pi, c> - <mu_E, c>  <=  u eps/(1 - discount)

because the difference is sum_x mu_pi(x) sum_a (pi - pi_E)(a | x) Q_E(x, a). One power of the
horizon less than for cloning, *if* the expert recovers quickly. Otherwise u is of the size of
2 N/(1 - discount), its largest value, and nothing is gained over cloning but that eps is about
states which the learner visits, where it can be measured and made small.

Cloning minimises the surprise, so l_i = E_{x ~ d_i} -log pi^_i(a | x) on the states of iterate i is
the loss of an online learner that follows the leader. With l_i* the loss of the leader in hindsight
on the same states, the least regret is at most the mean one,

    min_i l_i - l_i*  <=  r_n = 1/n sum_i (l_i - l_i*)

which with smoothing falls like log(n)/n in a state that all iterations visit. For a deterministic
expert eps_i <= l_i, the regret plus l_i*, and of l_i* nothing but smoothing is left when every
state is cloned on its own. In general 2 eps_i^2 <= KL_i (Pinsker), which is the regret plus what
the leader in hindsight itself lacks. Where beta_i > 0, states are those of the mixture, whose law
is in total variation at most discount beta_i/(1 - discount + discount beta_i) away. Estimates from
m trajectories deviate by about 1/sqrt(m), and rollouts that are cut off leave discount^horizon
unseen. The paper has a finite horizon T: after n of order u T iterations, up to logarithms, the
best policy costs u T eps + O(1) more than the expert, eps the mean loss of the best policy in
hindsight.

Cost. trajectories x horizon questions to the expert in each iteration and once more at the end,
fewer where episodes end in absorbing states. No planning; the transition law is only drawn from.

Reference: Ross, Gordon and Bagnell, "A reduction of imitation learning and structured prediction to
no-regret online learning", AISTATS 2011, Theorems 2.2, 3.2 and 4.1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.simulation import record_walks
from journeyman.errors import InvalidPolicy, InvalidSolver
from journeyman.policy import Policy
from journeyman.policy.acting import Actor, Predictor, StatePolicy, asked_by_predict, require_policy
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_suitable
from journeyman.solvers.classics.behaviour_cloning import BehaviourCloning, labelled
from journeyman.solvers.classics.policy_visits import default_horizon
from journeyman.solvers.running import (
    Advance,
    Status,
    Watch,
    iterate,
    require_count,
    require_kind,
    require_time_limit,
)
from journeyman.world import World

ActionFunction: TypeAlias = Callable[[IntArray], Any]
"""Called with n states, returns n actions."""
Expert: TypeAlias = StatePolicy | Predictor | ActionFunction


def question(
    world: World,
    expert: Expert,
    learner: Policy,
    share: float,
    *,
    trajectories: int,
    horizon: int,
    rng: np.random.Generator,
) -> Demonstrations:
    """The states of rollouts, each with what the expert would do there.

    These are decisions and not walks: an action need not have led to the state behind it.

    In each step the learner acts, or the expert does with probability `share`; the expert's action
    is written down either way. An episode that arrives in an absorbing state is over, as in
    `jm.record`: nothing is asked there.
    """
    asking = _AskedRollout(world, expert, learner, share, rng)
    walks = record_walks(world, asking, trajectories, horizon, rng)
    visited = walks.states.reshape(trajectories, horizon + 1)
    asked = np.column_stack(asking.asked)
    lengths = asked.sum(axis=1)
    kept = np.arange(horizon + 1) <= lengths[:, np.newaxis]
    return Demonstrations(
        visited[kept],
        np.column_stack(asking.answers)[asked],
        np.concatenate([[0], np.cumsum(lengths)]),
        choice_offsets=world.pairs,
    )


def surprise(world: World, policy: Policy, decisions: Demonstrations) -> FloatArray:
    """-log pi(a | x) of an expert's decisions, episode by episode in a discounted state of each."""
    with np.errstate(divide="ignore"):
        return _discounted(world, decisions, -np.log(_likely(world, policy, decisions)))


def disagreement(world: World, policy: Policy, decisions: Demonstrations) -> FloatArray:
    """1 - pi(a | x) of an expert's decisions, in the same way."""
    return _discounted(world, decisions, 1 - _likely(world, policy, decisions))


def _likely(world: World, policy: Policy, decisions: Demonstrations) -> FloatArray:
    pairs = world.pairs.index(decisions.step_states, decisions.actions)
    return np.asarray(policy.on(world)[pairs])


def _discounted(world: World, decisions: Demonstrations, losses: FloatArray) -> FloatArray:
    weights = world.discount**decisions.step_times / world.effective_horizon
    counted = np.multiply(weights, losses, out=np.zeros_like(losses), where=weights > 0)
    totals = np.bincount(decisions.step_episodes, counted, minlength=len(decisions))
    return np.asarray(totals, dtype=np.float64)


class _AskedRollout:
    """The mixture of learner and expert as a policy that remembers the expert's answers."""

    def __init__(
        self, world: World, expert: Expert, learner: Policy, share: float, rng: np.random.Generator
    ) -> None:
        self._world, self._learner, self._share = world, learner, share
        if isinstance(expert, Policy):
            expert = expert.fitted(world)
        self._whole = asked_by_predict(expert)
        self._expert = Actor(_actor_form(expert), rng)
        self.answers: list[IntArray] = []
        self.asked: list[BoolArray] = []

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray:
        here, rng = np.asarray(states), generator(seed)
        actions = self._learner.sample(here, rng)
        going = ~self._world.absorbing[here] | (not self.answers)
        answers = actions.copy()
        if going.any():
            answers[going] = self._answers(here, going)
        self.answers.append(answers)
        self.asked.append(going)
        return np.where(rng.random(here.size) < self._share, answers, actions)

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """Those of the mixture, if the expert has any."""
        shown = self._share * self._expert.probabilities(states)
        return np.asarray(shown + (1 - self._share) * self._learner.probabilities(states))

    def _answers(self, here: IntArray, going: BoolArray) -> IntArray:
        """The expert's actions; one who carries a state along has to see every episode."""
        states = here[going]
        chosen = self._expert.sample(here)[going] if self._whole else self._expert.sample(states)
        pairs = self._world.pairs.index(states, chosen, InvalidPolicy)
        return np.asarray(self._world.pairs.actions[pairs])


@dataclass(frozen=True)
class _WithoutSeed:
    """A function of states in the form that actors take."""

    function: ActionFunction

    def __call__(self, states: IntArray, rng: np.random.Generator) -> Any:
        return self.function(states)

    def __repr__(self) -> str:
        return repr(self.function)


def _actor_form(expert: Any) -> Any:
    has_way = hasattr(expert, "sample") or hasattr(expert, "predict")
    return expert if has_way else _WithoutSeed(expert)


Mixing: TypeAlias = Callable[[int], float]
"""The share beta_i of the expert's own actions in iteration i = 1, 2, ..."""


@dataclass(frozen=True)
class DAgger:
    """Clone an expert who can be asked.

    Args:
        expert: a policy with `sample` or `predict`, such as a `jm.Policy`, or a function that
            takes n states and returns n actions.
        max_iterations: rounds of rollouts, questions and cloning.
        trajectories: rollouts in each iteration.
        horizon: of a rollout; by default until 1 % of the discounted time is left.
        mixing: `mixing(i)` is the expert's share of the actions in iteration i = 1, 2, .... By
            default the expert acts alone in the first iteration, unless demonstrations show that
            already, and never again.
        cloning: how decisions are cloned, `jm.solvers.BehaviourCloning()` by default.
        seed: of the rollouts.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    >>> demos = jm.record(world, expert, trajectories=5, horizon=20, seed=0)
    >>> solver = DAgger(expert, max_iterations=3, trajectories=10, horizon=40)
    >>> jm.solve(jm.Apprenticeship(world, basis, demos), solver).work.expert_queries
    1600
    """

    expert: Expert
    max_iterations: int = 10
    trajectories: int = 10
    horizon: int | None = None
    mixing: Mixing | None = None
    cloning: BehaviourCloning = field(default_factory=BehaviourCloning)
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_policy(self.expert)
        for name in ("max_iterations", "trajectories"):
            require_count(name, getattr(self, name))
        if self.horizon is not None:
            require_count("horizon", self.horizon)
        if self.mixing is not None and not callable(self.mixing):
            raise InvalidSolver(f"mixing = {self.mixing!r}", "Give a function of the iteration")
        remedy = "Give jm.solvers.BehaviourCloning(...)"
        require_kind("cloning", self.cloning, BehaviourCloning, remedy)
        require_count("seed", self.seed, least=0)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "DAgger")
        course = _Course(self, problem, watch)
        status, iterations = iterate(course.advance, watch, self.max_iterations)
        best, log = course.conclude(is_complete=status is Status.STEP_LIMIT)
        return answer_of(
            problem,
            best.policy,
            status,
            engine=f"DAgger, iterate {best.number} of {len(course.trials)}",
            work=Work(
                iterations=iterations,
                environment_steps=course.questions,
                expert_queries=course.questions,
            ),
            seconds=watch.elapsed,
            log=log,
        )

    def share(self, iteration: int, has_demonstrations: bool) -> float:
        """beta_i."""
        if self.mixing is None:
            return 1.0 if iteration == 1 and not has_demonstrations else 0.0
        share = float(self.mixing(iteration))
        if not 0 <= share <= 1:
            raise InvalidSolver(
                f"mixing({iteration}) = {share}", "Return a number from 0 to 1 for every iteration"
            )
        return share

    def steps(self, world: World) -> int:
        """The horizon of rollouts."""
        if self.horizon is not None:
            return self.horizon
        return default_horizon(world.discount)


@dataclass(frozen=True, eq=False)
class _Trial:
    """An iterate, and the expert's decisions on the states of its rollouts if there were any."""

    number: int
    policy: Policy
    decisions: Demonstrations | None = None

    def regret(self, world: World, hindsight: Policy) -> tuple[float, float]:
        """Surprise beyond that of the leader in hindsight, and its standard error."""
        if self.decisions is None:
            return math.inf, 0.0
        own = surprise(world, self.policy, self.decisions)
        if not np.isfinite(own).all():
            return math.inf, 0.0
        regrets = own - surprise(world, hindsight, self.decisions)
        if not np.isfinite(regrets).all() or len(regrets) == 1:
            return float(regrets.mean()), 0.0
        return float(regrets.mean()), float(regrets.std(ddof=1)) / math.sqrt(len(regrets))

    def summary(self, world: World, hindsight: Policy) -> str:
        """One line of the log."""
        if self.decisions is None:
            return f"iterate {self.number}: not rolled out alone"
        regret, deviation = self.regret(world, hindsight)
        others = float(disagreement(world, self.policy, self.decisions).mean())
        return (
            f"iterate {self.number}: regret {regret:.6g} +- {deviation:.2g} nats per decision, "
            f"{others:.6g} of its actions are not the expert's"
        )


class _Course:
    """The state of a run: decisions so far, iterates so far."""

    def __init__(self, solver: DAgger, problem: Apprenticeship, watch: Watch) -> None:
        self._solver, self.world, self._watch = solver, problem.world, watch
        self._rng = np.random.default_rng(solver.seed)
        self._decisions: list[Demonstrations] = []
        self.questions = 0
        if isinstance(solver.expert, Policy):
            solver.expert.on(self.world)
        self._is_shown = problem.demonstrations is not None
        if problem.demonstrations is not None:
            self._decisions.append(labelled(self.world, problem.demonstrations))
        first = self._clone() if self._is_shown else Policy.uniform(self.world)
        self.trials = [_Trial(1, first)]

    def advance(self) -> Advance:
        """One iteration: roll out, ask, clone."""
        decisions = self._roll_out(self._solver.share(len(self.trials), self._is_shown))
        latest = self.trials[-1]
        self.trials.append(_Trial(latest.number + 1, self._clone()))
        return Advance(float(disagreement(self.world, latest.policy, decisions).mean()))

    def conclude(self, is_complete: bool) -> tuple[_Trial, str]:
        """The iterate to return and the log; a complete run has tried the last one too."""
        hindsight = self.trials[-1].policy
        if is_complete:
            self._roll_out(0.0)
            hindsight = self._clone()
        regrets = [trial.regret(self.world, hindsight) for trial in self.trials]
        allowed = sum(min(regrets))
        latest = max(k for k, (regret, _) in enumerate(regrets) if regret <= allowed)
        log = "\n".join(trial.summary(self.world, hindsight) for trial in self.trials)
        return self.trials[latest], log

    def _roll_out(self, share: float) -> Demonstrations:
        """Try the latest iterate; where the expert acts alone that says nothing about it."""
        latest, solver = self.trials[-1], self._solver
        decisions = question(
            self.world, solver.expert, latest.policy, share, trajectories=solver.trajectories,
            horizon=solver.steps(self.world), rng=self._rng,
        )  # fmt: skip
        self.questions += decisions.num_steps
        self._decisions.append(decisions)
        if share < 1:
            self.trials[-1] = replace(latest, decisions=decisions)
        return decisions

    def _clone(self) -> Policy:
        """The policy of all decisions so far."""
        everything = Demonstrations.concatenate(self._decisions)
        with self._watch.aside("cloning"):
            return self._solver.cloning.fit(self.world, everything, self._watch).policy
