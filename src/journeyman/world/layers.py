"""Episodes of a fixed number of steps: a horizon, by layers.

    E sum_{t < H} g^t c(x_t, a_t)            H steps, then nothing; 0 < g <= 1

is the discounted total of another world, whose states are (x, t) for t < H and one end state that
costs nothing. A step leads from layer t to layer t + 1, from the last layer to the end. With

    discount   d = min(g, 1 - 1/H)           (1/2 in place of 1 - 1/H where H = 1)
    costs      psi(x, a) (g/d)^t             in layer t

its discounted totals are those of the episode, since d^t (g/d)^t = g^t. Policies of that world are
policies that depend on time. So every solver, bound and certificate for discounted worlds applies
as it is; nothing is approximated. Because 1/(1 - d) <= H and (g/d)^t < e, nothing is much larger
than it is in an episode either; where the difference would show (ranges of totals, largest possible
gaps, tolerances), episodes are counted with

    time(T) = sum_{T <= t < H} g^t           of the steps from T on

and the costs as they were given.

State (x, t) has the number t S + x, with S the states of the base world, and the end H S. States
are numbered forward: that makes a plan one pass backward and an occupancy one pass forward.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    Refusal,
    SparseMatrix,
    assign,
    read_only,
    require_whole,
)
from journeyman.errors import InvalidWorld
from journeyman.world.pairs import Pairs

if TYPE_CHECKING:
    from journeyman.world.world import World

MOST_PAIRS = 20_000_000
"""With five branches each, the laws of all layers have more than a gigabyte beyond this."""
FURTHEST = 2.0
"""No two laws are further apart in the 1-norm."""


@dataclass(frozen=True, eq=False)
class Layers:
    """How a world with a horizon came from its base world."""

    base: "World"
    horizon: int
    discount: float
    """g, of the steps of an episode."""
    reduced_discount: float
    """d, that of the world in layers."""

    @property
    def num_states(self) -> int:
        """Of one layer."""
        return self.base.num_states

    @property
    def end(self) -> int:
        """The state behind the last layer."""
        return self.horizon * self.num_states

    @cached_property
    def factors(self) -> FloatArray:
        """(g/d)^t of every layer."""
        return read_only((self.discount / self.reduced_discount) ** np.arange(self.horizon))

    @cached_property
    def weights(self) -> FloatArray:
        """time(T) for T = 0..H."""
        powers = self.discount ** np.arange(self.horizon, dtype=float)
        return read_only(np.append(np.cumsum(powers[::-1])[::-1], 0.0))

    @property
    def total_time(self) -> float:
        """Of a whole episode."""
        return float(self.weights[0])

    @cached_property
    def state_factors(self) -> FloatArray:
        """(g/d)^t of every state, 1 at the end."""
        return read_only(np.append(np.repeat(self.factors, self.num_states), 1.0))

    def is_base_shaped(self, shape: tuple[int, ...]) -> bool:
        """Whether rows are those of the base world: its pairs, states, or states times actions, and
        not one for every pair of all layers."""
        pairs = self.base.pairs
        rows = (len(pairs), pairs.num_states, pairs.num_states * pairs.width)
        every = self.horizon * len(pairs) + (pairs.width if pairs.is_complete else 1)
        return bool(shape) and shape[0] in rows and shape[0] != every

    def lifted(self, rows: Any, pairs: Pairs) -> Any:
        """Costs per pair of the base world as costs of the world in layers, whose pairs these are;
        zero at the end."""
        ending = len(pairs) - self.horizon * rows.shape[0]
        if sparse.issparse(rows):
            layers = [rows * factor for factor in self.factors]
            empty = sparse.csr_array((ending, rows.shape[1]))
            return sparse.csr_array(sparse.vstack([*layers, empty], format="csr"))
        scale = self.factors.reshape(-1, *(1,) * rows.ndim)
        stacked = (scale * rows).reshape(-1, *rows.shape[1:])
        return np.concatenate([stacked, np.zeros((ending, *rows.shape[1:]))])

    def per_step(self, rows: Matrix) -> Matrix:
        """Costs per pair in layers as those of one step of an episode: the factors taken out, the
        end left out. Each layer's row stands for a step that counts g^t."""
        count = self.horizon * len(self.base.pairs)
        scale = 1.0 / np.repeat(self.factors, len(self.base.pairs))
        if sparse.issparse(rows):
            return sparse.csr_array(sparse.diags_array(scale) @ rows[:count])
        return np.asarray(rows[:count] * scale[:, np.newaxis])

    def per_time(self, values: FloatArray) -> FloatArray:
        """(steps x states, further axes kept): values of states as what is still to come in an
        episode, counted from that step on."""
        table = values[: self.end].reshape(self.horizon, self.num_states, *values.shape[1:])
        return np.asarray(table / self.factors.reshape(-1, *(1,) * (table.ndim - 1)))

    def states_at(self, states: ArrayLike, times: ArrayLike) -> IntArray:
        """The numbers of (x, t); from the horizon on, the end."""
        at, t = np.asarray(states), np.asarray(times)
        return np.asarray(np.where(t < self.horizon, t * self.num_states + at, self.end))


def flattened(world: "World", name: str, values: ArrayLike, refusal: Refusal) -> FloatArray:
    """A cost per pair, per state or (states x actions), of `world` or of the world that it was made
    of, with one entry per pair of `world`."""
    made = world.reduction
    if made is None or not made.is_base_shaped(np.shape(values)):
        return world.pairs.flattened(name, values, refusal)
    rows = made.base.pairs.flattened(name, values, refusal)
    return read_only(made.lifted(rows, world.pairs))


def time_left(world: "World", steps: ArrayLike) -> FloatArray:
    """Discounted time of all that comes after so many steps: discount^T/(1 - discount), or what is
    left of an episode in a world with a horizon, whose steps count as they do there."""
    taken, layers = np.asarray(steps), world.layers
    if layers is None:
        return np.asarray(world.discount**taken * world.effective_horizon)
    return np.asarray(layers.weights[np.minimum(taken, layers.horizon)])


def layered(world: "World", horizon: int, discount: float | None) -> "World":
    """The world of `World.with_horizon`."""
    steps = require_whole("horizon", horizon, 1, InvalidWorld)
    if world.layers is not None:
        raise InvalidWorld(
            f"this world has a horizon of {world.layers.horizon} steps already",
            "Give another one to the world it was made of, world.layers.base",
        )
    if world.averages is not None:
        raise InvalidWorld(
            "a horizon is asked for in a world of average costs",
            "Give it to the world it was made of, world.averages.base",
        )
    own = world.discount if discount is None else discount
    if not (isinstance(own, int | float | np.floating) and 0 < own <= 1):
        raise InvalidWorld(
            f"discount = {own!r} of the steps of an episode",
            "Give a number above 0 and up to 1, where all steps count the same",
        )
    if steps * world.num_pairs > MOST_PAIRS:
        raise InvalidWorld(
            f"{steps} layers of {world.num_pairs} pairs are {steps * world.num_pairs:.3g} pairs, "
            "too many to list",
            f"Take a smaller horizon or world (up to {MOST_PAIRS:.0e} pairs)",
        )
    reduced = min(float(own), 1.0 - 1.0 / max(steps, 2))
    layers = Layers(world, steps, float(own), reduced)
    pairs = layered_pairs(world.pairs, steps)
    found = type(world)(
        _laws(world.transition, layers, pairs),
        np.append(world.initial, np.zeros((steps - 1) * world.num_states + 1)),
        reduced,
        choice_offsets=pairs,
        coordinates=_coordinates(world.coordinates, steps),
        state_names=_state_names(world.state_names, steps),
        action_names=world.action_names,
        sink=layers.end,
        observed_actions=None if world.observed_actions is None else pairs.actions,
        **_knowledge(world, layers, pairs),
    )
    assign(found.pairs, horizon=steps)
    assign(found, layers=layers)
    return found


def layered_pairs(base: Pairs, horizon: int) -> Pairs:
    """Those of all layers; the end has as many actions as all states, or else one."""
    count, ending = len(base), base.width if base.is_complete else 1
    starts = np.add.outer(np.arange(horizon) * count, base.offsets[:-1]).ravel()
    offsets = np.concatenate([starts, [horizon * count, horizon * count + ending]])
    numbers = None
    if base.numbers is not None:
        numbers = np.append(np.tile(base.numbers, horizon), base.numbers.min())
    found = Pairs(offsets, numbers)
    assign(found, horizon=horizon)
    return found


def _laws(base: SparseMatrix, layers: Layers, pairs: Pairs) -> SparseMatrix:
    """Rows of layer t lead to layer t + 1 as those of the base lead to states; others end."""
    moving, count, end = layers.horizon - 1, base.shape[0], layers.end
    last = len(pairs) - moving * count
    shifts = np.arange(1, layers.horizon) * layers.num_states
    data = np.concatenate([np.tile(base.data, moving), np.ones(last)])
    reached = np.add.outer(shifts, base.indices.astype(np.int64)).ravel()
    columns = np.concatenate([reached, np.full(last, end)])
    counts = np.concatenate([np.tile(np.diff(base.indptr), moving), np.ones(last, dtype=np.int64)])
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    index = sparse.get_index_dtype(maxval=max(int(starts[-1]), end))
    parts = (data, columns.astype(index), starts.astype(index))
    return sparse.csr_array(parts, shape=(len(pairs), end + 1))


def _knowledge(world: "World", layers: Layers, pairs: Pairs) -> dict[str, Any]:
    """What is known of the errors of laws: the same in every layer, and nothing is unsure about
    the end of an episode."""
    moving = layers.horizon - 1
    last = len(pairs) - moving * world.num_pairs
    errors, counts, support = world.transition_error, world.transition_counts, world.support
    if errors is None and counts is not None:
        errors = np.full(world.num_pairs, FURTHEST)

    def tiled(values: Any) -> Any:
        return None if values is None else np.append(np.tile(values, moving), np.zeros(last, int))

    return {
        "transition_error": tiled(errors),
        "transition_counts": tiled(counts),
        "initial_error": world.initial_error,
        "initial_count": world.initial_count,
        "support": None if support is None else _laws(support, layers, pairs),
        "shared": None if world.shared is None else world.shared.in_layers(layers.horizon),
    }


def _coordinates(base: FloatArray | None, horizon: int) -> FloatArray | None:
    """Those of the base world with the time behind them; the end is in their midst."""
    if base is None:
        return None
    times = np.repeat(np.arange(horizon, dtype=float), len(base))
    rows = np.column_stack([np.tile(base, (horizon, 1)), times])
    return np.vstack([rows, np.append(base.mean(axis=0), horizon)])


def _state_names(base: tuple[str, ...] | None, horizon: int) -> list[str] | None:
    if base is None:
        return None
    return [*(f"{name} at step {t}" for t in range(horizon) for name in base), "end"]
