"""What a study was made on, in words: the page of a study should be readable without its script."""

from journeyman.problem import Apprenticeship


def setting(problem: Apprenticeship) -> str:
    """World, costs, their class, and what is known of the expert.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    >>> demos = jm.record(world, expert, trajectories=20, horizon=30, seed=0)
    >>> setting(jm.Apprenticeship(world, basis, demos, jm.Simplex()))
    '16 states and 64 pairs, discount 0.95; 4 costs, class Simplex; 20 demonstrations'
    """
    world, demos = problem.world, problem.demonstrations
    parts = [
        f"{world.num_states:,} states and {world.num_pairs:,} pairs, discount {world.discount:g}",
        f"{_counted(problem.basis.num_costs, 'cost')}, class {type(problem.cost_class).__name__}",
    ]
    if problem.constraints:
        parts.append(_counted(len(problem.constraints), "budget"))
    known = "expectations" if demos is None else _counted(len(demos), "demonstration")
    return "; ".join([*parts, known])


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
