"""The public surface: everything is importable, documented, and shown in an example that runs."""

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path

import pytest

import apexgnn
from apexgnn import errors

SOURCE = Path(apexgnn.__file__).parent
ROOMS = [
    ".".join(path.parent.relative_to(SOURCE.parent).parts)
    for path in [SOURCE / "__init__.py", *sorted(SOURCE.glob("*/__init__.py"))]
    if "__all__" in path.read_text()
]
ERRORS = [
    name
    for name, value in vars(errors).items()
    if inspect.isclass(value) and value.__module__ == errors.__name__
]


def public():
    """All that is listed, each object once."""
    seen = set()
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
            if id(value) not in seen:
                seen.add(id(value))
                yield pytest.param(value, id=f"{room}.{name}")


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_at_the_front_door(name):
    error = getattr(apexgnn, name)
    assert error is getattr(errors, name)
    assert name in apexgnn.__all__
    assert issubclass(error, apexgnn.ApexError)
    assert inspect.getdoc(error)


@pytest.mark.parametrize("room", ROOMS)
def test_every_listed_name_is_there(room):
    module = importlib.import_module(room)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)


@pytest.mark.parametrize("value", list(public()))
def test_every_public_object_is_documented(value):
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value)
        for name, member in vars(value).items() if inspect.isclass(value) else ():
            if inspect.isfunction(member) and not name.startswith("_"):
                assert inspect.getdoc(member), f"{value.__name__}.{name}"


@pytest.mark.parametrize("value", list(public()))
def test_every_public_object_has_an_example(value):
    """In its own docstring. Errors, records and enumerations, which functions make and take: in their module."""
    shared = inspect.isclass(value) and (issubclass(value, BaseException | Enum) or is_dataclass(value))
    if shared:
        value = sys.modules[value.__module__]
    if inspect.isclass(value) or inspect.isroutine(value) or shared:
        examples = doctest.DocTestFinder().find(value, getattr(value, "__name__", "object"))
        assert any(test.examples for test in examples), "no doctest"


def test_the_front_door_is_the_same_for_people_and_for_type_checkers():
    """The table of lazily loaded names and the imports under TYPE_CHECKING say the same."""
    tree = ast.parse(Path(apexgnn.__file__).read_text())
    typed = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == apexgnn._HOME
    assert set(apexgnn.__all__) == {*apexgnn._HOME, *ERRORS}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        apexgnn.nothing  # noqa: B018


def test_importing_the_package_is_quick_and_changes_nothing():
    """No torch, no warnings filters, no logging set-up, no seeds."""
    program = (
        "import sys, warnings, random, logging; before = (list(warnings.filters), random.getstate());"
        "import apexgnn; assert 'torch' not in sys.modules;"
        "assert before == (list(warnings.filters), random.getstate()); assert not logging.getLogger().handlers"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
