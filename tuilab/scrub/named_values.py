"""Finds the texts and numbers of Python source that are the values of something that is called like a secret."""

import ast
import io
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tuilab.scrub.secrecy import hides, hides_option

_WRAPPERS = (
    "str",
    "bytes",
    "SecretStr",
    "SecretBytes",
    "Secret",
)  # calls that hold the value that they are given
_GIVEN = (
    "default",
    "value",
    "const",
)  # to the argument or variable that a call names: add_argument("--password", default=...)
_KEY = "-----"  # around a private key, which may be a text of several pieces

Named = tuple[str, ast.expr]  # what something is called, and its value


def named_values(source: str) -> list[tuple[int, int]]:
    """Return from where to where the values of secrets stand in a source that parses."""
    starts = starts_of_lines(source)
    lines = list(io.StringIO(source, newline=""))
    found = []
    for node in ast.walk(ast.parse(source)):
        for name, value in _named_in(node):
            found += [constant for constant in _constants(value) if _is_secret(name, constant)]
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str | bytes)
            and _holds_key(node.value)
        ):
            found.append(node)
    return [
        (_offset(starts, lines, one.lineno, one.col_offset), _end(starts, lines, one))
        for one in found
    ]


def starts_of_lines(source: str) -> list[int]:
    """Return where the lines begin, as the tokenizer counts them."""
    starts = [0]
    for line in io.StringIO(source, newline=""):
        starts.append(starts[-1] + len(line))
    return starts


def _end(starts: Sequence[int], lines: Sequence[str], node: ast.expr) -> int:
    return _offset(
        starts, lines, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    )


def _offset(starts: Sequence[int], lines: Sequence[str], line: int, column: int) -> int:
    """Return a place in the text; a column counts the bytes of UTF-8."""
    before = lines[line - 1].encode(errors="surrogatepass")[:column] if line <= len(lines) else b""
    return starts[line - 1] + len(before.decode(errors="surrogatepass"))


def _named_in(node: ast.AST) -> Iterator[Named]:
    """Yield what a node gives a value to, by name."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _assigned(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value:
        yield from _assigned(node.target, node.value)
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg, node.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield _text_of(key), value
    elif isinstance(node, ast.arguments):
        yield from _defaults(node)
    elif isinstance(node, ast.Compare):
        for other in node.comparators:
            yield _name_of(node.left), other
            yield _name_of(other), node.left
    elif isinstance(node, ast.Call):
        yield from _given(node)
    elif isinstance(node, ast.List | ast.Tuple):
        yield from _behind_options(node.elts)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[Named]:
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, inner in zip(target.elts, value.elts, strict=False):
            yield from _assigned(one, inner)
    else:
        yield _name_of(target), value


def _defaults(arguments: ast.arguments) -> Iterator[Named]:
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for argument, value in zip(with_default, arguments.defaults, strict=True):
        yield argument.arg, value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default:
            yield argument.arg, default


def _given(call: ast.Call) -> Iterator[Named]:
    """Yield the values that a call gives to what its texts name: `setattr(x, "password", "...")`."""
    names = [_text_of(argument) for argument in call.args]
    for name, argument in zip(names, call.args[1:], strict=False):
        yield name, argument
    for keyword in call.keywords:
        if keyword.arg in _GIVEN:
            for name in names:
                yield name, keyword.value


def _behind_options(elements: Sequence[ast.expr]) -> Iterator[Named]:
    for option, value in pairwise(elements):
        if _text_of(option).startswith("-"):
            yield _text_of(option), value


def _constants(value: ast.expr) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Yield the texts and numbers that may be the value of an expression."""
    if isinstance(value, ast.Constant | ast.JoinedStr):
        yield value
    elif isinstance(value, ast.IfExp):
        yield from _constants(value.body)
        yield from _constants(value.orelse)
    elif isinstance(value, ast.BoolOp):
        for one in value.values:
            yield from _constants(one)
    elif isinstance(value, ast.List | ast.Tuple | ast.Set):
        for one in value.elts:
            yield from _constants(one)
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        yield from _constants(value.left)
        yield from _constants(value.right)
    elif isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute):
            yield from _constants(value.func.value)  # as in "...".encode()
        if _name_of(value.func) in _WRAPPERS:
            for one in value.args:
                yield from _constants(one)


def _is_secret(name: str, constant: ast.Constant | ast.JoinedStr) -> bool:
    """Return whether a constant is the secret that a name says it is."""
    if isinstance(constant, ast.JoinedStr):
        words = "".join(str(one.value) for one in constant.values if isinstance(one, ast.Constant))
        return hides(name, words)
    value = constant.value
    if isinstance(value, bool) or not isinstance(value, str | bytes | int | float):
        return False
    words = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return hides_option(name.lstrip("-"), words) if name.startswith("-") else hides(name, words)


def _holds_key(value: str | bytes) -> bool:
    words = value.decode(errors="replace") if isinstance(value, bytes) else value
    return f"{_KEY}BEGIN" in words and "PRIVATE KEY" in words


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _text_of(node.slice)
    return ""


def _text_of(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
