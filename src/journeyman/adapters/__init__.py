"""Files and environments of other packages, each an extra; nothing is imported before use."""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
