"""An interior point for L1 regressions with a linear term: few unknowns, very many rows.

    minimise <b, v>   over lower <= v <= upper with A'v = -slope

the box dual of a surrogate loss; the multipliers x of its equations are the coefficients. It is
Mehrotra's predictor-corrector on the optimality conditions, with v = lower + p = upper - q,

    A'v = -slope,    b - A x = f - g,    p f = mu,    q g = mu,    p, q, f, g > 0.

Rows of v without a box share the Euclidean ball, as one second-order cone (`norm_cone`).
An iteration eliminates all but x: one weighted Gram matrix A' diag(w) A with w = 1/(f/p + g/q), its
Cholesky factor, and a few solves. The first aims at mu = 0; how far it gets sets mu and the
second-order correction of the second. Up to three more centre the products that keep the step short
(Gondzio's correctors; for dense rows, where they save up to half of the iterations), and conjugate
gradients refine the sum until the equations hold: the factor alone loses them when features overlap
or the solution is degenerate.

Guarantee. It ends well when the loss at the best x and the bound proven by the best v for
|x|_2 <= 2 max(1, |x|_2) differ by at most half of `tolerance` times max(|loss|, 2N), where 2N is
the largest cost difference of a step. Cut short, it returns the best x and v so far.

Cost per iteration, with M rows and d features: M d^2 operations for dense rows, in pieces that stay
in the cache; the squared row lengths, summed, for sparse rows; d^3/3 for the factor. Usually 15 to
45 iterations, whatever M is. Memory: some twenty vectors of length M beside A.

Reference: Portnoy and Koenker, "The Gaussian hare and the Laplacian tortoise", Statistical Science
12, 1997 (there called Frisch-Newton); Mehrotra, "On the implementation of a primal-dual interior
point method", SIAM Journal on Optimization 2, 1992; Gondzio, "Multiple centrality corrections in a
primal-dual method for linear programming", Computational Optimization and Applications 6, 1996.
"""

from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.solvers.norm_cone import ConePoint, ConeStep, Scaling, centre, orthant_reach
from journeyman.solvers.reduced.box_dual import BoxDual, BoxPoint
from journeyman.solvers.reduced.dual_repair import Solve, factored, stored
from journeyman.solvers.running import Status, Watch

ENGINE = "interior point"
MAX_ITERATIONS = 200
PATIENCE = 15
"""Iterations without a smaller gap after which rounding has won."""
STRIDE, EARLY_STRIDE = 0.9995, 0.9
"""Share of the way to the boundary that a step may take; less while the gap is large."""
BALL_STRIDE = 0.99
"""The same with a ball, whose boundary is curved: closer to it, the next step would be short."""
CORRECTORS = 3
"""Centring solves for dense rows, where a factor costs as much as many solves; none for sparse."""
REFRESH = 8
"""Iterations after which A x and A'v are computed anew, not updated; each one at the end."""
REFINEMENTS = 10


@dataclass(frozen=True, eq=False)
class _Step:
    """A change of x, v, f, g and the ball, with its images A x and A'v."""

    x: FloatArray
    v: FloatArray
    f: FloatArray
    g: FloatArray
    ball: ConeStep
    image: FloatArray
    pull: FloatArray

    def plus(self, other: "_Step") -> "_Step":
        return _Step(
            self.x + other.x, self.v + other.v, self.f + other.f, self.g + other.g,
            self.ball.plus(other.ball), self.image + other.image, self.pull + other.pull,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Point:
    """x; v and its distances p, q to the bounds; the multipliers f, g of the bounds.

    The rows of v that have no bounds share the Euclidean ball; `ball` has its distance and
    multiplier. `image` is A x, `spare` what the equations lack: -slope - A'v.
    """

    x: FloatArray
    v: FloatArray
    p: FloatArray
    q: FloatArray
    f: FloatArray
    g: FloatArray
    ball: ConePoint
    image: FloatArray
    spare: FloatArray

    @property
    def num_products(self) -> int:
        return 2 * self.p.size + self.ball.is_there

    @property
    def mu(self) -> float:
        total = float(self.p @ self.f + self.q @ self.g) + self.ball.product
        return total / self.num_products

    def reach(self, step: _Step) -> tuple[float, float]:
        """How far v and x may follow a step until a distance or a multiplier is zero."""
        boxed = step.v[: self.p.size]
        along, across = self.ball.reach(step.ball)
        along = min(along, orthant_reach(self.p, boxed), orthant_reach(self.q, -boxed))
        return along, min(across, orthant_reach(self.f, step.f), orthant_reach(self.g, step.g))

    def products(self, step: _Step, along: float, across: float) -> tuple[FloatArray, FloatArray]:
        """p f and q g after a step."""
        change = along * step.v[: self.p.size]
        near = (self.p + change) * (self.f + across * step.f)
        return near, (self.q - change) * (self.g + across * step.g)

    def moved(self, step: _Step, along: float, across: float) -> "_Point":
        change = along * step.v
        boxed = change[: self.p.size]
        return _Point(
            self.x + across * step.x, self.v + change, self.p + boxed, self.q - boxed,
            self.f + across * step.f, self.g + across * step.g,
            self.ball.moved(step.ball, along, across),
            self.image + across * step.image, self.spare - along * step.pull,
        )  # fmt: skip

    def refreshed(self, box: BoxDual) -> "_Point":
        """The same point without the rounding that updates have left."""
        return replace(self, image=box.apply(self.x), spare=-box.slope - box.adjoint(self.v))


@dataclass(frozen=True, eq=False)
class _Record:
    """The best x and v so far, each by its own number, and when one last improved."""

    x: FloatArray
    v: FloatArray
    loss: float = np.inf
    bound: float = -np.inf
    iteration: int = 0

    @property
    def gap(self) -> float:
        return self.loss - self.bound

    def updated(self, box: BoxDual, point: _Point, iteration: int) -> "_Record":
        better, loss = self, box.loss_at(point.x, point.image)
        bound = box.constant - float(box.target @ point.v) - box.shortfall(point.x, point.spare)
        if self.bound - 1e-9 * box.unit(loss) < loss < self.loss:  # further below is rounding
            better = replace(better, x=point.x, loss=loss, iteration=iteration)
        if bound > self.bound:
            better = replace(better, v=point.v, bound=bound, iteration=iteration)
        return better


def run_interior_point(box: BoxDual, watch: Watch, tolerance: float) -> BoxPoint:
    """Solve a box program whose box is finite, reporting to `watch` in every iteration."""
    with np.errstate(all="ignore"):  # what is not finite ends the loop below
        return _iterate(stored(box), watch, tolerance)


def _iterate(box: BoxDual, watch: Watch, tolerance: float) -> BoxPoint:
    point = _start(box)
    best, refresh = _Record(point.x, point.v), REFRESH
    status, iteration = Status.INACCURATE, 0
    for iteration in range(MAX_ITERATIONS):
        if iteration % refresh == 0:
            point = point.refreshed(box)
        best = best.updated(box, point, iteration)
        allowance = tolerance * box.unit(best.loss)
        if best.gap <= 0.5 * allowance and refresh > 1:
            point, refresh = point.refreshed(box), 1
            best = _Record(point.x, point.v).updated(box, point, iteration)
        if abs(best.gap) <= 0.5 * allowance:
            status = Status.OPTIMAL
            break
        if watch.report(iteration, best.loss):
            status = watch.stop_status
            break
        if iteration - best.iteration > PATIENCE:
            break
        stride = STRIDE if best.gap < 0.01 * box.unit(best.loss) else EARLY_STRIDE
        point = _Newton(box, point).advanced(stride, 0.003 * allowance / box.radius(point.x))
        if not np.isfinite(point.x).all():
            break
    return BoxPoint(status, best.x, best.v, ENGINE, iteration)


def _start(box: BoxDual) -> _Point:
    """The middle of the box, and the weighted least squares solution with positive multipliers."""
    boxed, scale = slice(box.num_boxed), box.ball_scale
    lower, upper = box.lower[boxed], box.upper[boxed]
    width = np.concatenate([upper - lower, 2 * scale])
    x = factored(box, width**2)(box.adjoint(width**2 * box.target))
    image = box.apply(x)
    error = box.target - image
    mu = max(float(np.mean(np.abs(error) * width)), 1e-10 * box.unit(1e-10) / width.size)
    ball = centre(scale * error[box.num_boxed :], mu)
    middle = np.concatenate([(lower + upper) / 2, np.zeros(scale.size)])
    error, width = error[boxed], width[boxed]
    f, g = np.maximum(error, 0.0) + mu / width, np.maximum(-error, 0.0) + mu / width
    spare = -box.slope - box.adjoint(middle)
    return _Point(x, middle, width / 2, width / 2, f, g, ball, image, spare)


class _Newton:
    """Newton steps from one point, which share a factor."""

    def __init__(self, box: BoxDual, at: _Point) -> None:
        self.box, self.at, self.boxed = box, at, slice(box.num_boxed)
        self.scaling, self.scale = Scaling(at.ball), box.ball_scale
        self.weights = 1 / (at.f / at.p + at.g / at.q)
        prices = np.concatenate([at.f - at.g, at.ball.z[1:] / self.scale])
        self.imbalance = box.target - at.image - prices
        self.solve = self.factor()

    def factor(self) -> Solve:
        """The solver of A' H A x = right, where H is diagonal except for the ball."""
        if not self.at.ball.is_there:
            return factored(self.box, self.weights)
        rows, sharing = self.box.blocks[2].copy(), self.scale.size
        rows[-sharing:] = self.scaling.softened(self.scale[:, np.newaxis] * rows[-sharing:], 0.5)
        weights = np.concatenate([self.weights, np.ones(sharing)])
        return factored(replace(self.box, blocks=(*self.box.blocks[:2], rows)), weights)

    def advanced(self, stride: float, exactness: float) -> _Point:
        """The point after a predictor, its corrector, and more correctors while these help."""
        at, mu = self.at, self.at.mu
        first = self.step(-at.p * at.f, -at.q * at.g, -at.ball.z)
        lengths = [min(1.0, length) for length in at.reach(first)]
        near, far = at.products(first, *lengths)
        left = float(near.sum() + far.sum()) + at.ball.moved(first.ball, *lengths).product
        aim = (left / at.num_products / mu) ** 3 * mu if mu > 0 else 0.0
        boxed = first.v[self.boxed]
        step = self.step(
            aim - at.p * at.f - boxed * first.f,
            aim - at.q * at.g + boxed * first.g,
            aim * at.ball.inverse - at.ball.z - self.scaling.second_order(first.ball),
        )
        step = self.refined(self.centred(step, aim), exactness)
        stride = min(stride, BALL_STRIDE) if at.ball.is_there else stride
        along, across = (min(1.0, stride * length) for length in at.reach(step))
        return at.moved(step, along, across)

    def step(
        self, near: FloatArray, far: FloatArray, ball: FloatArray, *, repair: bool = True
    ) -> _Step:
        """The step that changes p f and q g by `near` and `far`, to first order, and `ball` so too.

        It also repairs what the equations lack, or leaves that as it is.
        """
        at, box = self.at, self.box
        push = np.concatenate([near / at.p - far / at.q, ball[1:] / self.scale])
        lacking = np.zeros_like(at.spare)
        if repair:
            push, lacking = push - self.imbalance, at.spare
        x = self.solve(lacking - box.adjoint(self.yielding(push)))
        image = box.apply(x)
        pressure = image + push
        v = self.yielding(pressure)
        boxed = v[self.boxed]
        f, g = (near - at.f * boxed) / at.p, (far + at.g * boxed) / at.q
        cone = self.scaling.step(ball, self.scale * pressure[box.num_boxed :])
        return _Step(x, v, f, g, cone, image, lacking)

    def yielding(self, pressure: FloatArray) -> FloatArray:
        """H pressure: how v gives way."""
        if not self.at.ball.is_there:
            return self.weights * pressure
        own = self.scaling.softened(self.scale * pressure[self.box.num_boxed :])
        return np.concatenate([self.weights * pressure[self.boxed], self.scale * own])

    def centred(self, step: _Step, aim: float) -> _Step:
        """Gondzio's correctors: pull products that a longer step would spoil back towards `aim`."""
        reached = [min(1.0, length) for length in self.at.reach(step)]
        for _ in range(CORRECTORS if isinstance(self.box.blocks[0], np.ndarray) else 0):
            if min(reached) > 0.95:
                break
            products = self.at.products(step, *(min(1.0, length + 0.3) for length in reached))
            near, far = (
                np.maximum(np.clip(each, 0.1 * aim, 10 * aim) - each, -10 * aim)
                for each in products
            )
            longer = step.plus(self.step(near, far, np.zeros_like(self.at.ball.z), repair=False))
            now = [min(1.0, length) for length in self.at.reach(longer)]
            if sum(now) < sum(reached) + 0.02:
                break
            step, reached = longer, now
        return step

    def refined(self, step: _Step, exactness: float) -> _Step:
        """The step with A'v = spare to `exactness`, by preconditioned conjugate gradients."""
        at, box = self.at, self.box
        enough = max(exactness, 1e-3 * float(np.linalg.norm(at.spare)))
        best = replace(step, pull=box.adjoint(step.v))
        least = float(np.linalg.norm(at.spare - best.pull))
        now, towards, before = best, np.zeros_like(step.x), np.float64(1.0)
        for _ in range(REFINEMENTS):
            if not least > enough:
                break
            rest = at.spare - now.pull
            direction = self.solve(rest)
            slope = np.float64(rest @ direction)
            towards = direction + (slope / before) * towards
            image = box.apply(towards)
            change, before = self.yielding(image), slope
            length = slope / (towards @ box.adjoint(change))
            now = self.shifted(now, length * towards, length * change, length * image)
            left = float(np.linalg.norm(at.spare - now.pull))
            if left < 0.5 * least:  # else it went where the features are dependent
                best, least = now, left
        return best

    def shifted(self, step: _Step, x: FloatArray, v: FloatArray, image: FloatArray) -> _Step:
        """The step with more of x and v, its multipliers following v."""
        at, moved, boxed = self.at, step.v + v, v[self.boxed]
        f, g = step.f - at.f / at.p * boxed, step.g + at.g / at.q * boxed
        pressure = self.scale * image[self.box.num_boxed :]
        ball = step.ball.plus(self.scaling.step(np.zeros_like(at.ball.z), pressure))
        return _Step(step.x + x, moved, f, g, ball, step.image + image, self.box.adjoint(moved))
