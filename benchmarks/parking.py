"""Driving styles: learned in some parking lots, driven with in others.

For every seed and style an expert drives `--trips` times from `--starts` starts, drawn again and
again, in each of `--lots` lots. Methods learn one cost from these trips, and plan with it in
`--held-out` lots that nobody has driven in: other walls, other parked cars, another space to reach,
other starts. Compared are expected totals of the seven costs there, apprentice beside expert, in
units of the *spread*: how much the three styles differ, largest less least, on the same lots.
Printed are, over seeds,

    largest    the largest error over styles and costs: median, and the worst seed
    within     share of all errors (seed, style, cost) of at most 10 % of the spread
    arriving   expected share of trips that end in the space within 1,000 steps, least over styles

with CPU seconds of one thread for learning one style; then for every cost, over seeds and styles,
the median of the error, the worst one, and how many are at most 10 %, beside the mean spread. Lots
that are learned from are smaller than those held out, of about 10^5 states. Methods:

    consistent          the centre of the costs under which the trips are optimal
    exact program       worst-case weights of `Simplex`: costs are not negative and one of them
                        matters
    game                the same by multiplicative weights (MWAL)
    margins             maximum margin planning with weights that are not negative
    likelihood          maximum likelihood
    projection          Abbeel and Ng's, the paper's own method; weights of either sign
    clone of choices    no cost: a multinomial logit of the step on its own costs, on how much
                        nearer to the space it leads, and on how it leaves the car standing to it
    clone of states     the action recorded in a state, uniform elsewhere. States of another lot are
                        others: judged in the *same* lots, from starts that were not recorded,
                        by the spread of the large ones

`--csv` keeps every error and spares those that it has already. Lot k of seed r has the seed
1000 r + k, held-out ones 1000 r + 500 + k. `--temperature` is that of experts who err; maximum
likelihood then errs like them.
"""

import argparse
import csv
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.arrays import FloatArray, IntArray
from journeyman.execution import one_blas_thread
from journeyman.gallery import ParkingExample
from journeyman.gallery.example import expert_of_cost
from journeyman.gallery.parking_lot import METRES, NAMES, STYLES

LONGEST = 1000
HELD_OUT = 500
Member = tuple[jm.World, jm.CostBasis, jm.Demonstrations]
Drive = Callable[[ParkingExample], jm.Policy]
"""From a lot to the apprentice's policy there."""


class Score(NamedTuple):
    """One method, one style, one seed."""

    errors: FloatArray
    """Of the seven costs, in units of the spread."""
    arriving: float
    seconds: float


Key = tuple[int, str, str]
"""Seed, style, method."""
SPREAD = ("all", "spread")
"""Under which the spreads of a seed are kept, in the place of errors."""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--lots", type=int, default=8, help="that are learned from")
    parser.add_argument("--home-width", type=int, default=40, help="of these, in cells")
    parser.add_argument("--home-aisles", type=int, default=1)
    parser.add_argument("--trips", type=int, default=128, help="recorded in each of them")
    parser.add_argument("--starts", type=int, default=64, help="of these trips, in each of them")
    parser.add_argument("--held-out", type=int, default=3)
    parser.add_argument("--width", type=int, default=92, help="of these, in cells")
    parser.add_argument("--aisles", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for learning one style")
    parser.add_argument("--csv", type=Path, help="every error; what is in it is not done again")
    options = parser.parse_args(arguments)
    print(describe_machine())
    known = {} if options.csv is None else _kept(options.csv)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    with one_blas_thread():
        for seed in seeds:
            missing = {(style, name) for style in STYLES for name in options.methods
                       if (seed, style, name) not in known}  # fmt: skip
            missing |= {SPREAD} - {key[1:] for key in known if key[0] == seed}
            if missing:
                known |= _seed(options, seed, missing)
    print(f"\n{'':<20}{'largest':>18}{'within':>8}{'arriving':>10}{'seconds':>9}")
    for name in options.methods:
        _show(name, [[known[seed, style, name] for style in STYLES] for seed in seeds])
    spreads = np.array([known[seed, *SPREAD].errors for seed in seeds])
    print(f"\n{'':<20}" + "".join(f"{name:>22}" for name in NAMES))
    print(f"{'mean spread':<20}" + "".join(f"{x:>22.2f}" for x in spreads.mean(axis=0)))
    for name in options.methods:
        _show_costs(name, [known[seed, style, name] for style in STYLES for seed in seeds])


def _lots(
    options: argparse.Namespace, first: int, count: int, size: tuple[int, int]
) -> dict[str, list[ParkingExample]]:
    """The same lots for every style, each with that style's driver."""
    found: dict[str, list[ParkingExample]] = {style: [] for style in STYLES}
    for seed in range(first, first + count):
        lot = jm.gallery.parking(
            width=size[0], aisles=size[1], starts=2 * options.starts, seed=seed
        )
        costs = lot.basis.on(lot.world)
        for style, weights in STYLES.items():
            expert = expert_of_cost(lot.world, costs @ np.array(weights), options.temperature)
            found[style].append(lot._replace(expert=expert))
    return found


def _seed(
    options: argparse.Namespace, seed: int, missing: Collection[tuple[str, str]]
) -> dict[Key, Score]:
    """Scores of methods for styles."""
    first = 1000 * seed
    homes = _lots(options, first, options.lots, (options.home_width, options.home_aisles))
    away = _lots(options, first + HELD_OUT, options.held_out, (options.width, options.aisles))
    for words, lots in (("learned from", homes), ("held out", away)):
        sizes = [one.world.num_states for one in lots["nice"]]
        print(f"seed {seed}, {words}: {min(sizes):,} to {max(sizes):,} states", flush=True)
    own = {style: _means(lots, [one.expert for one in lots])[0] for style, lots in away.items()}
    spread = np.ptp(np.array(list(own.values())), axis=0)
    for style, means in (*own.items(), ("spread", spread)):
        print(f"  {style:<10}" + "".join(f"{x:>8.2f}" for x in means))
    found: dict[Key, Score] = {(seed, *SPREAD): Score(spread, 1.0, 0.0)}
    if SPREAD in missing and options.csv is not None:
        _keep(options.csv, (seed, *SPREAD), found[seed, *SPREAD])
    for style in STYLES:
        members = _recorded(homes[style], options.trips, seed)
        for name in options.methods:
            if (style, name) not in missing:
                continue
            start = time.process_time()
            drive = METHODS[name](members, options)
            seconds = time.process_time() - start
            if name == "clone of states":
                means, arriving = _beside(homes[style], members)
            else:
                means, arriving = _means(away[style], [drive(one) for one in away[style]])
                means = means - own[style]
            score = Score(np.abs(means) / spread, arriving, seconds)
            found[seed, style, name] = score
            _tell(style, name, score)
            if options.csv is not None:
                _keep(options.csv, (seed, style, name), score)
    return found


def _recorded(lots: Sequence[ParkingExample], trips: int, seed: int) -> list[Member]:
    """Each lot with the trips from half of its starts; the others are for the clone of states. The
    world's starts are those of the record."""
    members = []
    for k, one in enumerate(lots):
        starts = np.flatnonzero(one.world.initial)[::2]
        given = _started(one.world, starts)
        demos = jm.record(
            given, one.expert, trajectories=trips, horizon=LONGEST, seed=1000 * seed + k
        )
        members.append((_started(one.world, demos.first_states), one.basis, demos))
    return members


def _started(world: jm.World, states: IntArray) -> jm.World:
    """The same world, started in these states alike."""
    counts = np.bincount(states, minlength=world.num_states)
    return jm.World(
        world.transition, counts / counts.sum(), world.discount,
        choice_offsets=world.pairs.offsets, observed_actions=world.pairs.actions, sink=world.sink,
        coordinates=world.coordinates,
    )  # fmt: skip


def _means(
    lots: Sequence[ParkingExample], policies: Sequence[jm.Policy]
) -> tuple[FloatArray, float]:
    """Expected totals of the costs and the share of trips that arrive, means over lots."""
    visits = [jm.occupancy(one.world, policy) for one, policy in zip(lots, policies, strict=True)]
    totals = [one.expectations(lot.basis) for one, lot in zip(visits, lots, strict=True)]
    arriving = [_arriving(one.world, policy) for one, policy in zip(lots, policies, strict=True)]
    return np.mean(totals, axis=0), float(np.mean(arriving))


def _arriving(world: jm.World, policy: jm.Policy) -> float:
    """Probability of having come to the end after `LONGEST` steps."""
    from scipy import sparse

    pairs = world.pairs
    rows = sparse.csr_array(
        (policy.on(world), (pairs.states, np.arange(world.num_pairs))),
        shape=(world.num_states, world.num_pairs),
    )
    step = (rows @ world.transition).T.tocsr()
    law = world.initial
    for _ in range(LONGEST):
        law = step @ law
        if law[world.sink] > 1 - 1e-9:
            break
    return float(law[world.sink])


def _beside(homes: list[ParkingExample], members: list[Member]) -> tuple[FloatArray, float]:
    """How far the clones of states are from the expert in its own lots, from the starts without a
    record."""
    starts = [np.flatnonzero(one.world.initial)[1::2] for one in homes]
    lots = [one._replace(world=_started(one.world, part))
            for one, part in zip(homes, starts, strict=True)]  # fmt: skip
    cloned, arriving = _means(lots, [jm.clone(demos, world) for world, _, demos in members])
    return cloned - _means(lots, [one.expert for one in lots])[0], arriving


def _planned(weights: FloatArray) -> Drive:
    return lambda lot: jm.plan(lot.world, lot.basis.on(lot.world) @ weights).policy


def _problem(members: list[Member], cost_class: jm.costs.CostClass) -> jm.Apprenticeship:
    """All lots at once; the target is the plain mean of the trips, which are complete."""
    family = jm.problem.Family(members, weights=[1 / len(members)] * len(members))
    world, demos = family.world, family.demonstrations
    costs, taken = family.basis.on(world), demos.pairs_in(world)
    ages = np.concatenate([np.arange(size) for size in np.diff(demos.offsets)])
    target = (world.discount**ages) @ costs[taken] / len(demos)
    return jm.Apprenticeship(world, family.basis, jm.ExpertExpectation(target), cost_class)


def _exact(members: list[Member], options: argparse.Namespace) -> Drive:
    answer = jm.solve(_problem(members, jm.Simplex()), time_limit=options.limit)
    return _planned(answer.cost_weights)


def _game(members: list[Member], options: argparse.Namespace) -> Drive:
    solver = jm.solvers.MultiplicativeWeights(accuracy=1e-4)
    answer = jm.solve(_problem(members, jm.Simplex()), solver, time_limit=options.limit)
    return _planned(answer.cost_weights)


def _consistent(members: list[Member], options: argparse.Namespace) -> Drive:
    solver = jm.solvers.ConsistentCosts(nonnegative=True)
    answer = jm.solve(_problem(members, jm.Simplex()), solver, time_limit=options.limit)
    return _planned(answer.cost_weights)


def _margins(members: list[Member], options: argparse.Namespace) -> Drive:
    family = jm.problem.Family(members, weights=[1 / len(members)] * len(members))
    expert = jm.clone(family.demonstrations, family.world)
    solver = jm.solvers.MaximumMarginPlanning(1e-6, expert=expert, nonnegative=True, accuracy=1e-4)
    answer = jm.solve(_problem(members, jm.Simplex()), solver, time_limit=options.limit)
    return _planned(answer.cost_weights)


def _likelihood(members: list[Member], options: argparse.Namespace) -> Drive:
    solver = jm.solvers.MaximumLikelihood(
        starts=1, start=(1.0,) * len(NAMES), max_iterations=60, time_limit=options.limit
    )
    weights = solver.estimate(members).weights
    if options.temperature == 0:
        return _planned(weights)
    return lambda lot: jm.policy.soft_plan(lot.world, lot.basis.on(lot.world) @ weights).policy


def _projection(members: list[Member], options: argparse.Namespace) -> Drive:
    solver = jm.solvers.Projection(accuracy=1e-3)
    answer = jm.solve(_problem(members, jm.EuclideanBall()), solver, time_limit=options.limit)
    return _planned(answer.cost_weights)


MYOPIC = 1e-9
"""The discount at which a soft-optimal policy is a multinomial logit."""


def _clone_of_choices(members: list[Member], options: argparse.Namespace) -> Drive:
    given = []
    for world, basis, demos in members:
        given.append((_myopic(world), _seen(world, basis), demos))
    solver = jm.solvers.MaximumLikelihood(starts=1, max_iterations=60, time_limit=options.limit)
    weights = solver.estimate(given).weights

    def drive(lot: ParkingExample) -> jm.Policy:
        seen = _seen(lot.world, lot.basis).on(lot.world)
        return jm.policy.soft_plan(_myopic(lot.world), seen @ weights).policy

    return drive


def _myopic(world: jm.World) -> jm.World:
    return jm.World(
        world.transition, world.initial, MYOPIC, choice_offsets=world.pairs.offsets,
        observed_actions=world.pairs.actions,
    )  # fmt: skip


def _seen(world: jm.World, basis: jm.CostBasis) -> jm.CostBasis:
    """What a step costs, and where it leaves the car: nearer to the space, turned to it, turned as
    the space asks, both more so when near."""
    places = np.asarray(world.coordinates)
    goal = places[-1]
    aside = goal[:2] - places[:, :2]
    distance = np.hypot(*aside.T)
    angle = np.radians(places[:, 2])
    way = np.where(places[:, 3] == 0, 1.0, -1.0)
    towards = way * (np.cos(angle) * aside[:, 0] + np.sin(angle) * aside[:, 1])
    towards = towards / np.maximum(distance, METRES)
    turned = np.cos(angle - np.radians(goal[2]))
    near = np.exp(-distance / 10.0)
    after = world.transition.indices
    before = world.pairs.states
    columns = [
        distance[after] - distance[before], towards[after], turned[after],
        near[after] * towards[after], near[after] * turned[after], after == world.sink,
    ]  # fmt: skip
    names = ["farther", "towards", "turned", "towards, near", "turned, near", "arrives"]
    table = np.column_stack([np.asarray(basis.on(world)), *columns])
    return jm.CostBasis(table, [*basis.names, *names])


METHODS: dict[str, Callable[[list[Member], argparse.Namespace], Drive]] = {
    "consistent": _consistent,
    "exact program": _exact,
    "game": _game,
    "margins": _margins,
    "likelihood": _likelihood,
    "projection": _projection,
    "clone of choices": _clone_of_choices,
    "clone of states": lambda members, options: lambda lot: lot.expert,
}


def _tell(style: str, name: str, found: Score) -> None:
    """One method and style, as soon as they are done."""
    worst = int(found.errors.argmax())
    print(
        f"  {style:<10}{name:<18}{found.errors[worst]:>8.1%} ({NAMES[worst]}), "
        f"{found.arriving:.0%} arrive, {found.seconds:.1f} s",
        flush=True,
    )


def _show(name: str, found: list[list[Score]]) -> None:
    largest = [max(float(one.errors.max()) for one in scores) for scores in found]
    errors = np.array([one.errors for scores in found for one in scores])
    arriving = min(one.arriving for scores in found for one in scores)
    seconds = float(np.mean([one.seconds for scores in found for one in scores]))
    words = f"{np.median(largest):.1%} ({max(largest):.1%})"
    within = float((errors <= 0.1).mean())
    print(f"{name:<20}{words:>18}{within:>8.0%}{arriving:>10.0%}{seconds:>9.1f}")


def _show_costs(name: str, found: list[Score]) -> None:
    errors = np.array([one.errors for one in found])
    cells = [
        f"{np.median(part):.1%} ({part.max():.0%}) {int((part <= 0.1).sum())}/{part.size}"
        for part in errors.T
    ]
    print(f"{name:<20}" + "".join(f"{cell:>22}" for cell in cells))


def _kept(path: Path) -> dict[Key, Score]:
    if not path.exists():
        return {}
    with path.open(newline="") as stream:
        lines = list(csv.reader(stream))[1:]
    return {
        (int(seed), style, name): Score(
            np.array(errors, dtype=float), float(arriving), float(seconds)
        )
        for seed, style, name, arriving, seconds, *errors in lines
    }


def _keep(path: Path, key: Key, score: Score) -> None:
    new = not path.exists()
    with path.open("a", newline="") as stream:
        writer = csv.writer(stream)
        if new:
            writer.writerow(["seed", "style", "method", "arriving", "seconds", *NAMES])
        writer.writerow([*key, score.arriving, score.seconds, *score.errors.tolist()])


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
