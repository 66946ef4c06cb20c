"""Solvers: one algorithm per file, each a value that holds hyperparameters only."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)

from journeyman.solvers.solve import solve as solve  # noqa: E402  (goes before the module of this name)
