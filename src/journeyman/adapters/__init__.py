"""Doors to other packages, each an extra of its own; nothing here is imported before it is used."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
