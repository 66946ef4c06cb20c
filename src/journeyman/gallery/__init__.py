"""Worlds with costs and an expert, ready to use: for examples, tests and benchmarks."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
