"""The plan of the house: who may import whom, how long a file may be, and what a room says is public.

Nothing is imported here; the sources are read.
"""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "apexgnn"
FILES = sorted(SOURCE.rglob("*.py"))

# The single files beside the rooms are the ground: they import each other at most. A room imports the ground,
# itself, and the rooms named here.
MAY_IMPORT = {
    "path": set(),
    "nn": set(),
    "explain": {"path", "nn"},
    "data": {"nn"},
    "training": {"nn", "data"},
    "zoo": {"nn", "data", "training"},
    "peers": {"path", "nn", "explain"},
    "metrics": {"path", "nn", "explain"},
    "testing": {"nn", "explain", "peers"},
    "figures": {"data"},
    "molecules": {"nn", "explain", "data", "zoo"},
    "experiments": {"path", "nn", "explain", "data", "training", "zoo", "peers", "metrics", "figures"},
    "benchmark": {"path", "nn", "explain", "data", "training", "figures"},
    "app": {"nn", "explain", "data", "zoo", "molecules", "peers", "metrics", "figures"},
    "batch": {"nn", "explain", "data", "zoo", "molecules", "metrics"},
}
MAY_IMPORT["cli"] = set(MAY_IMPORT)

LINES, FUNCTION_LINES = 250, 60
LONGER: dict[str, str] = {}  # file: why it is one piece all the same


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The part after the package's name; the package itself is its own room."""
    return [*module.split("."), ""][1]


MODULES = {name_of(path): path for path in FILES}
TREES = {module: ast.parse(path.read_text()) for module, path in MODULES.items()}
ROOMS = {room_of(name_of(path)) for path in FILES if path.parent != SOURCE}


def imports(module: str, nodes: Iterator[ast.AST]) -> set[str]:
    """The package's modules that these statements import."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            )
            stem = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                if (stem, alias.name) == ("apexgnn", "__version__"):
                    continue
                whole = f"{stem}.{alias.name}"
                found.add(whole if whole in MODULES else stem)
    return {name for name in found if name in MODULES}


@pytest.mark.parametrize("module", [m for m in MODULES if m != "apexgnn"])
def test_imports_point_one_way(module):
    """Also those inside functions count: a late import is still a dependency."""
    room = room_of(module)
    wanted = {room_of(name) for name in imports(module, ast.walk(TREES[module]))} - {room}
    if room in ROOMS or room in MAY_IMPORT:
        assert room in MAY_IMPORT, f"give the room '{room}' its place in MAY_IMPORT"
        above = {other for other in wanted if other in ROOMS or other in MAY_IMPORT} - MAY_IMPORT[room]
    else:
        above = {other for other in wanted if other in ROOMS or other in MAY_IMPORT}
    assert "" not in wanted or room == "cli", f"{module} imports the package's front door"
    assert not above, f"{module} imports {sorted(above)}, which is not below it"


def test_the_documented_plan_is_this_one():
    """The table in docs/architecture.md lists every room that exists, with what it may import."""
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    documented = {room: set(below.split(", ")) - {"–"} for room, below in rows}
    assert documented.pop("cli") == {"everything"}
    expected = {room: MAY_IMPORT[room] for room in documented}
    assert documented == expected
    assert ROOMS - {"cli"} <= set(documented)


def test_the_plan_itself_has_no_cycle():
    assert list(TopologicalSorter(MAY_IMPORT).static_order())


def test_no_modules_import_each_other_in_a_circle():
    """Statements that run when a module is imported; a package's __init__ only gathers what its modules define."""
    graph = {
        module: {name for name in imports(module, iter(tree.body)) if MODULES[name].name != "__init__.py"}
        for module, tree in TREES.items()
        if MODULES[module].name != "__init__.py"
    }
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", MODULES)
def test_files_and_functions_fit_on_their_pages(module):
    path = MODULES[module]
    relative = str(path.relative_to(SOURCE))
    lines = len(path.read_text().splitlines())
    assert lines <= LINES or relative in LONGER, f"{relative} has {lines} lines"
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if ast.get_docstring(node) is None else node.body[min(1, len(node.body) - 1)]
            length = (node.end_lineno or 0) - first.lineno + 1
            assert length <= FUNCTION_LINES, (
                f"{relative}: {node.name} has {length} lines without its docstring"
            )


def test_longer_files_are_still_longer():
    for relative in LONGER:
        assert len((SOURCE / relative).read_text().splitlines()) > LINES, (
            f"{relative} needs no exception any more"
        )


@pytest.mark.parametrize("module", ["apexgnn", *sorted(f"apexgnn.{room}" for room in ROOMS - {"cli"})])
def test_what_a_room_offers_is_listed_and_named_twice(module):
    """`from here import X as X`, and X in __all__: so that linters, type checkers and people see the same."""
    listed, offered, defined = None, set(), set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("apexgnn"):
            offered |= {alias.name for alias in node.names if alias.asname == alias.name}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            defined.add(node.targets[0].id)
            if node.targets[0].id == "__all__":
                listed = ast.literal_eval(node.value)
    if offered or listed:
        assert listed is not None, f"{module} has no __all__"
        assert len(listed) == len(set(listed))
        assert offered <= set(listed) <= offered | defined


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module):
    assert ast.get_docstring(TREES[module])
    assert not set(module.split(".")) & {"utils", "util", "common", "helpers", "misc"}
