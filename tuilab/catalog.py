"""The catalogue: what every scenario file says about itself, read from its source text and never by importing it.

A file that cannot be used is listed with the reason and hurts no other. What was read is kept in the user's cache folder,
because reading 56 files takes 0.1 s and the cache 3 ms; one that is broken or cannot be written is done without.
"""

import ast
import json
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic_ns
from typing import Any
from zlib import crc32

from tuilab import __version__, params
from tuilab.errors import UsageError
from tuilab.params import Param, Type, Value, did_you_mean
from tuilab.text import show

TOPICS = (
    "basics", "broadcasting", "runtime", "data", "stability", "amp", "memory", "training", "observing", "cpu", "gpu",
    "distributed",
)  # fmt: skip

_ID = r"(?!all$)[A-Za-z0-9][A-Za-z0-9_-]{0,59}"
_SECTION = r"(?m)^## +(.+?) *$"
_RACE_OPTIONS = {"same", "same_as", "rounds", "seconds", "threads", "device"}
_UNREADABLE = "cannot be read: "
_FILE_LIMIT = 1024 * 1024
_CACHE_LIMIT = 16 * 1024 * 1024
_CACHED_FILES = 500  # more than that, and only what was listed last is kept

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Scenario:
    """One scenario file; `error` is why it cannot be used."""

    id: str
    topic: str
    path: str
    title: str = ""
    lesson: str = ""  # the docstring below the title, sections included
    sections: dict[str, str] = field(default_factory=dict)
    params: tuple[Param, ...] = ()
    arms: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    error: str = ""


class Broken(Exception):
    """A scenario file that cannot be used."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)


# ---- all scenarios


def scenario_dirs(extra: Sequence[PathLike] = ()) -> list[str]:
    """Return the folders of scenarios: the one that comes with tuilab, then the given ones."""
    package = os.path.dirname(os.path.realpath(__file__))
    installed = f"{package}/_scenarios"
    for folder in extra:
        if not os.path.isdir(folder):
            raise UsageError(f"{show(folder)} is not a folder; --scenarios takes one that holds scenario files")
    folders = [installed if os.path.isdir(installed) else f"{package}/../scenarios", *extra]
    return list(dict.fromkeys(os.path.realpath(folder) for folder in folders))


def load(extra: Sequence[PathLike] = ()) -> list[Scenario]:
    """Return all scenarios by topic, those that cannot be used among them."""
    cached = _read_cache()
    fresh: dict[str, list[object]] = {}
    scenarios = []
    for path, stamp in dict(file for folder in scenario_dirs(extra) for file in _list_files(folder)).items():
        entry = cached.get(path)
        if entry and entry[0] == stamp:
            scenarios.append(_unpack(entry[1]))
            continue
        scenarios.append(scenario := read(path))
        if stamp and not scenario.error:
            fresh[path] = [stamp, scenario]
    if fresh:
        _write_cache({**(cached if len(cached) < _CACHED_FILES else {}), **fresh})
    return sorted(_refuse_twins(scenarios), key=_place)


def find(catalog: Sequence[Scenario], name: str) -> list[Scenario]:
    """Return what NAME means: an id, topic/id, a topic, `all`, or the path of a .py file."""
    if name.endswith(".py"):
        given = read(name)
        if given.error.startswith(_UNREADABLE):
            raise UsageError(f"{show(name)} {given.error}; `tuilab list` shows the scenarios by name")
        return [given]
    topic, _, id = name.rpartition("/")
    if found := [s for s in catalog if s.id == id and topic in ("", s.topic)]:
        return [s for s in found if not s.error] or found
    if found := [s for s in catalog if name in (s.topic, "all")]:
        return found
    known = dict.fromkeys(word for s in catalog for word in (s.id, s.topic, f"{s.topic}/{s.id}"))
    raise UsageError(f"no scenario is called {show(name, 60)}{did_you_mean(name, known)}; `tuilab list` shows them all")


def _list_files(folder: str, is_topic: bool = False) -> Iterator[tuple[str, str]]:
    """Yield path and stamp of the files in a folder and in its topic folders."""
    try:
        with os.scandir(folder) as found:
            entries = sorted((e for e in found if e.name[0] not in "._"), key=lambda e: (e.is_dir(), e.name))
    except OSError:
        yield folder, ""  # reading it as if it were a file says why
        return
    for entry in entries:
        if entry.is_dir() and not is_topic:
            yield from _list_files(entry.path, is_topic=True)
        elif not entry.is_dir() and entry.name.endswith(".py"):
            yield entry.path, _stamp(entry)


def _refuse_twins(scenarios: list[Scenario]) -> Iterator[Scenario]:
    """Keep the first scenario of an id; the others say which files share it."""
    first: dict[str, Scenario] = {}
    for scenario in scenarios:
        twin = first.setdefault(scenario.id, scenario)
        if twin is scenario:
            yield scenario
        else:
            yield replace(scenario, error=f"{scenario.path} has the same name as {twin.path}; rename one")


def _place(scenario: Scenario) -> tuple[int, str, str]:
    topic = scenario.topic
    return (TOPICS.index(topic) if topic in TOPICS else len(TOPICS), topic, scenario.id)


# ---- one scenario


def read(file: PathLike) -> Scenario:
    """Return the scenario in a file."""
    path = os.path.abspath(file)
    folder, name = os.path.split(path)
    scenario = Scenario(id=name.removesuffix(".py"), topic=os.path.basename(folder) or "mine", path=path)
    try:
        if not re.fullmatch(_ID, scenario.id):
            raise Broken("its name is not usable; rename it to at most 60 letters, digits, - and _ (and not all)")
        return _describe(scenario, read_text(path))
    except Broken as problem:
        return replace(scenario, error=str(problem))
    except (RecursionError, MemoryError):
        return replace(scenario, error="too deeply nested to be understood")
    except ValueError as problem:  # such as a number of 5000 digits
        return replace(scenario, error=f"cannot be understood: {problem}")


def read_text(path: str) -> str:
    """Return the source in a file, or raise Broken."""
    try:
        data = _read_regular(path, _FILE_LIMIT)
    except OSError as problem:
        raise Broken(f"{_UNREADABLE}{problem.strerror}") from problem
    if b"\0" in data:
        raise Broken("a null byte", data[: data.index(b"\0")].count(b"\n") + 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise Broken("not UTF-8", data[: problem.start].count(b"\n") + 1) from problem
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
        raise Broken("there is no function run(lab, ...)")
    if not (arguments := runs[-1].args).posonlyargs + arguments.args:
        raise Broken("run takes no lab", runs[-1].lineno)
    return tree, runs[-1]


def lab_name(run: ast.FunctionDef) -> str:
    """Return what the scenario calls its lab."""
    return (run.args.posonlyargs + run.args.args)[0].arg


def lab_calls(tree: ast.AST, lab: str, *methods: str) -> list[ast.Call]:
    """Return the calls of some methods of the lab, in the order of the text."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
        if isinstance(node.func.value, ast.Name) and node.func.value.id == lab
    ]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def literal_text(call: ast.Call) -> str | None:
    """Return the text that a call has as its first argument, with `{...}` where an f-string puts a value."""
    first = call.args[0] if call.args else None
    parts = first.values if isinstance(first, ast.JoinedStr) else [first]
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
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg and keyword.arg not in _RACE_OPTIONS}


def _describe(scenario: Scenario, text: str) -> Scenario:
    tree, run = parse_source(text)
    title, _, lesson = (ast.get_docstring(tree) or "").partition("\n")
    if not title:
        raise Broken("there is no docstring; its first line is the title", 1)
    _, *parts = re.split(_SECTION, lesson)
    arms = list(_read_arms(tree, lab_name(run)))
    claims = [claim for call in lab_calls(tree, lab_name(run), "claim") if (claim := literal_text(call))]
    "".join([title, lesson, *arms, *claims]).encode()  # a lone surrogate raises: it could not be recorded
    return replace(
        scenario,
        title=title.strip().removesuffix("."),
        lesson=lesson.strip(),
        sections=dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True)),
        params=_read_params(run, text),
        arms=tuple(dict.fromkeys(arms)),
        claims=tuple(dict.fromkeys(claims)),
    )


def _read_arms(tree: ast.Module, lab: str) -> Iterator[str]:
    for call in lab_calls(tree, lab, "race", "arm"):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "race":
            yield from race_arms(call)
        elif name := literal_text(call):
            yield name


def _read_params(run: ast.FunctionDef, text: str) -> tuple[Param, ...]:
    arguments = run.args
    if arguments.vararg or arguments.kwarg or len(arguments.posonlyargs) > 1:
        raise Broken("run has *args, **kwargs or /; give it plain parameters", run.lineno)
    positional = arguments.posonlyargs + arguments.args
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    pairs = [*zip(positional, defaults, strict=True)][1:]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    comments = _read_comments(text, run)  # of several parameters on a line, the last one takes the comment
    found = [_read_param(name, value, comments.pop((value or name).end_lineno, "")) for name, value in reversed(pairs)]
    return tuple(reversed(found))


def _read_param(argument: ast.arg, default: ast.expr | None, comment: str) -> Param:
    try:
        kind, choices = _read_type(argument.annotation)
        if default is None:
            raise ValueError("there is no default")
        return params.with_comment(Param(argument.arg, kind, _read_literal(default), choices), comment)
    except UsageError as problem:
        raise Broken(str(problem), argument.lineno) from problem
    except ValueError as problem:
        raise Broken(f"{argument.arg}: {problem}", argument.lineno) from problem


def _read_literal(node: ast.expr) -> Value:
    with suppress(ValueError, TypeError):
        value = ast.literal_eval(node)
        if isinstance(value, bool | int | float | str):
            return value
    raise ValueError(f"{show(ast.unparse(node), 60)} is not a literal number, truth value or text")


def _read_type(annotation: ast.expr | None) -> tuple[Type, tuple[Value, ...]]:
    match annotation:
        case ast.Name(id="int" | "float" | "bool" | "str" as kind):
            return kind, ()
        case ast.Subscript(value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inner):
            nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return "choice", tuple(_read_literal(node) for node in nodes)
    given = show(ast.unparse(annotation), 60) if annotation else "missing"
    raise ValueError(f"the type {given} is not supported; use int, float, bool, str or Literal[...]")


def _read_comments(text: str, run: ast.FunctionDef) -> dict[int | None, str]:
    """Return the comments in the signature of `run` by line."""
    import io
    import tokenize

    comments: dict[int | None, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
        if token.start[0] > run.body[0].lineno:
            break
        if token.type == tokenize.COMMENT and token.start[0] >= run.lineno:
            comments[token.start[0]] = token.string
    return comments


def _read_regular(path: str, limit: int) -> bytes:
    """Return the bytes of a regular file, and of nothing else: a FIFO would block."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(0, f"it is larger than {limit // 1024} KiB")
    return data


# ---- the cache


def _stamp(entry: "os.DirEntry[str]") -> str:
    """Return what changes when a file does; the change time sees a file that was moved into the place of another."""
    try:
        status = entry.stat()
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size}"


def _maker() -> str:
    """Return what changes when the same file could be read differently."""
    ours = [os.stat(file).st_mtime_ns for file in (__file__, params.__file__)]
    return f"{__version__} {sys.hexversion} {ours}"


def _cache_path() -> str:
    """Return where the catalogue is kept: as platformdirs has it, which takes 25 ms to import."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    folder = given if os.path.isabs(given) else os.path.expanduser("~/.cache")
    if not os.path.isabs(folder):
        raise FileNotFoundError("there is no home folder")
    return f"{folder}/tuilab/catalog.json"


def _read_cache() -> dict[str, Any]:
    """Return stamp and fields of every file read before: crc32-hex SP JSON, as in a journal."""
    try:
        data = _read_regular(_cache_path(), _CACHE_LIMIT)
        if int(data[:8], 16) != crc32(data[9:]):
            return {}
        maker, files = json.loads(data[9:])
    except (OSError, ValueError):
        return {}
    return dict(files) if maker == _maker() else {}


def _write_cache(files: dict[str, Any]) -> None:
    body = json.dumps([_maker(), files], default=_pack).encode()
    with suppress(OSError):
        path = _cache_path()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        temporary = f"{path}.{os.getpid()}.{monotonic_ns()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(b"%08x %b" % (crc32(body), body))
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)


def _pack(value: Scenario | Param) -> list[object]:
    return list(vars(value).values())


def _unpack(fields: list[Any]) -> Scenario:
    id, topic, path, title, lesson, sections, read_params, arms, claims, error = fields
    found = tuple(Param(name, kind, value, tuple(choices), *rest) for name, kind, value, choices, *rest in read_params)
    return Scenario(id, topic, path, title, lesson, sections, found, tuple(arms), tuple(claims), error)
