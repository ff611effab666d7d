"""The packages of tuilab have one order, and each imports only packages before it."""

import ast
from collections import defaultdict

import pytest

from tests.packages import (
    EXCEPTIONS,
    MODULES,
    PACKAGES,
    SOURCE,
    class_names,
    import_pairs,
    import_pairs_with_packages,
    imports,
    nodes,
    package_of,
)
from tuilab.engine.engines import ENGINES
from tuilab.reports.write_report import ENDINGS

MOST = 20  # modules in a folder; in a longer list a newcomer does not find a file


def test_package_imports_only_packages_before_it() -> None:
    wrong_way = set()
    for module, imported in import_pairs():
        if PACKAGES.index(package_of(imported)) > PACKAGES.index(package_of(module)):
            wrong_way.add((module, imported))

    assert wrong_way == EXCEPTIONS


def test_imports_of_modules_and_their_packages_make_no_cycle() -> None:
    """Imports for types and within functions count as well; those of the public names of `tuilab` do not."""
    below = defaultdict(set)
    for name, other in import_pairs_with_packages():
        below[name].add(other)

    left = set(MODULES)
    while ends := {name for name in left if not below[name] & left}:
        left -= ends

    assert left == set()


def test_every_package_has_a_docstring() -> None:
    inits = [path for name, path in MODULES.items() if path.name == "__init__.py"]

    assert {package_of(".".join(path.relative_to(SOURCE.parent).parts)) for path in inits} == set(
        PACKAGES
    )
    assert [path for path in inits if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_no_two_classes_share_a_name() -> None:
    """A class within a class, such as a message of Textual, has the outer name as a part of its own."""
    modules_by_class = defaultdict(list)
    for name in MODULES:
        for class_name in class_names(nodes(name)[0]):
            modules_by_class[class_name].append(name)

    assert {name: shared for name, shared in modules_by_class.items() if len(shared) > 1} == {}


def test_no_folder_has_too_many_modules() -> None:
    folders = {path.parent for path in MODULES.values()}

    assert [folder for folder in folders if len([*folder.glob("[!_]*.py")]) > MOST] == []


@pytest.mark.parametrize(("library", "package"), [("torch", "lab"), ("textual", "tui")])
def test_only_one_package_imports_a_heavy_library(library: str, package: str) -> None:
    importers = {
        name for name in MODULES if library in {other.split(".")[0] for other in imports(name)}
    }

    assert {package_of(name) for name in importers} == {package}


def test_engines_are_reached_through_their_table_alone() -> None:
    packages = tuple(module.rpartition(".")[0] for module in ENGINES.values() if module)
    others = [name for name in MODULES if not name.startswith(packages)]

    assert [name for name in others for other in imports(name) if other.startswith(packages)] == []


def test_one_door_leads_to_numpy_and_none_from_the_process_of_a_scenario() -> None:
    """Where it is loaded through ours it computes with one thread, which is not for what a user measures."""
    knows = {
        name
        for name in MODULES
        if {"numpy", "scipy"} & {other.split(".")[0] for other in imports(name)}
    }
    known = [name for name in MODULES if package_of(name) == "lab"]
    for name in known:  # grows
        known += sorted({other for other in imports(name) if other in MODULES} - {*known})

    assert knows == {"tuilab.arrays"}
    assert not knows & {*known}


def test_one_door_leads_to_the_device() -> None:
    """Whoever asks torch.cuda elsewhere makes a context where none is wanted, and stands beside the model of it in tests."""
    behind = ("torch.cuda", "torch.accelerator", "torch._C._cuda")
    asks = {
        name
        for name in MODULES
        if any(other.startswith(behind) for other in {*imports(name), *_dotted(name)})
    }

    assert {name.rpartition(".")[0] for name in asks} == {"tuilab.lab.device"}


def _dotted(module: str) -> set[str]:
    """Return the names with dots that a module uses, as `torch.cuda`, and those that it imports from one."""
    imported = [
        (node.module, alias.name)
        for node in nodes(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    used = {ast.unparse(node) for node in nodes(module) if isinstance(node, ast.Attribute)}
    return used | {f"{source}.{name}" for source, name in imported}


def test_no_renderer_of_reports_imports_another_one() -> None:
    terminal = {
        f"tuilab.reports.{name}"
        for name in (
            "result_text",
            "several_text",
            "compare_text",
            "claim_history_text",
            "sweeps.text",
        )
    }
    formats = {f"tuilab.reports.formats.{kind}" for kind in ENDINGS.values()}
    renderers = terminal | formats

    assert renderers <= MODULES.keys()
    assert {pair for pair in import_pairs() if renderers.issuperset(pair)} == set()
