"""The main job on an embedded example, from recording to a certificate, told in a page of text."""

from textwrap import wrap

import journeyman as jm

WIDEST_MAP = 40
"""Cells along each side up to which the policy is drawn."""
WIDTH = 100


def run_demo(size: int, trajectories: int, horizon: int, seed: int) -> str:
    """What `journeyman demo` prints."""
    world, basis, expert = jm.gallery.grid(size, seed=seed)
    demos = jm.record(world, expert, trajectories=trajectories, horizon=horizon, seed=seed)
    apprentice = jm.learn(world, basis, demos)
    problem, answer = apprentice.problem, apprentice.answer
    return "\n".join(
        [
            f"A {size} x {size} grid with slippery floor: {world.num_states} states, "
            f"{world.num_pairs} state-action pairs, discount {world.discount}.",
            f"An expert follows a hidden cost; {len(demos)} demonstrations, "
            f"{demos.num_steps} steps recorded.",
            "",
            "Discounted visits to each macro cell (the costs that may matter):",
            "",
            jm.report.comparison(problem, answer),
            "",
            *_figures(problem, answer, expert, demos),
            "",
            "The certificate:",
            "",
            apprentice.certificate.table(),
            "",
            *wrap(apprentice.summary(), WIDTH),
            "",
            apprentice.certificate.advice(),
            *(_map(world, answer.policy) if size <= WIDEST_MAP else ()),
        ]
    )


def _figures(
    problem: jm.Apprenticeship, answer: jm.Answer, expert: jm.Policy, demos: jm.Demonstrations
) -> list[str]:
    """Gaps on the data and to the true expert, who is known in an example."""
    world, basis = problem.world, problem.basis
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    exact = jm.Apprenticeship(world, basis, truth)
    noise = exact.cost_class.gap(problem.target - exact.target)
    cloned, uniform = jm.clone(demos, world), jm.Policy.uniform(world)
    return [
        f"status            {answer.status.name} ({answer.engine}, "
        f"build {answer.build_seconds:.3f} s, solve {answer.solve_seconds:.3f} s)",
        f"gap on the data   {answer.value:.4f}   no policy can be below {answer.lower_bound:.4f}; "
        f"the largest conceivable is {problem.trivial_bound:.0f}",
        f"gap to the expert {exact.gap(answer.occupancy):.4f}   known only in an example; the "
        f"sampling error of the demonstrations alone is {noise:.4f}",
        f"for scale         {exact.gap(cloned):.4f}   behaviour cloning, which knows that this "
        "expert is a stationary policy;",
        f"                  {exact.gap(uniform):.4f}   uniform actions",
    ]


def _map(world: jm.World, policy: jm.Policy) -> list[str]:
    heading = "The apprentice's policy (likeliest direction; · where none stands out):"
    return ["", heading, "", jm.report.policy_map(world, policy)]
