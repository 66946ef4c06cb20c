"""Names of `journeyman` as they were in 0.1, for programs written then.

Most of what stood at the top is now one level down, in the package it belongs to: it is found
there, with a `DeprecationWarning` that says where. What has become something else is not guessed
at: the error says what to write instead. Both end with the next release.
"""

import warnings
from importlib import import_module
from typing import Any

PACKAGES = (
    "errors", "execution", "costs", "world", "policy", "demonstrations", "features", "problem",
    "solvers", "certificate", "checker", "adapters", "studies",
)  # fmt: skip
INSTEAD = {
    "LargeAnswer": "jm.Answer",
    "LargeApprenticeship": "jm.Apprenticeship(world, costs, expert), for every kind of world",
    "LargeCertificate": "jm.Certificate",
    "LargeFeatures": "jm.features.DrawnFeatures",
    "LargeRows": "jm.SampledRows(rows=...)",
    "MixtureAnswer": "jm.Answer",
    "Program": "jm.Apprenticeship",
    "ShardFailed": "jm.errors.TaskFailed",
    "SimulatedApprenticeship": "jm.Apprenticeship(simulator, None, expert)",
    "SoftPlan": "jm.policy.Plan",
    "Verdict": "jm.certificate.PremiseStatus",
    "shards_of": "jm.execution.ranges_of",
    "sharpest_witness": "jm.problem.witness_from_plan",
    "telling_witness": "jm.problem.best_witness",
}


def moved(name: str) -> Any:
    """What was once `journeyman.name`, with a warning that says where it is now."""
    if name in INSTEAD:
        raise AttributeError(f"journeyman.{name} is gone: use {INSTEAD[name]}")
    for package in PACKAGES if not name.startswith("_") else ():
        found = getattr(import_module(f"journeyman.{package}"), name, None)
        if str(getattr(found, "__module__", "")).startswith("journeyman."):
            warnings.warn(
                f"journeyman.{name} is journeyman.{package}.{name} now",
                DeprecationWarning,
                stacklevel=3,
            )
            return found
    return None
