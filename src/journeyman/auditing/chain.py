"""The chain that a policy makes of a world, and the two linear systems of its evaluation.

    visits   nu = initial + discount M' nu          values   V = c + discount M V

M(x, y) is the probability of a step from x to y. The matrix I - discount M' is assembled column by
column. Small systems are solved densely, larger ones by GMRES, with a sparse factorisation as the
last resort; what is missing is solved for again until nothing improves.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from journeyman.auditing.inputs import World

Floats = NDArray[np.float64]
DENSE_UP_TO = 1000
"""States."""
WANTED, ENOUGH = 1e-14, 1e-12
"""What may be missing, relative to the right-hand side: at best, and without a factorisation."""
ROUNDS = 12


class Chain:
    """Solves for visits and values of one policy."""

    def __init__(self, world: World, policy: Floats) -> None:
        entries = np.diff(world.rows.indptr)
        flow = world.rows.data * policy.repeat(entries)
        places = (world.rows.indices, world.state_of.repeat(entries))
        shape = (world.num_states, world.num_states)
        moved = sparse.coo_array((flow, places), shape=shape).tocsc()
        self.system = (sparse.eye_array(world.num_states) - world.discount * moved).tocsc()
        self.world, self.policy = world, policy

    def visits(self) -> Floats:
        """The discounted number of visits to every pair."""
        nu = self._solve(self.world.initial, transposed=False)
        return np.asarray(np.maximum(nu, 0.0)[self.world.state_of] * self.policy)

    def values(self, matrix: Any) -> Floats:
        """(states x costs): expected discounted totals of the columns of a matrix over pairs."""
        world = self.world
        found = np.empty((world.num_states, matrix.shape[1]))
        for i in range(matrix.shape[1]):
            now = np.add.reduceat(column(matrix, i) * self.policy, world.first[:-1])
            found[:, i] = self._solve(now, transposed=True)
        return found

    def _solve(self, b: Floats, *, transposed: bool) -> Floats:
        system = self.system.T if transposed else self.system
        x, missing = np.zeros_like(b), b
        size = left = float(np.abs(b).sum())
        direct = self.world.num_states <= DENSE_UP_TO
        for _ in range(ROUNDS):
            if left <= WANTED * size:
                break
            step = (self._direct if direct else self._iterated)(missing, transposed)
            remaining = b - system @ (x + step)
            better, before = float(np.abs(remaining).sum()), left
            if better < left:
                x, missing, left = x + step, remaining, better
            if better > before / 2:
                if direct or left <= ENOUGH * size:
                    break
                direct = True
        return x

    def _iterated(self, b: Floats, transposed: bool) -> Floats:
        from scipy.sparse.linalg import gmres

        system, size = (self.system.T if transposed else self.system), float(np.linalg.norm(b))
        with np.errstate(all="ignore"):
            x, _ = gmres(system.tocsr(), b / size, rtol=1e-8, atol=0.0, restart=60, maxiter=20)
        return np.asarray(np.nan_to_num(x * size, posinf=0.0, neginf=0.0))

    def _direct(self, b: Floats, transposed: bool) -> Floats:
        if self.world.num_states <= DENSE_UP_TO:
            return np.asarray(linalg.lu_solve(self._dense, b, trans=int(transposed)))
        return np.asarray(self._sparse.solve(b, trans="T" if transposed else "N"))

    @cached_property
    def _dense(self) -> Any:
        return linalg.lu_factor(self.system.toarray())

    @cached_property
    def _sparse(self) -> Any:
        from scipy.sparse.linalg import splu

        return splu(self.system)


def column(matrix: Any, i: int) -> Floats:
    """Column i of a dense or sparse matrix."""
    part = matrix[:, [i]]
    return np.asarray(part.toarray() if sparse.issparse(part) else part).ravel()
