"""The state of a run of SGD-AL: what the next step needs, and nothing else.

It can be written to a checkpoint and read back; a run continued from there takes the very same
steps. The checkpoint carries a digest of everything the run depends on and is refused elsewhere.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.errors import InvalidFile
from journeyman.problem.reduced_duality import ReducedWitness
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.incremental_kernel import Matched
from journeyman.solvers.row_source import Rows, RowSource
from journeyman.solvers.subgradient_codes import WEIGHT
from journeyman.solvers.subgradient_kernel import Iterate
from journeyman.storage import PathLike, digest, load_arrays, save_arrays, take

SCHEMA_VERSION = 2
TRACE_FIELDS = ("step", "seconds", "loss", "matching", "negativity", "flow", "bound")


@dataclass(eq=False)
class SubgradientState:
    """Iterate, visit counts of the rows, random stream, number of steps, and the trace so far."""

    iterate: Iterate
    matched: Matched
    source: RowSource
    rng: np.random.Generator
    step: int
    trace: list[tuple[float, ...]]

    @classmethod
    def fresh(cls, surrogate: Surrogate, seed: int) -> "SubgradientState":
        """theta_1 = 0, as in the paper."""
        reduced = surrogate.reduced
        size = reduced.num_features
        iterate = Iterate(
            np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size),
            np.zeros(4), np.zeros(reduced.matching_target.size),
            np.zeros(reduced.budget_limits.size),
        )  # fmt: skip
        count = reduced.matching_target.size
        matched = Matched(
            np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(size), np.zeros(count)
        )
        rng = np.random.Generator(np.random.PCG64(seed))
        return cls(iterate, matched, RowSource.of(surrogate), rng, 0, [])

    @property
    def average(self) -> FloatArray:
        """The weighted average of the iterates."""
        total = self.iterate.totals[WEIGHT]
        return np.asarray(self.iterate.weighted_theta / (total if total > 0 else 1.0))

    @property
    def witness(self) -> ReducedWitness:
        """The average of what was active: of the cost weights, and of each row when it was seen."""
        total = max(self.iterate.totals[WEIGHT], np.finfo(float).tiny)
        flow, pairs = self.source.flow, self.source.pairs
        return ReducedWitness(
            self.iterate.weighted_costs / total,
            _share_active(flow),
            _share_active(pairs),
            self.iterate.weighted_budgets / total,
        )

    @property
    def is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self.iterate)

    def save(self, path: PathLike, identity: str) -> None:
        """Write a checkpoint, atomically."""
        facts = {"rng": self.rng.bit_generator.state, "step": self.step, "identity": identity}
        save_arrays(path, "subgradient-state", SCHEMA_VERSION, self._arrays(), **facts)

    def restore(self, path: PathLike, identity: str) -> None:
        """Continue from a checkpoint of the same run; the state's arrays are overwritten."""
        facts, arrays = load_arrays(path, "subgradient-state", SCHEMA_VERSION)
        if facts.get("identity") != identity:
            raise InvalidFile(
                f"{path} is the checkpoint of another run: world, costs, expert, features, seed or "
                "settings differ",
                "Give another path, or remove the file to start anew",
            )
        trace = take(path, arrays, "trace")
        for name, target in self._moving_arrays().items():
            target[...] = take(path, arrays, name)
        self.source.pairs.recount(take(path, arrays, "pairs"))
        self.source.flow.recount(take(path, arrays, "flow"))
        self.trace = [tuple(row) for row in trace.tolist()]
        self.step = int(facts["step"])
        self.rng.bit_generator.state = facts["rng"]

    def _arrays(self) -> dict[str, FloatArray]:
        counts = {"pairs": self.source.pairs.counts, "flow": self.source.flow.counts}
        trace = np.array(self.trace, dtype=float).reshape(-1, len(TRACE_FIELDS))
        return {**self._moving_arrays(), **counts, "trace": trace}

    def _moving_arrays(self) -> dict[str, FloatArray]:
        matched = {f"matched_{name}": part for name, part in self.matched._asdict().items()}
        return {**self.iterate._asdict(), **matched}


def _share_active(rows: Rows) -> FloatArray:
    seen, active = rows.counts[:, 0], rows.counts[:, 1]
    return np.divide(active, seen, out=np.zeros_like(seen), where=seen > 0)


def identity_of(surrogate: Surrogate, settings: str, seed: int) -> str:
    """A digest of everything that decides which steps a run takes."""
    reduced = surrogate.reduced
    world = reduced.problem.world
    return digest(
        world.transition, world.initial, world.discount, reduced.problem.cost_matrix,
        reduced.matching_target, reduced.budget_rows, reduced.budget_limits, reduced.pair_rows,
        reduced.floor, json.dumps(settings), seed,
    )  # fmt: skip


def exists(path: PathLike | None) -> bool:
    """Whether there is a checkpoint to continue from."""
    return path is not None and Path(path).exists()
