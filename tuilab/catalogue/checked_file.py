"""The file that the checks for authors read, and their findings."""

import ast
from typing import NamedTuple

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import lab_calls, lab_name


class CheckFinding(NamedTuple):
    """Something that a scenario lacks, and its line."""

    line: int
    sentence: str


class CheckedFile(NamedTuple):
    """A scenario with its source."""

    scenario: Scenario
    text: str
    tree: ast.Module
    run: ast.FunctionDef
    nodes: tuple[ast.AST, ...]  # those of the tree, which is walked once

    def line_of(self, words: str, after: int = 0) -> int:
        """Return the number of the first line behind line `after` with these words, or 1."""
        for number, line in enumerate(self.text.split("\n"), 1):
            if number > after and words in line:
                return number
        return 1

    def calls(self, *methods: str) -> list[ast.Call]:
        """Return the calls of some methods of the lab, in the order of the text."""
        return lab_calls(self.tree, lab_name(self.run), *methods)

    def calls_with(self, argument: str, *methods: str) -> list[ast.Call]:
        """Return those of these calls that have a keyword argument of this name."""
        calls = []
        for call in self.calls(*methods):
            if any(keyword.arg == argument for keyword in call.keywords):
                calls.append(call)
        return calls
