"""What the check for authors finds, and the file that it looks through."""

import ast
from typing import NamedTuple

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import lab_calls, lab_name


class CheckFinding(NamedTuple):
    """Something that a scenario lacks, and where."""

    line: int
    sentence: str


def line_of(text: str, words: str, after: int = 0) -> int:
    """Return the first line of a text after some line that has these words, or 1."""
    return next(
        (
            number
            for number, line in enumerate(text.split("\n"), 1)
            if number > after and words in line
        ),
        1,
    )


class CheckedFile(NamedTuple):
    """A scenario with its source."""

    scenario: Scenario
    text: str
    tree: ast.Module
    run: ast.FunctionDef
    nodes: tuple[ast.AST, ...]  # those of the tree, which is walked once

    def line_of(self, words: str, after: int = 0) -> int:
        """Return the first line after some line that has these words, or 1."""
        return line_of(self.text, words, after)

    def calls(self, *methods: str) -> list[ast.Call]:
        return lab_calls(self.tree, lab_name(self.run), *methods)

    def parts_once(self) -> list[ast.FunctionDef]:
        """Return the functions that the first repeat alone runs: those below `@lab.once`."""
        mark = f"{lab_name(self.run)}.once"
        functions = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        return [node for node in functions if mark in map(ast.unparse, node.decorator_list)]
