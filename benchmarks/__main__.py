"""Run every benchmark, with the machine it ran on."""

from benchmarks import build_program, engines
from benchmarks.machine import describe_machine


def main() -> None:
    print(describe_machine())
    print()
    build_program.main([])
    print()
    engines.main([])


if __name__ == "__main__":
    main()
