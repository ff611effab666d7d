"""Reads what one scenario file says about itself, from its source text and never by importing it."""

import ast
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from tuilab.catalogue import params
from tuilab.catalogue.imports import SOURCE_LIMIT, first_imports
from tuilab.catalogue.needs_quiet import wants_quiet
from tuilab.catalogue.scenario import PROCESS, PROGRAM, RANKS, Param, Scenario, Stated, Type, Value
from tuilab.catalogue.stated_claims import claims_of, sections_of
from tuilab.errors import UsageError
from tuilab.storage.files import read_regular
from tuilab.text.display import show

_ID = r"(?!all$)[A-Za-z0-9][A-Za-z0-9_-]{0,59}"
CLAIMING = ("claim", "claim_ratio")  # calls that name a claim first
_RACE_OPTIONS = {"same", "same_as", "rounds", "seconds", "threads", "device", "factories", "lacks"}


class Broken(Exception):
    """A scenario file that cannot be used."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)


def read(file: str | os.PathLike[str]) -> Scenario:
    """Return the scenario in a file."""
    path = os.path.abspath(file)
    folder, name = os.path.split(path)
    scenario = Scenario(
        id=name.removesuffix(".py"), topic=os.path.basename(folder) or "mine", path=path
    )
    try:
        if not is_name(scenario.id):
            raise Broken(
                "its file name cannot be a scenario name; use up to 60 letters, digits, - and _, but not `all`"
            )
        return _describe(scenario, read_text(path))
    except Broken as problem:
        return scenario._replace(error=str(problem))
    except (RecursionError, MemoryError):
        return scenario._replace(
            error="its code is nested too deeply to be read; use shorter expressions"
        )
    except ValueError as problem:  # such as a number of 5000 digits
        return scenario._replace(error=f"cannot be read as Python: {problem}")


def is_name(id: str) -> bool:
    """Say whether a scenario can be called so."""
    return re.fullmatch(_ID, id) is not None


def read_recorded(file: str | os.PathLike[str], topic: str, id: str) -> tuple[Scenario, bytes]:
    """Return the scenario that a run kept, with its bytes; no link is followed."""
    path = os.path.abspath(file)
    scenario = Scenario(id=id, topic=topic, path=path)
    try:
        data = read_regular(path, SOURCE_LIMIT)
    except OSError as problem:
        return scenario._replace(error=f"cannot be read: {problem.strerror}"), b""
    try:
        scenario = _describe(scenario, _decode(data))
    except (Broken, ValueError) as problem:
        scenario = scenario._replace(error=str(problem))
    except (RecursionError, MemoryError):
        scenario = scenario._replace(
            error="its code is nested too deeply to be read; use shorter expressions"
        )
    return scenario, data


def read_stated(file: str | os.PathLike[str]) -> list[Stated]:
    """Return the claims that the lesson in a file states."""
    tree, _ = parse_source(read_text(os.path.abspath(file)))
    return claims_of(ast.get_docstring(tree) or "")


def read_text(path: str) -> str:
    """Return the source in a file, or raise Broken."""
    try:
        data = read_regular(
            path, SOURCE_LIMIT, may_be_link=True
        )  # people link their scenarios into a folder
    except OSError as problem:
        raise Broken(f"cannot be read: {problem.strerror}") from problem
    return _decode(data)


def _decode(data: bytes) -> str:
    if b"\0" in data:
        raise Broken("the file has a null byte", data[: data.index(b"\0")].count(b"\n") + 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise Broken(
            "the file is not UTF-8; save it as UTF-8", data[: problem.start].count(b"\n") + 1
        ) from problem
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_source(text: str) -> tuple[ast.Module, ast.FunctionDef]:
    """Return the syntax tree of a scenario and its function `run`, or raise Broken."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as problem:
        raise Broken(problem.msg, problem.lineno) from problem
    runs = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"]
    if not runs:
        raise Broken("the function run(lab, ...) is missing")
    if not (arguments := runs[-1].args).posonlyargs + arguments.args:
        raise Broken("run has no parameter lab; write run(lab, ...)", runs[-1].lineno)
    return tree, runs[-1]


def lab_name(run: ast.FunctionDef) -> str:
    """Return what the scenario calls its lab."""
    return (run.args.posonlyargs + run.args.args)[0].arg


def lab_calls(tree: ast.AST, lab: str, *methods: str) -> list[ast.Call]:
    """Return the calls of some methods of the lab, in the order of the text."""
    return [call for call in _all_calls(tree, lab) if called_method(call) in methods]


@lru_cache(maxsize=2)  # a file is asked for one method after another
def _all_calls(tree: ast.AST, lab: str) -> tuple[ast.Call, ...]:
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node.func.value, ast.Name) and node.func.value.id == lab
    ]
    return tuple(sorted(calls, key=lambda call: (call.lineno, call.col_offset)))


def literal_text(call: ast.Call) -> str | None:
    """Return the text that a call has as its first argument, with `{...}` where an f-string puts a value."""
    named = [keyword.value for keyword in call.keywords if keyword.arg in ("key", "name")]
    return text_of(next(iter([*call.args, *named]), None))


def text_of(node: ast.expr | None) -> str | None:
    """Return the text that an expression is, with `{...}` where an f-string puts a value."""
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
    """Return the arms of a call of `lab.race`."""
    return {
        keyword.arg: keyword.value
        for keyword in call.keywords
        if keyword.arg and keyword.arg not in _RACE_OPTIONS
    }


def _describe(scenario: Scenario, text: str) -> Scenario:
    tree, run = parse_source(text)
    docstring = ast.get_docstring(tree) or ""
    title, _, lesson = docstring.partition("\n")
    if not title:
        raise Broken("the docstring is missing; its first line is the title", 1)
    arms = list(_read_arms(tree, lab_name(run)))
    calls = lab_calls(tree, lab_name(run), *CLAIMING)
    claims = _read_claims(lesson)
    is_timed = any(map(is_about_ratio, calls))
    "".join([title, lesson, *arms, *(claim.text for claim in claims)]).encode()
    return scenario._replace(
        title=title.strip().removesuffix("."),
        lesson=lesson.strip(),
        sections=sections_of(lesson),
        params=(*(own := _read_params(run, text)), *_common_params(tree, lab_name(run), own)),
        arms=tuple(dict.fromkeys(arms)),
        claims=claims,
        is_timed=is_timed,
        imports=first_imports(tree),
        settings=tuple(_read_settings(tree, lab_name(run))),
        wants_quiet=is_timed or wants_quiet(tree),
    )


def is_about_ratio(call: ast.Call) -> bool:
    """Say whether a claim is about two arms of a race."""
    return called_method(call) == "claim_ratio"


def called_method(call: ast.Call) -> str:
    """Return the method of the lab that a call calls."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _read_claims(lesson: str) -> tuple[Stated, ...]:
    """Return the claims of a lesson that have a key, each key once."""
    return tuple({claim.key: claim for claim in claims_of(lesson) if claim.key}.values())


def _read_arms(tree: ast.Module, lab: str) -> Iterator[str]:
    for call in lab_calls(tree, lab, "race", "arm"):
        if called_method(call) == "race":
            yield from race_arms(call)
        elif name := literal_text(call):
            yield name


def _read_settings(tree: ast.Module, lab: str) -> Iterator[tuple[str, str]]:
    for call in lab_calls(tree, lab, "advise"):
        given = {keyword.arg for keyword in call.keywords}
        if name := literal_text(call):
            yield name, RANKS if "ranks" in given else PROCESS if "unit" in given else PROGRAM


def _read_params(run: ast.FunctionDef, text: str) -> tuple[Param, ...]:
    arguments = run.args
    if arguments.vararg or arguments.kwarg or len(arguments.posonlyargs) > 1:
        raise Broken("run has *args, **kwargs or /; use plain parameters", run.lineno)
    positional = arguments.posonlyargs + arguments.args
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    pairs = [*zip(positional, defaults, strict=True)][1:]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    comments = _comments_of(run, text)
    found = []
    for name, value in reversed(pairs):
        line = (value or name).end_lineno
        comment = comments.pop(
            line, ""
        )  # of several parameters on a line, the last one has the comment
        found.append(_read_param(name, value, comment))
    _refuse_twins(found, run.lineno)
    return tuple(reversed(found))


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


def _refuse_twins(found: Sequence[Param], line: int) -> None:
    """Refuse two parameters with one option: `--no-tidy` switches tidy off."""
    flags = {f"no_{param.name}" for param in found if param.type == "bool"}
    if twin := next((param.name for param in found if param.name in flags), ""):
        option = params.option_of(twin)
        raise Broken(
            f"{twin} and {twin.removeprefix('no_')} have the same option, {option}; rename one",
            line,
        )


def _common_params(tree: ast.Module, lab: str, own: tuple[Param, ...]) -> tuple[Param, ...]:
    """Return the device, where the lab is asked for one and `run` has no parameter that says which."""
    asked = any(not call.args and not call.keywords for call in lab_calls(tree, lab, "device"))
    return (
        (params.DEVICE,) if asked and all(param.name != params.DEVICE.name for param in own) else ()
    )


def _read_param(argument: ast.arg, default: ast.expr | None, comment: str) -> Param:
    try:
        kind, choices = _read_type(argument.annotation)
        if default is None:
            raise ValueError("the default is missing; write one after =")
        return params.with_comment(
            Param(argument.arg, kind, _read_literal(default), choices), comment
        )
    except UsageError as problem:
        raise Broken(str(problem), argument.lineno) from problem
    except ValueError as problem:
        raise Broken(f"{argument.arg}: {problem}", argument.lineno) from problem


def _read_literal(node: ast.expr) -> Value:
    with suppress(ValueError, TypeError):
        value = ast.literal_eval(node)
        if isinstance(value, bool | int | float | str):
            return value
    raise ValueError(
        f"{show(ast.unparse(node), 60)} is not a literal; write a number, True, False or a text"
    )


def _read_type(annotation: ast.expr | None) -> tuple[Type, tuple[Value, ...]]:
    match annotation:
        case ast.Name(id="int" | "float" | "bool" | "str" as kind):
            return kind, ()
        case ast.Subscript(
            value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inner
        ):
            nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return "choice", tuple(_read_literal(node) for node in nodes)
    given = show(ast.unparse(annotation), 60) if annotation else "missing"
    raise ValueError(
        f"the type {given} is not supported; use int, float, bool, str or Literal[...]"
    )
