"""Everything journeyman can refuse, and why.

    JourneymanError
    ├── InvalidInput            wrong input (also a ValueError)
    │   ├── InvalidWorld            transition law, initial law, discount, geometry
    │   ├── InvalidCosts            cost basis, cost class, budget
    │   ├── InvalidPolicy           probabilities, mismatch with a world
    │   ├── InvalidDemonstrations   ids out of range, impossible steps, offsets
    │   ├── InvalidProblem          parts that do not fit together
    │   ├── InvalidSolver           hyperparameters out of range
    │   └── InvalidFile             unreadable, foreign, damaged or hostile file
    │       └── TooLarge                more memory than it may take
    ├── MissingExtra            an optional package is not installed (also an ImportError)
    ├── NoSolution              an answer was asked for a policy it does not have
    ├── NotCertified            a certificate does not reach what was required
    ├── TaskFailed             work given to other processes was lost (also a RuntimeError)
    └── AuditFailed             saved inputs and certificate do not agree

    UserWarning
    └── SupportWarning          the given support may have been taken from the record

A *mathematical* outcome (infeasible, limit reached, interrupted) is not an error: it is the
`Status` of an `Answer`.
"""


class JourneymanError(Exception):
    """Root of all errors raised on purpose."""


class InvalidInput(JourneymanError, ValueError):
    """Wrong input. `what` says what is wrong and where, `remedy` how to repair it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{_ended(what)} {_ended(remedy)}")
        self.what = what
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.remedy), self.__dict__


def _ended(sentence: str) -> str:
    """A sentence with the mark at its end."""
    return sentence if sentence.endswith("?") else f"{sentence}."


class InvalidWorld(InvalidInput):
    """The world is not a finite discounted Markov decision process."""


class SupportWarning(UserWarning):
    """The possible next states that were given are those that were observed, no more."""


class InvalidCosts(InvalidInput):
    """A cost basis, cost class or budget is not usable."""


class InvalidPolicy(InvalidInput):
    """A policy is not a law over actions, or belongs to another world."""


class InvalidDemonstrations(InvalidInput):
    """Demonstrations are malformed or impossible in the world."""


class InvalidProblem(InvalidInput):
    """The parts of a problem do not fit together."""


class InvalidSolver(InvalidInput):
    """A hyperparameter of a solver is out of range."""


class InvalidFile(InvalidInput):
    """A file cannot be trusted or understood."""


class TooLarge(InvalidFile):
    """A file would take more memory than is allowed; the message holds the estimate."""


class MissingExtra(JourneymanError, ImportError):
    """An optional package is needed; the message holds the command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'journeyman[{extra}]'")
        self._parts = package, extra

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._parts, self.__dict__


class NoSolution(JourneymanError):
    """The answer's status says why there is no policy."""


class NotCertified(JourneymanError):
    """The certificate does not reach what was required of it, and why."""


class TaskFailed(JourneymanError, RuntimeError):
    """A task was lost with its workers again and again, or its error could not be sent back."""


class AuditFailed(JourneymanError):
    """What was saved and what follows from it do not agree."""
