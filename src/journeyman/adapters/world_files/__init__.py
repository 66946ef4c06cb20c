"""Worlds and costs in, and worlds tested: `read_world`, `read_costs`, `check_transitions`."""
