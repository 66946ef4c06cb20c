"""The policy in reports: every kind of listed world, the most visited states first."""

import re

import numpy as np
import pytest

import journeyman as jm
from journeyman.policy.listing import Listing
from journeyman.report.page import page
from journeyman.report.policy_section import MOST_LISTED, policy
from journeyman.report.report_data import ReportData


def certificate(world, acting):
    costs = np.linspace(
        0, 1, (world if world.reduction is None else world.reduction.base).num_pairs
    )
    return jm.certify(jm.Forward(world, costs), acting)


def ring(count, **more):
    """Two actions in every state: one step on, or two; now and then back to the first state."""
    steps = (np.arange(count)[:, None] + [1, 2]) % count
    laws = 0.9 * np.eye(count)[steps.ravel()] + 0.1 * np.eye(count)[0]
    return jm.World(laws, np.eye(count)[0], 0.9, **more)


def drawn(world):
    weights = np.random.default_rng(0).random(world.num_pairs)
    return jm.Policy(weights / world.pairs.spread(world.pairs.total(weights)), world.pairs)


@pytest.mark.parametrize("kind", ["discounted", "horizon", "averages"])
def test_rows_are_those_of_the_listing(kind):
    base = ring(5, state_names=[f"place {k}" for k in range(5)])
    world = {
        "discounted": base, "horizon": base.with_horizon(3), "averages": base.with_average_cost()
    }[kind]  # fmt: skip
    acting = drawn(world)
    section = policy(ReportData.of(certificate(world, acting)), "")
    rows = section.content["open"] + section.content["folded"]
    listed = Listing.of(world, acting).most_visited()
    assert [(row["t"], row["name"], row["action"]) for row in rows] == [
        (one.t, one.name, one.actions[0]) for one in listed
    ]
    assert [row["probability"].value for row in rows] == [one.probabilities[0] for one in listed]
    assert [row["visits"].value for row in rows] == [100 * one.visits for one in listed]
    assert section.content["timed"] == (kind == "horizon")
    assert len(rows) == (15 if kind == "horizon" else 5)


def test_a_large_world_shows_its_most_visited_states_and_says_how_many_are_left_out():
    count = MOST_LISTED + 50
    html = page(ReportData.of(certificate(ring(count), drawn(ring(count)))))
    assert len(re.findall('<tr class="choice', html)) == MOST_LISTED
    assert f"50 of {count} rows, with &lt; 0.1 % of the visits, are left out here" in html
    assert "journeyman policy export" in html


def test_actions_can_be_chosen_and_every_choice_has_its_rows():
    world = ring(30, action_names=["one & <on>", "two on"])
    html = page(ReportData.of(certificate(world, drawn(world))))
    choices = re.findall(r'<option value="(\d)">(.*?) \((\d+)\)</option>', html)
    assert {name for _, name, _ in choices} == {"one &amp; &lt;on&gt;", "two on"}
    for place, _, count in choices:
        assert len(re.findall(f'class="choice a{place}"', html)) == int(count)


def test_worlds_that_are_not_listed_have_no_such_section():
    network = jm.gallery.queues(4, buffers=(3, 3, 3, 3))
    demos = jm.record(network.world, network.longer, trajectories=20, horizon=20, seed=0)
    problem = jm.Apprenticeship(network.world, network.costs, demos)
    rollouts = jm.Rollouts(trajectories=50, horizon=20)
    found = jm.certify(problem, network.lbfs, evaluation=rollouts)
    assert policy(ReportData.of(found), "") is None
