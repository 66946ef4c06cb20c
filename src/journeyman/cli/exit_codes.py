"""How a command can end, for scripts.

    0    done
    1    an internal error of journeyman
    2    the command is not understood, or the description of a run
    3    world, costs, demonstrations, policy or another file are not usable
    4    what was asked for is not certified: a premise of it failed, the level is not reached, a
         budget is not shown to be kept or no policy keeps it, or the audit failed
    5    the machine sets a limit: memory, disk, time, permissions, a package, a directory in use
    6    the records contradict what was declared about the expert
    130  interrupted (Ctrl-C), after a checkpoint
    143  terminated (SIGTERM), after a checkpoint

Every error ends in one paragraph on standard error.
"""

import errno
import math
import re
from collections.abc import Callable
from typing import NamedTuple

from journeyman.errors import (
    AuditFailed,
    InvalidInput,
    JourneymanError,
    NoSolution,
    NotCertified,
    TooLarge,
)

FAULT, USAGE, BAD_DATA, NOT_CERTIFIED, LIMIT, CONTRADICTED = 1, 2, 3, 4, 5, 6
SIGNALLED = 128
"""Plus the number of the signal, as shells do."""
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
CLOSED = {errno.EACCES, errno.EPERM, errno.EROFS}
BROAD = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}


class DeclarationRefuted(NotCertified):
    """The records contradict what was declared about the expert."""


class Ending(NamedTuple):
    """An exit code, and what is printed on standard error."""

    code: int
    message: str


def ending_of(fault: BaseException) -> Ending | None:
    """How a fault ends a command; None for an internal error."""
    if isinstance(fault, JourneymanError):
        code = _code(fault)
        return Ending(code, in_options(str(fault)))
    if isinstance(fault, MemoryError):
        detail = f" ({fault})" if str(fault) else ""
        return Ending(
            LIMIT,
            f"The memory does not suffice{detail}. Use a smaller world or a solver over features "
            "(--solver sgd-al), or a machine with more memory.",
        )
    if isinstance(fault, OSError):
        return _of_system(fault)
    return None


def _code(fault: JourneymanError) -> int:
    from journeyman.runs.description import InvalidSettings

    if isinstance(fault, InvalidSettings):
        return USAGE
    if isinstance(fault, TooLarge):
        return LIMIT
    if isinstance(fault, InvalidInput):
        return BAD_DATA
    if isinstance(fault, DeclarationRefuted):
        return CONTRADICTED
    if isinstance(fault, NotCertified | AuditFailed | NoSolution):
        return NOT_CERTIFIED
    return LIMIT


def _of_system(fault: OSError) -> Ending | None:
    place = f" ({fault.filename})" if fault.filename else ""
    if fault.errno in FULL:
        return Ending(
            LIMIT,
            f"There is no space left to write{place}: {fault.strerror}. Free some, or give a "
            "directory elsewhere; a run is continued with --resume.",
        )
    if fault.errno in CLOSED:
        return Ending(
            LIMIT,
            f"Not permitted{place}: {fault.strerror}. Give a place that you may read and write.",
        )
    if isinstance(fault, FileNotFoundError | IsADirectoryError | NotADirectoryError):
        return Ending(BAD_DATA, f"{fault.strerror}{place}. Check the path.")
    if fault.errno in BROAD:
        return Ending(LIMIT, f"The system refuses{place}: {fault.strerror}. Try again later.")
    return None


def _gigabytes(found: re.Match[str]) -> str:
    return f"--option memory_gb={math.ceil(int(found[1]) / 1e8) / 10:g}"


def _option(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')} "


def _setting(found: re.Match[str]) -> str:
    return found[2] if found[1] == "True" else f"{found[2]} {found[1]}"


def _gallery(found: re.Match[str]) -> str:
    return f"gallery:{found[1]} with {found[2].replace('=', ' ')}"


def _names() -> dict[str, str]:
    """Classes of Python by their names on the command line."""
    from journeyman.runs.description import ASKING, CLASSICS, PREMISES

    named = {kind: name for name, kind in {**CLASSICS, **ASKING}.items()}
    named |= {kind: name for name, (kind, _) in PREMISES.items()}
    return named | {
        "LinearProgram": "linear-program", "ColumnGeneration": "column-generation",
        "BandedProgram": "banded-program", "SmoothedProgram": "smoothed-program",
        "ReducedProgram": "reduced-program",
        "StochasticSubgradient": "sgd-al", "StochasticPrimalDual": "primal-dual",
        "InfinityBall": "infinity-ball", "EuclideanBall": "euclidean-ball", "Simplex": "simplex",
        "L1Ball": "l1-ball", "PriorBall": "prior-ball", "Polytope": "polytope",
    }  # fmt: skip


SPELLINGS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"^[\w.]+ = (.*?) \((--[\w-]+)\)", _setting),
    (r"Give [^;]*; on the command line (--)", r"Give \1"),
    (
        r"the option absorbing=\S+ \([^;]*; on the command line (--\S+ \S+) (.*? elsewhere)\)",
        r"\1 (unleft for all such) \2",
    ),
    (r"the option \w+(?:=\S+)? \(on the command line ([^)]*)\)", r"\1"),
    (r"--option initial=0 or initial=", "--option initial=0 or --option initial="),
    (r"(?<!option )\btruncated_at ?= ?(\d+)", r"--truncated-at \1"),
    (r"\bterminal_state=world\.sink", "--terminal-state with the number of the absorbing state"),
    (r"\bterminal_state ?= ?(\d+)", r"--terminal-state \1"),
    (r"\bterminal_state=|the option terminal_state\b", "--terminal-state"),
    (r"\bmemory_limit=(\d+)", _gigabytes),
    (r"(?<!--option )\b(memory_gb|sink|steps_at_most|layout|gaps|increments)=", r"--option \1="),
    (r"written in with format=:", "written in with --format:"),
    (r"with format=:", "with --demonstrations-format:"),
    (r"\b([Uu]se|or) (\w+)\(\)", r"\1 --solver \2"),
    (
        r"\b(checkpoint_every|failure_probability|time_limit|accuracy) = (?!\S+ \(--)",
        _option,
    ),
    (r"(--accuracy \S+) is not strictly between 0.0 and inf", r"\1 is not above 0"),
    (
        r"; answer\.relaxation has the smallest increase.*?jm\.ExactPenalty\(\)",
        "; raise the limit of a --budget",
    ),
    (r"; jm\.read_demonstrations\(path, world=world\) does so", ""),
    (
        r"Give Demonstrations\(\.\.\., probabilities=\.\.\.\), or leave use_probabilities out",
        "Give a file with the column expert_probability, or leave --use-probabilities out",
    ),
    (r"; certificate\.regret\.next_start\(\)", ""),
    (r"\(use_probabilities\)", "(--use-probabilities)"),
    (r"\buse_probabilities is set", "--use-probabilities is given"),
    (r"\bworld\.with_horizon\((\d+)\)", r"--horizon \1"),
    (r"(?<!option )\bhorizon=(\d+)", r"--horizon \1"),
    (r"\bcost_range = \((\S+), (\S+)\)", r"--cost-range \1 \2"),
    (r"\bdiscount = ", "--discount "),
    (
        r"; if it looks at rewards, give EpisodeTotals\.of_episodes\(.*?\)",
        "; records hold no rewards, so it cannot look at them",
    ),
    (r"List some: GymnasiumSimulator\(.*", "List some with --actions, for example '-1 0 1'"),
    (r"expert_is=jm\.Rational\(regret_per_step=([\d.]+)\)", r"--expert-is rational:\1"),
    (r"\bexpert_is\b(?! = )", "--expert-is"),
    (r"; Rational\(regret_per_step=0\) is", "; rational:0 is"),
    (r"Declare NearlyOptimal\(regret=\.\.\.\)", "Declare nearly-optimal:R"),
    (r", or the world coordinates=", ", or a world with coordinates"),
    (r"; or read them with a world .* \(world=\.\.\.\)", ""),
    (r"\bWorld\((\d+ states[^)]*)\)", r"\1"),
    (r"\b([a-z]+)\((\w+=[^)]*)\)", _gallery),
    (r" name another state by restart=\.\.\.[^,]*,", ""),
)
"""How the library names an argument, and the option instead."""


def in_options(words: str) -> str:
    """A message of the library, which names arguments, with the options of the command line.

    >>> in_options("If so, give truncated_at=200.")
    'If so, give --truncated-at 200.'
    >>> in_options("Projection cannot keep budgets. Use LinearProgram().")
    'projection cannot keep budgets. Use --solver linear-program.'
    """
    for found, option in SPELLINGS:
        words = re.sub(found, option, words)
    names = _names()
    return re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[1]], words)


VALIDATED = (
    (r"^Value error, ", ""),
    (r"^Input should be a valid integer.*", "give a whole number"),
    (r"^Input should be a valid number.*", "give a number"),
    (r"^Input should be greater than or equal to (\S+)", r"give \1 or more"),
    (r"^Input should be less than or equal to (\S+)", r"give \1 or less"),
)
"""What Typer says of a value, and the same in fewer words."""


def plain(words: str) -> str:
    """What is wrong with a value of an option.

    >>> plain("Input should be greater than or equal to 4")
    'give 4 or more'
    """
    for found, instead in VALIDATED:
        words = re.sub(found, instead, words)
    return words
