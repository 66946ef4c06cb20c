"""Files that lie, explode, execute or lead elsewhere: a corpus for the readers of demonstrations.

`make_corpus(root)` writes them and says of each whether it must be refused or read. Whatever is
executed by one of them leaves a file called `executed` in `root`; whatever reads outside a file can
find `secret` there.
"""

import json
import os
import pickle
import shutil
import sys
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy

import journeyman as jm

SOUND = jm.Demonstrations([0, 1, 2, 0, 0], [0, 0, 1], [0, 2, 3], [True, False])
REFUSED, READ = "refused", "read"
PLAIN = "episode,t,state,action,terminated\n0,0,5,2,\n0,1,6,0,\n0,2,7,,1\n"
BLOCK = 1 << 26
SECRET = 48151623


def make_corpus(root):
    """Paths of hostile files and directories, each with what has to become of it."""
    root = Path(root)
    (root / "secret").write_bytes(np.full(3, SECRET, dtype="<i8").tobytes())
    makers = [native_files, tables, parquet_files, imitation_directories, minari_directories]
    corpus = {}
    for maker in makers:
        folder = root / maker.__name__
        folder.mkdir()
        corpus |= {str(path): fate for path, fate in maker(folder, root).items()}
    corpus |= {str(path): REFUSED for path in truncated_files(root)}
    return corpus


class Command:
    """Runs a command when it is unpickled."""

    def __init__(self, root):
        self.command = f"touch {root / 'executed'}"

    def __reduce__(self):
        return os.system, (self.command,)


def native_files(folder, root):
    """NPZ files."""
    header = json.dumps({"kind": "demonstrations", "version": 1})

    def archive(name):
        made = zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        made.writestr("header.json", header)
        return made

    with archive("bomb.npz") as bomb, bomb.open("states.npy", "w", force_zip64=True) as member:
        npy.write_array_header_1_0(
            member, {"descr": "|u1", "fortran_order": False, "shape": (BLOCK,)}
        )
        member.write(bytes(BLOCK))
    with archive("long-header.npz") as bomb, bomb.open("states.npy", "w", force_zip64=True) as one:
        one.write(b"\x93NUMPY\x02\x00" + (8 * BLOCK).to_bytes(4, "little"))
        one.write(bytes(BLOCK))
    with archive("liar.npz") as liar, liar.open("states.npy", "w") as member:
        npy.write_array_header_1_0(
            member, {"descr": "<i8", "fortran_order": False, "shape": (10**9,)}
        )
        member.write(bytes(80))
    with archive("pickle.npz") as pickled:
        for name in ("states", "actions", "offsets", "terminated"):
            with pickled.open(f"{name}.npy", "w") as member:
                npy.write_array(member, np.array([Command(root)], dtype=object))
    with archive("negative.npz") as negative:
        arrays = {"states": [0, -1], "actions": [0], "offsets": [0, 1], "terminated": [False]}
        for name, values in arrays.items():
            with negative.open(f"{name}.npy", "w") as member:
                npy.write_array(member, np.array(values))
    with archive("crowd.npz") as crowd:
        for number in range(12_000):
            crowd.writestr(f"{number:0100d}.npy", b"")
    (folder / "bare.npz").write_bytes(pickle.dumps(Command(root)))
    (folder / "empty.npz").touch()
    return dict.fromkeys(folder.iterdir(), REFUSED)


def tables(folder, _):
    """CSV files."""
    refused = {
        "words": PLAIN.replace("5", "five"), "huge": PLAIN.replace("5", "9" * 30),
        "digits": PLAIN.replace("5", "9" * 5000), "nan": PLAIN.replace("5", "nan"),
        "infinite": PLAIN.replace("5", "1e999"), "negative": PLAIN.replace("5", "-5"),
        "half": PLAIN.replace("5", "5.5"), "nul": PLAIN.replace("5", "\0"),
        "open-quote": PLAIN + '"\n' + '","\n' * 600_000, "wide": "," * 900_000, "empty": "",
        "formula": PLAIN.replace("5", "=cmd|' /C calc'!A0"),
    }  # fmt: skip
    read = {
        "mark": "\ufeff" + PLAIN, "windows": PLAIN.replace("\n", "\r\n"), "unended": PLAIN.rstrip(),
        "macintosh": PLAIN.replace("\n", "\r"),
    }  # fmt: skip
    for name, text in (refused | read).items():
        (folder / f"{name}.csv").write_bytes(text.encode())
    (folder / "bytes.csv").write_bytes(bytes(range(256)) * 10)
    with (folder / "endless-line.csv").open("wb") as stream:
        stream.truncate(4 << 30)  # a hole in the file system, no bytes
    with (folder / "endless-row.csv").open("wb") as stream:
        stream.write(PLAIN.encode())
        stream.truncate(4 << 30)
    return {path: READ if path.stem in read else REFUSED for path in folder.iterdir()}


def parquet_files(folder, _):
    """Parquet files."""
    names = ("episode", "t", "state", "action", "next_state")
    zeros = pa.table({name: np.zeros(1 << 20, dtype=np.int64) for name in names})
    with pq.ParquetWriter(folder / "rows.parquet", zeros.schema, compression="zstd") as writer:
        for _ in range(4):
            writer.write_table(zeros)
    one = pa.table({name: [0] for name in names})
    long = one.set_column(0, "episode", pa.array(["x" * (BLOCK // 3 * 2)]))
    pq.write_table(long, folder / "page.parquet", compression="zstd", use_dictionary=False)
    pq.write_table(long, folder / "dictionary.parquet", compression="zstd")
    deep = pa.array([0])
    for _ in range(60):
        deep = pa.ListArray.from_arrays([0, 1], deep)
    pq.write_table(one.set_column(2, "state", deep), folder / "deep.parquet")
    pq.write_table(one.set_column(2, "state", pa.array([b"0"])), folder / "bytes.parquet")
    wide = pa.table({**{str(k): [0] for k in range(3000)}, **{name: [0] for name in names}})
    pq.write_table(wide, folder / "wide.parquet")
    pq.write_table(
        one, folder / "levels.parquet"
    )  # pyarrow's view of such a column ends the process
    data = (folder / "levels.parquet").read_bytes()
    assert data.count(b"\x25\x02\x18\x05state") == 1
    data = data.replace(b"\x25\x02\x18\x05state", b"\x25\0\x18\x05state")
    (folder / "levels.parquet").write_bytes(data)
    swollen = bytearray((folder / "bytes.parquet").read_bytes())
    swollen[-8:-4] = (2**31 - 1).to_bytes(4, "little")
    (folder / "footer.parquet").write_bytes(swollen)
    (folder / "empty.parquet").touch()
    return {path: READ if path.stem == "wide" else REFUSED for path in folder.iterdir()}


def imitation_directories(folder, root):
    """Directories of `imitation`."""
    lists = {"obs": [[0, 1, 2]], "acts": [[0, 0]], "infos": [["{}", "{}"]], "terminal": [True]}
    command = f"touch {root / 'executed'}"
    code = json.dumps({"py/reduce": [{"py/function": "os.system"}, {"py/tuple": [command]}]})
    cases = {
        "code": lists | {"infos": [[code, code]]},
        "offsets": lists | {"obs": [list(range(11))], "acts": [[0] * 10]},
        "vectors": lists | {"obs": [[[0.0, 1.0]] * 3]},
        "ragged": lists | {"obs": [[[0.0, 1.0], [0.0], [1.0]]]},
        "hollow": lists | {"obs": pa.array([[[]] * 3], pa.list_(pa.list_(pa.float64())))},
        "missing": lists | {"obs": [[[0.0, 1.0], None, [0.0, 1.0]]]},
        "endless": lists | {"obs": [[[0.0, float("inf")]] * 3]},
        "images": lists | {"obs": [[[[0.0, 1.0]]] * 3]},
        "words": lists | {"acts": [["left", "right"]]},
        "unequal": lists | {"acts": [[0, 0, 0]]},
        "actionless": lists | {"obs": [[0]], "acts": pa.array([[]], pa.list_(pa.int64()))},
        "holes": lists | {"obs": [[0, None, 2]]},
        "nan": lists | {"obs": [[0.0, float("nan"), 2.0]]},
        "negative": lists | {"obs": [[0, -1, 2]]},
        "nothing": {"obs": [[0, 1, 2]]},
    }
    for name, columns in cases.items():
        _imitation(folder / name, pa.table(columns))
    _lengthen(folder / "offsets" / "data-00000-of-00001.arrow", 11)
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    _imitation(folder / "compressed", pa.table(lists), packed)
    zeros = pa.ListArray.from_arrays([0, BLOCK], pa.array(np.zeros(BLOCK, np.int8)))
    _imitation(folder / "bomb", pa.table(lists | {"obs": zeros}), packed)
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(BLOCK, np.int8)), 2)
    vectors = pa.ListArray.from_arrays([0, BLOCK // 2], pairs)
    _imitation(folder / "vector-bomb", pa.table(lists | {"obs": vectors}), packed)
    _imitation(folder / "elsewhere-bomb", pa.table(lists | {"infos": zeros}), packed)
    for name, state in {
        "elsewhere": {"_data_files": [{"filename": "../code/data-00000-of-00001.arrow"}]},
        "selected": {"_data_files": [{"filename": "x"}], "_indices_data_files": [{}]},
        "strange": {"_data_files": 7}, "json": [], "link": {"_data_files": [{"filename": "link"}]},
    }.items():  # fmt: skip
        (folder / name).mkdir()
        (folder / name / "state.json").write_text(json.dumps(state))
    (folder / "json" / "state.json").write_text("[" * 100_000)
    (folder / "link" / "link").symlink_to(folder / "code" / "data-00000-of-00001.arrow")
    read = ("code", "compressed", "elsewhere-bomb", "vectors")
    return {path: READ if path.name in read else REFUSED for path in folder.iterdir()}


def _imitation(folder, table, options=None):
    jm.write_demonstrations(SOUND, folder, format="imitation")
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema, options=options) as stream,
    ):
        stream.write_table(table)


def _lengthen(path, length):
    """Replace the end of the list with `length` entries by one far outside the file."""
    before, found, after = path.read_bytes().rpartition(bytes(4) + length.to_bytes(4, "little"))
    assert found
    path.write_bytes(before + bytes(4) + (1 << 30).to_bytes(4, "little") + after)


def minari_directories(folder, root):
    """Minari data sets; in each, the observations of the first episode are replaced."""
    zeros = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = zeros.compress(bytes(1 << 20)) + zeros.flush(zlib.Z_FULL_FLUSH)

    def deflated(group):
        made = group.create_dataset("x", (1 << 17,), "<i8", chunks=(1 << 17,), compression="gzip")
        made.id.write_direct_chunk((0,), b"\x78\x9c" + block * 900)
        group.move("x", "observations")

    def virtual(group):
        with h5py.File(folder / "other.h5", "w") as other:
            other["secret"] = np.full(3, 1)
        layout = h5py.VirtualLayout((3,), "<i8")
        layout[:] = h5py.VirtualSource(folder / "other.h5", "secret", (3,))
        group.create_virtual_dataset("observations", layout)

    def link(group):
        group["observations"] = h5py.ExternalLink(str(folder / "other.h5"), "secret")

    cases = {
        "values": lambda g: g.create_dataset("observations", (10**12,), "<i8", chunks=(1000,)),
        "flat-values": lambda g: g.create_dataset("observations", (10**9,), "<i8"),
        "chunk": lambda g: g.create_dataset(
            "observations", (3,), "<i8", chunks=(1 << 27,), maxshape=(None,)
        ),
        "external": lambda g: g.create_dataset(
            "observations", (3,), "<i8", external=[(str(root / "secret"), 0, 24)]
        ),
        "texts": lambda g: g.create_dataset("observations", data=["a", "b", "c"]),
        "floats": lambda g: g.create_dataset("observations", data=[0.0, float("nan"), 1.0]),
        "negative": lambda g: g.create_dataset("observations", data=[0, -1, 1]),
        "large": lambda g: g.create_dataset("observations", data=np.array([0, 2**63, 1], "u8")),
        "table": lambda g: g.create_dataset("observations", data=np.zeros((3, 2), int)),
        "group": lambda g: g.create_group("observations"),
        "soft-link": lambda g: g.__setitem__("observations", h5py.SoftLink("/episode_1/actions")),
        "deflated": deflated, "virtual": virtual, "link": link, "none": lambda g: None,
    }  # fmt: skip
    jm.write_demonstrations(SOUND, folder / "sound-v0", format="minari")
    for name, replace in cases.items():
        shutil.copytree(folder / "sound-v0", folder / name)
        with h5py.File(folder / name / "data" / "main_data.hdf5", "a") as file:
            del file["episode_0/observations"]
            replace(file["episode_0"])
    read = _minari_facts(folder, root)
    return {
        path: READ if path.name in read else REFUSED for path in folder.iterdir() if path.is_dir()
    }


def _minari_facts(folder, root):
    """Data sets with strange metadata; returns the names of those that are to be read."""
    command = f"touch {root / 'executed'}"
    spec = json.dumps({"id": "x-v0", "entry_point": "os:system", "kwargs": {"command": command}})
    facts = {
        "environment": {"env_spec": spec}, "many": {"total_episodes": 10**15},
        "flag": {"total_episodes": "2"}, "box": {"observation_space": '{"type": "Box"}'},
        "spaceless": {"observation_space": None}, "format": {"data_format": "../../x"},
        "start": {"action_space": json.dumps({"type": "Discrete", "n": 2, "start": 10**400})},
    }  # fmt: skip
    for name, more in facts.items():
        shutil.copytree(folder / "sound-v0", folder / name)
        path = folder / name / "data" / "metadata.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | more))
    return {"sound-v0", "environment"}


def truncated_files(root):
    """The first part of sound files."""
    folder = root / "truncated_files"
    folder.mkdir()
    for form in ("npz", "csv", "parquet"):
        jm.write_demonstrations(SOUND, folder / f"sound.{form}")
        data = (folder / f"sound.{form}").read_bytes()
        (folder / f"sound.{form}").unlink()
        for part in (1, len(data) // 2, len(data) - 7):
            yield folder / f"{part}.{form}"
            (folder / f"{part}.{form}").write_bytes(data[:part])
    for form, file in (("imitation", "*.arrow"), ("minari", "data/*.hdf5")):
        for part in (0.0, 0.5, 0.9):
            path = folder / f"{form}-{int(10 * part)}-v0"
            jm.write_demonstrations(SOUND, path, format=form)
            (cut,) = path.glob(file)
            cut.write_bytes(cut.read_bytes()[: int(part * cut.stat().st_size)])
            yield path


def peak_of_memory():
    """Bytes this process, or one it has started, has held at most; `getrusage` would count those
    of its parent, too."""
    started = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return max(_peak_of(process) for process in ["self", *started])


def _peak_of(process):
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def read_all(root):
    """What becomes of each file, and the peak of memory so far; run in a process of its own."""
    corpus = json.loads((Path(root) / "corpus.json").read_text())
    for path in corpus:
        try:
            demos = jm.read_demonstrations(path)
            outcome, message = READ, str(demos.states.tolist()[:20])
        except jm.errors.InvalidInput as refusal:
            outcome, message = REFUSED, str(refusal)
        sys.stdout.write(json.dumps([path, outcome, message, peak_of_memory()]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    read_all(sys.argv[1])
