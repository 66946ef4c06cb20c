"""Worlds from the names of Gymnasium environments: `gym:FrozenLake-v1` with its arguments.

Making an environment runs the code of its package, which the user has named; a name `module:Id-v0`
has Gymnasium import that module first.
"""

import warnings
from collections.abc import Callable
from typing import Any

from journeyman.adapters.world_files.source_options import (
    EVERYWHERE,
    Options,
    arguments_for,
    discount_of,
)
from journeyman.errors import InvalidWorld, MissingExtra
from journeyman.world import World

PREFIX = "gym:"


def read_gymnasium_world(source: str, options: Options) -> World:
    """The world behind the table `P` of an environment; its options are the arguments."""
    discount = discount_of(source, options)
    environment = make_environment(source.removeprefix(PREFIX), options)
    try:
        return World.from_gymnasium(environment, discount)
    finally:
        environment.close()


def make_environment(name: str, options: Options) -> Any:
    """`gymnasium.make(name, ...)` with arguments of the types its environment expects."""
    given = {key: text for key, text in options.items() if key not in ("discount", *EVERYWHERE)}
    try:
        import gymnasium
    except ImportError:
        raise MissingExtra("Gymnasium", "gymnasium") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gymnasium warns of what is refused below
        arguments = arguments_for(name, _creator(gymnasium, name), given) if given else {}
        return _made(lambda: gymnasium.make(name, **arguments), name, given)


def _creator(gymnasium: Any, name: str) -> Callable[..., Any]:
    """What makes the environment: the arguments of its class are the options."""
    entry = _made(lambda: gymnasium.spec(name.rpartition(":")[2]), name, {}).entry_point
    if isinstance(entry, str):
        entry = gymnasium.envs.registration.load_env_creator(entry)
    made: Callable[..., Any] = entry
    return made


def _made(make: Callable[[], Any], name: str, given: Options) -> Any:
    """What `make` returns, or why Gymnasium, or the environment itself, would not."""
    shown = ", ".join(f"{key}={text}" for key, text in given.items())
    try:
        return make()
    except Exception as fault:  # whatever an environment of somebody else's raises
        known = type(fault).__module__.startswith("gymnasium")
        cause = str(fault) if known else f"{type(fault).__name__}: {fault}"
        raise InvalidWorld(
            f"gymnasium cannot make {name!r}{f' with {shown}' * bool(shown)}: {cause.rstrip('. ')}",
            "Give the id of an installed environment, for example gym:FrozenLake-v1, with "
            "arguments it takes",
        ) from fault
