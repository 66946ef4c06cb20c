"""Worlds from the tabular environments of the package seals: `seals:CliffWorld7x4-v0`.

Their `transition_matrix` is (states, actions, next states). Their episodes end at a fixed horizon,
which is a time limit and not part of the world. Matrices in single precision are divided by their
sums, which is what the environments themselves do when they draw.
"""

from typing import Any

from scipy import sparse

from journeyman.adapters.world_files.gymnasium_worlds import make_environment
from journeyman.adapters.world_files.single_precision import mended_law, mended_rows, remembering
from journeyman.adapters.world_files.source_options import Options, discount_of
from journeyman.errors import InvalidWorld, MissingExtra
from journeyman.world import World
from journeyman.world.conversions import state_major

PREFIX = "seals:"


def read_seals_world(source: str, options: Options) -> World:
    """The world of a tabular environment; its options are the arguments."""
    discount = discount_of(source, options)
    environment = make_seals(source.removeprefix(PREFIX), options)
    try:
        model = environment.unwrapped
        if not hasattr(model, "transition_matrix"):
            raise InvalidWorld(
                f"{source} has no transition matrix",
                "Give a tabular environment of seals, for example seals:CliffWorld7x4-v0",
            )
        rows = sparse.csr_array(state_major(model.transition_matrix, "sax"))
        mended, error = mended_rows(rows, rows.dtype)
        return remembering(World(mended, mended_law(model.initial_state_dist), discount), error)
    finally:
        environment.close()


def make_seals(name: str, options: Options) -> Any:
    """An environment of seals, whose names stand in a namespace of their own."""
    from importlib.util import find_spec

    if find_spec("seals") is None:
        raise MissingExtra("seals", "seals")
    return make_environment(f"seals:seals/{name.removeprefix('seals/')}", options)
