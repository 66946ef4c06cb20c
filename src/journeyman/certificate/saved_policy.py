"""Policies of large worlds on disk: figures in `policy.npz`, code by reference in `code.json`.

    features     coefficients, and features by reference
    mixture      weights, and every candidate that has weight
    table        the probabilities of an explicit policy
    reference    nothing: the policy itself is code

Reading one makes its code again, so it has to be trusted.
"""

import json
import warnings
from pathlib import Path
from typing import Any

from journeyman.arrays import assign
from journeyman.certificate.code_references import CodeIndex, located, source_digest
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidFile
from journeyman.policy import Policy
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.function_policy import FeaturePolicy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.storage import Arrays, PathLike, load_arrays, take
from journeyman.world import Pairs

CODE, POLICY = "code.json", "policy.npz"
KIND, VERSION = "policy of a large world", 1
CODE_KIND, CODE_VERSION = "journeyman code", 2
TABLE = ("probabilities", "offsets")


def described(policy: AnyPolicy, index: CodeIndex) -> tuple[dict[str, Any], dict[str, Any]]:
    """The form of a policy and its arrays; what is code is noted in `index`, or refused."""
    arrays: dict[str, Any] = {}
    return _form(policy, "policy", index, arrays), arrays


def _form(policy: Any, name: str, index: CodeIndex, arrays: dict[str, Any]) -> dict[str, Any]:
    if isinstance(policy, FeaturePolicy) and not index.holds(policy):
        index.add(f"features of the {name}", policy.features)
        arrays[f"coefficients of the {name}"] = policy.coefficients
        return {"form": "features"}
    if isinstance(policy, MixturePolicy) and not index.holds(policy):
        arrays[f"weights of the {name}"] = policy.weights
        members = [
            _form(one, f"candidate {k} of the {name}", index, arrays)
            if weight > 0
            else {"form": "unused"}
            for k, (one, weight) in enumerate(zip(policy.candidates, policy.weights, strict=True))
        ]
        axes = policy.observation_axes
        return {"form": "mixture", "observation_axes": axes, "candidates": members}
    if isinstance(policy, Policy) and not index.holds(policy):
        arrays[f"probabilities of the {name}"] = policy.per_pair
        arrays[f"offsets of the {name}"] = policy.pairs.offsets
        if policy.pairs.numbers is not None:
            arrays[f"action numbers of the {name}"] = policy.pairs.numbers
        return {"form": "table"}
    index.add(name, policy)
    return {"form": "reference"}


def load_policy(directory: PathLike, *, trust_code: bool = False) -> AnyPolicy:
    """The policy of a saved run in a large world; candidates without weight are left out.

    Its code is called: that of a stranger can do anything, so `trust_code=True` is needed.
    """
    place = Path(directory)
    facts = _code(place / CODE)
    if trust_code is not True:
        called = ", ".join(str(call["function"]) for call in facts["calls"])
        raise InvalidFile(
            f"the policy in {place} is made by calling {called}",
            "Give trust_code=True if you trust that code on this machine",
        )
    _warn_of_changes(facts, place)
    header, arrays = load_arrays(place / POLICY, KIND, VERSION)
    made: list[Any] = []
    for call in facts["calls"]:
        given = {name: _argument(one, made, place) for name, one in call["arguments"].items()}
        made.append(located(call["function"])(**given))
    parts = {name: _found(one, made) for name, one in facts["parts"].items()}
    policy: AnyPolicy = _policy(header["policy"], "policy", parts, arrays, place)
    return policy


def _warn_of_changes(facts: dict[str, Any], place: Path) -> None:
    """Say when the code is not what it was: the policy may then be another one."""
    sources = facts["sources"]
    changed = [name for name, told in sources.items() if told != source_digest(name)]
    if changed:
        warnings.warn(
            f"the source of {', '.join(changed)} has changed since the run in {place} was saved: "
            "the policy that it makes now may be another one than was certified",
            UserWarning,
            stacklevel=3,
        )


def _code(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_bytes())
        if facts["kind"] != CODE_KIND or facts["version"] != CODE_VERSION:
            raise ValueError(f"it holds {facts['kind']!r}")
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise InvalidFile(
            f"{path} does not tell of code ({fault})",
            "Give a directory that the certificate of a large world was saved in",
        ) from fault
    return dict(facts)


def _argument(told: dict[str, Any], made: list[Any], place: Path) -> Any:
    if "value" in told:
        return told["value"]
    if "file" in told:
        return Demonstrations.load(place / Path(told["file"]).name)
    if "list" in told:
        return [_argument(one, made, place) for one in told["list"]]
    return _found(told, made)


def _found(told: dict[str, Any], made: list[Any]) -> Any:
    thing = made[told["call"]]
    for step in told["path"]:
        by_key = isinstance(step, int) or isinstance(thing, dict)
        thing = thing[step] if by_key else getattr(thing, step)
    return thing


def _policy(
    told: dict[str, Any], name: str, parts: dict[str, Any], arrays: Arrays, place: Path
) -> Any:
    path, form = place / POLICY, told["form"]
    if form == "reference":
        return parts[name]
    if form == "features":
        coefficients = take(path, arrays, f"coefficients of the {name}")
        return FeaturePolicy(parts[f"features of the {name}"], coefficients)
    if form == "table":
        law, offsets = (take(path, arrays, f"{word} of the {name}") for word in TABLE)
        return Policy(law, Pairs(offsets, arrays.get(f"action numbers of the {name}")))
    if form != "mixture":
        raise InvalidFile(f"{path} holds a policy of the form {form!r}", "Save it again")
    weights = take(path, arrays, f"weights of the {name}")
    members = [
        _policy(one, f"candidate {k} of the {name}", parts, arrays, place)
        for k, one in enumerate(told["candidates"])
        if one["form"] != "unused"
    ]
    kept = weights[[one["form"] != "unused" for one in told["candidates"]]]
    mixture = MixturePolicy(members, kept, told["observation_axes"])
    assign(mixture, weights=kept)
    return mixture
