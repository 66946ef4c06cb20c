"""Problems: what is to be minimised, under which budgets, and what no policy can beat."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
