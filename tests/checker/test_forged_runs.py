"""Runs forged with care: hashes and digest fit, and what is changed could make a bound false."""

import re
import shutil

import numpy as np
import pytest

import journeyman as jm
from checker.forging import change_arrays, facts_of, failed, rehash, write_facts


@pytest.fixture(scope="module")
def grid():
    world, basis, expert = jm.gallery.grid(4)
    return world, basis, expert, jm.record(world, expert, trajectories=100, horizon=50, seed=0)


def test_laws_with_more_than_all_the_mass_are_refused(grid, tmp_path):
    """Potentials that are a large constant would turn the excess into any bound."""
    world, basis, _, demos = grid
    jm.learn(world, basis, demos).save(tmp_path / "run")
    change_arrays(
        tmp_path / "run" / "world.npz",
        lambda _, arrays: arrays.update(initial=arrays["initial"] * (1 + 1e-11)),
    )
    rehash(tmp_path / "run")
    failed(tmp_path / "run", "the initial law is not a probability law")


def test_rollouts_that_claim_to_have_recorded_everything_are_found(grid, tmp_path):
    world, basis, expert, demos = grid
    problem = jm.Apprenticeship(world, basis, demos)
    jm.certify(problem, expert, evaluation=jm.Rollouts(100, 10)).save(tmp_path / "run")
    facts = facts_of(tmp_path / "run")
    for way in facts["combinations"]:
        for sample in way["statistics"]:
            sample["unrecorded"] = 0.0
    write_facts(tmp_path / "run", facts)
    failed(tmp_path / "run", "of time unrecorded, fresh ones")


def test_terms_may_not_hide_behind_the_size_of_one_budget_cost(tmp_path):
    """A pair that is never taken costs so much that every term agrees up to that size."""
    world, basis, expert = jm.gallery.grid(4)
    taken = jm.occupancy(world, expert).measure
    cost = np.full(world.num_pairs, 0.5)
    cost[int(np.argmin(taken))] = 1e11
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    budget = jm.Budget(cost=cost, at_most=1.0, name="wear")
    problem = jm.Apprenticeship(world, basis, target, constraints=[budget])
    jm.certify(problem, expert).save(tmp_path / "run")
    facts = facts_of(tmp_path / "run")
    stated = facts["budgets"][0]
    for number, term in enumerate(stated["terms"]):
        term["value"] = 0.5 if number == 0 else 0.0
    stated["spent"], stated["is_kept"] = float(np.nextafter(0.5, 1)), True
    write_facts(tmp_path / "run", facts)
    failed(tmp_path / "run", "the terms of budget 'wear' add up to 0.5")


PRICES = jm.costs.Polytope(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 1, -2]],
    [1, 1, 1, 1, 1, 1, 3.9],
)


@pytest.fixture(scope="module")
def polytope_run(tmp_path_factory):
    world, _, expert = jm.gallery.grid(4)
    basis = jm.CostBasis(np.random.default_rng(0).uniform(-1, 1, (world.num_pairs, 3)))
    demos = jm.record(world, expert, trajectories=100, horizon=50, seed=0)
    place = tmp_path_factory.mktemp("polytope") / "run"
    jm.learn(world, basis, demos, cost_class=PRICES).save(place)
    assert jm.audit(place).require().passed
    return place


@pytest.mark.parametrize("vertex", range(len(PRICES.vertices)))
def test_a_polytope_without_one_of_its_vertices_is_refused(polytope_run, tmp_path, vertex):
    """However little of the polytope is cut off: no probing direction need see it."""
    place = shutil.copytree(polytope_run, tmp_path / "run")

    def leave_out(_, arrays):
        arrays["vertices"] = np.delete(arrays["vertices"], vertex, axis=0)

    change_arrays(place / "problem.npz", leave_out)
    rehash(place)
    failed(place, "the vertices of the polytope are not all of it")


def test_a_vertex_outside_of_the_polytope_is_refused(polytope_run, tmp_path):
    place = shutil.copytree(polytope_run, tmp_path / "run")

    def move(_, arrays):
        arrays["vertices"] = arrays["vertices"] * (1 + 1e-8)

    change_arrays(place / "problem.npz", move)
    rehash(place)
    failed(place, "a vertex of the polytope lies outside of it")


# What is written beside numbers


@pytest.fixture(scope="module")
def budget_run(tmp_path_factory):
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=100, horizon=50, seed=0)
    budget = jm.Budget(cost=np.full(world.num_pairs, 0.1), at_most=3.0, name="wear")
    place = tmp_path_factory.mktemp("budget") / "run"
    problem = jm.Apprenticeship(world, basis, demos, constraints=[budget])
    jm.certify(problem, jm.solve(problem)).save(place)
    assert jm.audit(place).require().passed
    return place


@pytest.mark.parametrize(
    "part", ["premises", "expert_intervals", "apprentice_intervals", "budgets"]
)
def test_nothing_can_be_written_beside_what_is_claimed(budget_run, tmp_path, part):
    place = shutil.copytree(budget_run, tmp_path / "run")
    facts = facts_of(place)
    facts[part][0]["note"] = "certified by others too"
    write_facts(place, facts)
    failed(place, "parts")


@pytest.mark.parametrize(
    ("part", "more"),
    [("seeds", {"solver": None, "certified": 1}), ("seeds", {"solver": "one"}),
     ("evaluation", {"kind": "rows"})],
)  # fmt: skip
def test_seeds_and_evaluation_of_an_explicit_run_hold_nothing_else(
    budget_run, tmp_path, part, more
):
    place = shutil.copytree(budget_run, tmp_path / "run")
    write_facts(place, facts_of(place) | {part: more})
    failed(place)


def _worded(kind):
    """The certificate of some kind of world and evaluation, with its premises."""
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=30, horizon=20, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    if kind == "rollouts":
        return jm.certify(problem, expert, evaluation=jm.Rollouts(50, 10))
    if kind == "estimated":
        near = jm.World(world.transition, world.initial, world.discount, transition_error=0.01)
        return jm.certify(jm.Apprenticeship(near, basis, demos), expert)
    if kind == "forward":
        return jm.certify(jm.Forward(world, np.ones(world.num_pairs)), expert)
    return jm.certify(problem, expert)


@pytest.mark.parametrize("kind", ["exact", "rollouts", "estimated", "forward"])
def test_no_word_of_a_premise_can_be_changed(tmp_path, kind):
    """Neither added, nor left out, nor another number: each premise is found by its name."""
    run = tmp_path / "run"
    _worded(kind).save(run)
    assert jm.audit(run).passed, str(jm.audit(run))
    honest = facts_of(run)
    names = [f"premise that {one['name']}" for one in honest["premises"]]
    for change in (
        lambda text: text + "; tested by others, too",
        lambda text: "all is well: " + text,
        lambda text: text[:-1],
        lambda text: text.replace("taken", "known").replace("given", "proven") + " ",
    ):
        changed = [one | {"detail": change(one["detail"])} for one in honest["premises"]]
        write_facts(run, honest | {"premises": changed})
        failed(run, *names)
    for k, name in enumerate(names):
        alone = [*honest["premises"][:k], changed[k], *honest["premises"][k + 1 :]]
        write_facts(run, honest | {"premises": alone})
        failed(run, name)


def test_the_words_about_the_alarm_and_the_pairs_have_their_numbers(budget_run, tmp_path):
    for old, new in (
        (r"[0-9.e-]+ from the data", "0.123 from the data"),
        (r"\d+ pairs", "3 pairs"),
    ):
        place = shutil.copytree(budget_run, tmp_path / new)
        facts = facts_of(place)
        (found,) = (one for one in facts["premises"] if re.search(old, one["detail"]))
        found["detail"] = re.sub(old, new, found["detail"])
        write_facts(place, facts)
        failed(place, f"the text of the premise that {found['name']}")


def test_the_premise_about_copies_says_that_near_copies_are_not_seen(tmp_path):
    """Two episodes that differ in their last step only are no copies by any test of ours."""
    world, basis, expert = jm.gallery.grid(4, slip=0.5)
    demos = jm.record(world, expert, trajectories=30, horizon=20, seed=0)
    certificate = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    (copied,) = (one for one in certificate.premises if one.name == "no episode was copied")
    assert copied.status.value == "tested, not refuted"
    assert copied.detail.endswith("only copies that are equal in every step are tested for")


# Numbers that agree up to rounding


@pytest.mark.parametrize("part", ["expert_intervals", "apprentice_intervals"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_ends_of_intervals_agree_up_to_rounding_only(budget_run, tmp_path, part, end):
    place = shutil.copytree(budget_run, tmp_path / "run")
    facts = facts_of(place)
    facts[part][0][end] += 1e-9
    write_facts(place, facts)
    failed(place, "interval of")


def test_expectations_agree_up_to_rounding_only(budget_run, tmp_path):
    place = shutil.copytree(budget_run, tmp_path / "run")
    facts = facts_of(place)
    facts["expectations"][0] += 1e-9
    write_facts(place, facts)
    failed(place, "the expectation of")


def test_the_gap_on_the_data_agrees_up_to_rounding_only(budget_run, tmp_path):
    place = shutil.copytree(budget_run, tmp_path / "run")
    facts = facts_of(place)
    facts["gap_on_data"] += 1e-9
    write_facts(place, facts)
    failed(place, "the gap on the data is")


def test_a_lower_bound_above_the_gap_of_the_policy_is_found(budget_run, tmp_path):
    place = shutil.copytree(budget_run, tmp_path / "run")
    facts = facts_of(place)
    facts["gap_on_data"] = facts["lower_bounds"]["on_data"] - 0.1
    write_facts(place, facts)
    failed(place, "and the policy has")


@pytest.mark.parametrize("discount", [1 - 1e-6, 1 - 1e-8])
@pytest.mark.parametrize(
    "kind", [jm.Simplex(), jm.InfinityBall(), jm.costs.PriorBall([1.0, 2.0], 0.5)]
)
def test_honest_runs_with_long_horizons_pass(tmp_path, discount, kind):
    rng = np.random.default_rng(0)
    world = jm.World(rng.dirichlet(np.ones(3), 6), np.ones(3) / 3, discount)
    basis = jm.CostBasis(rng.random((6, 2)))
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0, 0.0]), kind)
    jm.certify(problem, jm.solve(problem)).save(tmp_path / "run")
    assert jm.audit(tmp_path / "run").passed, str(jm.audit(tmp_path / "run"))


def test_no_policy_has_a_gap_below_the_least_possible(grid):
    """Demonstrations of a poor expert: for a class without the cost zero others do better."""
    world, basis, _, _ = grid
    worst = jm.plan(world, -basis.matrix.toarray()[:, 0]).policy
    demos = jm.record(world, worst, trajectories=50, horizon=50, seed=0)
    problem = jm.Apprenticeship(world, basis, demos, jm.Simplex())
    certificate = jm.certify(problem, jm.solve(problem))
    truth = jm.occupancy(world, worst).expectations(basis)
    best = jm.occupancy(world, certificate.policy).expectations(basis)
    assert jm.Simplex().gap(best - truth) >= certificate.least_possible
    assert certificate.least_possible < 0
