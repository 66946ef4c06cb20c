"""Regret under the expert's own cost: saved, read back, derived again; every change is found."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

import budgeted_worlds
import journeyman as jm
from checker.forging import facts_of, failed, rehash, write_facts
from journeyman.certificate.regret import regret_terms
from journeyman.checker import explicit
from journeyman.checker.regret import Premises, Sums
from journeyman.gallery.grid_world import floor
from journeyman.problem.rational import RationalPrices, RationalSet
from journeyman.report.saved_run import read_run
from journeyman.storage import load_arrays, save_arrays
from problem.test_budget_prices import contradictory
from rational_worlds import acted, grid, instance, optimum

SEEDS = range(0, 26, 2)
BUDGETED = range(8)


def learned(problem):
    return jm.learn(
        problem.world, problem.basis, problem.demonstrations, cost_class=problem.cost_class,
        constraints=problem.constraints, expert_is=problem.expert_is,
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_an_honest_regret_passes(seed, tmp_path):
    learned(instance(seed).problem).save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()


@pytest.mark.parametrize("seed", BUDGETED)
def test_an_honest_regret_to_the_best_within_budgets_passes(seed, tmp_path):
    one = budgeted_worlds.instance(seed)
    apprentice = learned(one.problem)
    regret = apprentice.certificate.regret
    assert one.regret(apprentice.policy) <= regret.bound + 1e-8 * one.problem.gap_scale
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    back = read_run(tmp_path / "run").certificate.regret
    assert back.bound == regret.bound
    laws = [one.tested_with.on(apprentice.problem.world) for one in (back, regret)]
    assert np.allclose(*laws, atol=1e-14)


def refuted_run():
    rng = np.random.default_rng(1)
    world, basis = grid(5, 3, rng)
    cost = basis.on(world) @ np.array([1.0, 0.5, 0.0])
    demos = acted(world, optimum(world, cost)[1], "mistakes", rng, 20, 50)
    return jm.learn(world, basis, demos, expert_is=jm.Rational(regret_per_step=0))


def test_a_refuted_premise_is_saved_with_the_steps_that_refute_it(tmp_path):
    apprentice = refuted_run()
    regret = apprentice.certificate.regret
    assert not regret.valid
    assert regret.contradiction
    assert regret.bound == regret.trivial_bound
    assert apprentice.certificate.valid
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()


def changed(source, target, change):
    """A copy of a run with a changed certificate, signed again."""
    shutil.copytree(source, target)
    facts = facts_of(target)
    change(facts)
    write_facts(target, facts)
    return target


@pytest.fixture(
    scope="module",
    params=[
        "mistakes", "optimal", "as a whole", "soft", "refuted", "mistakes, budgets",
        "as a whole, budgets", "soft, budgets", "refuted, budgets",
    ],
)  # fmt: skip
def saved(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(re.sub("[ ,]+", "_", request.param)) / "run"
    if request.param == "refuted":
        refuted_run().save(place)
        return place
    kind, with_budgets, _ = request.param.partition(", budgets")
    if with_budgets:
        refuted = kind == "refuted"
        problem = contradictory(0.3) if refuted else budgeted_worlds.instance(7, kind).problem
        learned(problem).save(place)
        return place
    one = instance(7, request.param)
    problem = one.problem
    jm.learn(
        problem.world, problem.basis, problem.demonstrations, expert_is=problem.expert_is
    ).save(place)  # fmt: skip
    return place


def numbers(part, path=()):
    """Where numbers, texts and flags of the claim stand."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from numbers(value, (*path, key))
    elif isinstance(part, list):
        for at, value in enumerate(part):
            yield from numbers(value, (*path, at))
    else:
        yield path, part


def other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 1.001 + 1e-3 if isinstance(value, float) else value + 1
    return f"{value} " if isinstance(value, str) else 0.5


def test_every_changed_part_of_the_claim_is_found(saved, tmp_path):
    claim = facts_of(saved)["regret"]
    unseen = []
    for number, (path, value) in enumerate(numbers(claim)):

        def change(facts, path=path, value=value):
            place = facts["regret"]
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = other(value)

        run = changed(saved, tmp_path / str(number), change)
        if jm.audit(run).passed:
            unseen.append((path, value))
    assert not unseen


def test_every_changed_array_of_the_evidence_is_found(saved, tmp_path):
    """But for values, which are repaired: a larger range proves less, and often all that is
    claimed."""
    _, arrays = load_arrays(saved / "regret.npz", "regret", 1)
    for name, array in arrays.items():
        if not array.size or name in ("low", "high", "budget_low", "budget_high"):
            continue
        forged = tmp_path / name
        shutil.copytree(saved, forged)
        moved = np.array(array, dtype=float)
        moved.flat[int(np.argmax(np.abs(moved)))] *= 1.01
        moved.flat[int(np.argmax(np.abs(moved)))] += 0.01
        if name in ("values", "prices"):
            moved += 1e3
        elif name == "weights":  # others near it may do as well
            moved = -moved
        save_arrays(forged / "regret.npz", "regret", 1, {**arrays, name: moved})
        rehash(forged)
        assert not jm.audit(forged).passed, name


@pytest.mark.parametrize("example", [None, "nothing", "another cost"])
def test_a_refutation_cannot_be_hidden_behind_weak_prices(example, tmp_path):
    apprentice = refuted_run()
    apprentice.save(tmp_path)
    problem, facts = apprentice.problem, facts_of(tmp_path)
    given, stated = RationalSet.of(problem), facts["regret"]
    steps, pairs = np.zeros(given.pairs.size), np.zeros(problem.world.num_pairs)
    weak = given.bound(given.uniform, RationalPrices(steps, 0.0, np.zeros(0), pairs))
    arrays = dict(load_arrays(tmp_path / "regret.npz", "regret", 1)[1])
    arrays |= {"uniform_steps": steps, "uniform_total": np.zeros(()), "uniform_pairs": pairs}
    if example is not None:
        weights = np.array([0.0, 0.0, 0.0] if example == "nothing" else [1.0, 0.5, 0.0])
        arrays["weights"] = weights
        arrays["values"] = jm.plan(problem.world, problem.basis.on(problem.world) @ weights).values
    save_arrays(tmp_path / "regret.npz", "regret", 1, arrays)
    bound, trivial = apprentice.certificate.regret.found, stated["trivial_bound"]
    stated |= {
        "valid": True, "contradiction": [], "bound": bound, "share": bound / trivial,
        "uniform_terms": [
            {"name": one.name, "value": one.value, "formula": one.formula, "source": one.source}
            for one in regret_terms(given, weak)
        ],
        "uniform": min(weak.value, trivial),
    }  # fmt: skip
    (row,) = (one for one in stated["premises"] if one["status"] == "failed")
    row |= {
        "status": "tested, not refuted",
        "detail": f"the records leave the uniform policy a regret of {weak.value:.4g} at most, "
        f"where bounded costs allow {trivial:.4g}; a false premise need not be found",
    }
    write_facts(tmp_path, facts)
    rehash(tmp_path)
    found = jm.audit(tmp_path)
    assert not found.passed
    assert all("its outcome" in one or "its detail" in one or "its level" in one
               for one in found.findings), found.findings  # fmt: skip


def test_a_claim_without_evidence_is_found(saved, tmp_path):
    forged = tmp_path / "run"
    shutil.copytree(saved, forged)
    (forged / "regret.npz").unlink()
    facts = facts_of(forged)
    del facts["inputs"]["regret.npz"]
    write_facts(forged, facts)
    assert not jm.audit(forged).passed


def test_a_regret_out_of_nothing_is_found(saved, tmp_path):
    problem = instance(7).problem
    plain = tmp_path / "plain"
    jm.learn(problem.world, problem.basis, problem.demonstrations).save(plain)
    claim = facts_of(saved)["regret"]
    run = changed(plain, tmp_path / "run", lambda facts: facts.update(regret=claim))
    assert not jm.audit(run).passed


def test_a_run_read_back_says_the_same(saved):
    back = read_run(saved).certificate.regret
    claim = facts_of(saved)["regret"]
    assert back.bound == claim["bound"]
    assert back.uniform == claim["uniform"]
    assert back.valid == claim["valid"]


def within_a_budget(tmp_path):
    """A run whose bound rests on the price of a budget."""
    problem = contradictory(0.0)
    apprentice = learned(problem)
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    return apprentice, dict(load_arrays(tmp_path / "run" / "regret.npz", "regret", 1)[1])


@pytest.mark.parametrize("name", ["floor", "pairs", "uniform_law", "prices", "uniform_floor"])
def test_what_is_impossible_about_budgets_is_refused(name, tmp_path):
    """Prices of the floor or of pairs at which a price of the budget would make the bound larger, a
    random policy that leaves an action out, and a negative price."""
    _, arrays = within_a_budget(tmp_path)
    moved = arrays[name].copy()
    if name == "pairs":
        moved *= 0.5
    elif name == "uniform_law":
        moved.flat[0] = 0.0
    else:
        moved = moved - 1.0
    save_arrays(tmp_path / "run" / "regret.npz", "regret", 1, {**arrays, name: moved})
    rehash(tmp_path / "run")
    assert not jm.audit(tmp_path / "run").passed


def test_a_budget_cannot_be_made_looser_afterwards(tmp_path):
    apprentice, _ = within_a_budget(tmp_path)
    files = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    run = explicit.read_run(files, facts_of(tmp_path / "run"))
    regret = apprentice.certificate.regret
    sums = Sums(run, Premises.of(run), *regret.value_range, *regret.budget_range)
    prices = regret.prices
    assert sums.bears_budgets(prices)
    (budget,) = run.problem.budgets
    changed = replace(run.problem, budgets=(replace(budget, limit=budget.limit + 0.1),))
    looser = replace(sums, run=replace(run, problem=changed))
    assert not looser.bears_budgets(prices)


def test_a_refutation_by_a_policy_that_breaks_a_budget_is_found(tmp_path):
    apprentice = learned(contradictory(0.3))
    assert not apprentice.certificate.regret.valid
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    world = apprentice.problem.world
    use = apprentice.problem.budget_matrix[:, 0]
    greedy = jm.plan(world, -use).policy.on(world)
    law = 0.99 * greedy + 0.01 * world.pairs.uniform
    visits = jm.occupancy(world, jm.policy.extract(world, law)).measure
    assert use @ visits > apprentice.problem.limits[0]
    place = tmp_path / "run" / "regret.npz"
    arrays = dict(load_arrays(place, "regret", 1)[1])
    arrays |= {"uniform_law": law, "uniform_visits": world.pairs.total(visits)}
    save_arrays(place, "regret", 1, arrays)
    rehash(tmp_path / "run")
    found = jm.audit(tmp_path / "run")
    assert any("breaks a budget" in one for one in found.findings), found.findings


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_values_that_are_not_those_of_every_cost_are_moved(saved, shift):
    files = {path.name: path.read_bytes() for path in saved.iterdir()}
    run = explicit.read_run(files, facts_of(saved))
    _, arrays = load_arrays(saved / "regret.npz", "regret", 1)
    low, high = arrays["low"], arrays["high"]
    none = np.zeros((0, low.size))
    of_budgets = [arrays.get(f"budget_{end}", none) for end in ("low", "high")]
    least, most = (one + sign * shift for sign, one in zip((1, -1), of_budgets, strict=True))
    sums = Sums(run, Premises.of(run), low + shift, high - shift, least, most)
    for found, ends in ((sums.ends, (low, high)), (sums.budget_ends, of_budgets)):
        assert np.allclose(found[0], ends[0], atol=1e-9)
        assert np.allclose(found[1], ends[1], atol=1e-9)


def test_what_lies_behind_an_end_is_known_and_no_other_price_is_negative(tmp_path):
    """At an end nothing can be chosen, so its value is that of its cost: few walks to a goal prove
    much, by a price there that is negative. In a state with a choice it would be refused."""
    world = floor(5, slip=0.1, discount=0.9, goals=[(0, 4)])
    goal = np.eye(25)[:, [4]]
    basis = jm.CostBasis(np.hstack([1 - goal, goal]), ["on the way", "at the goal"])
    cost = basis.on(world) @ np.array([1.0, 0.0])
    expert = jm.plan(world, cost)
    demos = jm.record(world, expert.policy, trajectories=4, horizon=50, seed=0)
    learned = jm.learn(world, basis, demos, expert_is=jm.Rational(regret_per_step=0.001))
    certificate = learned.certificate
    true = cost @ jm.occupancy(world, certificate.policy).measure - world.initial @ expert.values
    assert true <= certificate.regret.bound < 0.1 * certificate.regret.trivial_bound
    learned.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    _, arrays = load_arrays(tmp_path / "run" / "regret.npz", "regret", 1)
    assert arrays["pairs"][world.pairs.states == 4].min() < 0
    for pair in np.flatnonzero(world.pairs.states != 4)[::7]:
        prices = arrays["pairs"].copy()
        prices[pair] = -1e-3
        save_arrays(tmp_path / "run" / "regret.npz", "regret", 1, {**arrays, "pairs": prices})
        rehash(tmp_path / "run")
        assert "a price is negative" in str(jm.audit(tmp_path / "run"))


# Numbers so large that sums of them are none, and costs that show nothing


def budgeted(rows, costs, budget, actions, offsets, cost_class=None, discount=0.9):
    """One recorded episode in a world with given rows, within a budget."""
    world = jm.World(rows, np.eye(len(rows[0]))[0], discount, choice_offsets=offsets)
    states = np.zeros(len(actions) + 1, dtype=int)
    if len(rows[0]) == 2 and rows[0][1]:
        states[1::2] = 1
    demos = jm.Demonstrations.from_arrays([states], [actions])
    spent = jm.Budget(budget[0], budget[1], "resource")
    return jm.Apprenticeship(
        world, jm.CostBasis(np.array(costs, dtype=float)), demos, cost_class, spent,
        jm.Rational(regret_per_step=0),
    )  # fmt: skip


def stored(place, **changed_ones):
    _, arrays = load_arrays(place / "regret.npz", "regret", 1)
    arrays = {**arrays, **{name: np.array(one, float) for name, one in changed_ones.items()}}
    save_arrays(place / "regret.npz", "regret", 1, arrays)
    rehash(place)


def test_prices_of_budgets_are_no_number_when_what_bounds_them_overflows(tmp_path):
    problem = budgeted(
        [[1, 0]] * 3, [[1, 0], [0, 1], [0, 0]], ([1, 0.1, 0], 5.5), [1] * 20, [0, 2, 3],
        jm.Simplex(),
    )  # fmt: skip
    learned(problem).save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    stored(
        tmp_path / "run", floor=0.0, steps=[10.0], pairs=np.zeros(3),
        budget_low=[[-1.7e308, 1.7e308]], budget_high=[[1.7e308, -1.7e308]],
    )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):
        failed(tmp_path / "run", "the regret: ", "encountered")


def test_an_example_that_overflows_shows_nothing(tmp_path):
    problem = budgeted(
        [[0, 1], [0, 1], [1, 0], [1, 0]], [[0], [1], [0], [0]], ([3, 0, 0, -3], 2.0),
        [0, 0, 1, 0] * 5, [0, 2, 4], discount=0.5,
    )  # fmt: skip
    found = learned(problem)
    assert not found.certificate.regret.valid
    found.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    largest = 1.5 * 2.0**1023
    stored(tmp_path / "run", weights=[1], values=[largest, -1.7e308], prices=[largest / 2])
    with np.errstate(over="ignore", invalid="ignore"):
        failed(tmp_path / "run", "the regret: ", "encountered")


@pytest.mark.parametrize("weight", [4e-4, 6.7e-4, 1e-3])
def test_a_cost_that_misses_as_much_as_it_distinguishes_shows_nothing(tmp_path, weight):
    """The regret of the random policy is that of a price, and rows are missed by the cost."""
    problem = budgeted([[1]] * 3, [[0], [1], [0]], ([0, 0, 1], 5.0), [0, 1] * 10, [0, 3])
    found = learned(problem)
    assert found.certificate.regret.premises[0].status is jm.certificate.PremiseStatus.DECLARED
    found.save(tmp_path / "run")
    stored(tmp_path / "run", weights=[weight], values=[0], prices=[2])
    jm.audit(tmp_path / "run").require()  # declared, as before


@pytest.mark.parametrize("costs", [1, 2])
def test_a_cost_where_nobody_gets_shows_nothing(tmp_path, costs):
    rows = [[1, 0]] * 3 + [[0, 1]] * 2
    table = np.array([[0, 0], [1, 0], [0, 0], [0, 0], [0, 1]])[:, :costs]
    problem = budgeted(rows, table, ([0, 0, 1, 0, 0], 5.0), [0, 1] * 10, [0, 3, 5])
    found = learned(problem)
    assert found.certificate.regret.premises[0].status is jm.certificate.PremiseStatus.DECLARED
    found.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()


@pytest.mark.parametrize("used", [3, 10])
def test_a_random_policy_that_breaks_a_budget_refutes_nothing(tmp_path, used):
    actions = [0] * used + [1] * (20 - used)
    problem = budgeted([[1]] * 2, [[1, 0], [0, 1]], ([1, 0], 0.0), actions, [0, 2])
    found = learned(problem)
    assert found.certificate.regret.valid
    found.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    jm.problem.cost_ranges(found.problem)
