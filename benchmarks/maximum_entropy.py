"""`jm.solvers.MaximumEntropy` beside MCE IRL of the package `imitation`, on grids.

`make bench-imitation` builds the peer's environment and runs this. Grids with 4 actions, 30 % slip,
MACRO x MACRO macro cells as state features, uniform start; the expert (seed 0) is 30 % random and
its expectations are exact, so that both are asked to match something that can be matched.

The two solve related problems, not the same one. *journeyman*: infinite horizon, discount
1 - 1/HORIZON, a stationary policy. *imitation*: times 0 to HORIZON without discount, for which it
is made, and a policy for every time. Its learning rate is its documented 0.01 and, in a row of its
own, larger. *imitation, discounted* gives it the discount as well, which its training does not
apply to the policy. *journeyman, finite* is journeyman on the peer's problem, undiscounted and with
a policy for every time (`World.with_horizon`).

Each run is a process of its own with one thread; time is CPU seconds of learning, loading not
counted, journeyman's with the evaluation of its policy and both bounds. *iterations* are steps of
L-BFGS and Newton's method, or of Adam. *really* is the largest difference between the returned
policy's expectations and the expert's by exact evaluation on the problem that was given, divided by
the mass (about HORIZON): the share of time that is wrong in some macro cell; *believed* is the same
number from what the method holds to be its visits. *laws within* is the largest difference of a
probability, at any time, between the peer's laws for the reward that it found and journeyman's for
that reward and horizon. (The peer matches visits at times 0..HORIZON with laws that do not look at
the last of them; *journeyman, finite* looks at all.) The peer is stopped at its limit of CPU
seconds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import journeyman as jm
from benchmarks.machine import describe_machine

INSTANCES = ("8:4:20", "16:4:50", "32:8:50")
GRAMMAR = "SIZE:MACRO:HORIZON"
PEER = Path(".venv/imitation/bin/python")
SECONDS = 30.0
"""CPU seconds for a run of the peer."""
RATES = (0.01, 0.1)
"""Of Adam; the first is documented."""
ENOUGH_SECONDS, MOST_REPEATS = 1.0, 5
OURS, FINITE = "journeyman", "journeyman, finite"
Numbers = dict[str, Any]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", default=INSTANCES, help=GRAMMAR)
    parser.add_argument("--peer", type=Path, default=PEER, help="Python with imitation")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU seconds for the peer")
    parser.add_argument("--rates", type=float, nargs="*", default=RATES)
    parser.add_argument("--measure", choices=(OURS, FINITE), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(_measure(options.measure, options.instances[0])))
        return
    print("Maximum entropy, one thread, seed 0")
    print(f"{'':28}{'CPU s':>9}{'times':>8}{'iterations':>12}{'really':>10}{'believed':>10}")
    for instance in options.instances:
        print(instance)
        own = _run(OURS, instance)
        _show(OURS, own, None)
        _show(FINITE, _run(FINITE, instance), own["seconds"])
        runs = [(f"imitation, rate {rate:g}", rate, False) for rate in options.rates]
        runs.append(("imitation, discounted", options.rates[-1], True))
        for name, rate, discounted in runs:
            _show(name, _peer(options, instance, rate, discounted), own["seconds"])


def _show(name: str, row: Numbers, own_seconds: float | None) -> None:
    times = "" if own_seconds is None else f"{row['seconds'] / own_seconds:.1f}"
    print(
        f"  {name:26}{row['seconds']:>9.2f}{times:>8}{row['iterations']:>12}"
        f"{row['really']:>10.1e}{row['believed']:>10.1e}  {row['outcome']}",
        flush=True,
    )


def _parts(instance: str) -> tuple[jm.gallery.Example, int]:
    size, macro, horizon = (int(part) for part in instance.split(":"))
    return jm.gallery.grid(size, macro_cells=macro, discount=1 - 1 / horizon), horizon


def _run(who: str, instance: str) -> Numbers:
    command = [sys.executable, "-m", "benchmarks.maximum_entropy", instance, "--measure", who]
    return dict(json.loads(_completed(command)))


def _measure(who: str, instance: str) -> Numbers:
    """journeyman's numbers, in this fresh process."""
    example, horizon = _parts(instance)
    make = _infinite if who == OURS else _finite
    solver = jm.solvers.MaximumEntropy(tolerance=1e-6)
    jm.solve(make(*_parts("4:2:4")), solver)  # loads and compiles
    problem = make(example, horizon)
    times: list[float] = []
    while len(times) < MOST_REPEATS and sum(times) < ENOUGH_SECONDS:
        started = time.process_time()
        answer = jm.solve(problem, solver)
        times.append(time.process_time() - started)
    difference = problem.difference(jm.occupancy(problem.world, answer.policy).measure)
    mass = problem.total_time
    believed = problem.difference(answer.occupancy.measure)
    return {
        "seconds": min(times),
        "iterations": answer.work.iterations if answer.work else 0,
        "really": float(np.abs(difference).max()) / mass,
        "believed": float(np.abs(believed).max()) / mass,
        "outcome": f"{answer.status.name}, {answer.log}",
    }


def _infinite(example: jm.gallery.Example, horizon: int) -> jm.Apprenticeship:
    world, basis, expert = example
    target = jm.occupancy(world, expert).expectations(basis)
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(target))


def _finite(example: jm.gallery.Example, horizon: int) -> jm.Apprenticeship:
    """The peer's problem: states are visited at times 0..horizon; what is done at the last of them
    has no consequence, and a constant share of the entropy."""
    world, basis, expert = example
    there = world.with_horizon(horizon + 1, discount=1.0)
    target = jm.occupancy(there, expert).expectations(basis)
    return jm.Apprenticeship(there, basis, jm.ExpertExpectation(target))


def _features(world: jm.World, basis: jm.CostBasis) -> Any:
    """(cells x costs): the costs of a grid depend on the state only."""
    matrix = basis.on(world)[world.pairs.offsets[:-1]]
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def _visits(world: jm.World, laws: Any) -> Any:
    """(times x states) probabilities of being somewhere, for a law per time, state and action."""
    law, visits = world.initial, [world.initial]
    for now in laws:
        law = world.transition.T @ (np.asarray(law)[:, np.newaxis] * now).ravel()
        visits.append(law)
    return np.array(visits)


def _peer(options: argparse.Namespace, instance: str, rate: float, discounted: bool) -> Numbers:
    """The peer's numbers; its policy is evaluated here."""
    example, horizon = _parts(instance)
    world, basis, expert = example
    states, actions = world.num_states, world.pairs.max_actions
    discount = world.discount if discounted else 1.0
    weights = discount ** np.arange(horizon + 1)
    table = expert.probabilities(np.arange(states))
    features = _features(world, basis)
    wanted = weights @ _visits(world, np.broadcast_to(table, (horizon, *table.shape)))
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "instance.npz", Path(folder) / "result.npz"
        np.savez(
            given, transition=world.transition.toarray().reshape(states, actions, states),
            features=features, initial=world.initial, occupancy=wanted, horizon=horizon,
            discount=discount,
        )  # fmt: skip
        command = [str(options.peer), "-m", "benchmarks.imitation_peer", str(given), str(found)]
        _completed([*command, "--seconds", str(options.seconds), "--rate", str(rate)])
        with np.load(found) as saved:
            result = dict(saved)
    reached = weights @ _visits(world, result["policy"])
    stopped = "stopped by itself" if result["stopped"] else "not at its end"
    return {
        "seconds": float(result["seconds"]),
        "iterations": int(result["iterations"]),
        "really": float(np.abs((reached - wanted) @ features).max() / weights.sum()),
        "believed": float(np.abs((result["believed"] - wanted) @ features).max() / weights.sum()),
        "outcome": f"{stopped}, imitation {result['version']}"
        + ("" if discounted else f", laws within {_apart(instance, result):.0e}"),
    }


def _apart(instance: str, result: Numbers) -> float:
    """The largest difference of a probability, at any time, between the peer's laws for the reward
    that it found and journeyman's for the same reward."""
    (world, _, _), horizon = _parts(instance)
    found = jm.policy.soft_plan(world.with_horizon(horizon, 1.0), -result["reward"])
    cells = np.arange(world.num_states)
    own = np.array([found.policy.at_step(t).probabilities(cells) for t in range(horizon)])
    return float(np.abs(own - result["laws"]).max())


def _completed(command: Sequence[str]) -> str:
    """What a process with one thread has printed."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | threads
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    if "--measure" not in sys.argv:
        print(describe_machine())
    main(sys.argv[1:])
