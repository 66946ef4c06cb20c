"""`jm.solvers.MaximumLikelihood` beside estimators written by hand.

*Network*: a town of LINKS links (`jm.gallery.road_network`, discount 1), DESTINATIONS destinations
and TRIPS trips, seed 0. The twin is a recursive logit as one would write it for a single paper: one
sparse LU of I - M for all destinations and an evaluation, gradient by the chain rule, BFGS of SciPy
from weights of 2. It has no second derivatives, standard errors, checks, or several starts;
journeyman runs with one start (its like) and with its default.

*Panel*: `jm.gallery.engine_replacement` with 90 bins, discount 0.9999 and 8,000 months. The twin is
a nested fixed point on dense matrices, Newton's method inside, BFGS outside on differences of the
likelihood.

Times are CPU seconds of one thread, without making worlds and trips; *times* is the ratio to
journeyman's.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.execution import one_blas_thread

Members = list[tuple[jm.World, jm.CostBasis, jm.Demonstrations]]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=7000)
    parser.add_argument("--destinations", type=int, default=20)
    parser.add_argument("--trips", type=int, default=600)
    options = parser.parse_args(arguments)
    print(describe_machine())
    with one_blas_thread():
        _compare_networks(options.links, options.destinations, options.trips)
        _compare_panels()


def _compare_networks(links: int, destinations: int, trips: int) -> None:
    members = network(links, destinations, trips)
    print(f"network of {links} links, {destinations} destinations, {trips} trips")
    own, seconds = _timed(lambda: jm.solvers.MaximumLikelihood(starts=1).estimate(members))
    _show("journeyman, one start", seconds, 1.0, own.log_likelihood, own.weights)
    found, more = _timed(lambda: jm.solvers.MaximumLikelihood().estimate(members))
    _show("journeyman", more, more / seconds, found.log_likelihood, found.weights)
    (weights, value), twin = _timed(lambda: recursive_logit(members))
    _show("by hand, one factor", twin, twin / seconds, value, weights)


def _compare_panels() -> None:
    world, basis, expert = jm.gallery.engine_replacement()
    demos = jm.record(world, expert, trajectories=100, horizon=80, seed=0)
    print(f"panel of {demos.num_steps} months, {world.num_states} bins, discount {world.discount}")
    member = [(world, basis, demos)]
    own, seconds = _timed(lambda: jm.solvers.MaximumLikelihood().estimate(member))
    _show("journeyman", seconds, 1.0, own.log_likelihood, own.weights)
    (weights, value), twin = _timed(lambda: nested_fixed_point(*member[0]))
    _show("by hand, dense", twin, twin / seconds, value, weights)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def _show(name: str, seconds: float, times: float, value: float, weights: Any) -> None:
    listed = " ".join(f"{one:.4f}" for one in weights)
    print(f"  {name:<24}{seconds:>8.2f} s{times:>7.1f} times  {value:.6f}  {listed}")


def network(links: int, destinations: int, trips: int) -> Members:
    """Members with as many trips each."""
    found = []
    for k in range(destinations):
        town = jm.gallery.road_network(links, destination=k, discount=1, steps_at_most=float(links))
        demos = jm.record(
            town.world, town.expert, trajectories=max(1, trips // destinations), horizon=4 * links,
            seed=k,
        )  # fmt: skip
        found.append((town.world, town.basis, demos))
    return found


def recursive_logit(members: Members) -> tuple[np.ndarray, float]:
    """Weights and log-likelihood, by one factor of I - M for all destinations."""
    links = members[0][0].num_states - 1
    parts = []
    for world, basis, demos in members:
        here, there = world.pairs.states, world.transition.indices
        drives = (here < links) & (there < links)
        stops = (here < links) & (there == links)
        counts = np.bincount(demos.pairs_in(world), minlength=world.num_pairs)
        parts.append((here, there, basis.on(world), drives, stops, counts))
    here, there, psi, drives, *_ = parts[0]
    source, target, psi = here[drives], there[drives], psi[drives]

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        odds = np.exp(-psi @ weights)
        moves = sparse.csr_array((odds, (source, target)), shape=(links, links))
        try:
            factor = sparse.linalg.splu(
                (sparse.eye_array(links) - moves).tocsc(), permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0, options={"SymmetricMode": True},
            )  # fmt: skip
        except RuntimeError:
            return np.inf, np.zeros_like(weights)
        value, slope = 0.0, np.zeros_like(weights)
        for here, _, _, drives, stops, counts in parts:
            right = np.bincount(here[stops], minlength=links).astype(float)
            z = factor.solve(right)
            if not (z > 0).all():
                return np.inf, np.zeros_like(weights)
            changes = np.column_stack(
                [
                    factor.solve(np.bincount(source, -odds * one * z[target], minlength=links))
                    for one in psi.T
                ]
            )
            log, change = np.log(z), changes / z[:, None]
            taken, ended = counts[drives], counts[stops]
            value += taken @ (log[target] - psi @ weights - log[source]) - ended @ log[here[stops]]
            slope += taken @ (change[target] - psi - change[source]) - ended @ change[here[stops]]
        return -float(value), -slope

    found = minimize(objective, np.full(psi.shape[1], 2.0), jac=True, method="BFGS",
                     options={"gtol": 1e-4})  # fmt: skip
    return found.x, -float(found.fun)


def nested_fixed_point(
    world: jm.World, basis: jm.CostBasis, demos: jm.Demonstrations
) -> tuple[np.ndarray, float]:
    """Weights and log-likelihood on dense matrices."""
    shape = (world.num_states, world.num_actions)
    laws = world.transition.toarray().reshape(*shape, -1)
    psi = np.asarray(basis.on(world)).reshape(*shape, -1)
    counts = np.bincount(demos.pairs_in(world), minlength=world.num_pairs).reshape(shape)
    values = np.zeros(world.num_states)

    def objective(weights: np.ndarray) -> float:
        nonlocal values
        for _ in range(100):
            ahead = psi @ weights + world.discount * laws @ values
            new = -logsumexp(-ahead, axis=1)
            chain = np.einsum("sa,sax->sx", np.exp(new[:, None] - ahead), laws)
            step = np.linalg.solve(np.eye(values.size) - world.discount * chain, new - values)
            values = values + step
            if np.abs(step).max() < 1e-12 * (1 + np.abs(values).max()):
                break
        ahead = psi @ weights + world.discount * laws @ values
        log = -ahead - logsumexp(-ahead, axis=1, keepdims=True)
        return -float((counts * log).sum())

    found = minimize(objective, np.zeros(psi.shape[-1]), method="BFGS", options={"gtol": 1e-3})
    return found.x, -float(found.fun)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
