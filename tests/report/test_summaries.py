"""What notebooks show: short, complete in itself, and names as text."""

import re

import numpy as np
import pytest

import journeyman as jm

NAMES = ("<script>alert(1)</script>", '"><img src=x>', "שלום עולם")


def shown():
    rows = [[0.9, 0.1, 0], [0, 0.7, 0.3], [1, 0, 0], [0.5, 0, 0.5], [1, 0, 0]]
    world = jm.World(
        rows, [1, 0, 0], 0.9, choice_offsets=[0, 1, 3, 5], state_names=NAMES,
        action_names=NAMES[:2],
    )  # fmt: skip
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=9, horizon=7, seed=0)
    basis = jm.CostBasis(np.eye(5)[:, :2], ["a", "b"])
    apprentice = jm.learn(world, basis, demos)
    return {
        "world": (world, ["3: &lt;script&gt;alert(1)&lt;/script&gt;", "discount 0.9", "1 to 2"]),
        "horizon": (world.with_horizon(4), ["episodes of 4 steps"]),
        "averages": (world.with_average_cost(), ["averages a step"]),
        "policy": (jm.Policy([1, 0.25, 0.75, 1, 0], world.pairs), ["75 %", "in 2 of 3 states"]),
        "timed": (jm.Policy.uniform(world.with_horizon(4)), ["4 steps", "4 more rows"]),
        "demonstrations": (demos, ["63, 7 an episode", "9 truncated", "1 more episodes"]),
        "answer": (apprentice.answer, [apprentice.answer.status.name, apprentice.answer.engine]),
        "certificate": (apprentice.certificate, ["What the bound is made of"]),
        "apprentice": (apprentice, ["What the bound is made of"]),
    }


SHOWN = shown()


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_it(name):
    value, words = SHOWN[name]
    html = value._repr_html_()
    for word in words:
        assert word in html
    assert not re.search("<(script|img|link|iframe)", html)
    assert "url(" not in html
    brief = name not in ("certificate", "apprentice")
    assert not brief or len(html) < 4000


def test_an_answer_without_a_policy_says_why():
    world, basis, expert = jm.gallery.grid(4)
    ones = jm.Budget(cost=np.ones(world.num_pairs), at_most=1.0, name="time")
    problem = jm.Apprenticeship(world, basis, jm.record(world, expert, trajectories=5, horizon=9,
                                seed=0), constraints=[ones])  # fmt: skip
    html = jm.solve(problem)._repr_html_()
    assert "INFEASIBLE" in html
    assert "time" in html
