"""How saved runs are changed in these tests, carelessly and carefully."""

import hashlib
import io
import json
import shutil
import zipfile

import numpy as np

import journeyman as jm
from journeyman.certificate.saving import canonical, digest_of


def facts_of(place):
    return json.loads((place / "certificate.json").read_bytes())


def write_facts(place, facts):
    """A certificate with a digest that fits."""
    rest = {name: value for name, value in facts.items() if name != "digest"}
    (place / "certificate.json").write_bytes(canonical(rest | {"digest": digest_of(rest)}))


def change_facts(place, change):
    """A careful change of the certificate: its digest fits."""
    facts = facts_of(place)
    change(facts)
    write_facts(place, facts)


def damage_file(saved, place, name, where, damage):
    """Copy a run and overwrite bytes of one of its files; whether that has changed anything."""
    shutil.copytree(saved, place, dirs_exist_ok=True)
    before = (place / name).read_bytes()
    start = where % len(before)
    data = before[:start] + damage + before[start + len(damage) :]
    (place / name).write_bytes(data)
    return data != before


def rehash(place):
    """Hashes and digest that fit the files as they are now."""
    facts = facts_of(place)
    for name in facts["inputs"]:
        facts["inputs"][name] = hashlib.sha256((place / name).read_bytes()).hexdigest()
    write_facts(place, facts)


def change_arrays(path, change):
    """Write an input again with other arrays or another header."""
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name[:-4]: np.load(io.BytesIO(archive.read(name))) for name in names}
    change(header, arrays)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def failed(place, *words):
    outcome = jm.audit(place)
    assert not outcome.passed
    for word in words:
        assert word in str(outcome), str(outcome)
    return outcome


def numbers_in(facts):
    """The path of every number that a certificate claims."""
    skipped = {"software", "seeds", "inputs", "version", "digest"}

    def walk(value, path):
        if isinstance(value, dict):
            for key, inner in value.items():
                if path or key not in skipped:
                    yield from walk(inner, (*path, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield from walk(inner, (*path, index))
        elif isinstance(value, float | int) and not isinstance(value, bool):
            yield path

    return list(walk(facts, ()))


def at(facts, path):
    for key in path[:-1]:
        facts = facts[key]
    return facts, path[-1]


def edit(path, value):
    def change(facts):
        place, key = at(facts, path)
        place[key] = value(place[key]) if callable(value) else value

    return change


def drop(*path):
    def change(facts):
        place, key = at(facts, path)
        del place[key]

    return change


def summed_up(facts):
    """Bounds that are the sums of their terms again, in order, and the conclusion from them."""
    for way in facts["combinations"]:
        exact = sum(term["value"] for term in way["terms"])
        way["bound"] = float(np.nextafter(exact, np.inf))
    facts["combinations"].sort(key=lambda way: way["bound"])
    if facts["valid"]:
        facts["bound"] = min(facts["combinations"][0]["bound"], facts["trivial_bound"])
        facts["vacuous"] = facts["bound"] >= facts["trivial_bound"] != 0
        known = facts["combinations"][0]["terms"][0]["name"] == "expected cost"
        least, most = facts["least_possible"] if known else 0.0, facts["trivial_bound"]
        facts["weak"] = facts["bound"] - least > (most - least) / 2
