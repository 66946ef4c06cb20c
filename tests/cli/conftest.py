"""A small world with its files, and the command line without a new process."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import journeyman as jm
from journeyman.cli.main import app


class Shown(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What was printed on standard error, wherever its lines were broken."""
        return " ".join(self.err.split())


@pytest.fixture(scope="session")
def call():
    """Run a command in this process."""

    def run(*arguments):
        result = CliRunner().invoke(app, [str(one) for one in arguments])
        return Shown(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """world.npz, costs.csv and demos.csv of a grid; transitions.csv, a log of random steps."""
    place = tmp_path_factory.mktemp("inputs")
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    world.save(place / "world.npz")
    jm.record(world, expert, trajectories=80, horizon=60, seed=0).save(place / "demos.csv")
    steps = jm.record(world, jm.Policy.uniform(world), trajectories=200, horizon=60, seed=1)
    write_costs(place / "costs.csv", basis)
    log = np.column_stack([steps.step_episodes, steps.step_times, steps.step_states, steps.actions,
                           steps.next_states])  # fmt: skip
    lines = ["episode,t,state,action,next_state", *(",".join(map(str, row)) for row in log)]
    (place / "transitions.csv").write_text("\n".join(lines) + "\n")
    return place


def write_costs(path, basis):
    rows = np.asarray(basis.matrix.toarray() if hasattr(basis.matrix, "toarray") else basis.matrix)
    names = ",".join(name.replace(",", "-") for name in basis.names)
    text = [names, *(",".join(f"{x:g}" for x in row) for row in rows)]
    Path(path).write_text("\n".join(text) + "\n")


@pytest.fixture(scope="session")
def inputs(files):
    """The three options every run needs."""
    return (
        "--world", files / "world.npz", "--costs", files / "costs.csv",
        "--demonstrations", files / "demos.csv",
    )  # fmt: skip


@pytest.fixture(scope="session")
def finished(call, inputs, tmp_path_factory):
    """A run that has ended; not to be changed."""
    run = tmp_path_factory.mktemp("finished") / "run"
    assert call("learn", run, *inputs).code == 0
    return run
