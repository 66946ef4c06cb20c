"""How a solve can end. An outcome is not an error: it comes with a message and a remedy."""

from enum import Enum


class Status(Enum):
    """The outcome of a solve."""

    OPTIMAL = (
        "the policy's value and the lower bound agree to the solver's tolerance",
        "nothing to do",
    )
    CONVERGED = (
        "the method has ended by its own rule; its docstring states what is proven then",
        "answer.value and answer.lower_bound say what that means for the gap; richer features "
        "lower a loss over features itself",
    )
    INFEASIBLE = (
        "the constraints exclude each other",
        "answer.relaxation has the smallest increase that makes budgets possible; instead of "
        "Hard() use a penalty such as jm.ExactPenalty()",
    )
    UNBOUNDED = (
        "the penalty is too small: the loss falls without end and has no minimum",
        "use jm.ExactPenalty(), at which the loss bounds the policy's gap",
    )
    INACCURATE = (
        "the engine stopped, but the bounds are further apart than the tolerance or a budget is "
        "broken",
        "see answer.overspending; both bounds hold; try another engine, or "
        "rescale costs that differ by many magnitudes",
    )
    TIME_LIMIT = (
        "the time limit was reached",
        "the policy is the best one at hand (it may break budgets: see answer.overspending); "
        "allow more time",
    )
    MEMORY_LIMIT = (
        "the memory limit was reached",
        "the policy is the best one at hand (it may break budgets: see answer.overspending); "
        "allow more memory, or ask for a larger tolerance",
    )
    STEP_LIMIT = (
        "all steps were taken before the asked accuracy was proven",
        "allow more steps, or accept the accuracy that was reached",
    )
    NOT_FINITE = (
        "coefficients became infinite or undefined",
        "use smaller steps, or costs of moderate size",
    )
    INTERRUPTED = (
        "the solve was interrupted",
        "the policy is the best one at hand (it may break budgets: see answer.overspending); "
        "solve again to finish",
    )
    FAILED = (
        "the engine gave up",
        "try another engine; answer.log has its output",
    )

    @property
    def message(self) -> str:
        return self.value[0]

    @property
    def remedy(self) -> str:
        return self.value[1]
