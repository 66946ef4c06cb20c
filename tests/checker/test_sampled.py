"""Certificates from rollouts and sampled rows: honest ones pass, forged draws are found."""

import copy
import math
import shutil

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from checker.forging import (
    at,
    change_arrays,
    change_facts,
    drop,
    edit,
    facts_of,
    failed,
    numbers_in,
    rehash,
    summed_up,
    write_facts,
)
from frequencies import frequencies
from journeyman.certificate.sampled_rows import row_sums
from journeyman.certificate.saving import save_run
from journeyman.checker import draws
from journeyman.checker.explicit import evaluations, read_run
from journeyman.checker.findings import Findings
from journeyman.checker.inputs import read_evidence, read_policy, read_problem, read_world
from journeyman.checker.policy import Evaluated, StoredFeatures
from journeyman.errors import AuditFailed, InvalidProblem
from journeyman.problem.reduced import Reduced
from journeyman.testing.random_worlds import Shape, random_policy, random_world
from journeyman.testing.strategies import cost_classes, policies, seeds, worlds

QUICK = [Phase.generate]
CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]
every_class = pytest.mark.parametrize("kind", CLASSES)


def small_world(shape=Shape.ABSORBING):
    return random_world(2, shape, num_states=4, num_actions=2, discount=0.8)


def problem_of(world, kind=jm.InfinityBall, expert=None):
    basis = jm.CostBasis(np.random.default_rng(1).uniform(-1, 1, (world.num_pairs, 2)))
    if expert is None:
        expert = jm.record(world, random_policy(world, 3), trajectories=40, horizon=20, seed=0)
    return jm.Apprenticeship(world, basis, expert, kind())


def audited(certificate, place, evaluation=None):
    rows = evaluation if isinstance(evaluation, jm.SampledRows) else None
    save_run(certificate, place, seeds={"solver": 0}, evaluation=rows)
    return jm.audit(place).require()


def features_of(world, form):
    """Signed or not, sparse or not, around a base measure or not; and coefficients."""
    rng = np.random.default_rng(7)
    matrix = rng.uniform(0, 1, (world.num_pairs, 3))
    if form == "signed":
        matrix = rng.normal(size=matrix.shape)
    if form == "sparse":
        matrix = sparse.csr_array(matrix * (matrix > 0.4))
    base = {
        "occupancy": jm.occupancy(world, random_policy(world, 1)).measure,
        "affine": rng.normal(size=world.num_pairs),
    }.get(form)
    return jm.features.Features(matrix, base), rng.normal(size=3)


FORMS = ["plain", "signed", "sparse", "occupancy", "affine"]


def rows_of(world, form, rows=300):
    features, theta = features_of(world, form)
    return jm.SampledRows(features, theta, rows=rows)


def certified_rows(problem, evaluation, **more):
    policy = jm.policy.extract(problem.world, evaluation.features.measure(evaluation.coefficients))
    return jm.certify(problem, policy, evaluation=evaluation, **more)


# Honest runs


@every_class
@pytest.mark.parametrize("shape", [Shape.ABSORBING, Shape.RAGGED])
@pytest.mark.parametrize("horizon", [1, 30, 150])
def test_rollouts_pass(kind, shape, horizon, tmp_path):
    """Cut off at once, cut off now and then, and longer than what is drawn at a time."""
    world = small_world(shape)
    evaluation = jm.Rollouts(trajectories=60, horizon=horizon)
    certificate = jm.certify(
        problem_of(world, kind), random_policy(world, 4), evaluation=evaluation
    )
    assert audited(certificate, tmp_path).checked > 60


def test_rollouts_of_known_costs_and_of_declared_experts_pass(tmp_path):
    world, evaluation = small_world(), jm.Rollouts(trajectories=2000, horizon=20)
    policy = random_policy(world, 4)
    forward = jm.Forward(world, np.linspace(0, 1, world.num_pairs))
    assert audited(jm.certify(forward, policy, evaluation=evaluation), tmp_path).passed
    declared = problem_of(world, expert=jm.ExpertExpectation([0.5, 0.1]))
    certificate = jm.certify(declared, policy, evaluation=evaluation)
    assert "spread" in certificate.best.terms[1].source
    assert audited(certificate, tmp_path).passed


@every_class
@pytest.mark.parametrize("form", FORMS)
def test_sampled_rows_pass(kind, form, tmp_path):
    world = small_world(Shape.RAGGED)
    evaluation = rows_of(world, form)
    certificate = certified_rows(problem_of(world, kind), evaluation)
    assert {way.kind for way in certificate.combinations} == {"A (sampled)", "B (sampled)"}
    assert audited(certificate, tmp_path, evaluation).checked > 60
    assert (tmp_path / "features.npz").exists()


def test_an_exact_measure_leaves_nothing_to_sample(tmp_path):
    """Coefficients zero around an occupancy measure: what is summed is rounding."""
    world = small_world()
    features, _ = features_of(world, "occupancy")
    evaluation = jm.SampledRows(features, np.zeros(3), rows=50)
    certificate = certified_rows(problem_of(world), evaluation)
    assert audited(certificate, tmp_path, evaluation).passed


def test_sampled_rows_of_an_estimated_world_pass(tmp_path):
    true = small_world()
    laws = frequencies(true.transition, 10**6)
    world = jm.World(laws, true.initial, 0.8, transition_counts=10**6)
    evaluation = rows_of(world, "affine")
    problem = problem_of(world, expert=jm.ExpertExpectation([0.5, 0.1]))
    certificate = certified_rows(problem, evaluation, failure_probability=0.2)
    assert len(certificate.combinations) == 3
    assert audited(certificate, tmp_path, evaluation).passed


@settings(max_examples=30, phases=QUICK)
@given(worlds(), st.data())
def test_random_runs_pass(tmp_path_factory, world, data):
    rng, num_costs = np.random.default_rng(data.draw(seeds)), data.draw(st.integers(1, 3))
    basis = jm.CostBasis(rng.normal(size=(world.num_pairs, num_costs)))
    kind, count = data.draw(cost_classes(num_costs)), data.draw(st.sampled_from([2, 30, 400]))
    expert = jm.ExpertExpectation(rng.normal(size=num_costs))
    problem = jm.Apprenticeship(world, basis, expert, kind)
    if data.draw(st.booleans()):
        evaluation = jm.Rollouts(count, data.draw(st.integers(1, 12)))
        certificate = jm.certify(problem, data.draw(policies(world)), evaluation=evaluation)
    else:
        matrix = rng.normal(size=(world.num_pairs, 2)) * 10.0 ** rng.integers(-3, 3)
        base = rng.normal(size=world.num_pairs) if data.draw(st.booleans()) else None
        features, theta = jm.features.Features(abs(matrix), base), rng.normal(size=2)
        evaluation = jm.SampledRows(features, theta, rows=count)
        certificate = certified_rows(problem, evaluation)
    assert audited(certificate, tmp_path_factory.mktemp("run"), evaluation).passed


# The auditor's own draws


def apprentice_in(place):
    names = ("world", "problem", "policy", "evidence")
    files = {name: (place / f"{name}.npz").read_bytes() for name in names}
    world = read_world(files["world"])
    problem = read_problem(files["problem"], world)
    visits = read_evidence(files["evidence"], world, problem).visits
    return Evaluated(world, problem, read_policy(files["policy"], world), visits)


def test_the_walks_of_a_seed_are_those_of_the_certificate(tmp_path):
    world = small_world()
    problem, policy = problem_of(world), random_policy(world, 4)
    evaluation = jm.Rollouts(trajectories=50, horizon=140)
    certificate = jm.certify(problem, policy, evaluation=evaluation)
    audited(certificate, tmp_path)
    own = apprentice_in(tmp_path)
    statistics = certificate.combinations[0].statistics[0]
    assert statistics.seed == own.seed
    totals, missing = own.walks(50, 140, draws.generator(statistics.seed, 0x726F6C6C))
    assert totals.mean(axis=0) == pytest.approx(statistics.means, rel=1e-12)
    assert missing.mean() == pytest.approx(statistics.unrecorded, rel=1e-12)


def test_walks_have_the_right_expectation(tmp_path):
    """Against the exact evaluation, without cut-off and without rest."""
    world = small_world(Shape.RAGGED)
    problem, policy = problem_of(world), random_policy(world, 4)
    audited(jm.certify(problem, policy), tmp_path)
    own = apprentice_in(tmp_path)
    totals, missing = own.walks(20_000, 90, np.random.default_rng(0))
    exact = jm.occupancy(world, policy).expectations(problem.basis)
    errors = totals.std(axis=0) / math.sqrt(20_000)
    assert (np.abs(totals.mean(axis=0) - exact) < 5 * errors).all()
    assert missing == pytest.approx(0.8**90 * 5)


@pytest.mark.parametrize("form", FORMS)
def test_sums_laws_and_widths_are_those_of_the_certificate(form, tmp_path):
    world = small_world(Shape.RAGGED)
    problem = problem_of(world)
    features, theta = features_of(world, form)
    world.save(tmp_path / "world.npz")
    checked = StoredFeatures(features.matrix, theta, features.base)
    own = checked.sums(read_world((tmp_path / "world.npz").read_bytes()))
    for mine, other in zip(own, row_sums(Reduced(problem, features), theta), strict=True):
        every = np.arange(mine.law.size)
        assert mine.width == pytest.approx(other.width, rel=1e-12)
        assert mine.law == pytest.approx(other.law, rel=1e-9, abs=1e-15)
        assert mine.values == pytest.approx(other.values(every), rel=1e-9, abs=1e-12)
        assert (mine.values <= mine.law * mine.width * (1 + 1e-12)).all()


def test_comparisons_with_fresh_draws_hold_and_have_power():
    """Honest samples never differ too much; samples of another law do."""
    rng = np.random.default_rng(0)
    width = np.array([1.0])
    for _ in range(200):
        found = Findings()
        stored, fresh = (draws.Moments.of(rng.random((500, 1)) ** 3) for _ in range(2))
        draws.check_alike(found, ["x"], stored, fresh, width, width)
        draws.check_expected(found, ["x"], stored, np.array([0.25]), width, np.zeros(1))
        assert not found.findings
    found = Findings()
    other = draws.Moments.of(rng.random((500, 1)))
    draws.check_alike(found, ["x"], stored, other, width, width)
    draws.check_expected(found, ["x"], other, np.array([0.25]), width, np.zeros(1))
    assert len(found.findings) == 2


def test_seeds_of_the_audit_share_nothing_with_those_of_certificates():
    streams = [
        draws.generator(seed, stream, fresh=fresh)
        for seed in (0, 1, draws.OTHER_SEED)
        for stream in (1, 2)
        for fresh in (False, True)
    ]
    assert len({generator.random() for generator in streams}) == 12


# Changed runs


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    place = tmp_path_factory.mktemp("rolled") / "run"
    world = small_world()
    problem = problem_of(world, jm.EuclideanBall)
    evaluation = jm.Rollouts(trajectories=400, horizon=6)
    certificate = jm.certify(problem, random_policy(world, 4), evaluation=evaluation)
    assert 0 < certificate.combinations[0].statistics[0].unrecorded < 0.8**6 * 5
    audited(certificate, place)
    return place


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    place = tmp_path_factory.mktemp("sampled") / "run"
    world = small_world(Shape.RAGGED)
    evaluation = rows_of(world, "affine", rows=2000)
    audited(certified_rows(problem_of(world), evaluation), place, evaluation)
    return place


@pytest.fixture
def run(request, tmp_path):
    return shutil.copytree(request.getfixturevalue(request.param), tmp_path / "run")


on_rollouts = pytest.mark.parametrize("run", ["rolled"], indirect=True)
on_rows = pytest.mark.parametrize("run", ["sampled"], indirect=True)
on_both = pytest.mark.parametrize("run", ["rolled", "sampled"], indirect=True)


def statistics_in(facts, name="rollouts"):
    """Of every combination."""
    return [
        one for way in facts["combinations"] for one in way["statistics"] if one["name"] == name
    ]


def everywhere(name, key, change):
    def changed(facts):
        for one in statistics_in(facts, name):
            one[key] = change(one[key])

    return changed


def first_scaled(factor):
    return lambda values: [factor * values[0], *values[1:]]


OF_ROLLOUTS = {
    "mean": everywhere("rollouts", "means", lambda means: [means[0] + 1e-4, *means[1:]]),
    "variance": everywhere("rollouts", "variances", first_scaled(0.999)),
    "no variance": everywhere("rollouts", "variances", lambda values: [0.0] * len(values)),
    "huge variance": everywhere("rollouts", "variances", first_scaled(1e6)),
    "negative variance": everywhere("rollouts", "variances", first_scaled(-1)),
    "count": everywhere("rollouts", "count", lambda count: 4 * count),
    "count of one": everywhere("rollouts", "count", lambda _: 1),
    "seed": everywhere("rollouts", "seed", lambda seed: seed + 1),
    "range": everywhere("rollouts", "ranges", first_scaled(0.999)),
    "horizon": everywhere("rollouts", "horizon", lambda horizon: horizon + 1),
    "no horizon": everywhere("rollouts", "horizon", lambda _: None),
    "unrecorded": everywhere("rollouts", "unrecorded", lambda time: 0.999 * time),
    "nothing unrecorded": everywhere("rollouts", "unrecorded", lambda _: 0.0),
    "probability": everywhere("rollouts", "failure_probability", lambda delta: 1.9 * delta),
    "name": everywhere("rollouts", "name", lambda _: "V1"),
    "one part more": lambda facts: [one.update(note=1) for one in statistics_in(facts)],
    "one part less": lambda facts: [one.pop("seed") for one in statistics_in(facts)],
    "in one combination": lambda facts: statistics_in(facts)[0]["means"].reverse(),
    "no statistics": lambda facts: [way.update(statistics=[]) for way in facts["combinations"]],
    "two samples": lambda facts: [
        way.update(statistics=2 * way["statistics"]) for way in facts["combinations"]
    ],
    "called exact": lambda facts: [way.update(kind="D") for way in facts["combinations"]],
    "premise removed": drop("premises", 4),
    "premise of another seed": edit(
        ("premises", 4, "detail"), lambda text: text.replace("from seed ", "from seed 1")
    ),
    "premise tested": edit(("premises", 4, "status"), "tested, not refuted"),
}  # fmt: skip


@on_rollouts
@pytest.mark.parametrize("change", OF_ROLLOUTS.values(), ids=OF_ROLLOUTS)
def test_a_careful_change_of_rollouts(run, change):
    change_facts(run, change)
    assert "digest" not in str(failed(run))


def consistent(place, facts):
    """Everything that follows from the statistics, put right by the auditor's own findings."""
    files = {path.name: path.read_bytes() for path in place.glob("*.npz")}
    run = read_run(files, facts)
    ways = {one.kind: one for one in evaluations(run)}
    estimates = {one.name: one for one in run.estimates}
    for way in facts["combinations"]:
        own, estimate = ways[way["kind"]], estimates[way["estimate"]]
        errors = [one.value for one in own.terms]
        gap = run.problem.costs.gap(own.expectations - estimate.values)
        for term, value in zip(way["terms"], [gap, *errors], strict=False):
            term["value"] = value
    summed_up(facts)


def smaller_means(facts):
    for one in statistics_in(facts):
        one["means"] = [0.5 * value for value in one["means"]]


def far_away_means(facts):
    for one in statistics_in(facts):
        one["means"][0] += 0.35 * one["ranges"][0]


def smaller_variances(facts):
    for one in statistics_in(facts):
        one["variances"] = [0.3 * value for value in one["variances"]]


def less_negativity(facts):
    for one in statistics_in(facts, "V1"):
        one["means"][0] *= 0.2


def less_violation(facts):
    for one in statistics_in(facts, "V2"):
        one["means"][0] *= 0.7


def less_spread(facts):
    for one in statistics_in(facts, "r+"):
        one["variances"][0] *= 0.01


FORGED = {
    "rolled": [smaller_means, smaller_variances],
    "sampled": [less_negativity, less_violation, less_spread],
}


@pytest.mark.parametrize(
    ("run", "change"),
    [(name, change) for name, some in FORGED.items() for change in some],
    indirect=["run"],
)
def test_statistics_that_were_forged_with_all_that_follows(run, change):
    """Only draws can tell: those of the seed always, fresh ones if enough was changed."""
    facts = facts_of(run)
    change(facts)
    consistent(run, facts)
    write_facts(run, facts)
    outcome = failed(run, "that its seed gives")
    assert not any("in the combination" in finding for finding in outcome.findings)


@pytest.mark.parametrize(
    ("run", "change"), [("rolled", far_away_means), ("sampled", less_violation)], indirect=["run"]
)
def test_another_version_of_numpy_weakens_no_audit_in_silence(run, change):
    """The same statistics come from the seed, so all is well; small forgeries leave the audit
    incomplete, large ones are found by fresh draws."""
    facts = facts_of(run)
    facts["software"]["numpy"] = "1.26.4"
    write_facts(run, facts)
    assert jm.audit(run).require().passed
    slightly = copy.deepcopy(facts)
    for way in slightly["combinations"]:
        one = way["statistics"][-1]
        one["means"][0] -= 1e-6 * one["ranges"][0]
    consistent(run, slightly)
    write_facts(run, slightly)
    outcome = jm.audit(run)
    assert outcome.passed
    assert not outcome.complete
    assert "another version of numpy" in str(outcome)
    with pytest.raises(AuditFailed, match="not complete"):
        outcome.require()
    change(facts)
    consistent(run, facts)
    write_facts(run, facts)
    failed(run, "fresh draws give", "and should be near")


OF_ROWS = {
    "mean": everywhere("V2", "means", first_scaled(0.99)),
    "mean above its range": everywhere("V1", "means", first_scaled(1e6)),
    "variance": everywhere("r+", "variances", first_scaled(0.9)),
    "range": everywhere("V1", "ranges", first_scaled(0.999)),
    "no range": everywhere("V1", "ranges", first_scaled(0.0)),
    "count": everywhere("V1", "count", lambda count: 10 * count),
    "count of all": lambda facts: [
        one.update(count=4000) for name in ("V1", "V2", "r+") for one in statistics_in(facts, name)
    ],
    "seed": everywhere("V2", "seed", lambda seed: seed + 1),
    "probability": everywhere("V2", "failure_probability", lambda delta: 3 * delta),
    "horizon": everywhere("r+", "horizon", lambda _: 5),
    "unrecorded": everywhere("r+", "unrecorded", lambda _: 1.0),
    "name": everywhere("V1", "name", lambda _: "V2"),
    "order": lambda facts: [way["statistics"].reverse() for way in facts["combinations"]],
    "one sum less": lambda facts: [way["statistics"].pop() for way in facts["combinations"]],
    "premise about the support": drop("premises", 5),
    "support failed": edit(("premises", 5, "status"), "failed"),
}  # fmt: skip


@on_rows
@pytest.mark.parametrize("change", OF_ROWS.values(), ids=OF_ROWS)
def test_a_careful_change_of_the_statistics_of_rows(run, change):
    change_facts(run, change)
    assert "digest" not in str(failed(run))


def other_coefficients(header, arrays):
    arrays["coefficients"][0] *= 1.001


def scaled_coefficients(header, arrays):
    """Without the base measure the policy would stay the same."""
    arrays["coefficients"] *= 2.0
    arrays["base"] *= 2.0


def other_features(header, arrays):
    arrays["matrix"][0, 0] *= 1.001


def another_base(header, arrays):
    arrays["base"][0] += 1e-3


def no_base(header, arrays):
    del arrays["base"]


def fewer_coefficients(header, arrays):
    arrays["coefficients"] = arrays["coefficients"][:-1]


def fewer_rows(header, arrays):
    arrays["matrix"] = arrays["matrix"][:-1]


def not_finite(header, arrays):
    arrays["matrix"][0, 0] = np.nan


def another_kind(header, arrays):
    header["kind"] = "witness"


def another_version(header, arrays):
    header["version"] = 2


@on_rows
@pytest.mark.parametrize(
    "change",
    [
        other_coefficients, scaled_coefficients, other_features, another_base, no_base,
        fewer_coefficients, fewer_rows, not_finite, another_kind, another_version,
    ],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_a_careful_change_of_the_features(run, change):
    change_arrays(run / "features.npz", change)
    rehash(run)
    outcome = failed(run)
    assert "SHA-256" not in str(outcome)
    assert "digest" not in str(outcome)


@on_rows
def test_features_that_are_missing_or_belong_to_nothing(run, tmp_path):
    facts, other = facts_of(run), tmp_path / "other"
    problem = problem_of(small_world(Shape.RAGGED))
    evaluation = jm.Rollouts(trajectories=20, horizon=6)
    audited(jm.certify(problem, random_policy(problem.world, 4), evaluation=evaluation), other)
    shutil.copy(run / "features.npz", other)
    failed(other, "features.npz was not certified")
    theirs = facts_of(other)
    theirs["inputs"]["features.npz"] = facts["inputs"]["features.npz"]
    write_facts(other, theirs)
    failed(other, "do not come together")
    (run / "features.npz").unlink()
    failed(run, "features.npz is missing", "do not come together")


@on_both
def test_every_number_is_checked(run):
    """Each number of the certificate, moved by a thousandth of its size or of the trivial bound."""
    honest = facts_of(run)
    for count, path in enumerate(numbers_in(honest)):
        facts = copy.deepcopy(honest)
        place, key = at(facts, path)
        if isinstance(place[key], int):
            place[key] += 1
        else:
            share = "level" in path or "failure_probability" in path
            size = max(abs(place[key]), 1e-6 if share else honest["trivial_bound"])
            place[key] += (1e-3 if count % 2 else -1e-3) * size
        write_facts(run, facts)
        assert not jm.audit(run).passed, path


def test_a_run_of_sampled_rows_needs_their_features(tmp_path):
    world = small_world(Shape.RAGGED)
    evaluation = rows_of(world, "plain")
    certificate = certified_rows(problem_of(world), evaluation)
    others = (
        None, jm.SampledRows(evaluation.features, evaluation.coefficients, rows=301),
        jm.SampledRows(evaluation.features, -evaluation.coefficients, rows=300),
    )  # fmt: skip
    for wrong in others:
        with pytest.raises(InvalidProblem, match="rests on sampled rows"):
            save_run(certificate, tmp_path / "run", seeds={"solver": 0}, evaluation=wrong)
    exact = jm.certify(certificate.problem, certificate.policy)
    with pytest.raises(InvalidProblem, match="does not rest on sampled rows"):
        save_run(exact, tmp_path / "run", seeds={"solver": 0}, evaluation=evaluation)
    assert not (tmp_path / "run").exists()


@on_rollouts
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 7, 8, 10])
def test_runs_of_another_schema_are_refused(run, version):
    write_facts(run, facts_of(run) | {"version": version})
    failed(run, f"version {version} of the schema cannot be audited")
