"""The rooms of tuilab stand in one order, and each imports only what stands before it."""

import ast
import runpy
from collections import defaultdict

import pytest

from tests.rooms import EXCEPTIONS, HOUSE, MODULES, ROOMS, arrows, imports, nodes, room_of, with_packages
from tuilab.engine.engines import ENGINES
from tuilab.reports.files import ENDINGS

MOST = 20  # modules in a folder that one still finds one's way in


def test_a_room_imports_only_what_stands_before_it() -> None:
    upward = {arrow for arrow in arrows() if ROOMS.index(room_of(arrow[1])) > ROOMS.index(room_of(arrow[0]))}

    assert upward == EXCEPTIONS.keys()


def test_imports_of_modules_and_their_packages_make_no_cycle() -> None:
    """Imports for types and within functions count as well; those of the public names of `tuilab` do not."""
    below = defaultdict(set)
    for name, other in with_packages():
        below[name].add(other)

    left = set(MODULES)
    while ends := {name for name in left if not below[name] & left}:
        left -= ends

    assert left == set()


def test_every_room_says_what_lives_in_it() -> None:
    inits = [path for name, path in MODULES.items() if path.name == "__init__.py"]

    assert {room_of(".".join(path.relative_to(HOUSE.parent).parts)) for path in inits} == set(ROOMS)
    assert [path for path in inits if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_no_folder_holds_more_than_one_can_look_through() -> None:
    folders = {path.parent for path in MODULES.values()}

    assert [folder for folder in folders if len([*folder.glob("[!_]*.py")]) > MOST] == []


@pytest.mark.parametrize(("library", "room"), [("torch", "lab"), ("textual", "tui")])
def test_only_one_room_imports_what_is_heavy(library: str, room: str) -> None:
    knows = {name for name in MODULES if library in {other.split(".")[0] for other in imports(name)}}

    assert {room_of(name) for name in knows} == {room}


def test_engines_are_reached_through_their_table_alone() -> None:
    packages = tuple(module.rpartition(".")[0] for module in ENGINES.values() if module)
    others = [name for name in MODULES if not name.startswith(packages)]

    assert [name for name in others for other in imports(name) if other.startswith(packages)] == []


def test_one_door_leads_to_numpy_and_none_from_the_process_of_a_scenario() -> None:
    """Where it is loaded through ours it computes with one thread, which is not for what a user measures."""
    knows = {name for name in MODULES if {"numpy", "scipy"} & {other.split(".")[0] for other in imports(name)}}
    known = [name for name in MODULES if room_of(name) == "lab"]
    for name in known:  # grows
        known += sorted({other for other in imports(name) if other in MODULES} - {*known})

    assert knows == {"tuilab.arrays"}
    assert not knows & {*known}


def test_one_door_leads_to_the_device() -> None:
    """Whoever asks torch.cuda elsewhere makes a context where none is wanted, and stands beside the model of it in tests."""
    behind = ("torch.cuda", "torch.accelerator", "torch._C._cuda")
    asks = {name for name in MODULES if any(other.startswith(behind) for other in {*imports(name), *_dotted(name)})}

    assert {name.rpartition(".")[0] for name in asks} == {"tuilab.lab.device"}


def _dotted(module: str) -> set[str]:
    """Return the names with dots that a module uses, as `torch.cuda`, and those that it imports from one."""
    imported = [(node.module, alias.name) for node in nodes(module) if isinstance(node, ast.ImportFrom) for alias in node.names]
    used = {ast.unparse(node) for node in nodes(module) if isinstance(node, ast.Attribute)}
    return used | {f"{source}.{name}" for source, name in imported}


def test_the_picture_of_the_rooms_is_as_the_imports_are() -> None:
    """`python docs/rooms.py` draws it again."""
    script = runpy.run_path(str(HOUSE.parent / "docs" / "rooms.py"))

    assert script["PICTURE"].read_text() == script["draw"]()


def test_no_renderer_of_reports_imports_another_one() -> None:
    terminal = {f"tuilab.reports.{name}" for name in ("plain", "several", "compare_text", "claim_history_text", "sweeps.text")}
    formats = {f"tuilab.reports.formats.{kind}" for kind in ENDINGS.values()}
    renderers = terminal | formats

    assert renderers <= MODULES.keys()
    assert {arrow for arrow in arrows() if renderers.issuperset(arrow)} == set()
