"""The surrogate loss as the maximum of a linear function over a box, and that box as a program.

    L(theta) = constant + min over extra of { <slope, x> + max over v in V of <v, A x - b> }
    min L    = constant + max over v in V with A'v = -slope of -<b, v>

where x = (theta, extra) and A x - b stacks, with their boxes V,

    Phi theta - floor     in [-lambda_1, 0]            one row per pair
    D theta - nu          in [-lambda_2, lambda_2]     one row per state
    C theta - limits      in [0, lambda_3]             one row per budget
    C'(G theta - target) - E't   in [lower, upper], or in the ball |v/axes|_2 <= 1

for a cost class { centre + C v } with equations E v = right (`WeightSet`), whose multipliers
t are the extras with slope `right`; its centre adds slope G'centre and constant -<centre, target>.

The program over v has only as many equations as there are features; their multipliers are x.
`Hard` constraints are boxes without end. A selection of rows with weights stretches their boxes.
Cost: the blocks of A are those of the reduced problem, not copies, until HiGHS or Clarabel asks.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix
from journeyman.costs.cost_class import WeightSet
from journeyman.problem.reduced import DrawnRows, Penalties, Reduced
from journeyman.problem.surrogate import ReducedWitness
from journeyman.solvers.exact.engines import Engine, HighsModel, conic_form, run_cone
from journeyman.solvers.exact.occupancy_program import INFINITY, LinearModel
from journeyman.solvers.running import Status, Watch


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """Some rows of pairs and states, and how often each counts."""

    rows: DrawnRows
    pair_weights: FloatArray
    state_weights: FloatArray
    pairs: IntArray
    """Positions of the pairs among all rows; empty where these are not listed."""
    states: IntArray


@dataclass(frozen=True, eq=False)
class BoxDual:
    """The program over v, with what is needed to read x and v as coefficients and a witness.

    `blocks` are the rows of A: pairs, states, then budgets and costs together. A block may lack
    the extra column.
    """

    reduced: Reduced
    rows: SelectedRows | None
    blocks: tuple[Matrix, Matrix, FloatArray]
    target: FloatArray
    lower: FloatArray
    upper: FloatArray
    slope: FloatArray
    constant: float
    chosen: WeightSet
    threads: int = 1
    """For Gram matrices of the rows."""

    @property
    def num_rows(self) -> int:
        return self.target.size

    @property
    def num_boxed(self) -> int:
        """How many rows have a box; those after them, if any, share the Euclidean ball."""
        return self.num_rows - self.ball_scale.size

    @property
    def ball_scale(self) -> FloatArray:
        """The half-axes of the ball, one for each row that shares it."""
        return np.zeros(0) if self.chosen.axes is None else self.chosen.axes

    def apply(self, x: FloatArray) -> FloatArray:
        """A x."""
        return np.concatenate([block @ x[: block.shape[1]] for block in self.blocks])

    def adjoint(self, v: FloatArray) -> FloatArray:
        """A'v."""
        total = np.zeros(self.slope.size)
        for block, part in zip(self.blocks, self._by_block(v), strict=True):
            total[: block.shape[1]] += block.T @ part
        return total

    def loss(self, x: FloatArray) -> float:
        """The loss that the program is the dual of, at x."""
        return self.loss_at(x, self.apply(x))

    def loss_at(self, x: FloatArray, image: FloatArray) -> float:
        """The loss at x from A x."""
        error = image - self.target
        boxed, shared = slice(self.num_boxed), error[self.num_boxed :]
        worst = np.maximum(self.lower[boxed] * error[boxed], self.upper[boxed] * error[boxed]).sum()
        worst += self.chosen.support(shared) if shared.size else 0.0
        return float(self.constant + self.slope @ x + worst)

    def lower_bound(self, v: FloatArray, radius: float) -> float:
        """What the loss cannot go below for |coefficients|_2 <= radius, whatever v is given."""
        inside = self.admitted(v)
        spare = self.coefficients(self.adjoint(inside) + self.slope)
        return float(self.constant - self.target @ inside - radius * np.linalg.norm(spare))

    def admitted(self, v: FloatArray) -> FloatArray:
        """A point of V close to v, for which the equation of the extra column holds."""
        inside = np.clip(v, self.lower, self.upper)
        if self.chosen.size and not self.chosen.is_box:
            inside[-self.chosen.size :] = self.chosen.admit(v[-self.chosen.size :])
        return inside

    def radius(self, x: FloatArray) -> float:
        """Of the coefficients that a bound is about."""
        return max(self.reduced.heavy_radius, 2 * float(np.linalg.norm(self.coefficients(x))))

    def shortfall(self, x: FloatArray, spare: FloatArray) -> float:
        """What it costs a bound at x that the equations are missed by `spare`."""
        count = self.reduced.num_features
        missed = self.radius(x) * float(np.linalg.norm(spare[:count]))
        return missed + float(2 * np.maximum(1.0, np.abs(x[count:])) @ np.abs(spare[count:]))

    def unit(self, loss: float) -> float:
        """What tolerances are relative to: the loss, or the largest cost difference of a step."""
        problem = self.reduced.problem
        return max(abs(loss), problem.gap_scale / problem.total_time)

    @property
    def is_boxed(self) -> bool:
        """Whether V is finite and of positive width in every direction."""
        width = (self.upper - self.lower)[: self.num_boxed]
        return bool(((width > 0) & (width < np.inf)).all())

    def coefficients(self, x: FloatArray) -> FloatArray:
        return np.asarray(x[: self.reduced.num_features])

    def largest(self, v: FloatArray) -> Penalties:
        """The largest multiplier of each kind of constraint."""
        pairs, states, budgets, _ = self._by_kind(v)
        sizes = [float(np.abs(part).max(initial=0.0)) for part in (pairs, states, budgets)]
        return Penalties(*sizes)

    def witness(self, v: FloatArray, penalties: Penalties) -> ReducedWitness:
        """The dual point of the surrogate with these penalties."""
        reduced = self.reduced
        pairs, states, budgets, costs = self._by_kind(v)
        negative, signs = np.zeros(reduced.floor.size), np.zeros(reduced.flow_target.size)
        negative[slice(None) if self.rows is None else self.rows.pairs] = -pairs
        signs[slice(None) if self.rows is None else self.rows.states] = states
        return ReducedWitness(
            self.chosen.weights(costs),
            signs / (penalties.flow or 1.0),
            negative / (penalties.pairs or 1.0),
            budgets / (penalties.budgets or 1.0),
        )

    def linear_model(self) -> LinearModel:
        """The program over v for HiGHS: a column for each row of A, an equation per feature."""
        return LinearModel(
            columns=self.stacked(),
            cost=self.target,
            lower=self.lower,
            upper=self.upper,
            row_lower=-self.slope,
            row_upper=-self.slope,
        )

    def stacked(self) -> sparse.csr_array:
        """A as one sparse matrix."""
        width = self.slope.size
        parts = [sparse.csr_array(block) for block in self.blocks]
        for part in parts:
            part.resize((part.shape[0], width))
        return sparse.vstack(parts, format="csr")

    def _by_block(self, v: FloatArray) -> list[FloatArray]:
        return np.split(v, np.cumsum([block.shape[0] for block in self.blocks[:-1]]))

    def _by_kind(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        pairs, states, rest = self._by_block(v)
        num_budgets = self.reduced.budget_limits.size
        return pairs, states, rest[:num_budgets], rest[num_budgets:]


@dataclass(frozen=True, eq=False)
class BoxPoint:
    """What an engine left behind: x, v, and how it ended. Anything may be wrong with it."""

    status: Status
    x: FloatArray
    v: FloatArray
    engine: str
    iterations: int = 0
    log: str = ""


def box_dual(reduced: Reduced, penalties: Penalties, rows: SelectedRows | None = None) -> BoxDual:
    """The box program of a surrogate, over all rows or a weighted selection."""
    shown = reduced if rows is None else rows.rows
    Phi, floor, D, nu = shown.pair_rows, shown.floor, shown.flow_rows, shown.flow_target
    pair_size, flow_size = np.full(floor.size, penalties.pairs), np.full(nu.size, penalties.flow)
    if rows is not None:
        pair_size, flow_size = pair_size * rows.pair_weights, flow_size * rows.state_weights
    chosen = reduced.problem.cost_class.weight_set(reduced.matching_target.size)
    matching, target, low, high, slope, constant = _matching(reduced, chosen)
    budgets, limits = reduced.budget_rows, reduced.budget_limits
    small = np.zeros((limits.size + target.size, slope.size))
    small[: limits.size, : reduced.num_features], small[limits.size :] = budgets, matching
    overspent = np.full(limits.size, penalties.budgets)
    return BoxDual(
        reduced=reduced,
        rows=rows,
        blocks=(Phi, D, small),
        target=np.concatenate([floor, nu, limits, target]),
        lower=np.concatenate([-pair_size, -flow_size, np.zeros(limits.size), low]),
        upper=np.concatenate([np.zeros(floor.size), flow_size, overspent, high]),
        slope=slope,
        constant=constant,
        chosen=chosen,
    )


def run_highs(box: BoxDual, engine: Engine, threads: int, watch: Watch) -> BoxPoint:
    """Solve the box program with an engine of HiGHS."""
    found = HighsModel(box.linear_model(), engine, threads).run(watch)
    return BoxPoint(found.status, found.row_duals, found.columns, found.engine, log=found.log)


def steepest_fall(box: BoxDual, threads: int, watch: Watch) -> FloatArray:
    """The x with |x_i| <= 1 along which the loss falls most far out, or zero where it cannot fall:
    the multiplier of min |e|_1 over v in V with A'v + e = -slope."""
    model, size = box.linear_model(), box.slope.size
    either = sparse.eye_array(size, format="csr")
    missed = replace(
        model, columns=sparse.vstack([model.columns, either, -either], format="csr"),
        cost=np.repeat([0.0, 1.0], [box.num_rows, 2 * size]),
        lower=np.append(model.lower, np.zeros(2 * size)),
        upper=np.append(model.upper, np.full(2 * size, INFINITY)),
    )  # fmt: skip
    return HighsModel(missed, Engine.SIMPLEX, threads).run(watch).row_duals


def run_clarabel(box: BoxDual, threads: int, watch: Watch, *, rescaled: bool) -> BoxPoint:
    """Solve the box program with Clarabel, which also knows the Euclidean ball.

    Where boxes and features differ by many magnitudes it helps to measure v, x and the objective
    in units that make all coefficients at most 1; otherwise it costs digits.
    """
    axes = box.ball_scale
    model, v_units, x_units = box.linear_model(), np.ones(box.num_rows), np.ones(box.slope.size)
    if rescaled:
        model, v_units, x_units = _in_units(box)
    norm_rows = norm_right = None
    if axes.size:
        inverse = sparse.csr_array(sparse.diags_array(-v_units[-axes.size :] / axes))
        empty = sparse.csr_array((axes.size, box.num_boxed))
        beside = sparse.hstack([empty, inverse], format="csr")
        norm_rows = sparse.vstack([sparse.csr_array((1, box.num_rows)), beside], format="csr")
        norm_right = np.append(1.0, np.zeros(axes.size))
    found = run_cone(conic_form(model, norm_rows, norm_right), watch, threads)
    x = -x_units * found.row_duals[: box.slope.size]
    return BoxPoint(found.status, x, v_units * found.columns, found.engine)


def _in_units(box: BoxDual) -> tuple[LinearModel, FloatArray, FloatArray]:
    """The linear model of v/v_units and x/x_units, and these units."""
    model = box.linear_model()
    bounds = np.maximum(np.abs(model.lower), np.abs(model.upper))
    v_units = np.where(np.isfinite(bounds) & (bounds > 0), bounds, 1.0)
    columns = sparse.csr_array(sparse.diags_array(v_units) @ model.columns)
    sizes = np.maximum(abs(columns).max(axis=0).toarray().ravel(), np.abs(box.slope))
    sizes = np.where(sizes > 0, sizes, 1.0)
    worth = float(np.abs(v_units * model.cost).max(initial=0.0)) or 1.0
    scaled = LinearModel(
        columns=sparse.csr_array(columns @ sparse.diags_array(1 / sizes)),
        cost=v_units * model.cost / worth,
        lower=model.lower / v_units,
        upper=model.upper / v_units,
        row_lower=model.row_lower / sizes,
        row_upper=model.row_upper / sizes,
    )
    return scaled, v_units, worth / sizes


def _matching(
    reduced: Reduced, chosen: WeightSet
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Rows, targets and box of the cost class; slope and constant."""
    G, target, extras = reduced.matching, reduced.matching_target, chosen.right.size
    slope, constant = np.zeros(reduced.num_features), 0.0
    if not chosen.is_centred:
        slope, constant = G.T @ chosen.centre, -float(chosen.centre @ target)
    rows, low, high = chosen.pulled(G), chosen.lower, chosen.upper
    if chosen.axes is not None:
        low, high = np.full(chosen.size, -INFINITY), np.full(chosen.size, INFINITY)
    if extras:
        rows, slope = np.column_stack([rows, -chosen.equations.T]), np.append(slope, chosen.right)
    return rows, chosen.pulled(target), low, high, slope, constant
