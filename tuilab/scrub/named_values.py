"""Find the texts and numbers of Python source that are values of something with a secret's name."""

import ast
import io
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tuilab.scrub.secrecy import hides, hides_option, is_chosen

# Calls whose arguments are the value, or parts of it.
_WRAPPERS = ("str", "bytes", "SecretStr", "SecretBytes", "Secret", "join", "format")
# Arguments that hold the value of what the call names: add_argument("--password", default=...)
_VALUE_ARGUMENTS = ("default", "value", "const")
_KEY_LINE = "-----"  # around a private key, which may be a text of several pieces
# A value of so many characters, or with letters and digits, is no word that occurs by chance.
_MIN_LENGTH_OF_PHRASE = 12

Named = tuple[str, ast.expr]  # a name and its value


def named_values(source: str) -> list[tuple[int, int]]:
    """Return the places of the values of secrets in a source that parses: begin and end of each."""
    starts = starts_of_lines(source)
    lines = list(io.StringIO(source, newline=""))
    places = []
    for node in _secrets_in(source):
        begin = _offset(starts, lines, node.lineno, node.col_offset)
        end_line = node.end_lineno or node.lineno
        end_column = node.end_col_offset or node.col_offset
        places.append((begin, _offset(starts, lines, end_line, end_column)))
    return places


def named_texts(source: str) -> set[str]:
    """Return the texts of the secrets in a source, as far as they cannot be ordinary words.

    A source that does not parse has none.
    """
    try:
        secrets = _secrets_in(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    texts: set[str] = set()
    for node in secrets:
        for constant in _constants_of(node):
            text = _text_of_value(constant.value).strip()
            if len(text) >= _MIN_LENGTH_OF_PHRASE or is_chosen(text):
                texts.add(text)
    return texts


def _secrets_in(source: str) -> list[ast.Constant | ast.JoinedStr]:
    """Return the constants of a source that parses which are secrets, as their names say."""
    secrets: list[ast.Constant | ast.JoinedStr] = []
    for node in ast.walk(ast.parse(source)):
        for name, value in _named_in(node):
            for constant in _constants(value):
                if _is_secret(name, constant):
                    secrets.append(constant)
        if isinstance(node, ast.Constant) and _holds_private_key(node.value):
            secrets.append(node)
    return secrets


def _constants_of(node: ast.Constant | ast.JoinedStr) -> list[ast.Constant]:
    """Return a constant itself, or those between the expressions of an f-string."""
    if isinstance(node, ast.Constant):
        return [node]
    return [part for part in node.values if isinstance(part, ast.Constant)]


def starts_of_lines(source: str) -> list[int]:
    """Return the offsets at which the lines begin, as the tokenizer counts lines."""
    starts = [0]
    for line in io.StringIO(source, newline=""):
        starts.append(starts[-1] + len(line))
    return starts


def _offset(starts: Sequence[int], lines: Sequence[str], line: int, column: int) -> int:
    """Return the offset of a line and column in the text; a column counts bytes of UTF-8."""
    start = starts[line - 1]
    if line > len(lines):
        return start
    text = lines[line - 1]
    if text.isascii():  # a long line may have many names, and encoding it for each takes long
        return start + min(column, len(text))
    before = text.encode(errors="surrogatepass")[:column]
    return start + len(before.decode(errors="surrogatepass"))


def _named_in(node: ast.AST) -> Iterator[Named]:
    """Yield the names that a node gives a value or compares with one, each with the value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _assigned(target, value)
        case ast.AnnAssign() | ast.NamedExpr() | ast.AugAssign() if node.value:
            yield from _assigned(node.target, node.value)
        case ast.keyword(arg=str(name), value=value):
            yield name, value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                yield _text_of(key), value
        case ast.arguments():
            yield from _defaults(node)
        case ast.Compare(left=left, comparators=comparators):
            for right in comparators:
                yield _name_of(left), right
                yield _name_of(right), left
        case ast.Call():
            yield from _passed(node)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            yield from _after_options(elements)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[Named]:
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for inner_target, inner_value in zip(target.elts, value.elts, strict=False):
            yield from _assigned(inner_target, inner_value)
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


def _passed(call: ast.Call) -> Iterator[Named]:
    """Yield the values that a call gives to the names in its texts.

    An example is `setattr(x, "password", "...")`.
    """
    names = [_text_of(argument) for argument in call.args]
    for name, argument in zip(names, call.args[1:], strict=False):
        yield name, argument
    for keyword in call.keywords:
        if keyword.arg in _VALUE_ARGUMENTS:
            for name in names:
                yield name, keyword.value


def _after_options(elements: Sequence[ast.expr]) -> Iterator[Named]:
    for element, value in pairwise(elements):
        option = _text_of(element)
        if option.startswith("-"):
            yield option, value


def _constants(value: ast.expr) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Yield the texts and numbers that an expression may have as its value, or as parts of it."""
    operands: Sequence[ast.expr] = ()
    match value:
        case ast.Constant() | ast.JoinedStr():
            yield value
        case ast.IfExp(body=body, orelse=orelse):
            operands = (body, orelse)
        case ast.BoolOp(values=values):
            operands = values
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            operands = elements
        case ast.BinOp(left=left, right=right):
            operands = (left, right)
        case ast.UnaryOp(operand=operand):
            operands = (operand,)
        case ast.NamedExpr(value=inner):
            operands = (inner,)
        case ast.Call(func=function, args=arguments):
            if isinstance(function, ast.Attribute):
                yield from _constants(function.value)  # as in "...".encode()
            if _name_of(function) in _WRAPPERS:
                operands = arguments
    for operand in operands:
        yield from _constants(operand)


def _is_secret(name: str, constant: ast.Constant | ast.JoinedStr) -> bool:
    """Return whether a constant is a secret, as its name says."""
    if isinstance(constant, ast.JoinedStr):
        texts = [_text_of_value(part.value) for part in _constants_of(constant)]
        return hides(name, "".join(texts))
    value = constant.value
    if isinstance(value, bool) or not isinstance(value, str | bytes | int | float):
        return False
    text = _text_of_value(value)
    if not text.strip():
        return False
    if name.startswith("-"):
        return hides_option(name.lstrip("-"), text)
    return hides(name, text)


def _holds_private_key(value: object) -> bool:
    if not isinstance(value, str | bytes):
        return False
    text = _text_of_value(value)
    return f"{_KEY_LINE}BEGIN" in text and "PRIVATE KEY" in text


def _text_of_value(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _text_of(node.slice)
    return ""


def _text_of(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ""
