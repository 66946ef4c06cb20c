"""Demonstrations: what an expert did, and what it is worth in expectation.

`recording` is not imported here: it brings the compiler along.
"""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
