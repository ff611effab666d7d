"""The comments behind the parameters of a function: a syntax tree has none."""

import ast
from collections.abc import Iterable


def behind(text: str, run: ast.FunctionDef, ends: Iterable[ast.expr | ast.arg]) -> dict[int | None, str]:
    """Return by line the comments behind some nodes in the signature of `run`; of several on a line the last has it."""
    lines = text.split("\n")
    comments: dict[int | None, str] = {}
    for node in ends:
        line = lines[(node.end_lineno or 1) - 1].encode()[node.end_col_offset :].decode()
        code, mark, comment = line.partition("#")
        if mark and ("'" in code or '"' in code):  # it may stand in a text
            return tokenized(text, run)
        comments[node.end_lineno] = mark + comment
    return comments


def tokenized(text: str, run: ast.FunctionDef) -> dict[int | None, str]:
    """Return by line all comments in the signature of `run`, which takes longer than to parse all of the text."""
    import io
    import tokenize

    comments: dict[int | None, str] = {}
    signature = "\n".join(text.split("\n")[run.lineno - 1 :])
    for token in tokenize.generate_tokens(io.StringIO(signature, newline="\n").readline):
        line = run.lineno - 1 + token.start[0]
        if line > run.body[0].lineno:
            break
        if token.type == tokenize.COMMENT:
            comments[line] = token.string
    return comments
