"""What may matter: the cost basis and the classes of costs it spans."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
