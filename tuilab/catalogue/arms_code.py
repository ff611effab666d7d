"""The arms of a scenario as its author wrote them: what a reader wants to see beside the lesson."""

import ast

from tuilab.catalogue.source import (
    Broken,
    called_method,
    lab_calls,
    lab_name,
    parse_source,
    race_arms,
)

_FIRST = 2  # functions or classes that are shown of a scenario without arms: the naive version stands first
_LINES = 40  # at most; the file is one option away


def arms_code(text: str) -> str:
    """Return the functions that the arms of a scenario call; where it has no arms, those that stand first."""
    try:
        tree, run = parse_source(text)
    except Broken:
        return ""
    functions = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node is not run
    }
    named = {
        node.id
        for arm in _arms(tree, lab_name(run))
        for node in ast.walk(arm)
        if isinstance(node, ast.Name)
    }
    chosen = [functions[name] for name in functions if name in named] or [*functions.values()][
        :_FIRST
    ]
    lines = text.split("\n")
    found: list[str] = []
    for node in chosen:
        code = lines[
            min([node.lineno, *(mark.lineno for mark in node.decorator_list)]) - 1 : node.end_lineno
        ]
        if found and len(found) + len(code) > _LINES:
            break
        found += [*([""] if found else []), *code]
    return "\n".join(found[:_LINES])


def _arms(tree: ast.Module, lab: str) -> list[ast.expr]:
    """Return the expressions that are the arms of races, and the functions that are called in processes of their own."""
    arms: list[ast.expr] = []
    for call in lab_calls(tree, lab, "race", "arm", "ranks"):
        arms += race_arms(call).values() if called_method(call) == "race" else call.args[1:2]
    return arms
