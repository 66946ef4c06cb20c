"""Systems of policies that draw their actions, solved in the way that suits the world.

In a *narrow* world (`chains.is_narrow`: grids, queues, roads) the factor of a chain is thin and
cheap, and every right-hand side after the first costs next to nothing; in any other world it fills
up, and BiCGSTAB needs few steps because such worlds mix fast.
"""

from journeyman.arrays import SparseMatrix
from journeyman.policy.chains import Chains
from journeyman.policy.discounted_system import DiscountedSystem, factorise
from journeyman.policy.occupancy import transition_under
from journeyman.policy.policy import Policy
from journeyman.world import World


class ChainSystems:
    """Makes the systems of one world's policies; looks at its structure once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.direct = Chains(world).direct

    def of(self, policy: Policy) -> DiscountedSystem:
        """I - discount P_pi, ready for many right-hand sides."""
        kind = FactoredSystem if self.direct else DiscountedSystem
        return kind(transition_under(self.world, policy), self.world.discount)


class FactoredSystem(DiscountedSystem):
    """Factorised at once instead of at need."""

    def __init__(self, transition: SparseMatrix, discount: float) -> None:
        super().__init__(transition, discount)
        self._factor = factorise(self.matrix)
