"""A catalogue of problems with an exact optimum, for every method to be tried on.

Each entry is a problem of any cost class; `optimum` is the least gap that any policy has, found by
the exact program with both bounds meeting.
"""

from functools import cache

import journeyman as jm
from journeyman.testing import Shape, random_problem

TOLERANCE = 1e-8


def _gallery(example, trajectories=None, seed=0):
    world, basis, expert = example
    if isinstance(expert, jm.ExpertExpectation):
        return world, basis, expert
    if trajectories is None:
        return world, basis, jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    return world, basis, jm.record(world, expert, trajectories=trajectories, horizon=60, seed=seed)


def _random(shape, seed):
    problem = random_problem(seed, shape=shape)
    return problem.world, problem.basis, problem.expectation


def _two_cells():
    """One state, two actions: the answer is the share of time that the expert goes left."""
    world = jm.World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    basis = jm.CostBasis([[1.0, 0.0], [0.0, 1.0]])
    return world, basis, jm.ExpertExpectation([0.5, 1.5])


SOURCES = {
    "two cells": _two_cells,
    "grid, its own expert": lambda: _gallery(jm.gallery.grid(6, macro_cells=3)),
    "grid, demonstrations": lambda: _gallery(jm.gallery.grid(6, macro_cells=2, seed=1), 30),
    "grid, one start": lambda: _gallery(
        jm.gallery.grid(5, macro_cells=2, initial=(0, 0), stay=True, seed=2), 10
    ),
    "garnet": lambda: _gallery(jm.gallery.garnet(20, seed=0)),
    "garnet, demonstrations": lambda: _gallery(jm.gallery.garnet(30, seed=1), 25, seed=1),
    "driving": lambda: _gallery(jm.gallery.driving()),
} | {f"{shape.name.lower()}": (lambda s=shape: _random(s, 3)) for shape in Shape}

NAMES = tuple(SOURCES)
SMALL = tuple(name for name in NAMES if name != "driving")
DEMONSTRATED = ("grid, demonstrations", "grid, one start", "garnet, demonstrations")


def solved_problem(name, cost_class):
    """A problem of the catalogue with the given class."""
    world, basis, expert = _parts(name)
    return jm.Apprenticeship(world, basis, expert, cost_class)


@cache
def _parts(name):
    return SOURCES[name]()


@cache
def optimum(name, cost_class):
    """The least gap, proven."""
    answer = jm.solve(solved_problem(name, cost_class), jm.LinearProgram(tolerance=TOLERANCE))
    assert answer.status is jm.Status.OPTIMAL, answer
    return answer.value
