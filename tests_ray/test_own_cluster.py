"""A cluster that is started on request: closed to others, and gone without a trace."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import ray

import journeyman as jm
import task_work as work

PAGE = (Path(__file__).parents[1] / "docs" / "scaling-out.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
JOIN = "import ray, sys; ray.init(address=sys.argv[1]); print('joined')"


def test_a_cluster_started_here_asks_for_its_token_and_leaves_nothing(capfd):
    before = {name: value for name, value in os.environ.items() if name.startswith("RAY_AUTH")}
    seeds, weights = jm.execution.seeds_of(7, 6), np.ones(20_000)
    with jm.Ray(num_workers=2, object_store_memory=80_000_000) as executor:
        results = executor.map(work.delicate_sum, seeds, shared=weights)
        assert executor.map(work.environment_of, [0])[0]["OPENBLAS_NUM_THREADS"] == "1"
        assert os.environ["RAY_AUTH_MODE"] == "token"
        token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
        assert token.stat().st_mode & 0o077 == 0
        secret = token.read_text()
        address = ray.get_runtime_context().gcs_address
        exec(compile(EXAMPLE, "scaling-out.md", "exec"), {"__name__": "__main__"})
        refused, accepted = join(address, "0" * 64), join(address, secret)
    assert capfd.readouterr() == ("True\n", "")
    assert refused.returncode == 1
    assert "InvalidAuthToken" in refused.stderr
    assert accepted.stdout.strip() == "joined"
    assert len(secret) == 64
    assert not token.parent.exists()
    after = {name: value for name, value in os.environ.items() if name.startswith("RAY_AUTH")}
    assert after == before
    serial = jm.Serial().map(work.delicate_sum, seeds, shared=weights)
    assert [(a, b, c.tobytes()) for a, b, c in results] == [
        (a, b, c.tobytes()) for a, b, c in serial
    ]


def join(address, token):
    """Another process that wants to use the cluster, with a token."""
    settings = {
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "RAY_NUM_REDIS_GET_RETRIES": "1",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", JOIN, address],
        env={**os.environ, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
