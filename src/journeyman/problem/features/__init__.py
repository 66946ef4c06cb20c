"""Features Phi and their builders."""

from journeyman.problem.features.features import Features, concatenate

__all__ = ["Features", "concatenate"]
