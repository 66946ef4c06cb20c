"""Whether a policy's visits are solved for or drawn: one choice for all policy-gradient methods."""

from dataclasses import dataclass

from journeyman.problem import Apprenticeship
from journeyman.solvers.classics.exact_visits import ExactWalker
from journeyman.solvers.classics.sampled_visits import SampledWalker
from journeyman.solvers.hyperparameters import require_count


@dataclass(frozen=True)
class Visiting:
    """Exact without `rollouts`; otherwise so many walks of at most `horizon` steps per policy."""

    rollouts: int | None
    horizon: int | None
    seed: int

    def __post_init__(self) -> None:
        for name in ("rollouts", "horizon"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        require_count("seed", self.seed, least=0)

    def walker(self, problem: Apprenticeship) -> ExactWalker | SampledWalker:
        """What evaluates the policies of one run."""
        if self.rollouts is None:
            return ExactWalker(problem)
        return SampledWalker(problem, self.rollouts, self.horizon, self.seed)
