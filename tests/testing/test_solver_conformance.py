"""`check_solver` passes our solver and names what is wrong with broken ones."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import pytest

import journeyman as jm
from journeyman.testing import check_solver
from journeyman.testing.random_worlds import random_policy


class Broken(ABC):
    """The exact solver, with an answer that is tampered with."""

    time_limit = None

    def run(self, problem, watch):
        return self.tampered(jm.LinearProgram().run(problem, watch))

    @abstractmethod
    def tampered(self, answer):
        """The answer, made wrong."""


class Boaster(Broken):
    """Claims a value below that of its policy."""

    def tampered(self, answer):
        return with_solution(answer, value=answer.value - 1e-3)


class Prover(Broken):
    """Claims a bound above what its witness proves."""

    def tampered(self, answer):
        return with_solution(answer, lower_bound=answer.lower_bound + 1e-3)


class Idler(Broken):
    """Calls a policy optimal that is not."""

    def tampered(self, answer):
        return with_policy(answer, jm.Policy.uniform(answer.problem.world))


class Gambler(Broken):
    """Answers the same call with ever new policies."""

    dice = np.random.default_rng(0)

    def tampered(self, answer):
        unfinished = replace(answer, status=jm.Status.TIME_LIMIT)
        return with_policy(unfinished, random_policy(answer.problem.world, self.dice))


class Stranger(Broken):
    """Returns the policy of another world."""

    def tampered(self, answer):
        return with_solution(answer, policy=jm.Policy([[1.0]]))


class Mumbler(Broken):
    """Says how it ended in words of its own."""

    def tampered(self, answer):
        return replace(answer, status="fine")


class Deaf(Broken):
    """Does not report that it was stopped."""

    def run(self, problem, watch):
        answer = super().run(problem, watch)
        return replace(answer, status=jm.Status.FAILED) if watch.must_stop else answer

    def tampered(self, answer):
        return answer


@dataclass(frozen=True)
class Careless(Deaf):
    """Takes any number."""

    rate: float = 0.5


def with_policy(answer, policy):
    return replace(answer, solution=jm.solvers.Solution.of(answer.problem, policy, answer.witness))


def with_solution(answer, **numbers):
    return replace(answer, solution=replace(answer.solution, **numbers))


def test_exact_solver_keeps_its_promises():
    check_solver(jm.LinearProgram())


@pytest.mark.parametrize("engine", list(jm.solvers.Engine))
def test_every_engine_keeps_the_promises(engine):
    check_solver(jm.LinearProgram(engine=engine), classes=(jm.InfinityBall, jm.Simplex))


@pytest.mark.parametrize(
    ("solver", "trouble"),
    [
        (Boaster(), r"InfinityBall, DENSE, seed 0: value \S+ != \S+"),
        (Prover(), "lower bound is not its own"),
        (Idler(), "OPTIMAL with a gap of"),
        (Gambler(), "two runs gave different policies"),
        (Stranger(), "policy of another world"),
        (Mumbler(), "status is not a Status"),
        (Deaf(), "Deaf: time limit ends as Status.FAILED"),
        (Careless(), "Careless: rate = nan is accepted"),
    ],
)
def test_broken_promise_is_named(solver, trouble):
    with pytest.raises(AssertionError, match=trouble):
        check_solver(solver)


def test_classes_a_solver_does_not_serve_are_left_out():
    asked = set()

    class Specialist(Broken):
        def tampered(self, answer):
            asked.add(type(answer.problem.cost_class))
            return answer

    check_solver(Specialist(), classes=(jm.Simplex,), seeds=1)
    assert asked == {jm.Simplex}
