"""Find the code of a scenario's arms, which a reader sees next to the lesson.

Arms are the variants that a scenario compares, for example a loop and one call for all rows.
"""

import ast

from tuilab.catalogue.source import (
    Broken,
    called_method,
    lab_calls,
    lab_name,
    parse_source,
    race_arms,
)

_FIRST = 2  # functions or classes of a scenario without arms: the naive version comes first
_MAX_LINES = 40  # the whole file is one option away


def arms_code(text: str) -> str:
    """Return the functions that the arms of a scenario call, or its first ones if it has no arms.

    Empty if it cannot be parsed.
    """
    try:
        tree, run = parse_source(text)
    except Broken:
        return ""
    definitions: dict[str, ast.FunctionDef | ast.ClassDef] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node is not run:
            definitions[node.name] = node
    used_names = _names_in_arms(tree, lab_name(run))
    nodes = [node for name, node in definitions.items() if name in used_names]
    if not nodes:
        nodes = list(definitions.values())[:_FIRST]
    source_lines = text.split("\n")
    lines: list[str] = []
    for node in nodes:
        lines_of_head = [decorator.lineno for decorator in node.decorator_list]
        lines_of_head.append(node.lineno)
        first_line = min(lines_of_head)
        code = source_lines[first_line - 1 : node.end_lineno]
        if lines:
            if len(lines) + len(code) > _MAX_LINES:
                break
            lines.append("")
        lines += code
    return "\n".join(lines[:_MAX_LINES])


def _names_in_arms(tree: ast.Module, lab: str) -> set[str]:
    """Return the names in the arms of races, and in the functions that get their own processes."""
    expressions: list[ast.expr] = []
    for call in lab_calls(tree, lab, "race", "arm", "ranks"):
        if called_method(call) == "race":
            expressions += race_arms(call).values()
        else:
            expressions += call.args[1:2]
    names = set()
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Name):
                names.add(node.id)
    return names
