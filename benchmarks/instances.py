"""Instances by name, so that a number says exactly what it was measured on."""

import journeyman as jm

GRAMMAR = "grid:SIZE:MACRO_CELLS:DISCOUNT or garnet:STATES:COSTS:DISCOUNT"


def example_of(instance: str) -> jm.gallery.Example:
    """The gallery piece (seed 0) that a word like grid:64:8:0.99 stands for."""
    kind, size, costs, discount = instance.split(":")
    if kind == "grid":
        return jm.gallery.grid(int(size), macro_cells=int(costs), discount=float(discount))
    return jm.gallery.garnet(int(size), num_costs=int(costs), discount=float(discount))
