"""The costs that a method inferred are kept with the run, shown, and audited."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import journeyman as jm
from checker.forging import change_arrays, facts_of, failed, rehash
from journeyman.cli.main import app
from journeyman.report.page import page
from journeyman.report.saved_run import read_run

FILE = "recovered.npz"
INFERRING = [
    jm.solvers.MaximumEntropy(), jm.solvers.MaximumMarginPlanning(max_iterations=20),
    jm.solvers.InverseProgram(), jm.solvers.MaximumLikelihood(),
    jm.solvers.ConsistentCosts(max_iterations=20),
    jm.solvers.PolicyMatching(max_iterations=20), jm.solvers.Projection(max_iterations=20),
]  # fmt: skip


def learned(solver, *, rewards=False):
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    if rewards:
        basis = jm.CostBasis.from_rewards(basis.matrix, basis.names)
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=3)
    return jm.learn(world, basis, demos, solver=solver)


@pytest.fixture(scope="module")
def apprentice():
    return learned(jm.solvers.MaximumEntropy())


@pytest.fixture(scope="module")
def saved(apprentice, tmp_path_factory):
    place = tmp_path_factory.mktemp("honest") / "run"
    apprentice.save(place)
    return place


@pytest.fixture
def run(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


@pytest.mark.parametrize("solver", INFERRING, ids=lambda one: type(one).__name__)
def test_they_come_back_to_the_last_bit(solver, tmp_path):
    apprentice = learned(solver)
    apprentice.save(tmp_path)
    with np.load(tmp_path / FILE) as stored:
        assert np.array_equal(stored["weights"], apprentice.answer.cost_weights)
    assert FILE in facts_of(tmp_path)["inputs"]
    assert jm.audit(tmp_path).passed


def test_methods_without_a_cost_of_their_own_save_none(tmp_path):
    learned(jm.LinearProgram()).save(tmp_path)
    assert not (tmp_path / FILE).exists()
    text = page(read_run(tmp_path))
    assert 'id="recovered"' not in text


@pytest.mark.parametrize("rewards", [False, True])
def test_the_report_has_names_and_weights_live_and_saved(tmp_path, rewards):
    apprentice = learned(jm.solvers.MaximumEntropy(), rewards=rewards)
    apprentice.report(tmp_path / "page.html")
    apprentice.save(tmp_path / "run")
    live, read = (tmp_path / "page.html").read_text(), page(read_run(tmp_path / "run"))
    for text in (live, read):
        start = text.index('<section id="recovered"')
        section = text[start : text.index("</section>", start)]
        assert ("is sought" if rewards else "is avoided") in section
        for name, weight in zip(
            apprentice.problem.basis.names, apprentice.answer.cost_weights, strict=True
        ):
            assert f"<bdi>{name}</bdi>" in section
            assert f'value="{float(weight)!r}"' in section


@pytest.mark.parametrize(
    ("forge", "finding"),
    [
        (lambda arrays: arrays.update(weights=arrays["weights"][:-1]), "weights has shape"),
        (lambda arrays: arrays.update(weights=arrays["weights"] * np.nan), "weights is not finite"),
        (lambda arrays: arrays.update(weights=arrays["weights"][:, None]), "weights has shape"),
        (lambda arrays: arrays.pop("weights"), "it lacks 'weights'"),
    ],
    ids=["too few", "not finite", "a table", "none"],
)
def test_weights_that_are_none_of_the_problem_are_found(run, forge, finding):
    change_arrays(run / FILE, lambda header, arrays: forge(arrays))
    rehash(run)
    failed(run, f"{FILE}: {finding}")


def test_a_changed_or_missing_file_is_found(run):
    change_arrays(run / FILE, lambda header, arrays: arrays.update(weights=arrays["weights"] + 1))
    failed(run, f"{FILE} is not the file that was certified")
    (run / FILE).unlink()
    failed(run, f"{FILE} is missing")


def test_the_command_line_shows_and_stores_them(tmp_path):
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    world.save(tmp_path / "world.npz")
    jm.record(world, expert, trajectories=30, horizon=40, seed=3).save(tmp_path / "demos.csv")
    names = [f"part {i}" for i in range(basis.num_costs)]
    rows = np.asarray(basis.matrix.toarray() if hasattr(basis.matrix, "toarray") else basis.matrix)
    lines = [",".join(names), *(",".join(f"{x:g}" for x in row) for row in rows)]
    (tmp_path / "costs.csv").write_text("\n".join(lines) + "\n")
    given = ["--world", "world.npz", "--costs", "costs.csv", "--demonstrations", "demos.csv"]
    given = [str(tmp_path / one) if "." in one else one for one in given]
    call = ["learn", str(tmp_path / "run"), *given, "--solver", "maximum-entropy"]
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0, shown.stderr
    stored = json.loads((tmp_path / "run" / "result.json").read_text())["cost_weights"]
    assert [one["name"] for one in stored] == names
    with np.load(tmp_path / "run" / "certified" / FILE) as kept:
        assert [one["weight"] for one in stored] == kept["weights"].tolist()
    for one in stored:
        assert f"{one['name']}  {one['weight']: .6g}" in shown.stdout
    again = CliRunner().invoke(app, ["learn", str(tmp_path / "run"), "--resume", "--json"])
    assert json.loads(again.stdout)["cost_weights"] == stored
    plain = [*call[:1], str(tmp_path / "plain"), *given, "--json"]
    assert json.loads(CliRunner().invoke(app, plain).stdout)["cost_weights"] is None


def commanded(tmp_path, *more):
    world, basis, expert = jm.gallery.engine_replacement(20, discount=0.95, weights=(40.0, 3.0))
    world.save(tmp_path / "world.npz")
    jm.record(world, expert, trajectories=50, horizon=60, seed=3).save(tmp_path / "demos.csv")
    table = np.column_stack([basis.matrix, np.ones(len(basis.matrix))])
    lines = [",".join([*basis.names, "rent"]), *(",".join(map(str, row)) for row in table)]
    (tmp_path / "costs.csv").write_text("\n".join(lines) + "\n")
    given = ["--world", str(tmp_path / "world.npz"), "--costs", str(tmp_path / "costs.csv")]
    demos = ["--demonstrations", str(tmp_path / "demos.csv")]
    run = str(tmp_path / "run")
    shown = CliRunner().invoke(app, ["learn", run, *given, *demos, *more])
    assert shown.exit_code == 0, shown.stderr
    return run, given, shown.stdout


def test_estimates_have_their_errors_on_screen_in_files_and_in_the_report(tmp_path):
    _, _, shown = commanded(tmp_path, "--solver", "maximum-likelihood")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    wear, replacement, rent = result["cost_weights"]
    assert 0 < wear["standard_error"] < 40
    assert wear["t_value"] == pytest.approx(wear["weight"] / wear["standard_error"])
    assert rent["standard_error"] is rent["t_value"] is None
    assert f"+- {replacement['standard_error']:.6g}  t {replacement['t_value']:.2f}" in shown
    assert "(not identified)" in shown
    assert f"log-likelihood {result['likelihood']['log_likelihood']:.6f} of 3000" in shown
    assert "not identified, no recorded decision depends on it: rent" in shown
    kept = tmp_path / "run" / "certified"
    with np.load(kept / FILE) as arrays:
        assert arrays["standard_errors"][:2].tolist() == [
            wear["standard_error"], replacement["standard_error"],
        ]  # fmt: skip
        assert arrays["standard_errors"][2] == np.inf
    assert jm.audit(kept).passed
    text = page(read_run(kept))
    start = text.index('<section id="recovered"')
    section = text[start : text.index("</section>", start)]
    assert "standard error" in section
    assert "not identified" in section
    assert "two standard errors to either side" in section
    change_arrays(kept / FILE, lambda header, arrays: arrays.update(
        standard_errors=-arrays["standard_errors"]
    ))  # fmt: skip
    rehash(kept)
    failed(kept, f"{FILE}: standard_errors are not one number")


def test_an_inferred_cost_is_planned_with_elsewhere(tmp_path):
    run, given, _ = commanded(tmp_path, "--solver", "maximum-likelihood")
    other, basis, _ = jm.gallery.engine_replacement(20, discount=0.9, increments=(0.1, 0.5, 0.4))
    other.save(tmp_path / "other.npz")
    elsewhere = ["--world", str(tmp_path / "other.npz"), *given[2:]]
    policy = tmp_path / "policy.npz"
    call = ["transfer", run, *elsewhere, "--output", str(policy), "--json"]
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0, shown.stderr
    result = json.loads(shown.stdout)
    weights = [one["weight"] for one in result["costs"]]
    cost = np.column_stack([basis.matrix, np.ones(len(basis.matrix))]) @ weights
    best = jm.expected_cost(other, jm.plan(other, cost).policy, cost)
    assert result["expected_cost"] == pytest.approx(best)
    assert jm.expected_cost(other, jm.Policy.load(policy), cost) == pytest.approx(best)
    soft = CliRunner().invoke(app, [*call[:-3], "--temperature", "1"])
    assert "Expected total of the inferred cost" in soft.stdout
    (tmp_path / "costs.csv").write_text("a,b,c\n" + "1,2,3\n" * 40)
    wrong = CliRunner().invoke(app, call)
    assert wrong.exit_code == 3
    assert "by the same names" in wrong.stderr


def test_a_run_without_an_inferred_cost_has_nothing_to_transfer(tmp_path):
    run, given, _ = commanded(tmp_path)
    shown = CliRunner().invoke(app, ["transfer", run, *given])
    assert shown.exit_code == 3
    assert "holds no inferred cost" in " ".join(shown.stderr.split())


NONLINEAR = "nonlinear.npz"
FUNCTIONS = [
    jm.solvers.GaussianProcessCosts(max_iterations=15),
    jm.solvers.FeatureConstruction(max_iterations=1),
]


def objects():
    example = jm.gallery.objectworld(6, seed=3)
    demos = jm.record(example.world, example.expert, trajectories=12, horizon=8, seed=0)
    return example, demos


@pytest.mark.parametrize("solver", FUNCTIONS, ids=lambda one: type(one).__name__)
def test_functions_of_features_are_saved_shown_and_audited(solver, tmp_path):
    example, demos = objects()
    apprentice = jm.learn(example.world, example.basis, demos, solver=solver)
    learned = apprentice.answer.nonlinear
    apprentice.save(tmp_path / "run")
    assert not (tmp_path / "run" / FILE).exists()
    assert NONLINEAR in facts_of(tmp_path / "run")["inputs"]
    assert jm.audit(tmp_path / "run").passed
    again = read_run(tmp_path / "run").nonlinear
    assert np.array_equal(again.per_pair, learned.per_pair)
    assert np.array_equal(again.on(example.world, example.basis), learned.per_pair)
    apprentice.report(tmp_path / "page.html")
    for text in ((tmp_path / "page.html").read_text(), page(read_run(tmp_path / "run"))):
        assert 'id="nonlinear"' in text
        assert 'id="recovered"' not in text
        assert "combination of the features: " in text


@pytest.mark.parametrize(
    ("forge", "finding"),
    [
        (lambda arrays: arrays.update(per_pair=arrays["per_pair"][:-1]), "per_pair has shape"),
        (lambda arrays: arrays.update(value=arrays["value"] * np.nan), "value is not finite"),
        (lambda arrays: arrays.pop("per_pair"), "it lacks 'per_pair'"),
    ],
    ids=["too few", "not finite", "none"],
)
def test_functions_that_are_none_are_found(tmp_path, forge, finding):
    example, demos = objects()
    place = tmp_path / "run"
    jm.learn(example.world, example.basis, demos, solver=FUNCTIONS[1]).save(place)
    change_arrays(place / NONLINEAR, lambda header, arrays: forge(arrays))
    rehash(place)
    failed(place, f"{NONLINEAR}: {finding}")


def test_a_function_of_features_is_planned_with_elsewhere(tmp_path):
    example, demos = objects()
    there = jm.gallery.objectworld(6, seed=4)
    given = []
    for name, one in (("here", example), ("there", there)):
        one.world.save(tmp_path / f"{name}.npz")
        rows = [one.basis.names, *np.asarray(one.basis.matrix).tolist()]
        text = "\n".join(",".join(map(str, row)) for row in rows) + "\n"
        (tmp_path / f"{name}.csv").write_text(text)
        paths = [str(tmp_path / f"{name}.{end}") for end in ("npz", "csv")]
        given.append(["--world", paths[0], "--costs", paths[1]])
    demos.save(tmp_path / "demos.csv")
    run, policy = str(tmp_path / "run"), tmp_path / "policy.npz"
    call = ["learn", run, *given[0], "--demonstrations", str(tmp_path / "demos.csv")]
    shown = CliRunner().invoke(app, [*call, "--solver", "feature-construction"])
    assert shown.exit_code == 0, shown.stderr
    assert "Inferred cost: " in shown.stdout
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["cost_weights"] is None
    assert 0 <= result["nonlinear_cost"]["outside"] <= 1
    call = ["transfer", run, *given[1], "--output", str(policy)]
    shown = CliRunner().invoke(app, [*call, "--json"])
    assert shown.exit_code == 0, shown.stderr
    cost = read_run(tmp_path / "run" / "certified").nonlinear.on(there.world, there.basis)
    best = jm.expected_cost(there.world, jm.plan(there.world, cost).policy, cost)
    assert json.loads(shown.stdout)["expected_cost"] == pytest.approx(best)
    assert jm.expected_cost(there.world, jm.Policy.load(policy), cost) == pytest.approx(best)
    shown = CliRunner().invoke(app, call)
    assert f"Expected total of the inferred cost: {best:.6g}" in shown.stdout
