"""What may know what: only four rooms know of guests, and no import runs upward (docs/design.md, section 6)."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from bob.claim.property import vocabulary

BOB = Path(__file__).resolve().parent.parent / "bob"
WITH_GUESTS = {"run", "cli", "guest", "image"}
ROOMS = sorted(path.parent.name for path in BOB.glob("*/__init__.py"))

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if name.startswith(("bob.guest", "bob.image", "libvirt", "paramiko"))))
"""


def test_there_are_rooms() -> None:
    assert set(ROOMS) > WITH_GUESTS


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in WITH_GUESTS])
def test_a_pure_room_is_imported_without_the_guest(room: str) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, f"bob.{room}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def room_of(module: str) -> str:
    """A folder below bob/, or a file beside the folders. What runs inside a guest is a room of its own."""
    _bob, name, *rest = [*module.split("."), ""]
    return f"{name}/inside" if (name, rest[:1]) == ("agent", ["inside"]) else name


MODULES = {
    ".".join(["bob", *file.relative_to(BOB).with_suffix("").parts]).removesuffix(".__init__"): file
    for file in BOB.rglob("*.py")
}


def imported(file: Path) -> Iterator[str]:
    """The modules of bob that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            names = (f"{node.module}.{one.name}" for one in node.names)
            yield from (name if name in MODULES else node.module for name in names)


@cache
def arrows() -> dict[str, set[str]]:
    """For each room those that it imports, wherever in it."""
    found: dict[str, set[str]] = {}
    for module, file in MODULES.items():
        here = room_of(module)
        found.setdefault(here, set()).update(room for one in imported(file) if (room := room_of(one)) != here)
    return found


def drawn() -> list[str]:
    """The rooms as docs/design.md draws them, from the highest floor to the ground."""
    house = (BOB.parent / "docs" / "design.md").read_text().partition("    bob/\n")[2].partition("\n\n")[0]
    return [line.split()[0] for line in house.splitlines() if re.match(r" {6}\S", line)]


def test_no_import_runs_upward() -> None:
    """Each room imports only rooms that stand below it. So no two rooms import each other in a circle, either."""
    floors = {name.removesuffix("/").removesuffix(".py"): floor for floor, name in enumerate(drawn())}
    floors |= {"agent/inside": len(floors), "__main__": -1, "": -1}
    found = arrows()
    assert len(found) > 20
    assert [(room, other) for room in found for other in found[room] if floors[room] >= floors[other]] == []


def test_no_two_files_import_each_other_in_a_circle() -> None:
    found = {module: set(imported(file)) - {module} for module, file in MODULES.items()}
    assert len(found) > 200
    try:
        TopologicalSorter(found).prepare()
    except CycleError as circle:
        pytest.fail(" <- ".join(circle.args[1]))


def test_four_rooms_know_of_guests() -> None:
    """Not even by an import within a function."""
    assert {room for room, others in arrows().items() if others & {"guest", "image"}} <= WITH_GUESTS


def test_what_runs_inside_a_guest_imports_nothing_else_and_the_agent_alone_imports_it() -> None:
    assert arrows()["agent/inside"] == set()
    assert [room for room, others in arrows().items() if "agent/inside" in others] == ["agent"]


def names_of_kinds(file: Path) -> Iterator[str]:
    """The names of classes, wherever in a file, and of kinds that it puts together: ``Atom = Mounts | Exists``."""
    tree = ast.parse(file.read_text())
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        if isinstance(node, ast.Assign) and not ast.unparse(node.value).startswith("TypeVar("):
            yield from (
                one.id for one in node.targets if isinstance(one, ast.Name) and re.search("^_?[A-Z]+[a-z]", one.id)
            )


def test_a_class_has_a_name_of_its_own() -> None:
    """A name means one thing in all of bob/: two vocabularies for one theory drift apart. An underscore is no name."""
    counted = Counter(name.lstrip("_") for file in MODULES.values() for name in names_of_kinds(file))
    assert len(counted) > 700
    for kind in (vocabulary.Call, vocabulary.What, vocabulary.Unit):
        assert counted[kind.__name__] == 1
    assert {name for name, times in counted.items() if times > 1} == set()


def test_the_house_is_as_the_design_draws_it() -> None:
    """Both ways: each room on disk has its line, and each line its room."""
    rooms = [path for path in BOB.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    on_disk = {f"{path.name}/" if path.is_dir() else path.name for path in rooms}
    assert set(drawn()) == on_disk - {"__init__.py", "__main__.py"}


def scripts() -> Iterator[tuple[str, str]]:
    """The Python of reports/ and bench/, where mypy does not look: whole files, and what stands inside of shell."""
    for path in sorted([*(BOB.parent / "reports").iterdir(), *(BOB.parent / "bench").glob("*.py")]):
        text = path.read_text() if path.is_file() and path.suffix in ("", ".py") else ""
        if "python" in text.partition("\n")[0] or path.suffix == ".py":
            yield path.name, text
        elif "<<'PYTHON'\n" in text:
            yield path.name, text.split("<<'PYTHON'\n")[1].split("\nPYTHON\n")[0]


def test_scripts_import_what_there_is() -> None:
    assert {"make-models", "make-reference", "draw-workloads", "speed.py"} <= {name for name, _text in scripts()}
    for name, text in scripts():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "bob":
                module = importlib.import_module(node.module or "")
                for one in node.names:
                    assert hasattr(module, one.name) or importlib.util.find_spec(f"{node.module}.{one.name}"), name
