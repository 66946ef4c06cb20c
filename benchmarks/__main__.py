"""Run every benchmark, with the machine it ran on."""

from benchmarks import (
    build_program,
    descent_quality,
    descent_speed,
    engines,
    feature_quality,
    reduced_program,
    small_worlds,
    tightness,
)
from benchmarks.machine import describe_machine


def main() -> None:
    print(describe_machine())
    print()
    build_program.main([])
    print()
    engines.main([])
    print()
    small_worlds.main([])
    print()
    feature_quality.main(["--seeds", "3"])
    print()
    descent_speed.main([])
    print()
    reduced_program.main(["dense", "sparse"])
    print()
    descent_quality.main(["--seeds", "0", "1"])
    print()
    tightness.main([])


if __name__ == "__main__":
    main()
