"""The solver for records alone: clones of the expert, cross-fitted, so that the same records can
certify them.

    pi_k fitted to all episodes outside fold k;   the answer draws k where an episode starts

*Guarantee*: none by itself; `certify` compares every episode with the policy that never saw it
(`certificate.agreement`).

*Cost*: one fit for each fold.
"""

from dataclasses import dataclass
from typing import ClassVar

from journeyman.demonstrations.cross_fitting import Fit, cross_fit
from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Details, SampledSolution
from journeyman.solvers.running import Status, Watch, require_count, require_time_limit
from journeyman.world.levels import Level


@dataclass(frozen=True)
class CrossFittedClone:
    """`demonstrations.cross_fit` as a solver.

    Args:
        fit: from demonstrations to a policy with action probabilities; by default a table for ids
            and a small network for observations.
        folds: into how many parts the episodes are dealt, from 2.
        seed: deals them.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=40, horizon=60, seed=0)
    >>> apprentice = jm.learn(jm.world.Records(0.9, cost_range=(0, 1)), None, demos)
    >>> apprentice.policy
    CrossFitted(2 folds of Demonstrations(40 episodes, 2400 steps, 0 terminated))
    """

    fit: Fit | None = None
    folds: int = 2
    seed: int = 0
    time_limit: float | None = None
    needs: ClassVar[Level] = Level.RECORDED

    def __post_init__(self) -> None:
        require_count("folds", self.folds, least=2)
        require_time_limit(self.time_limit)
        if not (self.fit is None or callable(self.fit)):
            raise InvalidSolver(
                f"fit is a {type(self.fit).__name__}",
                "Give a function from demonstrations to a policy",
            )

    def run(self, problem: Apprenticeship, watch: Watch, /) -> Answer:
        """Fit every fold; a fit is not interrupted."""
        if problem.level is not Level.RECORDED:
            raise InvalidProblem(
                "CrossFittedClone is for worlds of which nothing is known but records",
                "Give jm.world.Records(...) as the world; in other worlds jm.solve(problem) does "
                "better, and jm.solvers.BehaviourCloning() clones",
            )
        assert problem.demonstrations is not None
        policy = cross_fit(problem.demonstrations, self.fit, folds=self.folds, seed=self.seed)
        engine = f"cross-fitting of {self.folds} folds"
        return Answer(
            problem, Status.CONVERGED, engine, SampledSolution(policy), Details(mixture=policy)
        )
