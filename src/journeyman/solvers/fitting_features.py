"""Features of the kind that a problem calls for, or a refusal that names the other kind."""

from journeyman.errors import InvalidSolver
from journeyman.problem.features import Features
from journeyman.problem.large_features import LargeFeatures


def tabled(features: Features | LargeFeatures) -> Features:
    """Features for a problem with a row for every pair."""
    if not isinstance(features, Features):
        raise InvalidSolver(
            f"{features!r} are features of a large world",
            "State the problem as a jm.LargeApprenticeship, or give jm.Features(matrix)",
        )
    return features


def called(features: Features | LargeFeatures) -> LargeFeatures:
    """Features for a problem that has callables instead."""
    if not isinstance(features, LargeFeatures):
        raise InvalidSolver(
            f"features is a {type(features).__name__}, which holds a row for every pair",
            "Give features by callables, such as jm.features.factored(...)",
        )
    return features
