"""What a method has spent, in the units in which methods are compared."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Counts of a run. Checks made afterwards for the answer's bounds are not among them."""

    iterations: int = 0
    forward_solves: int = 0
    """Optimal policies of a known cost that were planned; soft-optimal ones count too."""
    environment_steps: int = 0
    """Transitions that were drawn from the world."""
    expert_queries: int = 0
    """States in which the expert was asked what to do, beyond the demonstrations."""
