"""Cost classes on the command line: by name, and from a file of numbers."""

import json

import pytest

from journeyman.costs.registry import COST_CLASSES
from journeyman.runs.description import InvalidSettings, RunDescription, cost_class_of


@pytest.mark.parametrize("name", ["infinity-ball", "euclidean-ball", "simplex", "l1-ball"])
def test_a_class_without_numbers_goes_by_its_name(name):
    assert cost_class_of(name).describe() == {"name": name}
    assert RunDescription(cost_class=name).cost_class == name


@pytest.mark.parametrize(
    "description",
    [
        {"name": "prior-ball", "prior": [3.0, 1.0], "radius": 0.5, "norm": "l1"},
        {"name": "polytope", "rows": [[1.0], [-1.0]], "limits": [2.0, 1.0]},
        {"name": "simplex", "scale": [1.0, 2.0]},
    ],
)
def test_a_class_with_numbers_is_a_file(tmp_path, description):
    path = tmp_path / "class.json"
    path.write_text(json.dumps(description), encoding="utf-8")
    assert cost_class_of(str(path)).describe() == description
    placed = RunDescription(cost_class="class.json").with_paths_from(tmp_path)
    assert placed.cost_class == str(path.resolve())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sphere", ("--cost-class", "Give one of infinity-ball", ".json file")),
        ("prior-ball", ("--cost-class", "needs prior and radius", '"prior": ...')),
        ("polytope", ("--cost-class", "needs rows and limits", '"rows": ...')),
        ("missing.json", ("--cost-class", "missing.json does not exist")),
    ],
)
def test_what_cannot_be_a_class_is_refused_by_its_option(name, words):
    with pytest.raises(InvalidSettings) as fault:
        cost_class_of(name)
    for word in words:
        assert word in str(fault.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "holds a list"),
        ("{", "cannot be read as JSON"),
        ('{"name": "simplex", "radius": 1}', "the cost class simplex knows no 'radius'"),
        ('{"name": "cube"}', "there is no cost class 'cube'"),
        ('{"name": "polytope", "rows": [[1]], "limits": [1]}', "falls without end"),
    ],
)
def test_what_is_wrong_in_a_file_names_the_file(tmp_path, text, words):
    path = tmp_path / "class.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSettings, match=r"class\.json") as fault:
        cost_class_of(str(path))
    assert words in str(fault.value)


def test_every_class_has_its_own_name():
    assert all(kind.name == name for name, kind in COST_CLASSES.items())
