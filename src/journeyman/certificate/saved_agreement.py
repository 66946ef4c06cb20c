"""Runs of which nothing but records is known, on disk and back.

    problem.npz          discount, declared range of costs, whether logged probabilities count
    demonstrations.npz   the held-out episodes
    agreement.npz        how likely every policy takes every recorded action; weights; folds
    policy.npz           the policies, where they are numbers: tables, clones, networks

A policy that is neither, such as a network of another package, is not saved: its probabilities are,
so that everything but them can be derived again.
"""

from pathlib import Path
from typing import Any

import numpy as np

from journeyman.certificate.agreement import Agreement
from journeyman.certificate.certificate import Certificate
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.expectation import ClonedPolicy
from journeyman.errors import InvalidFile
from journeyman.policy import Policy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.policy.observation_policy import LAYERS, NetworkPolicy, ObservationPolicy
from journeyman.problem import Apprenticeship
from journeyman.storage import Arrays, load_arrays, save_arrays, take
from journeyman.world import Pairs
from journeyman.world.records import Records

AGREEMENT, DEMONSTRATIONS = "agreement.npz", "demonstrations.npz"
PROBLEM, POLICY = "problem.npz", "policy.npz"
PROBLEM_KIND, POLICY_KIND, VERSION = "problem of records", "policies beside records", 1
NOT_SAVED = "not saved"


def write_recorded(certificate: Certificate, place: Path) -> list[str]:
    """Write the files above into a directory that was prepared; their names."""
    world: Any = certificate.problem.world
    demos, found = certificate.problem.demonstrations, certificate.agreement
    assert demos is not None
    assert found is not None
    save_arrays(
        place / PROBLEM, PROBLEM_KIND, VERSION, {"cost_range": np.array(world.cost_range)},
        discount=world.discount, use_probabilities=world.use_probabilities,
    )  # fmt: skip
    demos.save(place / DEMONSTRATIONS)
    arrays = {
        "probabilities": found.probabilities, "weights": found.weights, "folds": found.folds,
    }  # fmt: skip
    save_arrays(place / AGREEMENT, "agreement", VERSION, arrays)
    arrays = {"weights": found.weights[found.folds].mean(axis=0)}
    forms = [_form(member, k, arrays) for k, member in enumerate(members(certificate.policy))]
    axes = demos.states.ndim - 1
    save_arrays(place / POLICY, POLICY_KIND, VERSION, arrays, policies=forms, observation_axes=axes)
    return [AGREEMENT, DEMONSTRATIONS, POLICY, PROBLEM]


def members(policy: Any) -> list[Any]:
    """The policies of a mixture, or the policy alone, as they were given."""
    parts = policy.candidates if isinstance(policy, MixturePolicy) else (policy,)
    return [one.policy if isinstance(one, ObservationPolicy) else one for one in parts]


def _form(policy: Any, number: int, arrays: dict[str, Any]) -> dict[str, Any]:
    """How a policy is saved; its arrays get its number in front of their names."""
    if isinstance(policy, Policy):
        parts = {"law": policy.per_pair, "offsets": policy.pairs.offsets}
        if policy.pairs.numbers is not None:
            parts["numbers"] = policy.pairs.numbers
        form: dict[str, Any] = {"form": "table"}
    elif isinstance(policy, ClonedPolicy):
        form, parts = {"form": "visited states"}, {"states": policy.states, "laws": policy.laws}
    elif isinstance(policy, NetworkPolicy):
        form = {"form": "network", "greedy": policy.greedy}
        parts = {"mean": policy.mean, "scale": policy.scale}
        parts |= dict(zip(LAYERS, policy.layers, strict=True))
    else:
        form, parts = {"form": NOT_SAVED, "kind": type(policy).__name__}, {}
    arrays |= {f"{number}_{name}": part for name, part in parts.items()}
    return form


def read_problem(place: Path) -> Apprenticeship:
    """The problem of a saved run."""
    header, arrays = load_arrays(place / PROBLEM, PROBLEM_KIND, VERSION)
    low, high = take(place / PROBLEM, arrays, "cost_range")
    use = bool(header["use_probabilities"])
    world = Records(header["discount"], (low, high), use_probabilities=use)
    return Apprenticeship(world, None, Demonstrations.load(place / DEMONSTRATIONS))


def read_agreement(place: Path, problem: Apprenticeship) -> Agreement:
    """The evidence of a saved run, with the numbers that follow from it."""
    world: Any = problem.world
    path, demos = place / AGREEMENT, problem.demonstrations
    _, arrays = load_arrays(path, "agreement", VERSION)
    names = ("probabilities", "weights", "folds")
    chances, weights, folds = (take(path, arrays, name) for name in names)
    assert demos is not None
    assert isinstance(world, Records)
    return Agreement.of(demos, chances, weights, folds, world)


def load_recorded_policy(place: Path) -> Any:
    """The policy of a saved run: numbers only, no code is called."""
    path = place / POLICY
    header, arrays = load_arrays(path, POLICY_KIND, VERSION)
    forms, axes = header["policies"], int(header["observation_axes"])
    found = [_made(path, form, k, arrays, axes) for k, form in enumerate(forms)]
    if len(found) == 1:
        return found[0]
    wrapped = [ObservationPolicy(one, axes) for one in found]
    return MixturePolicy(wrapped, take(path, arrays, "weights"), axes)


def _made(path: Path, form: dict[str, Any], number: int, arrays: Arrays, axes: int) -> Any:
    def part(name: str) -> Any:
        return take(path, arrays, f"{number}_{name}")

    if form["form"] == "table":
        return Policy(part("law"), Pairs(part("offsets"), arrays.get(f"{number}_numbers")))
    if form["form"] == "visited states":
        return ClonedPolicy(part("states"), part("laws"))
    if form["form"] == "network":
        layers = tuple(part(name) for name in LAYERS)
        return NetworkPolicy(
            layers, part("mean"), part("scale"), greedy=form["greedy"], observation_axes=axes
        )
    raise InvalidFile(
        f"{path} does not hold policy {number}, a {form.get('kind', 'policy')} of another package",
        "Keep the policy yourself; the run holds how likely it takes the recorded actions",
    )
