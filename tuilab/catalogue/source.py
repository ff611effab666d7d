"""Read a scenario from the source text of its file, without importing it."""

import ast
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from tuilab.catalogue.imports import SOURCE_LIMIT, first_imports
from tuilab.catalogue.needs_quiet import wants_quiet
from tuilab.catalogue.params import DEVICE, option_of, with_comment
from tuilab.catalogue.scenario import (
    PROCESS,
    PROGRAM,
    RANKS,
    Param,
    Scenario,
    StatedClaim,
    Type,
    Value,
)
from tuilab.catalogue.stated_claims import claims_of, sections_of
from tuilab.errors import UsageError
from tuilab.storage.files import read_regular
from tuilab.text.display import show

_ID = r"(?!all$)[A-Za-z0-9][A-Za-z0-9_-]{0,59}"
CLAIMING = ("claim", "claim_ratio")  # methods of the lab whose first argument is a key
# The parameters of `lab.race` that are no arms.
RACE_OPTIONS = {"same", "seconds", "threads", "device", "factories", "lacks"}
_TOO_DEEP = "its code is nested too deeply to be read; use shorter expressions"


class Broken(Exception):
    """A scenario file that cannot be used."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)


def read(file: str | os.PathLike[str]) -> Scenario:
    """Return the scenario in a file; its `error` is the reason if the file cannot be used."""
    path = os.path.abspath(file)
    folder, name = os.path.split(path)
    topic = os.path.basename(folder) or "mine"
    scenario = Scenario(id=name.removesuffix(".py"), topic=topic, path=path)
    try:
        if not is_name(scenario.id):
            raise Broken(
                "its file name cannot be a scenario name; "
                "use up to 60 letters, digits, - and _, but not `all`"
            )
        return _describe(scenario, read_text(path))
    except Broken as problem:
        error = str(problem)
    except (RecursionError, MemoryError):
        error = _TOO_DEEP
    except ValueError as problem:  # such as a number of 5000 digits
        error = f"cannot be read as Python: {problem}"
    return scenario._replace(error=error)


def is_name(id: str) -> bool:
    """Return whether a scenario can have this name."""
    return re.fullmatch(_ID, id) is not None


def read_recorded(file: str | os.PathLike[str], topic: str, id: str) -> tuple[Scenario, bytes]:
    """Return the scenario that a run kept, and the bytes of its file; no link is followed.

    If it cannot be used, its `error` is the reason. The bytes are empty if it cannot be read.
    """
    path = os.path.abspath(file)
    scenario = Scenario(id=id, topic=topic, path=path)
    try:
        data = read_regular(path, SOURCE_LIMIT)
    except OSError as problem:
        return scenario._replace(error=f"cannot be read: {problem.strerror}"), b""
    try:
        return _describe(scenario, _decode(data)), data
    except (Broken, ValueError) as problem:
        error = str(problem)
    except (RecursionError, MemoryError):
        error = _TOO_DEEP
    return scenario._replace(error=error), data


def read_stated_claims(file: str | os.PathLike[str]) -> list[StatedClaim]:
    """Return the claims that the lesson in a file states, or raise Broken.

    Claims without a key are returned as well.
    """
    tree, _ = parse_source(read_text(os.path.abspath(file)))
    return claims_of(ast.get_docstring(tree) or "")


def read_text(path: str) -> str:
    """Return the source in a file, or raise Broken."""
    try:
        # users link their scenarios into a folder
        data = read_regular(path, SOURCE_LIMIT, may_be_link=True)
    except OSError as problem:
        raise Broken(f"cannot be read: {problem.strerror}") from problem
    return _decode(data)


def _decode(data: bytes) -> str:
    """Return the text of a file with plain line ends, or raise Broken with the line."""
    if b"\0" in data:
        raise Broken("the file has a null byte", _line_at(data, data.index(b"\0")))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = _line_at(data, problem.start)
        raise Broken("the file is not UTF-8; save it as UTF-8", line) from problem
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _line_at(data: bytes, position: int) -> int:
    return data[:position].count(b"\n") + 1


def parse_source(text: str) -> tuple[ast.Module, ast.FunctionDef]:
    """Return the syntax tree of a scenario and its function `run`, or raise Broken.

    It is Broken with a syntax error, without `run`, or if `run` does not take the lab.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as problem:
        raise Broken(problem.msg, problem.lineno) from problem
    run = None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "run":
            run = node  # the last definition counts, as in Python
    if run is None:
        raise Broken("the function run(lab, ...) is missing")
    if not run.args.posonlyargs and not run.args.args:
        raise Broken("run has no parameter lab; write run(lab, ...)", run.lineno)
    return tree, run


def lab_name(run: ast.FunctionDef) -> str:
    """Return the name that the scenario gives its lab."""
    arguments = run.args.posonlyargs + run.args.args
    return arguments[0].arg


def lab_calls(tree: ast.AST, lab: str, *methods: str) -> list[ast.Call]:
    """Return the calls of some methods of the lab, in the order of the text."""
    return [call for call in _all_calls(tree, lab) if called_method(call) in methods]


@lru_cache(maxsize=2)  # callers ask for the methods of one file one after another
def _all_calls(tree: ast.AST, lab: str) -> tuple[ast.Call, ...]:
    """Return the calls of all methods of the lab, in the order of the text."""
    calls = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name == lab:
                calls.append(node)
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    return tuple(calls)


def called_method(call: ast.Call) -> str:
    """Return the method of the lab that a call calls; empty if it calls no method."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def is_about_ratio(call: ast.Call) -> bool:
    """Return whether a call claims the ratio of two arms of a race."""
    return called_method(call) == "claim_ratio"


def literal_text(call: ast.Call) -> str | None:
    """Return the text of the first argument of a call; None if it is no literal text.

    The first argument may also be the keyword `key` or `name`. A value in an f-string is `{...}`.
    """
    if call.args:
        return text_of(call.args[0])
    for keyword in call.keywords:
        if keyword.arg in ("key", "name"):
            return text_of(keyword.value)
    return None


def text_of(node: ast.expr | None) -> str | None:
    """Return the text of a literal or an f-string, whose values are `{...}`; None for another."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = []
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            texts.append(part.value)
        elif isinstance(part, ast.FormattedValue):
            texts.append("{" + ast.unparse(part.value) + "}")
        else:
            return None
    return "".join(texts)


def race_arms(call: ast.Call) -> dict[str, ast.expr]:
    """Return the arms of a call of `lab.race`, by name."""
    arms = {}
    for keyword in call.keywords:
        if keyword.arg and keyword.arg not in RACE_OPTIONS:
            arms[keyword.arg] = keyword.value
    return arms


# ---- a scenario from its source


def _describe(scenario: Scenario, text: str) -> Scenario:
    """Return a scenario with the fields that its source has, or raise Broken or ValueError."""
    tree, run = parse_source(text)
    lab = lab_name(run)
    docstring = ast.get_docstring(tree) or ""
    title, _, lesson = docstring.partition("\n")
    if not title:
        raise Broken("the docstring is missing; its first line is the title", 1)
    arms = list(_read_arms(tree, lab))
    claims = _read_claims(lesson)
    texts = [title, lesson, *arms]
    texts += [claim.text for claim in claims]
    "".join(texts).encode()  # raises ValueError for a lone surrogate, which no record can hold
    params = _read_params(run, text)
    params += _common_params(tree, lab, params)
    is_timed = any(is_about_ratio(call) for call in lab_calls(tree, lab, *CLAIMING))
    return scenario._replace(
        title=title.strip().removesuffix("."),
        lesson=lesson.strip(),
        sections=sections_of(lesson),
        params=params,
        arms=tuple(dict.fromkeys(arms)),
        claims=claims,
        is_timed=is_timed,
        imports=first_imports(tree),
        settings=tuple(_read_settings(tree, lab)),
        wants_quiet=is_timed or wants_quiet(tree),
    )


def _read_claims(lesson: str) -> tuple[StatedClaim, ...]:
    """Return the claims of a lesson that have a key; of two with one key, the last."""
    claims = {}
    for claim in claims_of(lesson):
        if claim.key:
            claims[claim.key] = claim
    return tuple(claims.values())


def _read_arms(tree: ast.Module, lab: str) -> Iterator[str]:
    """Yield the names of the arms in calls of `lab.race`, and of `lab.arm` with a literal."""
    for call in lab_calls(tree, lab, "race", "arm"):
        if called_method(call) == "race":
            yield from race_arms(call)
        else:
            name = literal_text(call)
            if name:
                yield name


def _read_settings(tree: ast.Module, lab: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that a scenario advises values for, each with the scope."""
    for call in lab_calls(tree, lab, "advise"):
        name = literal_text(call)
        if not name:
            continue
        arguments = {keyword.arg for keyword in call.keywords}
        if "ranks" in arguments:
            yield name, RANKS
        elif "unit" in arguments:
            yield name, PROCESS
        else:
            yield name, PROGRAM


def _read_params(run: ast.FunctionDef, text: str) -> tuple[Param, ...]:
    """Return the parameters of `run` without the lab, or raise Broken if one is not plain."""
    arguments = run.args
    if arguments.vararg or arguments.kwarg or len(arguments.posonlyargs) > 1:
        raise Broken("run has *args, **kwargs or /; use plain parameters", run.lineno)
    positional = arguments.posonlyargs + arguments.args
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    pairs = list(zip(positional, defaults, strict=True))
    del pairs[0]  # the lab
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    comments = _comments_of(run, text)
    params = []
    for argument, default in reversed(pairs):
        end_line = (default or argument).end_lineno
        comment = comments.pop(end_line, "")  # belongs to the last of several on a line
        params.append(_read_param(argument, default, comment))
    params.reverse()
    _refuse_equal_options(params, run.lineno)
    return tuple(params)


def _comments_of(run: ast.FunctionDef, text: str) -> dict[int | None, str]:
    """Return the comments in the signature of `run`, by line: a syntax tree has none."""
    comments: dict[int | None, str] = {}
    signature = "\n".join(text.split("\n")[run.lineno - 1 :])
    for token in tokenize.generate_tokens(io.StringIO(signature, newline="\n").readline):
        line = run.lineno - 1 + token.start[0]
        if line > run.body[0].lineno:
            break
        if token.type == tokenize.COMMENT:
            comments[line] = token.string
    return comments


def _refuse_equal_options(params: Sequence[Param], line: int) -> None:
    """Raise Broken for a parameter `no_tidy` next to a switch `tidy`: both have `--no-tidy`."""
    negatives = {f"no_{param.name}" for param in params if param.type == "bool"}
    for param in reversed(params):
        if param.name in negatives:
            switch = param.name.removeprefix("no_")
            option = option_of(param.name)
            raise Broken(
                f"{param.name} and {switch} have the same option, {option}; rename one", line
            )


def _common_params(tree: ast.Module, lab: str, params: tuple[Param, ...]) -> tuple[Param, ...]:
    """Return the parameter device if the scenario calls `lab.device()` and has none of its own."""
    for call in lab_calls(tree, lab, "device"):
        if not call.args and not call.keywords:
            names = [param.name for param in params]
            return () if DEVICE.name in names else (DEVICE,)
    return ()


def _read_param(argument: ast.arg, default: ast.expr | None, comment: str) -> Param:
    """Return a parameter from its argument, default and trailing comment, or raise Broken."""
    try:
        kind, choices = _read_type(argument.annotation)
        if default is None:
            raise ValueError("the default is missing; write one after =")
        param = Param(argument.arg, kind, _read_literal(default), choices)
        return with_comment(param, comment)
    except UsageError as problem:
        raise Broken(str(problem), argument.lineno) from problem
    except ValueError as problem:
        raise Broken(f"{argument.arg}: {problem}", argument.lineno) from problem


def _read_literal(node: ast.expr) -> Value:
    """Return the value of a literal, or raise ValueError for any other expression."""
    with suppress(ValueError, TypeError):
        value = ast.literal_eval(node)
        if isinstance(value, bool | int | float | str):
            return value
    code = show(ast.unparse(node), 60)
    raise ValueError(f"{code} is not a literal; write a number, True, False or a text")


def _read_type(annotation: ast.expr | None) -> tuple[Type, tuple[Value, ...]]:
    """Return the type of a parameter and its choices, or raise ValueError."""
    match annotation:
        case ast.Name(id="int" | "float" | "bool" | "str" as kind):
            return kind, ()
        case ast.Subscript(
            value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inner
        ):
            nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return "choice", tuple(_read_literal(node) for node in nodes)
    code = "missing"
    if annotation:
        code = show(ast.unparse(annotation), 60)
    raise ValueError(f"the type {code} is not supported; use int, float, bool, str or Literal[...]")
