"""How quickly the studio answers: its start, key presses and certificates on a 16 x 16 grid.

    python -m benchmarks.studio [--episodes 10] [--size 16]

Starts `journeyman studio` in a process of its own, as a user does, sends what the page sends, and
prints medians, 95 % points and the largest: seconds until the address is printed, milliseconds for
a key press (request, write, answer), seconds from the end of an episode until its certificate is
there, and the packages that the extra adds.
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any


class Page:
    """A connection that sends what the page would."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://(127\.0\.0\.1:(\d+))/#token=(\S+)", address)
        assert found is not None
        self.headers = {
            "host": found[1], "origin": f"http://{found[1]}", "x-studio-token": found[3],
            "content-type": "application/json",
        }  # fmt: skip
        self.port = int(found[2])
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        self.connection.request("POST", f"/api/{path}", json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        content = json.loads(answer.read())
        assert answer.status == 200, content
        return content

    def certified(self, name: str) -> float:
        """The moment at which the certificate of what is recorded was received."""
        events = http.client.HTTPConnection("127.0.0.1", self.port)
        events.request("GET", f"/api/sessions/{name}/events", headers=self.headers)
        answer = events.getresponse()
        while line := answer.readline():
            if line.startswith(b"data: "):
                state = json.loads(line[6:]).get("state")
                if state and state["current"]:
                    found = time.perf_counter()
                    while not answer.closed and state and state["renewing"]:  # until all is done
                        line = answer.readline()
                        if line.startswith(b"data: "):
                            state = json.loads(line[6:]).get("state", state)
                    events.close()
                    return found
        raise RuntimeError("the stream has ended")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--size", type=int, default=16)
    options = parser.parse_args(arguments)
    starts, work = [], []
    with TemporaryDirectory(prefix="journeyman-") as directory:
        for _ in range(2):
            _, seconds, process = started(Path(directory))
            starts.append(seconds)
            work.append(processor_seconds(process.pid))
            end(process)
        address, seconds, process = started(Path(directory))
        starts.append(seconds)
        try:
            keys, certificates = demonstrated(Page(address), options.size, options.episodes)
        finally:
            end(process)
    print(f"start until the address is printed: {summary(starts, 's')}")
    print(f"of which the processor worked: {summary(work, 's')}")
    print(f"key press on {options.size} x {options.size}: {summary(keys, 'ms', 1e3)}")
    print(f"certificate after an episode: {summary(certificates, 's')}")
    print(f"packages of the extra: {', '.join(added_packages())}")


def started(directory: Path) -> tuple[str, float, subprocess.Popen[str]]:
    """Address, seconds until it is printed, and the process."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "journeyman", "studio", str(directory), "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    return found[0], time.perf_counter() - begin, process


def processor_seconds(process: int) -> float:
    """What a process has used so far (Linux)."""
    counted = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, counted)) / os.sysconf("SC_CLK_TCK")


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate()


def demonstrated(page: Page, size: int, episodes: int) -> tuple[list[float], list[float]]:
    """Seconds of every key press, and from every episode's end to its certificate."""
    half = size // 2
    cells = ["1" * half + "2" * (size - half)] * half + ["3" * half + "4" * (size - half)] * half
    cells[0] = cells[0][:-1] + "*"
    state = page.post("sessions", {"world": {"kind": "grid", "cells": cells, "most_steps": 100}})
    name, keys, certificates = state["name"], [], []
    for _ in range(episodes):
        position = page.post(f"sessions/{name}/restart", {})
        while not position["ended"]:
            row = position["trail"][-1] // size
            move = {"action": 0 if row > 0 else 1}  # up, then right
            at = {"attempt": position["attempt"], "step": position["steps"]}
            begin = time.perf_counter()
            position = page.post(f"sessions/{name}/step", at | move)
            keys.append(time.perf_counter() - begin)
        at = {"attempt": position["attempt"], "step": position["steps"]}
        begin = time.perf_counter()
        page.post(f"sessions/{name}/finish", at)
        certificates.append(page.certified(name) - begin)
        page.connection.close()  # the server may have, while nothing was sent
    return keys, certificates


def summary(values: list[float], unit: str, factor: float = 1.0) -> str:
    of = sorted(factor * one for one in values)
    most = of[int(0.95 * (len(of) - 1))]
    return (
        f"median {median(of):.3g} {unit}, 95 % up to {most:.3g} {unit}, largest {of[-1]:.3g} "
        f"{unit} ({len(of)} measured)"
    )


def added_packages() -> list[str]:
    """What the extra brings that the package itself does not need."""

    def closure(names: set[str], extra: str = "") -> set[str]:
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            for line in distribution(name).requires or ():
                marker = line.partition(";")[2]
                if not re.search("extra|<|platform|sys_", marker):
                    waiting.append(re.split(r"[^\w.-]", line.strip())[0].lower())
        return found

    own = distribution("journeyman").requires or ()
    plain = {re.split(r"[^\w.-]", one)[0].lower() for one in own if "extra" not in one}
    more = {
        re.split(r"[^\w.-]", one)[0].lower() for one in own if re.search(r"extra == .studio.", one)
    }
    return sorted(closure(more) - closure(plain))


if __name__ == "__main__":
    main()
