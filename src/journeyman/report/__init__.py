"""Results for people to look at: text for terminals, one HTML page for everything else."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
