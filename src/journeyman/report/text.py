"""Plain-text pictures of a result, for terminals and logs."""

import numpy as np

from journeyman.certificate import Certificate
from journeyman.certificate.presentation import brief, has_goal, percent, premises_in_words
from journeyman.errors import InvalidWorld
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship
from journeyman.solvers import Answer
from journeyman.world import World

ARROWS = {"up": "↑", "right": "→", "down": "↓", "left": "←", "stay": "•"}
WALL = "█"
UNDECIDED = "·"
CLEAR_PREFERENCE = 0.4
"""An arrow is drawn where the likeliest action has at least this probability."""


def comparison(problem: Apprenticeship, answer: Answer) -> str:
    """Expert against apprentice, cost by cost, in the sign the features were given in."""
    basis = problem.basis
    expert = basis.as_given(problem.target)
    apprentice = basis.as_given(answer.occupancy.expectations(basis))
    kind = "reward" if basis.rewards else "cost"
    width = max(len(kind), *(len(name) for name in basis.names))
    lines = [f"{kind:<{width}}  {'expert':>10}  {'apprentice':>10}  {'difference':>10}"]
    for name, theirs, ours in zip(basis.names, expert, apprentice, strict=True):
        difference = round(float(ours - theirs), 4) + 0.0
        lines.append(f"{name:<{width}}  {theirs:>10.4f}  {ours:>10.4f}  {difference:>+10.4f}")
    return "\n".join([*lines, "", expert_in_words(problem)])


def expert_in_words(problem: Apprenticeship) -> str:
    """Where the expert's numbers come from, and what they leave open."""
    expectation = problem.expectation
    if expectation.num_trajectories is None:
        return "expert: expectations declared exact"
    errors = expectation.spread / np.sqrt(expectation.num_trajectories)
    unseen = expectation.truncation_mass / problem.total_time
    tails = f"unrecorded tails hold {percent(unseen)} of the discounted time"
    if has_goal(problem):
        tails = f"{percent(unseen)} of them were cut off before their end"
    used, records = expectation.num_trajectories, expectation.demonstrations
    spent = 0 if records is None else len(records) - used
    others = f" (the other {spent} serve to reduce its variance)" if spent > 0 else ""
    return (
        f"expert: mean of {used} demonstrations{others}, standard error up to "
        f"{errors.max():.2g} per {'reward' if problem.basis.rewards else 'cost'}; {tails}"
    )


def policy_map(world: World, policy: Policy) -> str:
    """The likeliest direction in every cell of a world with (row, column) coordinates."""
    if world.coordinates is None or world.coordinates.shape[1] != 2 or world.action_names is None:
        raise InvalidWorld(
            "a policy map needs (row, column) coordinates and action names",
            "Give World(..., coordinates=..., action_names=...)",
        )
    cells = np.rint(world.coordinates).astype(int)
    cells -= cells.min(axis=0)
    picture = np.full(cells.max(axis=0) + 1, WALL, dtype=object)
    laws = policy.probabilities(np.arange(world.num_states))
    for (row, column), law in zip(cells, laws, strict=True):
        name = world.action_names[int(np.argmax(law))]
        sure = law.max() >= CLEAR_PREFERENCE
        picture[row, column] = ARROWS.get(name, name[:1]) if sure else UNDECIDED
    return "\n".join(" ".join(line) for line in picture)


def result_in_short(certificate: Certificate) -> tuple[str, str]:
    """The result in a sentence or two, and what it assumes."""
    return brief(certificate), premises_in_words(certificate.premises)
