"""Soft planning: the policy that trades cost against entropy best, with a proven error.

    minimise over policies   E sum_t discount^t ( c(x_t, a_t) + temperature log pi(a_t | x_t) )

where -log pi is the surprise of an action: a policy pays for its cost and is paid for staying
random. The soft values solve the soft Bellman equation V = TV with

    TV(x) = -temperature log sum_a exp( -Q(x, a)/temperature ),      Q = c + discount P V
    pi(a | x) = exp( (V(x) - Q(x, a))/temperature )

and the policy is unique. At temperature zero this is `plan`.

Newton's method on V = TV, which is soft policy iteration: evaluate the policy at hand, its entropy
included, then take the soft-greedy policy of its values. One step is one linear system with the
chain of that policy (`PolicySystems`), and convergence is quadratic once the policy hardly
changes, at whatever discount. Systems are solved roughly while much is still to be gained.

Guarantee. T is monotone and T(V + k) = TV + discount k, so any V and its soft-greedy policy satisfy
in every state

    V + min(TV - V)/(1 - discount)  <=  V*  <=  V_pi  <=  V + max(TV - V)/(1 - discount)

as in `plan`: pi is optimal within span(TV - V)/(1 - discount), plus what rounding can have hidden.
Cost: one sparse solve and one pass over the transitions per iteration.

Reference: Ziebart, Bagnell and Dey, "Modeling interaction via the principle of maximum causal
entropy", ICML 2010; Puterman, Markov Decision Processes, sections 6.4 and 6.6.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, read_only, require_between
from journeyman.errors import InvalidCosts
from journeyman.policy.linear_systems import PolicySystems
from journeyman.policy.planning import EPSILON, MAX_ITERATIONS, RELATIVE_TOLERANCE, Plan
from journeyman.policy.table import Policy, log_softmax
from journeyman.world import World

ROUGH, FINE = 1e-2, 1e-10
"""Systems are solved up to these shares of their residual: the smaller, the faster it falls."""
PATIENCE = 20
"""Steps without a better error before float64 is held responsible."""


def soft_plan(
    world: World,
    cost: ArrayLike,
    *,
    temperature: float = 1.0,
    tolerance: float | None = None,
    warm_start: Plan | None = None,
    systems: PolicySystems | None = None,
) -> Plan:
    """The soft-optimal policy for a cost per pair, per state, or (states x actions).

    `warm_start` is a plan for a similar cost; `systems` spares those who plan often in one world a
    look at its structure every time.

    >>> world = World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> found = soft_plan(world, [0.0, np.log(3)])
    >>> found.policy.probabilities([0]).round(9).tolist(), found.values.round(9).tolist()
    ([[0.75, 0.25]], [-0.575364145])
    """
    costs = world.pairs.flattened("cost", cost, InvalidCosts)
    require_between(
        "temperature", temperature, 0, np.inf, InvalidCosts,
        "Give a positive temperature; jm.plan is for temperature zero",
    )  # fmt: skip
    operator = _SoftBellman(world, costs, float(temperature))
    if tolerance is None:
        tolerance = RELATIVE_TOLERANCE * operator.size * world.effective_horizon
    values = np.zeros(world.num_states) if warm_start is None else warm_start.values
    found = operator.at(values)
    best, plan, accuracy, idle = found, found.plan(world, 0), ROUGH, 0
    systems = PolicySystems(world) if systems is None else systems
    for iteration in range(1, MAX_ITERATIONS + 1):
        if plan.error <= tolerance or best.span <= 2 * best.rounding or idle >= PATIENCE:
            break
        system = systems.of(found.policy)
        values = values + system.solve(found.change, reduction=accuracy).x
        previous, found = found.span, operator.at(values)
        accuracy = max(FINE, min(ROUGH, (found.span / previous) ** 2))
        idle += 1
        if found.span + found.rounding < best.span + best.rounding:
            best, plan, idle = found, found.plan(world, iteration), 0
    return plan


class _SoftBellman:
    """T for one cost and temperature."""

    def __init__(self, world: World, costs: FloatArray, temperature: float) -> None:
        self.world, self.costs, self.temperature = world, costs, temperature
        self.bonus = temperature * float(np.log(world.pairs.max_actions))
        self.size = float(np.abs(costs).max()) + self.bonus

    def at(self, values: FloatArray) -> "_Step":
        """The soft-greedy policy of `values`, and TV - V."""
        world, pairs = self.world, self.world.pairs
        backup = self.costs + world.discount * (world.transition @ values)
        surprise = -log_softmax(pairs, -backup / self.temperature)
        new = pairs.smallest(backup) - self.temperature * pairs.smallest(surprise)
        terms = int(np.diff(world.transition.indptr).max()) + pairs.max_actions + 8
        rounding = EPSILON * terms * (self.size + self.temperature + 2 * np.abs(values).max())
        policy = Policy(np.exp(-surprise), pairs)
        return _Step(values, new - values, policy, float(rounding))


@dataclass(frozen=True, eq=False)
class _Step:
    """Values, TV - V, the soft-greedy policy, and what rounding can have done to TV - V."""

    values: FloatArray
    change: FloatArray
    policy: Policy
    rounding: float

    @property
    def span(self) -> float:
        return float(self.change.max() - self.change.min())

    def plan(self, world: World, iterations: int) -> Plan:
        """The values are moved to the middle of what is proven of V*."""
        middle = float(self.change.max() + self.change.min()) / 2
        values = self.values + middle * world.effective_horizon
        error = (self.span + 2 * self.rounding) * world.effective_horizon
        return Plan(self.policy, read_only(values), error, iterations)
