"""Blocks of states in actors: equal bits, also when an actor dies or its node."""

import block_worlds as worlds
import journeyman as jm
import task_work as work

SHARDED = jm.solvers.ShardedColumns


def bits(answer):
    numbers = (answer.value, answer.lower_bound, answer.solution.expectations.tobytes())
    return (*numbers, answer.policy.per_pair.tobytes(), answer.status)


def test_actors_change_no_bit(joined):
    blocked, _ = worlds.twins(worlds.Scattered())
    here = jm.solve(blocked, SHARDED(num_blocks=6))
    assert bits(jm.solve(blocked, SHARDED(joined, num_blocks=6))) == bits(here)


def test_an_actor_that_dies_is_replaced_and_its_blocks_are_made_again(joined, tmp_path):
    here = jm.solve(worlds.twins(worlds.Scattered())[0], SHARDED(num_blocks=6))
    blocked, _ = worlds.twins(worlds.Dying(tmp_path, "predecessors", 3))
    assert bits(jm.solve(blocked, SHARDED(joined, num_blocks=6))) == bits(here)
    assert len(list(tmp_path.iterdir())) > 3


def test_tasks_find_what_was_left_in_their_actor(joined, tmp_path):
    tasks = [(f"part {k}", "first") for k in range(5)]
    first = joined.map_on(range(5), work.leave_and_find, tasks, shared=str(tmp_path))
    again = joined.map_on(range(5), work.leave_and_find, tasks, shared=str(tmp_path))
    assert [process for process, _ in first] == [process for process, _ in again]
    assert [found for _, found in again] == ["first"] * 5
    assert joined.map(work.wait_in_reverse, range(6), shared=6) == list(range(6))
