"""The compiled loops without the compiler: a debugging aid that takes the very same steps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

GOLDEN = Path(__file__).parents[2] / "data" / "golden.json"
PROGRAM = """
import json, sys
from dataclasses import replace
import numba, numpy as np
import journeyman as jm
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.reduced import plain_descent
from journeyman.solvers.reduced.kernels import advance
from journeyman.solvers.reduced.stochastic_subgradient import StochasticSubgradient, _Run
from journeyman.solvers.running import Watch

plain_descent.PLAIN_STEPS = 0
golden = json.loads(open(sys.argv[1]).read())
data, trace = golden["data"], golden["sgd_trace"]
world = jm.World(data["P"], data["nu0"], data["gamma"])
basis, target = jm.CostBasis(data["Psi"]), jm.ExpertExpectation(data["e_hat"])
problem = jm.Apprenticeship(world, basis, target)
solver = StochasticSubgradient(
    jm.features.Features(data["Phi"]), jm.solvers.SinglePenalty(trace["lam"]),
    jm.solvers.UniformRows(),
    jm.solvers.Constant(rate=trace["eta"]), batch=1, average_power=0.0, radius=trace["rho"],
    steps=5, seed=1,
)
reduced = jm.problem.Reduced(problem, solver.features)
run = _Run(solver, Surrogate(reduced, solver.penalty, solver.sampling), Watch("test", print))
source, iterate = run.state.source, run.state.iterate
positions = [np.array(trace[key]) for key in ("samples_s", "samples_y")]
advance(0, *positions, source.pairs, source.flow, run.descent.steps.exact, run.motion, iterate)
solved = [
    jm.solve(problem, replace(solver, batch=batch)).reduced.coefficients.tolist()
    for batch in (1, 2)
]
compiled = not numba.config.DISABLE_JIT
print(json.dumps([compiled, iterate.theta.tolist(), iterate.weighted_theta.tolist(), *solved]))
"""


def run_golden(**changes):
    environment = {**os.environ, **changes}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(GOLDEN)], env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_golden_steps_are_taken_without_the_compiler():
    """Both loops: that of any step rule, and the incremental one (batch 1)."""
    trace = json.loads(GOLDEN.read_text())["sgd_trace"]
    compiled, theta, total, *solved = run_golden(NUMBA_DISABLE_JIT="1")
    assert not compiled
    assert theta == pytest.approx(trace["theta_6"], abs=1e-12)
    assert np.array(total) / 5 == pytest.approx(trace["theta_hat"], abs=1e-12)
    with_compiler = run_golden(NUMBA_DISABLE_JIT="0")
    assert with_compiler[0]
    for one, other in zip(solved, with_compiler[3:], strict=True):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-14)
