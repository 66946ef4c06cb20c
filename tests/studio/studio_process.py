"""A studio as a process of its own on a free port, and requests to it as the page sends them."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]+)")
POND = ["1111*", "12#13", "12213", "11#13", "11113"]
GRID = {"kind": "grid", "cells": POND, "slip": 0.2, "discount": 0.9, "most_steps": 20}


class StudioProcess:
    """`journeyman studio`, started for real."""

    def __init__(self, directory: Path, *, largest_file: int | None = None) -> None:
        command = [sys.executable, "-m", "journeyman", "studio", str(directory), "--no-browser"]
        if largest_file is not None:  # as full a disk as a test can have
            limit = (
                "import os, resource as of, sys\n"
                f"of.setrlimit(of.RLIMIT_FSIZE, ({largest_file}, of.RLIM_INFINITY))\n"
                "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
            )
            command = [sys.executable, "-c", limit, *command[1:]]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.directory = directory
        found = ADDRESS.search(self.process.stdout.readline())
        self.port, self.token = int(found[1]), found[2]
        self.address = found[0]
        self.host = f"127.0.0.1:{self.port}"

    def request(self, method, path, body=None, *, headers=None, raw=None, leave_out=()):
        """Status, headers and content; the headers are those of the page unless said otherwise."""
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        own = {"host": self.host, "x-studio-token": self.token}
        if method == "POST":
            own |= {"origin": f"http://{self.host}", "content-type": "application/json"}
        own |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in own.items():
                if name not in leave_out:
                    connection.putheader(name, value)
            if content is not None and "transfer-encoding" not in own:
                connection.putheader("content-length", str(len(content)))
            connection.endheaders()
            if content is not None:
                connection.send(content)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, content = self.request("GET", f"/api/{path}")
        assert status == 200, content
        return json.loads(content)

    def post(self, path, body=None, expect=200):
        status, _, content = self.request("POST", f"/api/{path}", body or {})
        assert status == expect, content
        return json.loads(content)

    def file(self, name, kind):
        status, _, content = self.request("GET", f"/api/sessions/{name}/files/{kind}")
        assert status == 200, content
        return content

    def demonstrate(self, name, actions, *, keep=True):
        """Steps of an episode until it ends; the state of the session once it is kept."""
        position = self.get(f"sessions/{name}")["position"]
        for action in actions:
            if position["ended"]:
                break
            at = {"attempt": position["attempt"], "step": position["steps"]}
            position = self.post(f"sessions/{name}/step", {**at, "action": action})
        if not keep:
            return position
        at = {"attempt": position["attempt"], "step": position["steps"]}
        return self.post(f"sessions/{name}/finish", at)

    def events(self, name):
        """Messages of the stream of a session, as they come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(
            "GET", f"/api/sessions/{name}/events",
            headers={"host": self.host, "x-studio-token": self.token},
        )  # fmt: skip
        answer = connection.getresponse()
        assert answer.status == 200
        try:
            while True:
                line = answer.readline()
                if not line:
                    return
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            connection.close()

    def certified(self, name):
        """The state of a session, once all that was asked for is found."""
        for message in self.events(name):
            state = message.get("state")
            if state and not state["renewing"] and not state["solving"]:
                return state
        raise AssertionError("the stream ended")

    def workers(self):
        """Numbers of the processes that learn."""
        place = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(one) for one in place.read_text().split()]

    def kill(self):
        """As a crash would end it."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()
