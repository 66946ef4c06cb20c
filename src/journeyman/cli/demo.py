"""The main job on an embedded example, from recording to a policy, told in a page of text."""

import journeyman as jm


def run_demo(size: int, trajectories: int, horizon: int, seed: int) -> str:
    """What `journeyman demo` prints."""
    world, basis, expert = jm.gallery.grid(size, seed=seed)
    assert isinstance(expert, jm.Policy)
    demos = jm.record(world, expert, trajectories=trajectories, horizon=horizon, seed=seed)
    problem = jm.Apprenticeship(world, basis, demos)
    answer = jm.solve(problem)
    exact = jm.Apprenticeship(
        world, basis, jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    )
    cloned = jm.clone(demos, world)
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
            f"status            {answer.status.name} ({answer.engine}, "
            f"build {answer.build_seconds:.3f} s, solve {answer.solve_seconds:.3f} s)",
            f"gap on the data   {answer.value:.4f}  (no policy can be below "
            f"{answer.lower_bound:.4f}; the largest conceivable is {problem.trivial_bound:.0f})",
            f"gap to the expert {exact.gap(answer.occupancy):.4f}  (by exact evaluation of the "
            "expert, known here because the world is an example)",
            f"for scale         {exact.gap(cloned):.4f} behaviour cloning, "
            f"{exact.gap(jm.Policy.uniform(world)):.4f} uniform actions",
            "",
            "The apprentice's policy (likeliest direction; · where none stands out):",
            "",
            jm.report.policy_map(world, answer.policy),
        ]
    )
