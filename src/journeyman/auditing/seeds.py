"""Which seed a run must have drawn from: world and policy decide it, by a digest of both.

    explicit   offsets of states, CSR of the laws (indptr, indices, data), initial law, discount,
               probabilities of the policy
    large      discount, least and greatest costs, and of the policy its form with coefficients,
               weights or probabilities

Whole numbers as 64 bits, real ones in double precision, the least byte first, each array behind the
number of its entries. A policy that is made by code has to be made before it can be digested.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from journeyman.auditing.inputs import World
from journeyman.auditing.large_inputs import Form, LargeQuestion
from journeyman.auditing.tables import Floats

HEAD = b"journeyman draws\n"
BITS = 60
FEATURES, TABLE, MIXTURE = (
    "journeyman.policy.function_policy.FeaturePolicy", "journeyman.policy.table.Policy",
    "journeyman.policy.mixture_policy.MixturePolicy",
)  # fmt: skip


def explicit_seed(world: World, policy: Floats) -> int:
    rows = world.rows
    wholes = [world.first, rows.indptr, rows.indices]
    reals = [rows.data, world.initial, np.array([world.discount]), policy]
    return _seed([b"explicit\n", *map(_whole, wholes), *map(_real, reals)])


def large_seed(question: LargeQuestion, form: Form, parts: dict[str, Any] | None) -> int | None:
    """None where the policy is code that was not made."""
    words = list(_words(form.told, "policy", form, parts))
    if any(word is None for word in words):
        return None
    ends = np.array([question.discount]), question.lowest, question.highest
    return _seed([b"large\n", *map(_real, ends), *(word or b"" for word in words)])


def _words(
    told: dict[str, Any], name: str, form: Form, parts: dict[str, Any] | None
) -> Iterator[bytes | None]:
    """A policy as it was stored."""
    kind = told["form"]
    if kind == "reference":
        yield from [None] if parts is None else _made(parts[name])
    elif kind == "features":
        yield from _said("features", _real(form.figures("coefficients", name)))
    elif kind == "table":
        offsets = form.arrays[f"offsets of the {name}"]
        yield from _said("table", _real(form.figures("probabilities", name)), _whole(offsets))
    elif kind == "mixture":
        weights = form.figures("weights", name)
        yield from _said("mixture", _real(weights[weights != 0]))
        for k in np.flatnonzero(weights):
            yield from _words(
                told["candidates"][k], f"candidate {k} of the {name}", form, parts
            )  # fmt: skip


def _made(policy: Any) -> Iterator[bytes]:
    """A policy as code made it."""
    kinds = {f"{one.__module__}.{one.__qualname__}" for one in type(policy).__mro__}
    if FEATURES in kinds:
        yield from _said("features", _real(policy.coefficients))
    elif TABLE in kinds:
        yield from _said("table", _real(policy.per_pair), _whole(policy.pairs.offsets))
    elif MIXTURE in kinds:
        weights = np.asarray(policy.weights)
        yield from _said("mixture", _real(weights[weights != 0]))
        for k in np.flatnonzero(weights):
            yield from _made(policy.candidates[k])
    else:
        yield b"code\n"


def _said(word: str, *arrays: bytes) -> list[bytes]:
    return [word.encode() + b"\n", *arrays]


def _whole(values: Any) -> bytes:
    return _framed(np.array(values, dtype="<i8"))


def _real(values: Any) -> bytes:
    array = np.array(values, dtype="<f8")
    array[array == 0] = 0.0
    return _framed(array)


def _framed(array: Any) -> bytes:
    return np.array([array.size], dtype="<i8").tobytes() + bytes(array.tobytes())


def _seed(content: list[bytes]) -> int:
    found = hashlib.sha256(HEAD + b"".join(content)).digest()
    return int.from_bytes(found[:8], "big") >> (64 - BITS)
