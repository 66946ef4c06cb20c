"""Demonstrations against an estimated model once more, pair by pair.

Half of the level is for the distances of the model, half for those of the demonstrations; what
both allow together is to be kept by every pair and, where they are an estimate, by the starts.
"""

import math
from collections import Counter, defaultdict
from typing import Any

from journeyman.auditing import protocol
from journeyman.auditing.inputs import Records, World
from journeyman.auditing.knowledge import weissman
from journeyman.auditing.tables import Floats

NOTHING = 1e-9
"""The distance of one certain law from itself."""


def largest_excess(world: World, records: Records, level: float) -> float:
    """By how much the distance that is closest to its limit, or furthest beyond it, exceeds it."""
    known = world.knowledge
    model = known.distances(world.rows, level / 2 / protocol.MODEL_PART)
    if model is None:
        return 0.0
    part = level / 2 if known.of_starts or known.of_steps else level / 4
    found = []
    if not known.of_starts:
        draws = Counter(records.starts.tolist())
        law = dict(enumerate(world.initial.tolist()))
        own = weissman(len(records), world.num_states, 1, part)
        found.append(_distance(law, draws) - model.initial - own)
    if not known.of_steps:
        found += _excesses_of_steps(world, records, model.transition, part)
    return max(found, default=0.0)


def unobserved(world: World, records: Records) -> int:
    """How many recorded steps the model holds to be impossible."""
    laws = {pair: set(_law(world.rows, pair)) for pair in set(records.pair.tolist())}
    steps = zip(records.pair.tolist(), records.next_state.tolist(), strict=True)
    return sum(following not in laws[pair] for pair, following in steps)


def _excesses_of_steps(
    world: World, records: Records, error: Floats,
    part: float,
) -> list[float]:  # fmt: skip
    """For every pair that was visited; nothing is allowed to one that left its support."""
    known = world.knowledge
    drawn: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for pair, following in zip(records.pair.tolist(), records.next_state.tolist(), strict=True):
        drawn[pair][following] += 1
    sizes = known.successors(world.num_pairs, world.num_states)
    laws = known.num_laws(world.num_pairs, world.num_states)
    found = []
    for pair, draws in drawn.items():
        distance = _distance(_law(world.rows, pair), draws)
        own = weissman(draws.total(), int(sizes[pair]), laws, part)
        kept = known.support is None or draws.keys() <= _law(known.support, pair).keys()
        allowed = (float(error[pair]) + own) * kept
        if allowed > 0 or distance > NOTHING:
            found.append(distance - allowed)
    return found or [0.0]


def _law(rows: Any, pair: int) -> dict[int, float]:
    """The positive entries of a row."""
    inside = slice(rows.indptr[pair], rows.indptr[pair + 1])
    entries = zip(rows.indices[inside].tolist(), rows.data[inside].tolist(), strict=True)
    return {state: value for state, value in entries if value > 0}


def _distance(law: dict[int, float], draws: Counter[int]) -> float:
    """In the 1-norm, of a law from frequencies."""
    total = draws.total()
    return math.fsum(abs(law.get(x, 0.0) - draws[x] / total) for x in {*law, *draws})
