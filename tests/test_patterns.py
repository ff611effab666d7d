"""No pattern takes the square of a text's length: none begins with a repeat without end, tried anew at every place."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT

parser: Any = vars(re)["_parser"]  # how Python itself reads a pattern
SEARCHING = "search|subn?|split|findall|finditer"
HARMLESS = {"names.py": [r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"]}  # gives one letter back, and fits
FILES = [
    path
    for path in sorted((CHECKOUT / "tuilab").rglob("*.py"))
    if "import re\n" in path.read_text()
]


def patterns(path: Path) -> Iterator[str]:
    """Yield the patterns in a file with which it searches: what has to fit from the beginning is tried once."""
    text = path.read_text()
    tree = ast.parse(text)
    values = {
        ast.unparse(node.targets[0]): node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
    for name in re.findall(rf"\b(_?[A-Z]\w*)\.(?:{SEARCHING})\(", text):
        if isinstance(made := values.get(name), ast.Call):
            yield from written(made.args[0], values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and re.fullmatch(
            rf"re\.(?:{SEARCHING})", ast.unparse(node.func)
        ):
            yield from written(node.args[0], values)


def written(pattern: ast.expr, values: dict[str, ast.expr]) -> Iterator[str]:
    found = values.get(pattern.id) if isinstance(pattern, ast.Name) else pattern
    if isinstance(found, ast.Constant):
        value: Any = found.value
        yield value if isinstance(value, str) else value.decode("latin-1")


def is_endless(items: list[Any]) -> bool:
    """Say whether a pattern begins with a repeat without end behind which it may fail: at each place it is tried to the end.

    What stands behind a word, a line or anything that is looked at first is tried once in it.
    """
    for at, (op, value) in enumerate(items):
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = value
            if most == parser.MAXREPEAT:
                return at < len(items) - 1 or is_endless(list(inner))
            if least:
                return is_endless(list(inner))
        elif name == "SUBPATTERN":
            return is_endless([*value[-1], *items[at + 1 :]])
        elif name == "BRANCH":
            return any(is_endless([*branch, *items[at + 1 :]]) for branch in value[1])
        elif not (name == "ASSERT" and value[0] > 0) and not (
            name == "ASSERT_NOT" and value[0] > 0
        ):
            return False
    return False


@pytest.mark.parametrize(
    "pattern", [r"[ \t]+(?=x)", r"\s*\(quick", r"(a+)b", r"x?[ ]+y", r"(?:b|a*c)", r"(?=a)[a-z]+!"]
)
def test_a_pattern_that_is_tried_to_the_end_at_every_place_is_known(pattern: str) -> None:
    assert is_endless(list(parser.parse(pattern)))


@pytest.mark.parametrize(
    "pattern",
    [r"`+", r"(?<!\s)\s+x", r"\b\d+x", r"a+" + r"", r"x[ ]+y", r"^\s+x", r"[\t\n]+", r"a{1,3}b"],
)
def test_a_pattern_that_is_tried_once_is_let_be(pattern: str) -> None:
    assert not is_endless(list(parser.parse(pattern)))


def test_no_pattern_of_ours_is_tried_to_the_end_at_every_place() -> None:
    found = {
        path.name: [one for one in patterns(path) if is_endless(list(parser.parse(one)))]
        for path in FILES
    }

    assert sum(len(list(patterns(path))) for path in FILES) > 30
    assert {name: odd for name, odd in found.items() if odd} == HARMLESS
