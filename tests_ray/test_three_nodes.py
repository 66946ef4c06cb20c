"""A cluster of three nodes: equal bits, nothing lost with a worker or a node, tokens asked for."""

import secrets
import threading
import time

import numpy as np
import pytest
import ray

import journeyman as jm
import task_work as work

WEIGHTS = np.random.default_rng(1).standard_normal(20_000)
SEEDS = jm.execution.seeds_of(7, 12)


def bits(results):
    """Results down to the last bit, with the sums of their parts in order."""
    total = [jm.execution.sum_in_order(parts) for parts in zip(*results, strict=True)]
    return [np.asarray(part).tobytes() for result in [*results, total] for part in result]


@pytest.fixture(scope="module")
def expected():
    return bits(jm.Serial().map(work.delicate_sum, SEEDS, shared=WEIGHTS))


@pytest.mark.parametrize("wrong", [True, False])
def test_nobody_joins_without_the_token(cluster, tmp_path, monkeypatch, wrong):
    """These come first, because a process has one connection."""
    monkeypatch.setattr("ray._private.ray_constants.NUM_REDIS_GET_RETRIES", 1)
    (tmp_path / "token").write_text(secrets.token_hex(32))
    with pytest.raises(jm.errors.InvalidInput, match="no Ray cluster can be joined"):
        jm.Ray(cluster.address, token_file=tmp_path / "token" if wrong else None).__enter__()
    assert not ray.is_initialized()


def test_the_cluster_changes_no_bit(joined, expected):
    assert bits(joined.map(work.delicate_sum, SEEDS, shared=WEIGHTS)) == expected


def test_an_open_connection_is_used_and_left_open(joined, cluster, expected):
    one = jm.Ray(num_workers=1)
    assert bits(one.map(work.delicate_sum, SEEDS, shared=WEIGHTS)) == expected
    assert ray.is_initialized()
    with pytest.raises(jm.errors.InvalidInput, match="connected to Ray already"):
        jm.Ray(cluster.address).map(work.wait_in_reverse, range(4), shared=4)
    with pytest.raises(jm.errors.InvalidInput, match="open already"), joined:
        pass


def test_workers_have_one_thread(joined):
    seen = joined.map(work.environment_of, range(6))
    assert seen == [{"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}] * 6


def test_results_keep_the_order_of_the_tasks(joined):
    assert joined.map(work.wait_in_reverse, range(8), shared=8) == list(range(8))
    assert joined.map(work.wait_in_reverse, [], shared=8) == []


def test_shared_arrays_arrive_equal_and_read_only(joined):
    array = np.random.default_rng(0).standard_normal((300, 500))
    seen = joined.map(work.describe_shared, range(6), shared={"array": array, "rest": "x"})
    assert seen == [(array.sum(), array.dtype.str, False, "x", False)] * 6


def test_the_first_failing_task_is_raised_with_its_number(joined):
    with pytest.raises(ValueError, match="no 3") as caught:
        joined.map(work.fail_from_three, range(8))
    assert "in task 3 of 0..7" in caught.value.__notes__[0]
    with pytest.raises(jm.errors.TaskFailed, match="Awkward: this and that"):
        joined.map(work.fail_awkwardly, range(2))


def test_what_cannot_be_sent_is_said(joined):
    with pytest.raises(
        jm.errors.InvalidInput, match=r"could not open .* or not send its result"
    ) as caught:
        joined.map(work.return_lock, range(2))
    assert "in task 0 of 0..1" in caught.value.__notes__[0]


def test_a_killed_worker_loses_nothing_and_changes_no_bit(joined, tmp_path):
    tasks = list(enumerate(SEEDS))
    folders = [tmp_path / name for name in ("killed", "calm")]
    for folder in folders:
        folder.mkdir()
    (folders[1] / "2").write_text("0\n")  # task 2 has died there already
    killed = joined.map(work.die_once, tasks, shared=str(folders[0]))
    calm = jm.Serial().map(work.die_once, tasks, shared=str(folders[1]))
    assert bits(killed) == bits(calm)
    attempts = [len((folders[0] / str(k)).read_text().split()) for k in range(len(tasks))]
    assert attempts == [1, 1, 2] + [1] * (len(tasks) - 3)


def test_a_task_that_kills_its_workers_is_given_up_by_name(joined, monkeypatch):
    monkeypatch.setattr("journeyman.adapters.ray.LOSSES", 0)
    with pytest.raises(jm.errors.TaskFailed, match="task 1 was lost with its worker"):
        joined.map(work.die_always, range(2))


def test_a_killed_node_loses_nothing_and_changes_no_bit(cluster, joined, expected, tmp_path):
    """Leaves two nodes. Tasks that all found room on the head have nothing to lose: once more."""
    head = cluster.nodes.head_node.node_id
    shared = {"note": str(tmp_path / "note"), "head": head, "weights": WEIGHTS}
    order = cluster.nodes, tmp_path / "note"
    killer = threading.Thread(target=kill_noted_node, args=order, daemon=True)
    killer.start()
    for _ in range(50):
        results = joined.map(
            work.wait_for_the_end_of_the_node, list(enumerate(SEEDS)), shared=shared
        )
        if (tmp_path / "note").exists():
            break
    killer.join(timeout=60)
    assert bits(results) == expected
    assert (tmp_path / "note").exists()
    assert len(cluster.nodes.list_all_nodes()) == 2


def test_an_interrupted_map_leaves_the_cluster_free(joined, monkeypatch):
    def interrupt(event):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(joined, "observer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            joined.map(work.wait_long, range(4))
    assert joined.map(work.wait_in_reverse, range(6), shared=6) == list(range(6))


def kill_noted_node(nodes, note):
    while not note.exists():
        time.sleep(0.02)
    doomed = [node for node in nodes.list_all_nodes() if node.node_id == note.read_text()]
    nodes.remove_node(doomed[0], allow_graceful=False)
