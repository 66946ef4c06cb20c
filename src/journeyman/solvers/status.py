"""How a solve can end. An outcome is not an error: it comes with a message and a remedy."""

from enum import Enum


class Status(Enum):
    """The outcome of a solve."""

    OPTIMAL = (
        "the policy's value and the lower bound agree to the solver's tolerance",
        "nothing to do",
    )
    INFEASIBLE = (
        "no policy keeps all the budgets",
        "answer.relaxation, unless cut short, has the smallest increase that makes them possible",
    )
    INACCURATE = (
        "the engine stopped, but value and lower bound differ by more than the tolerance",
        "both bounds hold; try another engine or rescale costs that differ by many magnitudes",
    )
    TIME_LIMIT = (
        "the time limit was reached",
        "the policy is the best one at hand and both bounds hold; allow more time",
    )
    INTERRUPTED = (
        "the solve was interrupted",
        "the policy is the best one at hand and both bounds hold; solve again to finish",
    )
    FAILED = (
        "the engine gave up without an answer",
        "try another engine; if it persists, report the world and the engine's log",
    )

    @property
    def message(self) -> str:
        return self.value[0]

    @property
    def remedy(self) -> str:
        return self.value[1]
