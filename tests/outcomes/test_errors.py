import inspect
import re

import pytest

import journeyman as jm
from journeyman import errors

LINE = re.compile(r"^    (?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(?:\s{2,}|$)")


def drawn_tree():
    """(class, its parent) for every line of the drawing."""
    path, edges = [], set()
    for line in errors.__doc__.splitlines():
        if found := LINE.match(line):
            depth = len(found["branch"]) // 4
            path[depth:] = [found["name"]]
            edges.add((found["name"], path[depth - 1] if depth else "Exception"))
    return edges - {("UserWarning", "Exception")}


def real_tree():
    classes = inspect.getmembers(errors, inspect.isclass)
    return {(name, member.__bases__[0].__name__) for name, member in classes}


def test_the_drawing_is_the_class_tree():
    assert drawn_tree() == real_tree()


def test_wrong_input_is_a_value_error_with_what_and_remedy():
    error = jm.errors.InvalidWorld("discount = 2", "Use 0.99")
    assert isinstance(error, ValueError)
    assert (error.what, error.remedy) == ("discount = 2", "Use 0.99")
    assert str(error) == "discount = 2. Use 0.99."


def test_a_missing_extra_is_an_import_error_with_the_command_that_installs_it():
    with pytest.raises(ImportError, match=r"ray is not installed: pip install 'journeyman\[ray\]'"):
        raise jm.errors.MissingExtra("ray", extra="ray")
