"""Three driving styles, learned in small parking lots and driven with in a large one.

    python examples/parking_styles.py [--trips 128] [--lot 500] [--picture docs/images/parking.svg]

Experts (`jm.gallery.parking`) are optimal for weights that nobody else knows. From their trips in
eight lots of one aisle `jm.solvers.ConsistentCosts` learns weights, the centre of those under which
all these trips are optimal. They are planned with in a lot of three aisles that nobody has driven
in. Printed are expected totals of the costs there, expert beside apprentice; the picture shows
trips of both from the same starts.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np

import journeyman as jm
from journeyman.gallery.parking_lot import METRES, STYLES

HOMES, SMALL = tuple(range(8)), {"width": 40, "aisles": 1}
SHOWN, LONGEST = 5, 1000
SCALE, GAP, TOP = 5.0, 18, 64
FORWARD, REVERSE = "#0072b2", "#c85200"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trips", type=int, default=128, help="recorded in each of the small lots")
    parser.add_argument("--lot", type=int, default=500, help="seed of the large one")
    parser.add_argument("--width", type=int, default=92)
    parser.add_argument("--aisles", type=int, default=3)
    parser.add_argument("--picture", type=Path, help="an SVG file")
    options = parser.parse_args(arguments)
    size = {"width": options.width, "aisles": options.aisles}
    panels, rows = [], []
    for style in STYLES:
        weights = learned(
            [jm.gallery.parking(style, **SMALL, seed=k) for k in HOMES], options.trips
        )
        there = jm.gallery.parking(style, **size, seed=options.lot)
        policy = jm.plan(there.world, there.basis.on(there.world) @ weights).policy
        panels.append((style, there, policy))
        rows += [(f"{style}, {who}", totals(there, one))
                 for who, one in (("expert", there.expert), ("apprentice", policy))]  # fmt: skip
    names = panels[0][1].basis.names
    lines = [f"{'':<22}" + "".join(f"{name.split()[0]:>10}" for name in names)]
    lines += [f"{name:<22}" + "".join(f"{x:>10.2f}" for x in found) for name, found in rows]
    sys.stdout.write("\n".join(lines) + "\n")
    if options.picture is not None:
        options.picture.write_text(picture(panels), encoding="utf-8")


def learned(lots: list[jm.gallery.ParkingExample], trips: int) -> np.ndarray:
    """One cost from trips in several lots."""
    members = [
        (one.world, one.basis,
         jm.record(one.world, one.expert, trajectories=trips, horizon=LONGEST, seed=k))
        for k, one in enumerate(lots)
    ]  # fmt: skip
    family = jm.problem.Family(members)  # its starts are those of the record
    recorded, world = family.demonstrations, family.world
    means = jm.ExpertExpectation.from_demonstrations(
        recorded, family.basis, world, method=jm.demonstrations.MonteCarlo()
    )
    problem = jm.Apprenticeship(world, family.basis, means, jm.Simplex())
    return jm.solve(problem, jm.solvers.ConsistentCosts(nonnegative=True)).recovered


def totals(lot: jm.gallery.ParkingExample, policy: jm.Policy) -> np.ndarray:
    return jm.occupancy(lot.world, policy).expectations(lot.basis)


def trips_of(lot: jm.gallery.ParkingExample, policy: jm.Policy) -> list[np.ndarray]:
    """Coordinates of all states of some trips, the space at the end."""
    demos = jm.record(lot.world, policy, trajectories=SHOWN, horizon=LONGEST, seed=0)
    places = np.asarray(lot.world.coordinates)
    return [
        np.vstack([places[demos.episode(j)[0]], places[lot.world.sink]]) for j in range(len(demos))
    ]


def picture(panels: list[tuple[str, jm.gallery.ParkingExample, jm.Policy]]) -> str:
    """A panel for every style: the lot, the expert's trips and the apprentice's."""
    lot = panels[0][1].lot
    wide, high = lot.width * METRES * SCALE, lot.height * METRES * SCALE
    width, height = GAP + len(panels) * (wide + GAP), TOP + high + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        'role="img" font-family="system-ui,sans-serif" font-size="14">',
        "<title>Trips of three drivers in a lot that they were not learned in</title>",
        "<desc>Broad pale lines: the expert. Thin dark lines: the apprentice. Blue is driven "
        "forward, orange in reverse. All trips end in one space.</desc>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fcfcfb"/>',
        f'<text x="{GAP}" y="22" fill="#5c5b57">Broad and pale: the expert. Thin: the apprentice. '
        f'<tspan fill="{FORWARD}">Forward</tspan>, <tspan fill="{REVERSE}">in reverse</tspan>. '
        "Dots: starts. Rings: the space.</text>",
    ]
    for place, (style, example, policy) in enumerate(panels):
        left = GAP + place * (wide + GAP)
        parts.append(f'<text x="{left:.0f}" y="{TOP - 10}" fill="#1c1c1a">{escape(style)}</text>')
        parts.append(f'<g transform="translate({left:.1f} {TOP + high:.1f}) scale(1 -1)">')
        parts += ground(example.lot)
        for who, look in ((example.expert, 'stroke-width="6" stroke-opacity=".3"'),
                          (policy, 'stroke-width="1.8"')):  # fmt: skip
            for trip in trips_of(example, who):
                parts += [
                    f'<path d="{way}" stroke="{colour}" {look} fill="none" stroke-linecap="round"/>'
                    for colour, way in ways(trip)
                ]
                parts.append(dot(trip[0], 3, 'fill="#1c1c1a"'))
        goal = np.array(example.lot.goal[:2]) * METRES
        parts += [dot(goal, 6, 'fill="none" stroke="#1c1c1a" stroke-width="2"'), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def ground(lot: jm.gallery.Lot) -> list[str]:
    """Lanes, parked cars and walls."""
    high, wide = (size * METRES * SCALE for size in (lot.height, lot.width))
    parts = [f'<rect width="{wide:.1f}" height="{high:.1f}" fill="#ecebe6"/>']
    lanes = " ".join(
        f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" for x0, y0, x1, y1 in lot.lanes * METRES * SCALE
    )
    parts.append(f'<path d="{lanes}" stroke="#fcfcfb" stroke-width="2" stroke-dasharray="6 5"/>')
    for boxes, colour in ((lot.cars, "#b5b4ae"), (lot.walls, "#3f3e3b")):
        inside = np.clip(boxes, 0, [lot.width, lot.height] * 2) * METRES * SCALE
        shapes = " ".join(
            f"M{x0:.1f} {y0:.1f}H{x1:.1f}V{y1:.1f}H{x0:.1f}z" for x0, y0, x1, y1 in inside
        )
        parts.append(f'<path d="{shapes}" fill="{colour}" stroke="{colour}"/>')
    return parts


def ways(trip: np.ndarray) -> list[tuple[str, str]]:
    """Pieces of one gear each, as curves with the car's heading at every state."""
    pieces: list[tuple[str, str]] = []
    last = None
    for here, there in pairwise(trip):
        if np.allclose(here[:2], there[:2]):  # a switch
            continue
        backwards = here[3] == 1
        reach = np.hypot(*(there[:2] - here[:2])) / 3 * (-1 if backwards else 1)
        bends = [
            place[:2] + sign * reach * np.array([np.cos(angle), np.sin(angle)])
            for place, sign in ((here, 1), (there, -1))
            for angle in [np.radians(place[2])]
        ]
        points = " ".join(f"{x:.1f} {y:.1f}" for x, y in np.array([*bends, there[:2]]) * SCALE)
        if backwards != last:
            x, y = here[:2] * SCALE
            pieces.append((REVERSE if backwards else FORWARD, f"M{x:.1f} {y:.1f}"))
        colour, drawn = pieces[-1]
        pieces[-1] = (colour, f"{drawn}C{points}")
        last = backwards
    return pieces


def dot(place: np.ndarray, radius: float, look: str) -> str:
    x, y = np.asarray(place)[:2] * SCALE
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {look}/>'


if __name__ == "__main__":
    main()
