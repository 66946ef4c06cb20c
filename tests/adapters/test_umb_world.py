"""UMB files, written here as the specification says, and every way in which they can lie."""

import gzip
import io
import json
import lzma
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from fuzzing import tried
from journeyman.adapters.world_sources import read_world
from journeyman.testing.strategies import worlds

OPTIONS = {"discount": "0.9"}
DOUBLE = {"type": "double", "size": 64}


def refused(match):
    return pytest.raises(jm.errors.InvalidInput, match=match)


def members_of(transition, offsets, initial, **model):
    """The members of a Markov decision process in the layout of the specification."""
    bits = np.packbits(np.asarray(initial) > 0, bitorder="little").tobytes()
    facts = {
        "time": "discrete", "#players": 1, "#states": transition.shape[1],
        "#initial-states": int(np.count_nonzero(initial)), "#choices": transition.shape[0],
        "#choice-actions": 0, "#branches": transition.nnz, "#branch-actions": 0,
        "#observations": 0, "branch-probability-type": DOUBLE,
    }  # fmt: skip
    index = {"format-version": 1, "format-revision": 0, "transition-system": facts | model}
    return {
        "index.json": json.dumps(index).encode(),
        "state-to-choices.bin": np.asarray(offsets, "<u8").tobytes(),
        "choice-to-branches.bin": np.asarray(transition.indptr, "<u8").tobytes(),
        "branch-to-probability.bin": np.asarray(transition.data, "<f8").tobytes(),
        "branch-to-target.bin": np.asarray(transition.indices, "<u8").tobytes(),
        "state-is-initial.bin": bits + bytes(-len(bits) % 8),
        "actions/choices/values.bin": bytes(4 * transition.shape[0]),
    }


def of_world(world, **model):
    return members_of(world.transition, world.pairs.offsets, world.initial, **model)


def packed(members, kind=tarfile.PAX_FORMAT):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=kind) as archive:
        for name, data in members.items():
            entry = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            content = b"" if isinstance(data, tarfile.TarInfo) else data
            if content:
                entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def written(tmp_path, members, pack=bytes, **more):
    path = tmp_path / "model.umb"
    path.write_bytes(pack(packed(members, **more)))
    return str(path)


PUBLISHED = {
    "index.json": json.dumps(
        {
            "format-version": 1,
            "format-revision": 0,
            "file-data": {"tool": "PRISM", "tool-version": "4.10"},
            "transition-system": {
                "time": "discrete", "#players": 1, "#states": 4, "#initial-states": 1,
                "#choices": 5, "#choice-actions": 2, "#branches": 8, "#branch-actions": 0,
                "#observations": 0, "branch-probability-type": DOUBLE,
            },
            "annotations": {"aps": {"g": {"applies-to": ["states"], "type": {"type": "bool"}}}},
        }
    ).encode(),
    "state-to-choices.bin": np.array([0, 2, 3, 4, 5], "<u8").tobytes(),
    "choice-to-branches.bin": np.array([0, 2, 4, 6, 7, 8], "<u8").tobytes(),
    "branch-to-probability.bin": np.array([0.5, 0.5, 0.2, 0.8, 0.9, 0.1, 1, 1], "<f8").tobytes(),
    "branch-to-target.bin": np.array([1, 2, 2, 3, 0, 1, 2, 3], "<u8").tobytes(),
    "state-is-initial.bin": b"\x01" + bytes(7),
    "annotations/aps/g/states/values.bin": b"\x08" + bytes(7),
}  # fmt: skip


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_the_published_example_is_read(tmp_path, pack, kind):
    world = read_world(written(tmp_path, PUBLISHED, pack, kind=kind), options=OPTIONS)
    assert world.pairs.offsets.tolist() == [0, 2, 3, 4, 5]
    assert world.transition.toarray().tolist() == [
        [0, 0.5, 0.5, 0], [0, 0, 0.2, 0.8], [0.9, 0.1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    assert world.initial.tolist() == [1, 0, 0, 0]
    assert world.discount == 0.9


@given(world=worlds(), pack=st.sampled_from([bytes, gzip.compress, lzma.compress]))
def test_every_world_comes_back_to_the_last_bit(world, pack, tmp_path_factory):
    path = written(tmp_path_factory.mktemp("umb"), of_world(world), pack)
    back = read_world(path, options={"discount": repr(world.discount), "initial": "0"})
    assert (back.transition != world.transition).nnz == 0
    assert back.pairs == world.pairs
    assert back.discount == world.discount


def test_long_names_directories_and_extended_headers_are_passed_over(tmp_path):
    folder = tarfile.TarInfo("actions")
    folder.type = tarfile.DIRTYPE
    more = {"actions": folder, f"annotations/{'n' * 150}/values.bin": b"12345"}
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        path = written(
            tmp_path, more | {f"./{name}": data for name, data in PUBLISHED.items()}, kind=kind
        )
        assert read_world(path, options=OPTIONS).num_states == 4


def test_fractions_are_divided(tmp_path):
    thirds = np.array([1, 3, 2, 3] + [1, 1] * 6, "<i8").tobytes()
    members = changed(PUBLISHED, {"branch-probability-type": {"type": "rational"}})
    members["branch-to-probability.bin"] = np.array(
        [1, 3, 2, 3, 1, 5, 4, 5, 9, 10, 1, 10, 1, 1, 7, 7], "<i8"
    ).tobytes()
    world = read_world(written(tmp_path, members), options=OPTIONS)
    assert world.transition.toarray()[0].tolist() == [0, 1 / 3, 2 / 3, 0]
    members["branch-to-probability.bin"] = thirds.replace(b"\x03", b"\x00")
    with refused("divides by 0"):
        read_world(written(tmp_path, members), options=OPTIONS)


def test_a_chain_needs_no_choices(tmp_path):
    chain = jm.World([[0.5, 0.5], [0, 1]], [1, 0], 0.9)
    members = of_world(chain, **{"#players": 0})
    del members["state-to-choices.bin"]
    world = read_world(written(tmp_path, members), options=OPTIONS)
    assert world.transition.toarray().tolist() == [[0.5, 0.5], [0, 1]]


def test_several_initial_states_leave_a_choice(tmp_path):
    path = written(tmp_path, PUBLISHED | {"state-is-initial.bin": b"\x05" + bytes(7)})
    with refused("with 2 initial states. does not say where episodes start.*initial=uniform"):
        read_world(path, options=OPTIONS)
    world = read_world(path, options=OPTIONS | {"initial": "uniform"})
    assert world.initial.tolist() == [0.5, 0, 0.5, 0]
    world = read_world(path, options=OPTIONS | {"initial": "3"})
    assert world.initial.tolist() == [0, 0, 0, 1]


def test_a_discount_is_needed(tmp_path):
    with refused("has no discount"):
        read_world(written(tmp_path, PUBLISHED))
    with refused("no option 'reward'"):
        read_world(written(tmp_path, PUBLISHED), options=OPTIONS | {"reward": "r"})


def changed(members, model):
    index = json.loads(members["index.json"])
    index["transition-system"] |= model
    return members | {"index.json": json.dumps(index).encode()}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"time": "stochastic"}, "in stochastic time"),
        ({"#players": 2}, "with 2 players"),
        ({"#observations": 3}, "3 observations"),
        ({"branch-probability-type": {"type": "double-interval"}}, "type 'double-interval'"),
        ({"branch-probability-type": {"type": "rational", "size": 256}}, "size 256"),
        ({"branch-probability-type": {"type": ["double"]}}, "type"),
        ({"branch-probability-type": 7}, "type 7"),
        ({"#states": 0}, "counts"),
        ({"#states": -4}, "counts"),
        ({"#states": 4.0}, "counts"),
        ({"#states": True}, "counts"),
        ({"#states": "4"}, "counts"),
        ({"#states": 10**30}, "counts"),
        ({"#states": 10**12}, "would take about"),
        ({"#branches": 10**9}, "would take about 76 GB.*memory_gb="),
        ({"#states": 5}, "state-to-choices.bin has 40 bytes, expected 48"),
        ({"#choices": 6}, "choice-to-branches.bin has 48 bytes, expected 56"),
        ({"#branches": 7}, "has 64 bytes, expected 56"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(tmp_path, model, message):
    with refused(message):
        read_world(written(tmp_path, changed(PUBLISHED, model)), options=OPTIONS)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (b"", "does not describe"),
        (b"[]", "does not describe"),
        (b"{", "does not describe"),
        (b"\xff\xfe", "does not describe"),
        (b"[" * 100_000, "does not describe"),
        (b'{"format-version": 1}', "transition-system"),
        (b'{"format-version": 1, "transition-system": []}', "does not describe"),
        (
            PUBLISHED["index.json"].replace(b'"format-version": 1', b'"format-version": 2'),
            "version 2",
        ),
        (b" " * (17 << 20), "index.json has 17825792 bytes"),
    ],
)
def test_an_unreadable_index_is_refused(tmp_path, index, message):
    with refused(message):
        read_world(written(tmp_path, PUBLISHED | {"index.json": index}), options=OPTIONS)


def offsets(*values):
    return np.array(values, "<u8").tobytes()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("state-to-choices.bin", offsets(0, 3, 2, 4, 5), r"state-to-choices.bin\[2\] = 2.*never"),
        ("state-to-choices.bin", offsets(1, 2, 3, 4, 5), r"\[0\] = 1"),
        ("state-to-choices.bin", offsets(0, 2, 3, 4, 4), r"\[4\] = 4.*end at 5"),
        ("state-to-choices.bin", offsets(0, 2, 3, 2**63 + 9, 5), r"\[3\] = 9223372036854775817"),
        ("state-to-choices.bin", offsets(0, 2, 2, 4, 5), "leave state 1 without an action"),
        ("choice-to-branches.bin", offsets(0, 2, 4, 6, 9, 8), r"\[4\] = 9"),
        ("choice-to-branches.bin", offsets(0, 2, 4, 6, 6, 8), r"sums to 0\.0"),
        ("branch-to-target.bin", offsets(1, 2, 2, 3, 0, 4, 2, 3), r"\[5\] = 4 is outside 0..3"),
        ("branch-to-target.bin", offsets(1, 2, 2, 2**64 - 1, 0, 1, 2, 3), r"\[3\] = 18446744"),
        ("branch-to-probability.bin", np.full(8, 0.5).tobytes(), r"sums to 0\.5"),
        ("branch-to-probability.bin", np.full(8, np.nan).tobytes(), "not finite"),
        ("branch-to-probability.bin", np.full(8, np.inf).tobytes(), "not finite"),
        (
            "branch-to-probability.bin",
            np.array([2, -1, 1, 0, 1, 0, 1, 1.0]).tobytes(),
            "probability 2",
        ),
        ("branch-to-probability.bin", b"", "has 0 bytes, expected 64"),
        ("state-is-initial.bin", b"\x10" + bytes(7), "beyond the last"),
        ("state-is-initial.bin", bytes(8), "with 0 initial states"),
    ],
)
def test_arrays_that_describe_no_world_are_refused(tmp_path, name, data, message):
    with refused(message):
        read_world(written(tmp_path, PUBLISHED | {name: data}), options=OPTIONS)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if "annotations" not in name])
def test_a_missing_member_is_named(tmp_path, name):
    members = {key: data for key, data in PUBLISHED.items() if key != name}
    expected = "initial states" if "initial" in name else f"lacks {name}"
    with refused(expected):
        read_world(written(tmp_path, members), options=OPTIONS)


def special(name, kind, **facts):
    entry = tarfile.TarInfo(name)
    entry.type = kind
    for key, value in facts.items():
        setattr(entry, key, value)
    return entry


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"../outside.bin": b"x"}, "leads out of the archive"),
        ({"/etc/outside.bin": b"x"}, "leads out of the archive"),
        ({"a/../../b.bin": b"x"}, "leads out of the archive"),
        ({"..\\outside.bin": b"x"}, "leads out of the archive"),
        ({f"{'d/' * 80}../../x.bin": b"x"}, "leads out of the archive"),
        ({"link": special("link", tarfile.SYMTYPE, linkname="/etc/passwd")}, "neither a file"),
        (
            {"link": special("branch-to-target.bin", tarfile.LNKTYPE, linkname="x")},
            "neither a file",
        ),
        ({"pipe": special("pipe", tarfile.FIFOTYPE)}, "neither a file"),
        ({"device": special("device", tarfile.CHRTYPE)}, "neither a file"),
    ],
)
def test_names_and_links_that_lead_elsewhere_are_refused(tmp_path, extra, message):
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        with refused(message):
            read_world(written(tmp_path, extra | PUBLISHED, kind=kind), options=OPTIONS)
    assert not (tmp_path.parent / "outside.bin").exists()


def test_a_member_may_occur_once(tmp_path):
    path = tmp_path / "twice.umb"
    path.write_bytes(packed(PUBLISHED)[:-10240].rstrip(b"\0") + b"")
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in [*PUBLISHED.items(), *PUBLISHED.items()]:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    path.write_bytes(stream.getvalue())
    with refused("occurs twice"):
        read_world(str(path), options=OPTIONS)


def tar_header(name, size_text, kind=b"0"):
    """A header by hand, for sizes that tarfile would not write."""
    block = bytearray(512)
    block[: len(name)] = name
    block[124:136] = size_text
    block[156:157] = kind
    block[257:263] = b"ustar\0"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tar_header(b"index.json", b"77777777777\0"), "bytes"),
        (tar_header(b"other.bin", b"77777777777\0"), "ends early"),
        (tar_header(b"other.bin", b"\x80" + bytes(3) + b"\xff" * 8), "octal"),
        (tar_header(b"other.bin", b"-0000000100\0"), "damaged"),
        (tar_header(b"other.bin", b"not a number"), "octal"),
        (tar_header(b"x", b"77777777777\0", b"x"), "an extended header has"),
        (tar_header(b"x", b"00000000010\0", b"x") + b"99 path=".ljust(512, b"\0"), "extended"),
        (
            tar_header(b"x", b"00000000014\0", b"x") + b"12 size=999\n".ljust(512, b"\0"),
            "sets size",
        ),
        (tar_header(b"x", b"00000000000\0", b"S"), "neither a file"),
        (bytes([1]) + tar_header(b"other.bin", b"00000000000\0")[1:], "damaged"),
        (b"no archive at all", "ends early"),
        (b"no archive at all" * 100, "octal|damaged"),
        (b"", "lacks index.json"),
        (bytes(1024), "lacks index.json"),
        (gzip.compress(b"x" * 600, mtime=0), "octal|damaged"),
        (gzip.compress(packed(PUBLISHED), mtime=0)[:-30], "damaged"),
        (lzma.compress(packed(PUBLISHED))[:-30], "ends early"),
        (b"\x1f\x8b\x08nothing", "damaged"),
        (b"\xfd7zXZ\0nothing", "damaged"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_hostile_archive_is_refused(tmp_path, data, message):
    path = tmp_path / "hostile.umb"
    path.write_bytes(data)
    with refused(message):
        read_world(str(path), options=OPTIONS)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_bomb_is_stopped_on_the_way(tmp_path, pack):
    bomb = {"zeros.bin": bytes(9_000_000)} | PUBLISHED
    path = written(tmp_path, bomb, pack)
    with refused(r"unpacks to more than 0\.008 GB"):
        read_world(path, options=OPTIONS | {"memory_gb": "0.002"})
    assert read_world(path, options=OPTIONS | {"memory_gb": "0.01"}).num_states == 4


def damaged(data, members):
    """The members with some bytes of one of them changed, so that the archive around is sound."""
    name = data.draw(st.sampled_from(sorted(members)))
    content = bytearray(members[name])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    return members | {name: bytes(content)}


@tried(100)
@given(data=st.data())
def test_no_damage_does_more_than_a_refusal(data, tmp_path_factory):
    pack = data.draw(st.sampled_from([bytes, bytes, gzip.compress, lzma.compress]))
    inside = data.draw(st.booleans())
    whole = bytearray(pack(packed(damaged(data, PUBLISHED) if inside else PUBLISHED)))
    for _ in range(0 if inside else data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "fuzzed.umb"
    ends = [None] if inside else [None, -1, len(whole) // 2]
    path.write_bytes(bytes(whole[: data.draw(st.sampled_from(ends))]))
    try:
        world = read_world(str(path), options=OPTIONS | {"initial": "0"})
    except jm.errors.JourneymanError:
        return
    assert np.allclose(world.transition.sum(axis=1), 1)
