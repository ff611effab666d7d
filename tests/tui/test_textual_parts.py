"""tuilab uses parts of Textual that may change in any version: they are known by name, and named in one file.

To try another version: `pip install --no-deps --target /tmp/other textual==VERSION`, then run with PYTHONPATH=/tmp/other this
file and test_terminal_life.py. If they pass, add the version to `tuilab/probes/textual_version.py`.
"""

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from textual.app import App
from textual.containers import VerticalScroll
from textual.widgets import Static

import tuilab
import tuilab.tui
from tests.tui.screens import eventually
from tuilab.tui.terminal.known_textual import PARTS, VALUE, lack

HOUSE = Path(tuilab.__file__).parent
THE_FILE = HOUSE / "tui/terminal/textual_parts.py"


def test_textual_and_rich_have_every_part_that_tuilab_stands_on() -> None:
    lacks = [
        lack(owner, name, takes) for owner, parts in PARTS.items() for name, takes in parts.items()
    ]

    assert [line for line in lacks if line] == []


def test_a_part_that_is_gone_or_has_changed_is_named_with_its_owner() -> None:
    assert lack("textual.app:App", "_exploit", VALUE) == "textual.app:App._exploit is gone"
    assert lack("textual._contacts", "active_app", VALUE) == "textual._contacts.active_app is gone"
    assert (
        lack("textual.app:App", "_fatal_error", "self, why")
        == "textual.app:App._fatal_error takes (self), not (self, why)"
    )
    assert (
        lack("textual.app:App", "_display", VALUE)
        == "textual.app:App._display is called, and was a value"
    )
    assert (
        lack("textual.app:App", "_closed", "self")
        == "textual.app:App._closed is a value, and was called"
    )


def test_the_parts_that_are_looked_for_are_those_that_the_one_file_names() -> None:
    named = set(private_names(ast.parse(THE_FILE.read_text())))
    looked_for = {
        name
        for owner, parts in PARTS.items()
        for name in [*owner.replace(":", ".").split("."), *parts]
    }

    assert named == {name for name in looked_for if is_private(name)}


def test_no_other_file_takes_a_private_part_of_somebody_else() -> None:
    """A name that begins with an underscore is asked of `self` only, or it is one of those that a named tuple has in public."""
    found = []
    for path in sorted(HOUSE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        if path != THE_FILE and ("tui" in path.parts or imports_textual(tree)):
            found += [f"{path.relative_to(HOUSE)}: {taken}" for taken in taken_from_others(tree)]

    assert found == []


def test_no_class_of_ours_has_a_private_name_that_its_base_in_textual_has() -> None:
    found = []
    for one in classes_of_ours():
        names = set(private_names(ast.parse(textwrap.dedent(inspect.getsource(one)))))
        for base in foreign_bases(one):
            found += [
                f"{one.__module__}.{one.__name__}.{name} is {base.__name__}'s"
                for name in names & own_names(base)
            ]

    assert found == []


def test_no_public_name_that_we_give_to_a_private_part_is_one_of_textual() -> None:
    parts = importlib.import_module("tuilab.tui.terminal.textual_parts")
    found = []
    for node in ast.parse(THE_FILE.read_text()).body:
        if isinstance(node, ast.ClassDef):
            one = getattr(parts, node.name)
            names = {
                name
                for statement in node.body
                for name in names_bound(statement)
                if not is_private(name)
            }
            for base in foreign_bases(one):
                found += [
                    f"{node.name}.{name} is {base.__name__}'s" for name in names & own_names(base)
                ]

    assert found == []


class Told(Static):
    """Counts how often it is told its size."""

    count = 0

    def on_resize(self) -> None:
        self.count += 1


async def test_a_new_widget_is_told_its_size_though_somebody_has_asked_where_it_is() -> None:
    """The answer is made for all that came since something was scrolled; Textual then takes them for told."""
    parts = importlib.import_module("tuilab.tui.terminal.textual_parts")
    app: App[None] = App()
    async with app.run_test(size=(40, 10)) as pilot:
        long = VerticalScroll(Static("long\n" * 99))
        await app.push_screen(parts.TextualScreen())
        await app.screen.mount(long)
        await pilot.pause()
        long.scroll_to(y=5, animate=False)
        await pilot.pause()

        with app.batch_update():
            await app.screen.mount(told := Told("new"))
            assert told.region.size == (40, 1)
        await eventually(pilot, lambda: told.count > 0)
        assert (told.size.height, told.count) == (1, 1)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def private_names(tree: ast.AST) -> Iterator[str]:
    """Yield every private name that is asked of an object, imported, or defined in a class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = (node.module or "").split(".")
        elif isinstance(node, ast.ClassDef):
            names = [name for statement in node.body for name in names_bound(statement)]
        else:
            continue
        yield from (name for name in names if is_private(name))


def names_bound(statement: ast.stmt) -> list[str]:
    """Return the names that a statement in the body of a class gives to it."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    return [
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def imports_textual(tree: ast.AST) -> bool:
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    return any(module.split(".")[0] in ("textual", "rich") for module in modules)


def taken_from_others(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that are imported, or asked of anything but `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            whole = ast.unparse(node)
            if (
                ast.unparse(node.value) != "self"
                and node.attr not in ("_replace", "_asdict")
                and whole != "os._exit"
            ):
                yield whole
        elif isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from (f"from {node.module} import {name}" for name in names if is_private(name))
        elif isinstance(node, ast.Import):
            yield from (
                alias.name
                for alias in node.names
                if any(is_private(part) for part in alias.name.split("."))
            )


def classes_of_ours() -> Iterator[type]:
    for module in pkgutil.walk_packages(tuilab.tui.__path__, "tuilab.tui."):
        if Path(str(HOUSE), *module.name.split(".")[1:]).with_suffix(".py") != THE_FILE:
            here = vars(importlib.import_module(module.name)).values()
            yield from (
                one for one in here if inspect.isclass(one) and one.__module__ == module.name
            )


def foreign_bases(one: type) -> list[type]:
    return [base for base in one.__mro__ if base.__module__.split(".")[0] in ("textual", "rich")]


@cache
def own_names(one: type) -> set[str]:
    """Return the names that a class has, and those that its methods give to `self`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
    except (OSError, TypeError):
        return set(vars(one))
    asked = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    )
    return set(vars(one)) | {node.attr for node in asked if ast.unparse(node.value) == "self"}
