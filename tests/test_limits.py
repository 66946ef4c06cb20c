"""Limits of time: what is cut short, that all that is stated still holds, and that it is said.

Clocks are counters, so that nothing depends on how quick the machine is.
"""

import json
import re
from itertools import count

import numpy as np
import pytest

import journeyman as jm
from journeyman.arrays import assign, dense
from journeyman.certificate.expert_estimates import BETTING, SHAPED
from journeyman.checker import expert as checker_expert
from journeyman.demonstrations import Blend, MonteCarlo, SplitBlend, clone, expectation
from journeyman.demonstrations.expectation import Shaping, policy_values, sweeps_in
from journeyman.demonstrations.reading_order import split
from journeyman.policy.planning import attainable_ranges
from journeyman.policy.policy_evaluation import (
    ENTRY_BYTES,
    FILL,
    Chains,
    averaging,
    is_narrow,
    transition_under,
)
from journeyman.progress import (
    Deadline,
    Event,
    OutOfTime,
    in_time,
    keeping,
    out_of_time,
    whatever_it_takes,
    within,
    working,
)
from journeyman.report.saved_run import read_run
from journeyman.solvers.solve import default_solver
from journeyman.world.world import World

CLASSES = {
    "infinity": jm.InfinityBall(),
    "euclidean": jm.EuclideanBall(),
    "simplex": jm.Simplex(),
}
NO_TIME = 1e-9


def ticking():
    """A clock that goes on by one second whenever somebody looks at it."""
    ticks = count()
    return lambda: float(next(ticks))


def stopped():
    return 0.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def examples():
    """Small worlds of several families, with demonstrations: enough for shaped estimates."""
    grid = jm.gallery.grid(5, macro_cells=2, discount=0.9)
    garnet = jm.gallery.garnet(30, 3, 3, num_costs=3, discount=0.9, seed=2)
    network = jm.gallery.queues(4, buffers=(1, 1, 2, 1), discount=0.9)
    world, basis = network.explicit()
    plan = jm.plan(world, np.asarray(basis.on(world).sum(axis=1)).ravel())
    queues = (world, basis, plan.policy.mixed_with(jm.Policy.uniform(world), 0.2))
    for name, (world, basis, expert) in {"grid": grid, "garnet": garnet, "queues": queues}.items():
        demos = jm.record(world, expert, trajectories=40, horizon=30, seed=1)
        yield name, world, basis, expert, demos


EXAMPLES = {name: rest for name, *rest in examples()}


def test_a_deadline_ends_what_can_be_left_out_and_nothing_else():
    clock, shown = Clock(), []
    with within(Deadline(10.0, shown.append, clock=clock)):
        clock.now = 4.0
        working("a stage", 1, 4, since=0.0)
        assert not out_of_time()
        with keeping(0.5):  # of the six seconds left three are for others
            clock.now = 7.5
            assert out_of_time()
            with pytest.raises(OutOfTime):
                working("a stage", 2, 4, since=0.0)
            with whatever_it_takes():
                assert not out_of_time()
                working("what nothing can replace")
        assert not out_of_time()
        clock.now = 10.0
        assert out_of_time()
    assert not out_of_time()
    working("nobody waits for this")
    assert shown[0] == Event("a stage", 4.0, 1, left=12.0, is_stage=True)
    assert str(shown[0]) == "a stage · 4.0 s · about 12 s left"
    assert [one.task for one in shown[1:]] == ["a stage", "what nothing can replace"]


def test_a_call_within_another_ends_with_it():
    clock, shown = Clock(), []
    with within(Deadline(10.0, shown.append, clock=clock)):
        clock.now = 4.0
        with in_time(100.0, None) as inner:
            assert inner.remaining == 6.0
            working("inside")
        with in_time(2.0, None) as inner:
            assert inner.remaining == 2.0
        with in_time(None, None) as inner:
            assert inner.remaining == 6.0
    assert shown[0].task == "inside"


def test_a_reserve_stops_earlier():
    clock = Clock()
    deadline = Deadline(10.0, clock=clock)
    deadline.reserve = 3.0
    clock.now = 6.9
    assert not deadline.must_stop
    clock.now = 7.1
    assert deadline.must_stop
    assert deadline.remaining == pytest.approx(2.9)


@pytest.mark.parametrize("cost_class", CLASSES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_without_time_everything_that_is_stated_holds(name, cost_class, tmp_path):
    world, basis, expert, demos = EXAMPLES[name]
    apprentice = jm.learn(world, basis, demos, cost_class=CLASSES[cost_class], time_limit=NO_TIME)
    certificate, problem = apprentice.certificate, apprentice.problem
    directed = (BETTING,) * (cost_class != "euclidean")  # a ball has no directions to go through
    assert certificate.left_out == (*directed, SHAPED)
    assert "For lack of time" in certificate.summary()
    assert problem.expectation.method == MonteCarlo()
    assert apprentice.target is not None
    assert "no time" in apprentice.target.reason
    true = jm.policy.occupancy(world, expert).expectations(basis)
    own = jm.policy.occupancy(world, apprentice.policy).expectations(basis)
    assert problem.cost_class.gap(own - true) <= certificate.bound
    best = jm.solve(problem, jm.LinearProgram())
    room = 1e-9 * problem.gap_scale
    assert certificate.lower_bound <= best.value + room
    assert apprentice.answer.lower_bound <= best.value + room
    assert apprentice.answer.value >= best.lower_bound - room
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    assert read_run(tmp_path / "run").certificate.left_out == certificate.left_out


def test_estimates_are_left_out_only_where_that_is_said(tmp_path):
    world, basis, _, demos = EXAMPLES["grid"]
    apprentice = jm.learn(world, basis, demos, time_limit=NO_TIME)
    apprentice.save(tmp_path / "run")
    path = tmp_path / "run" / "certificate.json"
    for forged in ([], [BETTING], [BETTING, SHAPED, "plain mean, signs"]):
        facts = json.loads(path.read_bytes())
        facts["left_out"] = forged
        place = tmp_path / f"forged-{len(forged)}"
        place.mkdir()
        for file in (tmp_path / "run").iterdir():
            (place / file.name).write_bytes(file.read_bytes())
        (place / "certificate.json").write_text(json.dumps(facts))
        assert not jm.audit(place).passed


@pytest.mark.parametrize("seconds", [1, 5, 20, 60, 200])
def test_a_certificate_that_is_cut_anywhere_holds(seconds, tmp_path):
    """The clock goes on with every look at it, so that the cut falls at many places."""
    world, basis, expert, demos = EXAMPLES["garnet"]
    problem = jm.Apprenticeship(world, basis, demos)
    whole = jm.certify(problem, expert)
    fresh = jm.Apprenticeship(world, basis, demos.subset(np.arange(len(demos))))
    with within(Deadline(float(seconds), clock=ticking())):
        certificate = jm.certify(fresh, expert)
    own = jm.policy.occupancy(world, expert).expectations(basis)
    assert certificate.bound >= whole.bound - 1e-9 * problem.gap_scale
    assert certificate.bound >= 0.0
    assert certificate.true_lower_bound <= 1e-12
    assert np.array_equal(certificate.expectations, own)
    certificate.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()


def test_what_was_cut_short_is_not_kept():
    world, basis, _, _ = EXAMPLES["garnet"]
    demos = EXAMPLES["garnet"][3].subset(np.arange(30))
    problem = jm.Apprenticeship(world, basis, demos)
    with within(Deadline(NO_TIME, clock=ticking())):
        assert jm.solve(problem).problem.expectation.method == MonteCarlo()
        cut = attainable_ranges(world, basis).of(0)
        wide = problem.trivial_bound
    assert problem.expectation.method == Blend()
    found = attainable_ranges(world, basis).of(0)
    assert cut[0] <= found[0] < found[1] <= cut[1]
    assert problem.trivial_bound < wide
    assert jm.certify(problem, jm.clone(demos, world)).left_out == ()


def test_ranges_that_are_cut_short_are_those_that_are_proven():
    """The time is over while plans are made: what is asked for later belongs to the same plans."""
    world, basis, _ = jm.gallery.grid(5, macro_cells=2, walls=[(1, 1)], initial=(0, 0))
    column = dense(basis.on(world)[:, [0]]).ravel()
    found = []
    for seconds in range(1, 12):
        fresh = jm.World(world.transition, world.initial, 0.97)
        with within(Deadline(float(seconds), clock=ticking())):
            ranges = attainable_ranges(fresh, basis)
            low, high = ranges.of(0)
            V, W = ranges.potentials(0)
        ends = []
        for cost, values in ((column, V), (-column, W)):
            slack = cost + 0.97 * (fresh.transition @ values) - values[fresh.pairs.states]
            ends.append(max(fresh.initial @ values + slack.min() / 0.03, cost.min() / 0.03))
        assert (low, -high) == pytest.approx(ends, abs=1e-9)
        whole = attainable_ranges(fresh, basis).of(0)
        assert low <= whole[0] <= whole[1] <= high
        found.append(high - low)
    assert max(found) > min(found)


def test_budgets_are_not_lowered_without_time():
    world, basis, _, demos = EXAMPLES["grid"]
    wear = np.linspace(0, 1, world.num_pairs)
    budget = jm.Budget(wear, at_most=3.0, name="wear")
    apprentice = jm.learn(world, basis, demos, constraints=budget, time_limit=NO_TIME)
    spent = float(jm.policy.occupancy(world, apprentice.policy).measure @ wear)
    assert spent <= apprentice.certificate.budgets[0].spent


def test_a_premise_about_the_expert_is_certified_without_time(tmp_path):
    world, basis, _, demos = EXAMPLES["grid"]
    premise = jm.Rational(regret_per_step=0.2)
    apprentice = jm.learn(world, basis, demos, expert_is=premise, time_limit=NO_TIME)
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()


@pytest.mark.parametrize("call", ["learn", "solve", "certify"])
@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), "a minute"])
def test_limits_that_are_none_are_refused(call, limit):
    world, basis, expert, demos = EXAMPLES["garnet"]
    problem = jm.Apprenticeship(world, basis, demos)
    calls = {
        "learn": lambda: jm.learn(world, basis, demos, time_limit=limit),
        "solve": lambda: jm.solve(problem, time_limit=limit),
        "certify": lambda: jm.certify(problem, expert, time_limit=limit),
    }
    with pytest.raises(jm.errors.InvalidInput, match="time_limit"):
        calls[call]()


def test_a_memory_limit_is_for_solvers_that_keep_to_one():
    world, basis, _, demos = EXAMPLES["garnet"]
    problem = jm.Apprenticeship(world, basis, demos)
    with pytest.raises(jm.errors.InvalidSolver, match="LinearProgram cannot keep"):
        jm.solve(problem, jm.LinearProgram(), memory_limit=1e9)
    answer = jm.solve(problem, jm.ColumnGeneration(tolerance=1e-12), memory_limit=1.0)
    assert answer.status.name == "MEMORY_LIMIT"
    assert answer.lower_bound <= answer.value


def test_a_memory_limit_without_a_solver_is_kept_in_small_worlds_too():
    world, basis, _, demos = EXAMPLES["garnet"]
    problem = jm.Apprenticeship(world, basis, demos)
    assert isinstance(default_solver(problem).solver, jm.LinearProgram)
    answer = jm.solve(problem, memory_limit=1e9)
    assert answer.status.name == "OPTIMAL"
    assert answer.reason == "a limit of memory, which column generation keeps to"
    assert answer.value == pytest.approx(jm.solve(problem).value, abs=1e-5)


def test_factors_that_would_take_more_than_is_allowed_are_not_made():
    world = jm.gallery.grid(24, macro_cells=2).world
    assert Chains(world).direct
    assert not Chains(world, memory_limit=1e4).direct
    for size in (24, 48):  # what is expected of a factor is no less than half of what it takes
        grid = jm.gallery.grid(size, macro_cells=2).world
        chains, least = Chains(grid), np.arange(0, grid.num_pairs, 4)
        chains.values(least, np.zeros(grid.num_pairs), np.zeros(grid.num_states), 0.1, 1)
        next(chains.tables(least, np.ones((grid.num_pairs, 1)), 1e-6))
        expected = ENTRY_BYTES * FILL * grid.num_states * np.log2(grid.num_states)
        assert chains.held_bytes <= 2 * expected


def test_every_stage_is_announced():
    world, basis, _, demos = EXAMPLES["grid"]
    shown = []
    jm.learn(world, basis, demos.subset(np.arange(30)), observer=shown.append)
    stages = list(dict.fromkeys(one.task for one in shown if one.is_stage))
    assert stages[0] == "checking the problem"
    for words in ("expert", "solver", "policy", "lower bound", "largest gap"):
        assert any(words in stage for stage in stages), (words, stages)
    assert any(not one.is_stage for one in shown)


# Potentials of large worlds


@pytest.fixture
def large(monkeypatch):
    """Every world is large."""
    monkeypatch.setattr(expectation, "EXACT_WORK", 0)
    monkeypatch.setattr(checker_expert, "EXACT_WORK", 0)


@pytest.mark.parametrize("name", EXAMPLES)
def test_potentials_of_large_worlds_look_some_steps_ahead(name, large):
    world, basis, _, demos = EXAMPLES[name]
    policy, matrix = clone(demos, world), basis.on(world)
    steps = sweeps_in(world, basis.num_costs)
    assert steps == 20  # twice 1/(1 - discount)
    chain = transition_under(world, policy).toarray()
    costs = dense(averaging(world, policy.on(world)) @ matrix)
    V = np.tile(costs.mean(axis=0) / (1 - world.discount), (world.num_states, 1))
    going, begun = np.ones(basis.num_costs, dtype=bool), 0
    for step in range(steps):
        before, new = V, costs + world.discount * chain @ V
        V = np.where(going, new, V)
        begun = np.ptp(new - before, axis=0) if step == 0 else begun
        if step == 7:  # the fewest steps
            going = np.ptp(new - before, axis=0) > 0.01 * begun
    assert policy_values(world, policy, matrix) == pytest.approx(V, abs=1e-12)


def test_work_bounds_how_far_they_look(monkeypatch):
    world, basis, _, _ = EXAMPLES["garnet"]
    monkeypatch.setattr(expectation, "EXACT_WORK", 0)
    work = world.transition.nnz * basis.num_costs
    for allowed, steps in ((12 * work, 12), (1, 8), (10**9 * work, 20)):
        monkeypatch.setattr(expectation, "SWEEP_WORK", allowed)
        assert sweeps_in(world, basis.num_costs) == steps


def test_their_totals_are_unbiased(large):
    """An expert's total shaped by any potential has the mean of its plain total, by many episodes
    of a world with little noise in the starts."""
    world, basis, expert, demos = EXAMPLES["garnet"]
    many = jm.record(world, expert, trajectories=4000, horizon=60, seed=5)
    matrix = basis.on(world)
    totals = Shaping.learned(demos, matrix, world, 0.1).totals(many, matrix, world)
    true = jm.policy.occupancy(world, expert).expectations(basis)
    error = np.abs(totals.mean(axis=0) - true)
    assert (error <= 5 * totals.std(axis=0) / np.sqrt(len(many)) + 0.02).all()


@pytest.mark.parametrize("cost_class", CLASSES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_runs_in_large_worlds_are_audited(name, cost_class, large, tmp_path):
    world, basis, _, demos = EXAMPLES[name]
    own = demos.subset(np.arange(len(demos)))
    problem = jm.Apprenticeship(world, basis, own, CLASSES[cost_class])
    assert problem.expectation.method == SplitBlend()
    apprentice = jm.learn(world, basis, own, cost_class=CLASSES[cost_class])
    assert any(one.estimate == SHAPED for one in apprentice.certificate.combinations)
    apprentice.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()
    problem_run = tmp_path / "other"
    jm.certify(problem, apprentice.policy).save(problem_run)
    jm.audit(problem_run).require()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_weighted_blend_by_its_formula(name, large):
    """The mean of the totals is that of both parts by the inverse of their variances, and their
    spread is its error."""
    world, basis, _, demos = EXAMPLES[name]
    matrix, (training, others) = basis.on(world), split(demos, world)
    found = SplitBlend().totals(demos, matrix, world)
    shaping = Shaping.learned(demos.subset(training), matrix, world, 0.1)
    Z = shaping.completed(demos, matrix, world)
    D = Z[others] - shaping.totals(demos.subset(others), matrix, world)
    for k in range(basis.num_costs):
        T = Z[others, k].copy()
        for mine in (slice(0, None, 2), slice(1, None, 2)):
            rest = np.ones(len(T), dtype=bool)
            rest[mine] = False
            cov = np.cov(Z[others, k][rest], D[rest, k])
            T[mine] -= np.clip(cov[0, 1] / cov[1, 1] if cov[1, 1] > 0 else 0, 0, 1) * D[mine, k]
        errors = T.var(ddof=1) / len(others), Z[others, k].var(ddof=1) / len(training)
        share = errors[0] / sum(errors)
        mean = (1 - share) * T.mean() + share * Z[training, k].mean()
        assert found[:, k].mean() == pytest.approx(mean, abs=1e-6)
        variance = (1 - share) ** 2 * errors[0]
        variance += share**2 * Z[training, k].var(ddof=1) / len(training)
        assert found[:, k].var() / len(demos) == pytest.approx(variance, rel=0.2)


def test_another_target_of_a_large_world_is_found(large, tmp_path):
    world, basis, _, demos = EXAMPLES["grid"]
    honest = jm.Apprenticeship(world, basis, demos).expectation
    forged = jm.ExpertExpectation(honest.values)
    for name, value in vars(honest).items():
        assign(forged, **{name: value})
    assign(forged, values=honest.values + 1e-6)
    problem = jm.Apprenticeship(world, basis, forged)
    jm.certify(problem, jm.Policy.uniform(world)).save(tmp_path / "run")
    outcome = jm.audit(tmp_path / "run")
    assert not outcome.passed
    assert any("the target of" in finding for finding in outcome.findings)


def test_few_demonstrations_of_a_large_world(large, tmp_path):
    """Too few to be split."""
    world, basis, _, demos = EXAMPLES["garnet"]
    for number in (1, 2, 3, 4):
        few = demos.subset(np.arange(number))
        problem = jm.Apprenticeship(world, basis, few)
        jm.certify(problem, jm.Policy.uniform(world)).save(tmp_path / f"run{number}")
        jm.audit(tmp_path / f"run{number}").require()


def test_the_potential_of_a_target_is_learned_once(large, monkeypatch):
    world, basis, _, demos = EXAMPLES["grid"]
    own, made = demos.subset(np.arange(len(demos))), []
    learned = policy_values
    monkeypatch.setattr(
        expectation, "policy_values", lambda *given: made.append(1) or learned(*given)
    )
    problem = jm.Apprenticeship(world, basis, own)
    jm.certify(problem, jm.Policy.uniform(world))
    assert len(made) == 1
    jm.learn(world, basis, demos.subset(np.arange(len(demos))))
    assert len(made) == 2


def test_a_target_that_is_cut_short_in_the_middle_of_a_table(large):
    """Some passes are made, then the time is over: the plain mean takes its place."""
    world, basis, _, demos = EXAMPLES["grid"]
    problem = jm.Apprenticeship(world, basis, demos.subset(np.arange(30)))
    clock, passes = Clock(), []

    def seen(event):
        passes.append(event)
        clock.now += 1.0

    with within(Deadline(20.0, seen, clock=clock)):
        found = problem.in_time()
    assert found.expectation.method == MonteCarlo()
    assert found is not problem
    in_table = [one for one in passes if one.iteration > 0]
    assert in_table
    assert in_table[-1].left is not None
    assert len(passes) <= 7  # three tenths of the limit


def test_a_numbering_in_which_steps_are_short_needs_no_other():
    for size, narrow in ((12, True), (30, True)):
        assert is_narrow(jm.gallery.grid(size, macro_cells=2).world) is narrow
    assert not is_narrow(jm.gallery.garnet(2000, 2, 3).world)
    line = np.roll(np.eye(50), 1, axis=1)  # round a circle: from the last state to the first
    assert is_narrow(World(line, np.full(50, 0.02), 0.9))


def test_occupancies_are_computed_once(monkeypatch):
    from journeyman.policy import policy_evaluation

    world, _, expert, _ = EXAMPLES["garnet"]
    policy = jm.Policy(expert.on(world), world.pairs)
    first = jm.policy.occupancy(world, policy)
    monkeypatch.setattr(policy_evaluation, "_visits", None)
    assert jm.policy.occupancy(world, policy).measure is first.measure
    twin = jm.World(world.transition, world.initial, 0.5)
    monkeypatch.undo()
    assert jm.policy.occupancy(twin, policy).measure.sum() == pytest.approx(2.0)


def test_the_words_of_a_left_out_estimate_are_those_of_estimates():
    world, basis, _, demos = EXAMPLES["garnet"]
    names = {one.estimate for one in jm.learn(world, basis, demos).certificate.combinations}
    assert {BETTING, SHAPED} <= names
    assert all(re.fullmatch(r"[a-z, ]+", name) for name in (BETTING, SHAPED))
