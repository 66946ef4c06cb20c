"""Learning from clinicians in ICU-Sepsis, and what a tighter limit on vasopressors costs.

    python examples/icu_sepsis.py [--demonstrations 50000] [--seed 0] [--limits 0.02 0.05 ...]
                                  [--report icu-sepsis.html]

Not for clinical use. First comes what `journeyman demo --case icu-sepsis` prints. Then the
apprentice that is to do better than the clinicians learns again under each limit, from the same
demonstrations; where no policy keeps a limit, the least that is possible is told. Needs
`pip install 'journeyman[icu]'`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import journeyman as jm
from journeyman.cli.sepsis_case import (
    DEMONSTRATIONS,
    SepsisCase,
    case_text,
    learn_case,
    write_case_report,
)

HERE = Path(__file__).resolve().parent
LIMITS = (0.02, 0.05, 0.10, 0.15, 0.20, 0.30)


def main(arguments: Sequence[str] | None = None) -> None:
    # This file has the name of the package whose data it needs, and must not be found in its place.
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != HERE]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demonstrations", type=int, default=DEMONSTRATIONS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limits", type=float, nargs="*", default=LIMITS)
    parser.add_argument("--report", type=Path, help="an HTML page about the certificate")
    options = parser.parse_args(arguments)
    try:
        case = learn_case(options.demonstrations, options.seed)
    except jm.errors.MissingExtra as missing:
        sys.exit(str(missing))
    sys.stdout.write(f"{case_text(case)}\n")
    if options.limits:
        sys.stdout.write(f"\n{table_of_limits(case, options.limits)}\n")
    if options.report:
        write_case_report(case, options.report)
        sys.stdout.write(f"\n{options.report}\n")


def table_of_limits(case: SepsisCase, limits: Sequence[float]) -> str:
    """Survival and certified gap under each limit."""
    rows = [
        "The same with other limits on vasopressors",
        f"{'limit':>8}{'spent':>10}{'survival':>10}{'certified':>11}{'exactly':>10}",
    ]
    for limit in limits:
        try:
            rows.append(row_of_limit(case, limit))
        except jm.errors.NoSolution:
            rows.append(f"{limit:>8.4f}   no policy gives less than {least_dose(case):.4f}")
    return "\n".join(rows)


def row_of_limit(case: SepsisCase, limit: float) -> str:
    world, basis, _ = case.example
    (usual,) = case.improving.problem.constraints
    apprentice = jm.learn(
        world, basis, case.demonstrations, cost_class=jm.Simplex(), solver=jm.ColumnGeneration(),
        constraints=jm.Budget(cost=usual.cost, at_most=limit, name=usual.name),
    )  # fmt: skip
    certificate = apprentice.certificate
    return (
        f"{limit:>8.4f}{certificate.budgets[0].spent:>10.4f}{case.survival(apprentice.policy):>10.4f}"
        f"{certificate.bound:>11.4f}{case.exact_gap(apprentice):>10.4f}"
    )


def least_dose(case: SepsisCase) -> float:
    """What even the most sparing policy gives."""
    (usual,) = case.improving.problem.constraints
    sparing = jm.plan(case.example.world, usual.cost).policy
    return float(jm.occupancy(case.example.world, sparing).measure @ usual.cost)


if __name__ == "__main__":
    main()
