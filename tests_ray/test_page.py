"""Blocks of the documentation that need Ray, run on a cluster that is there."""

import journeyman as jm
import pages


def test_the_page_joins_a_cluster(cluster):
    """Its address, token and function are examples; ours take their place."""
    block = pages.blocks("scaling-out.md")[2]
    for said, done in {
        "10.0.0.1:6379": cluster.address, "/run/secrets/ray-token": str(cluster.token),
        "from rollouts import walk": "from task_work import process_id as walk", "1000": "12",
    }.items():  # fmt: skip
        assert said in block
        block = block.replace(said, done)
    names = {}
    exec(compile(block, "scaling-out.md", "exec"), names)
    assert len(names["returns"]) == 12


def test_the_page_sums_by_blocks(cluster, capsys):
    block = pages.blocks("scaling-out.md")[1]
    with jm.Ray(cluster.address, token_file=cluster.token):
        exec(compile(block, "scaling-out.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == "True\n"
