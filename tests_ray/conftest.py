"""Clusters for the tests: three nodes on this machine that share a token, and one started by us."""

import secrets
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from ray.cluster_utils import Cluster

import journeyman as jm
from journeyman.adapters.ray import SHORT_PATH, _identified
from journeyman.execution import environment

TESTS = Path(__file__).parents[1] / "tests"
MEMORY = 80_000_000
"""Bytes of an object store; /dev/shm of a container may be small."""
SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000}
"""A dead node is missed after some seconds instead of a quarter of a minute."""


@pytest.fixture(scope="session", autouse=True)
def importable():
    """Workers find the functions of the tests."""
    with environment({"PYTHONPATH": str(TESTS)}):
        yield


@pytest.fixture(scope="session")
def cluster(importable):
    """A head and two more nodes, one core each; only who has the token may join."""
    with TemporaryDirectory(prefix="jm-", dir=SHORT_PATH, ignore_cleanup_errors=True) as folder:
        token = Path(folder) / "token"
        token.write_text(secrets.token_hex(32))
        head = {
            "num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False,
            "_system_config": SOON,
        }  # fmt: skip
        with _identified(token), environment({"RAY_TMPDIR": folder}):
            nodes = Cluster(initialize_head=True, head_node_args=head)
            for _ in range(2):
                nodes.add_node(num_cpus=1, object_store_memory=MEMORY)
        yield SimpleNamespace(nodes=nodes, address=nodes.address, token=token)
        with _identified(token):
            nodes.shutdown()


@pytest.fixture(scope="module")
def joined(cluster):
    """An executor on the three nodes, one for many tests: every connection gets workers anew."""
    with jm.Ray(cluster.address, token_file=cluster.token) as executor:
        yield executor
