"""What may be declared about an expert beyond what was recorded: premises as values.

    learn(world, costs, demos, expert_is=Rational(regret_per_step=0.01))

Without a premise a certificate bounds the gap to the expert under *every* cost of the class, and
rests on the number of demonstrations alone. A premise is one more thing that is known, or believed:

| premise          | what is declared                                                            |
|------------------|----------------------------------------------------------------------------|
| `Rational`       | for a cost of the class that nobody knows, a recorded action costs on average |
|                  | at most so much more than the best action would have cost                   |
| `NearlyOptimal`  | for such a cost the expert as a whole is within so much of the optimum      |
| `SoftRational`   | the expert draws actions by the soft-optimal law of such a cost             |
| `Deterministic`  | the expert has one action for every state                                   |
| `Stationary`     | the expert has one law of actions for every state                           |

The first three are about the expert's own cost: they bound the *regret to the optimum* under that
cost (`problem.rational`). With budgets the optimum is that within the budgets, and single actions
are judged by cost and prices of the budgets together. The other two say where the expert's
expectations can lie. Premises can be combined; certificates name them, test what can be tested and
say when they cannot be true.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from journeyman.arrays import assign, require_between, require_whole
from journeyman.errors import InvalidProblem
from journeyman.world.levels import Level, require_level

if TYPE_CHECKING:
    from journeyman.problem.apprenticeship import Apprenticeship


@dataclass(frozen=True, init=False)
class Rational:
    """The recorded actions are good ones, for a cost of the class that nobody knows.

    The advantage of a recorded step is what its action costs more than the best action would have,
    with optimal actions ever after. The sum of the advantages of all recorded steps is at most
    `regret_per_step` times their number.

    Args:
        regret_per_step: in units of the costs, weights included; 0 says that every single recorded
            action is optimal.

    The premise is about the recorded steps, whoever chose where they begin. An expert who is
    optimal from the start of the world only satisfies it on episodes of its own from there. It does
    not hold for experts who plan for a time limit that the world does not have.

    >>> Rational(regret_per_step=0.01)
    Rational(regret_per_step=0.01)
    """

    regret_per_step: float

    def __init__(self, *, regret_per_step: float) -> None:
        remedy = "Give a finite number from 0; 0 declares every recorded action optimal"
        assign(self, regret_per_step=_amount("regret_per_step", regret_per_step, remedy))


@dataclass(frozen=True, init=False)
class NearlyOptimal:
    """The expert as a whole is nearly optimal, for a cost of the class that nobody knows: its
    expected discounted cost exceeds the least possible one, within the budgets if there are any, by
    at most `regret`.

    It says nothing about single steps, so it is used through the estimated expectations of the
    expert and spends failure probability, as they do.

    >>> NearlyOptimal(regret=0.5)
    NearlyOptimal(regret=0.5)
    """

    regret: float

    def __init__(self, *, regret: float) -> None:
        assign(self, regret=_amount("regret", regret, "Give a finite number from 0"))


@dataclass(frozen=True, init=False)
class SoftRational:
    """The expert draws every action by the soft-optimal law of a cost of the class that nobody
    knows: exp(-(Q - V)/temperature), where V and Q are the soft-optimal values.

    Args:
        temperature: in units of the costs.
        most_steps: a number of steps that the record cannot exceed, fixed before recording; by
            default the number recorded, which then is taken to have been fixed beforehand.

    >>> SoftRational(temperature=0.01)
    SoftRational(temperature=0.01, most_steps=None)
    """

    temperature: float
    most_steps: int | None

    def __init__(self, *, temperature: float, most_steps: int | None = None) -> None:
        number = require_between(
            "temperature", temperature, 0, np.inf, InvalidProblem,
            "Give a positive number; Rational(regret_per_step=0) is the limit",
        )  # fmt: skip
        if most_steps is not None:
            most_steps = require_whole("most_steps", most_steps, 1, InvalidProblem)
        assign(self, temperature=number, most_steps=most_steps)


@dataclass(frozen=True)
class Deterministic:
    """The expert has one action for every state, and takes it whenever it is there.

    >>> Deterministic()
    Deterministic()
    """


@dataclass(frozen=True)
class Stationary:
    """The expert has one law of actions for every state, whatever happened before.

    >>> Stationary()
    Stationary()
    """


ExpertPremise: TypeAlias = Rational | NearlyOptimal | SoftRational | Deterministic | Stationary
KINDS = (Rational, NearlyOptimal, SoftRational, Deterministic, Stationary)
ABOUT_A_COST = (Rational, NearlyOptimal, SoftRational)
BY_STEPS = (Rational, SoftRational, Deterministic, Stationary)


def premises_of(
    problem: "Apprenticeship", given: Iterable[ExpertPremise] | ExpertPremise
) -> tuple[ExpertPremise, ...]:
    """The premises of a problem, or why they cannot be declared of it."""
    found: tuple[Any, ...] = (given,) if isinstance(given, KINDS) else _several(given)
    for one in found:
        if not isinstance(one, KINDS):
            raise InvalidProblem(
                f"expert_is holds {one!r}", "Give for example jm.Rational(regret_per_step=0.01)"
            )
        name = type(one).__name__
        if sum(isinstance(other, type(one)) for other in found) > 1:
            raise InvalidProblem(f"{name} is declared twice", "Keep one of them")
        _refuse(problem, one, name)
    kinds = {type(one) for one in found}
    if {SoftRational, NearlyOptimal} <= kinds:
        raise InvalidProblem(
            "SoftRational and NearlyOptimal each need the failure probability, and a soft-optimal "
            "expert is near the optimum anyway",
            "Leave one of them out",
        )
    if {SoftRational, Deterministic} <= kinds:
        raise InvalidProblem(
            "SoftRational and Deterministic cannot both be true: a soft-optimal expert draws its "
            "actions",
            "Leave one of them out",
        )
    return found


def described(premise: ExpertPremise) -> dict[str, Any]:
    """Name and parameters, for JSON; `premise_from` is the way back.

    >>> described(NearlyOptimal(regret=0.5))
    {'name': 'NearlyOptimal', 'regret': 0.5}
    """
    return {"name": type(premise).__name__, **vars(premise)}


def premise_from(stated: dict[str, Any]) -> ExpertPremise:
    """The premise that was `described`."""
    made: ExpertPremise = {kind.__name__: kind for kind in KINDS}[stated["name"]](
        **{name: value for name, value in stated.items() if name != "name"}
    )
    return made


def _several(given: Any) -> tuple[Any, ...]:
    if given is None or isinstance(given, str | type) or not hasattr(given, "__iter__"):
        raise InvalidProblem(
            f"expert_is is {given!r}",
            "Give a premise such as jm.Rational(regret_per_step=0.01), or several in a list",
        )
    return tuple(given)


def _refuse(problem: "Apprenticeship", one: ExpertPremise, name: str) -> None:
    """What cannot be declared of this problem, and why."""
    require_level(problem, Level.EXPLICIT, f"the premise {name}")
    if problem.expert is None:
        raise InvalidProblem(
            f"{name} is about an expert, and a problem with a known cost has none",
            "Leave expert_is out",
        )
    if isinstance(one, BY_STEPS) and problem.demonstrations is None:
        raise InvalidProblem(
            f"{name} is about recorded steps, and the problem holds no demonstrations",
            "Give Demonstrations as the expert",
        )
    demos, most = problem.demonstrations, getattr(one, "most_steps", None)
    if demos is not None and most is not None and demos.num_steps > most:
        raise InvalidProblem(
            f"most_steps = {most}, and {demos.num_steps} steps are recorded",
            "Give a number that was fixed before recording and that no record could exceed",
        )
    if problem.world.is_estimated:
        raise InvalidProblem(
            f"{name} cannot be used in a world whose laws are estimates: what follows from it has "
            "no term for their error",
            "Leave expert_is out, or give a world with known laws",
        )
    layers = problem.world.layers
    if isinstance(one, Rational | SoftRational) and layers and layers.factors[-1] != 1:
        raise InvalidProblem(
            f"{name} is about single steps, which count more in later layers of a world with a "
            "horizon than they do in an episode",
            "Declare NearlyOptimal(regret=...), which is about a whole episode",
        )


def _amount(name: str, value: Any, remedy: str) -> float:
    """A finite number from 0."""
    if value == 0:
        return 0.0
    return require_between(name, value, 0, np.inf, InvalidProblem, remedy)
