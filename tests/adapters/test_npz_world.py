"""Worlds from NPZ files: exact in every layout, and nothing believed before it is checked."""

import io
import json
import resource
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from fuzzing import tried
from journeyman.adapters.npz_arrays import open_npz
from journeyman.adapters.world_sources import read_world
from journeyman.testing.strategies import worlds

P = np.array([[[0.5, 0.5, 0], [0, 1, 0]], [[0, 0, 1], [1, 0, 0]], [[0.25, 0, 0.75], [0, 0, 1]]])
START = np.array([1.0, 0, 0])


def refused(match):
    return pytest.raises(jm.errors.InvalidInput, match=match)


def saved(tmp_path, name="world.npz", **arrays):
    path = tmp_path / name
    np.savez(path, **arrays)
    return str(path)


def parts(matrix):
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}


def rectangular(world):
    return world.pairs.is_rectangular


@given(world=worlds())
def test_a_native_file_comes_back_to_the_last_bit(world, tmp_path_factory):
    path = tmp_path_factory.mktemp("native") / "world.npz"
    world.save(path)
    back = read_world(str(path))
    assert (back.transition != world.transition).nnz == 0
    assert np.array_equal(back.initial, world.initial)
    assert back.pairs == world.pairs
    assert back.discount == world.discount


@given(world=worlds(), layout=st.permutations("sax"), fortran=st.booleans())
def test_dense_arrays_in_every_layout_are_exact(world, layout, fortran, tmp_path_factory):
    if not rectangular(world):
        return
    layout = "".join(layout)
    cube = world.transition.toarray().reshape(world.num_states, -1, world.num_states)
    array = cube.transpose(["sax".index(axis) for axis in layout])
    array = np.asfortranarray(array) if fortran else np.ascontiguousarray(array)
    path = saved(
        tmp_path_factory.mktemp("dense"), P=array, initial=world.initial, gamma=world.discount
    )
    back = read_world(path, options={"layout": layout})
    assert np.array_equal(back.transition.toarray(), world.transition.toarray())
    assert back.discount == world.discount
    assert np.array_equal(back.initial, world.initial)


@given(world=worlds(), dense=st.booleans())
def test_rows_are_exact(world, dense, tmp_path_factory):
    arrays = {"transition": world.transition.toarray()} if dense else parts(world.transition)
    path = saved(
        tmp_path_factory.mktemp("rows"),
        **arrays,
        initial=world.initial,
        discount=world.discount,
        choice_offsets=world.pairs.offsets,
    )
    back = read_world(path)
    assert (back.transition != world.transition).nnz == 0
    assert back.pairs == world.pairs


def test_rows_by_action_are_put_in_order(tmp_path):
    by_action = P.transpose(1, 0, 2).reshape(6, 3)
    expected = P.reshape(6, 3)
    for arrays in ({"P": by_action}, parts(sparse.csr_array(by_action))):
        path = saved(tmp_path, **arrays, initial=START, discount=0.9)
        world = read_world(path, options={"layout": "action-rows"})
        assert np.array_equal(world.transition.toarray(), expected)


def test_a_matrix_saved_by_scipy_is_read(tmp_path):
    path = tmp_path / "matrix.npz"
    sparse.save_npz(path, sparse.csr_array(P.reshape(6, 3)))
    options = {"layout": "rows", "initial": "0", "discount": "0.9"}
    world = read_world(str(path), options=options)
    assert np.array_equal(world.transition.toarray(), P.reshape(6, 3))
    uniform = read_world(str(path), options=options | {"initial": "uniform"})
    assert np.allclose(uniform.initial, 1 / 3)
    sparse.save_npz(path, sparse.csc_array(P.reshape(6, 3)))
    with refused(r"not in CSR format.*tocsr"):
        read_world(str(path), options=options)


def test_a_shape_that_leaves_one_layout_needs_no_name(tmp_path):
    for array in (P, P.transpose(1, 0, 2)):
        path = saved(tmp_path, transition_matrix=array, initial=START, discount=0.9)
        assert np.array_equal(read_world(path).transition.toarray(), P.reshape(6, 3))


ROUNDED = np.float32([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.6, 0.3, 0.1]])
OFF = float(np.abs(ROUNDED.sum(axis=1, dtype=float) - 1).max())


@pytest.mark.parametrize("kind", ["sax", "xas", "rows", "sparse", "big-endian"])
def test_single_precision_is_divided_by_its_sums(tmp_path, kind):
    assert OFF > 1e-8
    arrays = {
        "sax": {"P": ROUNDED[:, np.newaxis]},
        "xas": {"P": np.ascontiguousarray(ROUNDED[:, np.newaxis].T)},
        "rows": {"P": ROUNDED},
        "sparse": parts(sparse.csr_array(ROUNDED)),
        "big-endian": {"P": ROUNDED.astype(">f4")},
    }[kind]
    path = saved(tmp_path, **arrays, initial=ROUNDED[2], discount=0.9)
    options = {"layout": kind if kind in ("sax", "xas") else "rows"}
    world = read_world(path, options=options)
    exact = ROUNDED.astype(float)
    exact /= exact.sum(axis=1, keepdims=True)
    assert np.allclose(world.transition.toarray(), exact, rtol=0, atol=1e-16)
    assert np.allclose(world.initial, exact[2], rtol=0, atol=1e-16)
    assert world.normalisation_error == OFF
    assert abs(world.transition.sum(axis=1) - 1).max() < 1e-15


@pytest.mark.parametrize("change", [1e-6, -1e-6])
def test_more_than_rounding_is_refused_in_single_precision_too(tmp_path, change):
    wrong = np.float32([[1 + change, 0, 0], [0.3, 0.3, 0.4], [0.6, 0.3, 0.1]])
    for arrays in ({"P": wrong}, {"P": wrong[:, np.newaxis]}, parts(sparse.csr_array(wrong))):
        path = saved(tmp_path, **arrays, initial=START, discount=0.9)
        with refused("sums to|probability 1.0000009"):
            read_world(
                path, options={"layout": "sax" if arrays.get("P", wrong).ndim == 3 else "rows"}
            )
    path = saved(tmp_path, P=ROUNDED, initial=wrong[0], discount=0.9)
    with refused("initial sums to"):
        read_world(path, options={"layout": "rows"})
    path = saved(tmp_path, P=ROUNDED.astype(float), initial=START, discount=0.9)
    with refused("sums to"):
        read_world(path, options={"layout": "rows"})


def test_a_hostile_sparse_matrix_in_single_precision_is_refused(tmp_path):
    changed = GOOD | {"data": GOOD["data"].astype(np.float32), "indices": GOOD["indices"] + 2}
    path = saved(tmp_path, **changed, initial=START, discount=0.9)
    with refused("sound sparse matrix"):
        read_world(path, options={"layout": "rows"})


def test_options_stand_before_what_the_file_says(tmp_path):
    path = saved(tmp_path, P=P, initial=START, discount=0.9)
    world = read_world(path, options={"discount": "0.5", "initial": "2"})
    assert (world.discount, world.initial.tolist()) == (0.5, [0, 0, 1])


CUBE = np.full((3, 3, 3), 1 / 3)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"P": CUBE}, {}, r"fits layouts sax and asx.*layout=sax or layout=asx"),
        ({"P": np.ones((2, 3, 4))}, {}, "fits neither"),
        ({"P": P}, {"layout": "asx"}, "differ in number"),
        ({"P": P}, {"layout": "sas"}, "permutation of sax"),
        ({"P": P.reshape(6, 3)}, {}, "in an order it does not say.*layout=rows"),
        ({"P": P.reshape(6, 3)}, {"layout": "sax"}, r"shape \(6, 3\), which is not layout 'sax'"),
        ({"P": P.reshape(6, 3)[:5]}, {"layout": "action-rows"}, "not layout=action-rows"),
        ({"P": P.reshape(6, 3)[:5]}, {"layout": "rows"}, "no multiple"),
        ({"P": P.ravel()}, {}, r"shape \(18,\)"),
        ({"P": P[:0]}, {}, "fits"),
        ({"P": np.zeros((0, 3))}, {"layout": "rows"}, "empty"),
        ({"P": P * 2}, {}, r"P\[0, 0\] sums to 2\.0"),
        ({"P": np.ascontiguousarray(P.T) * 2}, {"layout": "xas"}, "probability 2.0"),
        ({"P": P + np.array([-0.5, 0.5, 0])}, {}, "probability -0.5"),
        ({"P": np.where(P == 0.25, 0.2, P)}, {}, r"P\[2, 0\] sums to 0\.95"),
        ({"P": np.where(P == 0.25, 0.2, P).T.copy()}, {"layout": "xas"}, r"state 2, .* 0\.95"),
        ({"P": np.where(P == 0.25, np.nan, P)}, {}, "not finite"),
        ({"P": np.array([["a"]])}, {"layout": "rows"}, "holds <U1"),
        ({"Q": P}, {}, "holds no transition law, only .*Q"),
        (parts(sparse.csr_array(P.reshape(6, 3))), {"layout": "sax"}, "sparse rows"),
        (parts(sparse.csr_array(P.reshape(6, 3))), {}, "in an order it does not say"),
        ({"P": P}, {"colour": "red"}, "no option 'colour'"),
        ({"P": P}, {"initial": "3"}, "outside 0..2"),
        ({"P": P}, {"initial": "here"}, "'here' is not a whole number"),
        ({"P": P, "initial": [1, 0]}, {}, "2 entries, expected 3"),
        ({"P": P, "initial": [2, 0, 0]}, {}, "sums to 2"),
        ({"P": P, "discount": [1, 2]}, {}, r"discount has shape \(2,\)"),
        ({"P": P, "discount": np.array("x")}, {}, "discount has shape"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path, arrays, options, message):
    path = saved(tmp_path, **({"initial": START, "discount": 0.9} | arrays))
    with refused(message):
        read_world(path, options=options)


def test_what_a_file_lacks_is_asked_for(tmp_path):
    with refused("does not say where episodes start.*initial=0"):
        read_world(saved(tmp_path, P=P, discount=0.9))
    with refused("no discount"):
        read_world(saved(tmp_path, P=P, initial=START))
    with refused("does not say how many states"):
        read_world(saved(tmp_path, **parts(sparse.csr_array(P.reshape(6, 3)))))


GOOD = parts(sparse.csr_array(P.reshape(6, 3)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": GOOD["indices"] + 2}, "sound sparse matrix"),
        ({"indices": GOOD["indices"] - 1}, "sound sparse matrix"),
        ({"indptr": GOOD["indptr"][::-1]}, "sound sparse matrix"),
        ({"indptr": np.array([0, 2, 9, 4, 5, 7, 8])}, "sound sparse matrix"),
        ({"indptr": GOOD["indptr"] * 5}, "sound sparse matrix"),
        ({"indptr": np.zeros(0, int)}, "probabilities and"),
        ({"indices": GOOD["indices"][:3]}, "8 probabilities and 3 next states"),
        ({"data": np.ones(50), "indices": np.zeros(50, int)}, "50 probabilities"),
        ({"indices": GOOD["indices"] + 0.5}, "indices holds fractions"),
        ({"data": GOOD["data"] * np.nan}, "not finite"),
    ],
)
@pytest.mark.parametrize("layout", ["rows", "action-rows"])
def test_a_hostile_sparse_matrix_is_refused(tmp_path, changed, message, layout):
    path = saved(tmp_path, **GOOD | {"initial": START, "discount": 0.9} | changed)
    with refused(message):
        read_world(path, options={"layout": layout})


def header(shape, kind="<f8"):
    stream = io.BytesIO()
    facts = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, facts)
    return stream.getvalue()


def zipped(tmp_path, members, compression=zipfile.ZIP_DEFLATED):
    path = tmp_path / "hostile.npz"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return str(path)


@pytest.mark.parametrize(
    "member",
    [
        header((10**9, 1, 10**9)) + bytes(80),
        header((-3, 1, -3)) + bytes(72),
        header((3, 1, 3), "<f8")[:40],
        header((3, 1, 3), "|O") + bytes(72),
        header((3, 1, 3), "<c16") + bytes(144),
        header((3, 1, 3), [("a", "<f8")]) + bytes(72),
        b"",
        b"\x93NUMPY\x09\x00",
        b"not an array",
    ],
)
def test_a_lying_array_is_refused(tmp_path, member):
    with refused("announces|not a whole NPZ"):
        read_world(zipped(tmp_path, {"P.npy": member}), options={"discount": "0.9"})


def test_names_that_lead_elsewhere_are_never_followed(tmp_path):
    path = zipped(tmp_path, {"../../outside.npy": header((1,)) + bytes(8), "/P.npy": b"x"})
    with refused("holds no transition law"):
        read_world(path, options={"discount": "0.9"})
    assert not (tmp_path.parent / "outside.npy").exists()


@pytest.mark.parametrize("length", [0, 1, 100, -30])
def test_a_truncated_file_is_refused(tmp_path, length):
    path = saved(tmp_path, P=P, initial=START, discount=0.9)
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[:length])
    with refused("not a whole NPZ file"):
        read_world(path)


def test_a_bomb_of_zeros_is_read_in_blocks_and_refused(tmp_path):
    """64 MB of zeros in 64 KB, in an order in which no row is whole before the last byte."""
    path = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("P.npy", "w", force_zip64=True) as member,
    ):
        member.write(header((2000, 2, 2000)))
        for _ in range(8):
            member.write(bytes(8_000_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused(r"sums to 0\.0"):
        read_world(str(path), options={"discount": "0.9", "initial": "0", "layout": "xas"})
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 30_000, "kilobytes"


def test_a_refused_size_names_its_estimate(tmp_path):
    path = saved(tmp_path, P=P, initial=START, discount=0.9)
    with refused(r"P would take about \d.* GB, 1e-06 GB are allowed.*memory_gb="):
        read_world(path, options={"memory_gb": "0.000001"})
    huge = zipped(tmp_path, {"P.npy": header((1, 1000, 1000)) + bytes(8 * 10**6)})
    with refused(r"a part of P would take about 0\.016 GB, 0\.01 GB are allowed"):
        read_world(huge, options={"discount": "0.9", "memory_gb": "0.01"})


def test_sparse_arrays_and_native_files_are_measured_too(tmp_path):
    jm.gallery.grid(16).world.save(tmp_path / "native.npz")
    small = {"memory_gb": "0.00002"}
    with refused("native.npz would take about"):
        read_world(str(tmp_path / "native.npz"), options=small)
    path = saved(tmp_path, **GOOD, initial=START, discount=0.9)
    with refused("would take about"):
        read_world(path, options={"memory_gb": "0.000001", "layout": "rows"})


@pytest.mark.parametrize(
    "facts",
    [
        {"discount": "x"},
        {"discount": None},
        {"sink": [1]},
        {"state_names": 5},
        {"initial_count": "many"},
        {"version": 99},
        {"kind": "policy"},
    ],
)
def test_a_native_file_with_wrong_facts_is_refused(tmp_path, facts):
    native = tmp_path / "native.npz"
    jm.gallery.grid(2, macro_cells=1).world.save(native)
    with zipfile.ZipFile(native) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    found = json.loads(members["header.json"]) | facts
    members["header.json"] = json.dumps(found)
    with pytest.raises(jm.errors.InvalidInput):
        read_world(zipped(tmp_path, members))


def test_a_native_file_takes_no_options(tmp_path):
    jm.gallery.grid(2, macro_cells=1).world.save(tmp_path / "native.npz")
    with refused("no option 'discount'"):
        read_world(str(tmp_path / "native.npz"), options={"discount": "0.9"})


@tried(80)
@given(data=st.data())
def test_no_damage_does_more_than_a_refusal(data, tmp_path_factory):
    """Bytes of a sound file are changed at random: it is read, or refused in our words."""
    kind = data.draw(st.sampled_from(["native", "dense", "sparse"]))
    path = tmp_path_factory.getbasetemp() / "fuzzed.npz"
    if kind == "native":
        jm.gallery.grid(2, macro_cells=1).world.save(path)
    else:
        arrays = {"P": P} if kind == "dense" else GOOD
        np.savez(path, **arrays, initial=START, discount=0.9)
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(whole[: data.draw(st.sampled_from([None, -1, len(whole) // 2]))]))
    try:
        world = read_world(str(path), options={} if kind == "native" else {"layout": "rows"})
    except jm.errors.JourneymanError:
        return
    assert np.allclose(world.transition.sum(axis=1), 1)


def test_an_array_is_handed_out_in_blocks(tmp_path):
    array = np.arange(3_000_000.0).reshape(3000, 1000)
    path = saved(tmp_path, a=array, f=np.asfortranarray(array[:5]), one=np.float64(7))
    with open_npz(path, 10**9) as arrays:
        blocks = list(arrays.blocks("a"))
        assert len(blocks) > 3
        assert np.array_equal(np.concatenate([block for _, block in blocks]), array)
        assert [first for first, _ in blocks[:2]] == [0, 524]
        assert np.array_equal(arrays.read("f"), array[:5])
        assert arrays.read("one") == 7
