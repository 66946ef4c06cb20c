"""Policies by state: what is listed, and CSV files that hold the same policy to the last bit."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from fuzzing import tried
from journeyman.errors import InvalidFile, InvalidPolicy
from journeyman.policy.listing import Listing

NAMES = ("pump, ok", "pump-worn", "Ärger & <b>")


def pump(**more):
    """Three states with one, two and two actions."""
    rows = [[0.9, 0.1, 0], [0, 0.7, 0.3], [1, 0, 0], [0.5, 0, 0.5], [1, 0, 0]]
    more = {"state_names": NAMES, "action_names": ("run", "replace"), **more}
    return jm.World(rows, [1, 0, 0], 0.9, choice_offsets=[0, 1, 3, 5], **more)


def drawn(world, seed=0):
    """A policy without round numbers."""
    weights = np.random.default_rng(seed).random(world.num_pairs)
    return jm.Policy(weights / world.pairs.spread(world.pairs.total(weights)), world.pairs)


WORLDS = {
    "names": pump(),
    "numbers": pump(state_names=None, action_names=None),
    "names that are numbers": pump(state_names=("7", "8", "9")),
    "two of one name": pump(state_names=("a", "a", "b")),
    "numbered actions": pump(observed_actions=[3, 1, 3, 0, 1], action_names=None),
    "horizon": pump().with_horizon(3),
    "averages": pump().with_average_cost(),
    "goal": jm.World([[0, 1], [1, 0], [0, 1]], [1, 0], 1.0, choice_offsets=[0, 2, 3], sink=1,
                     steps_at_most=9.0),
}  # fmt: skip


@pytest.mark.parametrize("name", WORLDS)
def test_a_policy_is_read_from_its_csv_as_the_same_to_the_last_bit(name, tmp_path):
    world = WORLDS[name]
    policy = drawn(world)
    policy.save(tmp_path / "policy.csv", world)
    again = jm.Policy.load(tmp_path / "policy.csv", world)
    steps = 1 if world.layers is None else world.layers.horizon
    acting = steps * (world if world.reduction is None else world.reduction.base).num_pairs
    assert np.array_equal(again.per_pair[:acting], policy.per_pair[:acting])
    assert again.pairs == world.pairs
    assert again.horizon == policy.horizon


def test_the_file_has_names_full_numbers_and_visits(tmp_path):
    world, third = pump(), 1 / 3
    jm.Policy([1, third, 1 - third, 0, 1], world.pairs).save(tmp_path / "p.csv", world)
    head, *rows = (tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()
    assert head == "state,action,probability,visits"
    assert rows[1].startswith("pump-worn,run,0.3333333333333333,")
    assert [row.split(",run")[0] for row in rows[:1]] == ['"pump, ok"']
    assert len(rows) == 4  # what is never done has no row


def test_names_for_people_stand_beside_the_numbers(tmp_path):
    """As in files of the studio, which has names for the squares of a grid."""
    world = WORLDS["numbers"]
    policy, names = drawn(world), ["row 1, column 1", "<b>", "=1+1"]
    listing = Listing.of(world, policy, state_names=names)
    listing.save(tmp_path / "p.csv")
    text = (tmp_path / "p.csv").read_text(encoding="utf-8")
    assert text.startswith("state,action,probability,visits,state_name\n0,0,1.0,")
    assert text.splitlines()[1].endswith(',"row 1, column 1"')
    assert listing.most_visited(1)[0].name == "row 1, column 1"
    again = jm.Policy.load(tmp_path / "p.csv", world)
    assert np.array_equal(again.per_pair, policy.per_pair)


def test_a_policy_that_depends_on_time_has_its_steps_and_acts_by_them_in_the_base_world(tmp_path):
    base, world = pump(), pump().with_horizon(2)
    policy = jm.Policy([1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1], world.pairs)
    policy.save(tmp_path / "p.csv", world)
    text = (tmp_path / "p.csv").read_text(encoding="utf-8")
    assert "\n0,pump-worn,run,1.0," in text
    assert "\n1,pump-worn,replace,1.0," in text
    again = jm.Policy.load(tmp_path / "p.csv", base)
    assert again.horizon == 2
    demos = jm.record(base, again, trajectories=200, seed=0)
    worn = demos.step_states == 1
    assert set(demos.actions[worn & (demos.step_times == 1)]) == {1}
    with pytest.raises(jm.errors.InvalidDemonstrations, match="horizon=2 at most"):
        jm.record(base, again, trajectories=1, horizon=3, seed=0)
    with pytest.raises(InvalidPolicy, match=r"episodes of 2 steps.*with_horizon\(2\)"):
        again.on(base)


def test_a_policy_without_steps_acts_alike_at_every_step_and_is_listed_once(tmp_path):
    base, world = pump(), pump().with_horizon(4)
    policy = drawn(base)
    policy.save(tmp_path / "p.csv", base)
    in_layers = jm.Policy.load(tmp_path / "p.csv", world)
    assert np.array_equal(in_layers.per_pair, policy.on(world))
    listing = Listing.of(world, in_layers)
    assert (listing.steps, listing.num_rows) == (None, 3)
    assert listing.visits.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", WORLDS)
def test_visits_are_shares_of_the_time_most_visited_first(name):
    world = WORLDS[name]
    listing = Listing.of(world, drawn(world))
    rows = listing.most_visited()
    assert sum(row.visits for row in rows) + listing.unlisted == pytest.approx(1)
    assert [row.visits for row in rows] == sorted((row.visits for row in rows), reverse=True)
    assert all(sum(row.probabilities) == pytest.approx(1) for row in rows)
    assert rows[:1] == listing.most_visited(1)


def test_visits_of_averages_are_the_stationary_law():
    world = pump().with_average_cost()
    policy = jm.Policy([1, 1, 0, 1, 0], pump().pairs)
    chain = np.array([[0.9, 0.1, 0], [0, 0.7, 0.3], [0.5, 0, 0.5]])
    stationary = np.linalg.matrix_power(chain, 500)[0]
    found = Listing.of(world, policy).visits
    assert found == pytest.approx(stationary, abs=1e-12)


def test_ends_are_not_listed_and_their_time_is_known():
    world = jm.World([[0.5, 0.5], [0, 1]], [1, 0], 0.5, sink=1)
    listing = Listing.of(world, jm.Policy([[1.0], [1.0]]))
    assert [row.state for row in listing.most_visited()] == [0]
    assert listing.unlisted == pytest.approx(1 / 3)


def test_a_policy_that_never_ends_is_listed_without_visits(tmp_path):
    world = WORLDS["goal"]
    endless = jm.World([[1, 0], [0, 1], [0, 1]], [1, 0], 1.0, choice_offsets=[0, 2, 3], sink=1,
                       steps_at_most=9.0)  # fmt: skip
    policy = jm.Policy([1, 0, 1], endless.pairs)
    listing = Listing.of(endless, policy)
    assert listing.most_visited()[0].visits is None
    policy.save(tmp_path / "p.csv", endless)
    assert (tmp_path / "p.csv").read_text().startswith("state,action,probability\n")
    assert jm.Policy.load(tmp_path / "p.csv", world).per_pair.tolist() == [1, 0, 1]


GOOD = "state,action,probability\npump-worn,run,0.25\npump-worn,replace,0.75\nÄrger & <b>,run,1\n"
WRONG = {
    "unknown state": (
        GOOD.replace("worn,run", "won,run"), "line 2: state is 'pump-won'.*mean 'pump-worn'"
    ),
    "unknown action": (GOOD.replace("replace", "repair"), "line 3: action is 'repair'.*'replace'"),
    "not offered": (
        GOOD + '"pump, ok",replace,1\n', "line 5: state 'pump, ok' has no action 'replace'.*'run'"
    ),
    "twice": (GOOD + "pump-worn,run,0\n", "line 5 gives the same state and action as line 2"),
    "sum": (GOOD.replace("0.75", "0.7"), r"line 2: .* 'pump-worn' \(lines 2, 3\) add up to 0.95"),
    "per cent": (GOOD.replace("0.25", "25"), "line 2: probability is '25'. .*not per cent"),
    "comma": (GOOD.replace("0.25", '"0,25"'), "line 2: probability is '0,25'.*decimal point"),
    "no number": (GOOD.replace("0.25", "nan"), "line 2: probability is 'nan'"),
    "missing state": (GOOD.replace("Ärger & <b>,run,1\n", ""), "no row for state 'Ärger & <b>'"),
    "no column": (GOOD.replace("probability", "chance"), "no column 'probability'.*policy export"),
    "short row": (GOOD + "pump-worn\n", "line 5 has 1 entries"),
    "no such number": ("state,action,probability\n7,0,1\n", "line 2: state is 7, .* 0..2"),
    "names and numbers": (GOOD + "0,run,1\n", "line 5: state is '0', a number; .* a name"),
    "empty": ("state,action,probability\n", "holds no row"),
    "step": ("t,state,action,probability\nx,pump-worn,run,1\n", "line 2: t is 'x'.*from 0"),
    "steps": ("t,state,action,probability\n9000000000,pump-worn,run,1\n", "no row for step 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_line_and_remedy(name, tmp_path):
    text, words = WRONG[name]
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidFile, match=words):
        jm.Policy.load(tmp_path / "p.csv", pump())


CELLS = st.sampled_from([*NAMES, "run", "replace", "0", "1", "1.0", "0.5", "-1", "nan", "", '"'])


@tried(60)
@given(st.lists(st.lists(CELLS, min_size=2, max_size=5), max_size=6), st.booleans())
def test_damaged_files_are_read_or_refused(tmp_path_factory, rows, timed):
    path = tmp_path_factory.mktemp("policies") / "p.csv"
    head = ["t"] * timed + ["state", "action", "probability"]
    path.write_text("\n".join(map(",".join, [head, *rows])), encoding="utf-8")
    with suppress(jm.errors.InvalidInput):
        jm.Policy.load(path, pump())


def test_a_file_by_hand_needs_no_row_where_nothing_can_be_chosen(tmp_path):
    (tmp_path / "p.csv").write_text(
        "Probability, State ,ACTION,note\n.25,pump-worn,run,x\n0.75,pump-worn,replace,\n"
        "1e0, Ärger & <b>,run,y\n", encoding="utf-8",
    )  # fmt: skip
    found = jm.Policy.load(tmp_path / "p.csv", pump())
    assert found.per_pair.tolist() == [1, 0.25, 0.75, 1, 0]


def test_steps_beyond_the_horizon_are_refused(tmp_path):
    world = pump().with_horizon(3)
    drawn(world).save(tmp_path / "p.csv", world)
    with pytest.raises(InvalidFile, match=r"line \d+: t is 2, and episodes have 2 steps"):
        jm.Policy.load(tmp_path / "p.csv", pump().with_horizon(2))


def test_data_frames_are_read_like_files():
    pa = pytest.importorskip("pyarrow")
    columns = {"state": ["pump-worn", "Ärger & <b>"], "action": ["run"] * 2, "probability": [1, 1]}
    assert jm.Policy.load(pa.table(columns), pump()).per_pair.tolist() == [1, 1, 0, 1, 0]


def test_a_table_needs_a_world(tmp_path):
    with pytest.raises(InvalidPolicy, match=r"of which world.*policy\.save\(path, world\)"):
        jm.Policy([[1.0]]).save(tmp_path / "p.csv")
    with pytest.raises(InvalidPolicy, match="of which world"):
        jm.Policy.load("p.csv")


def test_a_policy_from_csv_is_certified_like_the_original(tmp_path):
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=50, horizon=60, seed=0)
    learned = jm.learn(world, basis, demos)
    learned.policy.save(tmp_path / "p.csv", world)
    again = jm.certify(learned.problem, jm.Policy.load(tmp_path / "p.csv", world))
    assert again.bound == learned.certificate.bound
    assert again.terms == learned.certificate.terms


@pytest.mark.parametrize("kind", ["discounted", "horizon"])
def test_agreement_is_the_mean_probability_of_what_the_expert_did(kind):
    base, _, expert = jm.gallery.grid(4)
    world = base.with_horizon(5) if kind == "horizon" else base
    demos = jm.record(base, expert, trajectories=20, horizon=5, seed=1)
    policy = drawn(world)
    listing = Listing.of(world, policy, seen=demos.counts_in(world))
    taken = policy.on(world)[demos.on(world).pairs_in(world)]
    assert listing.decisions_seen == demos.num_steps
    assert listing.agreement == pytest.approx(taken.mean())
    counted = sum(count for row in listing.most_visited() for _, count in row.seen)
    assert counted == demos.num_steps
