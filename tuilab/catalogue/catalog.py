"""The catalogue: what every scenario file says about itself, read from its source text and never by importing it.

A file that cannot be used is listed with the reason and hurts no other. What was read is kept in the user's cache folder,
because reading 83 files takes 0.1 s and the cache 3 ms; one that is broken or cannot be written is done without. Each tuilab
that is installed has one of its own: it could not use that of another, and would make it again and again. Its first line has
what a list shows of each file, so that who wants no more decodes no more; below it the rest of each is a line, an
empty one where nobody has wanted more than the list. Each line is sealed by itself.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from zlib import crc32

from tuilab import __version__, places
from tuilab.catalogue import course
from tuilab.catalogue.scenario import Param, Scenario, Stated
from tuilab.errors import TuilabError, UsageError
from tuilab.files import Fault, Unusable, read_small, replace, sealed, unsealed
from tuilab.text import did_you_mean, join, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CACHE_LIMIT = 16 * 1024 * 1024
_HEAD = 4  # fields of a scenario that a list shows: id, topic, path, title
_CACHED_FILES = 500  # more than that, and only what was listed last is kept
_READ_BY = ("source", "scenario", "params", "stated", "imports", "quiet", "reading/comments", "reading/nodes", "reading/title")
_HINTS = 3  # lessons that are named where nothing is called as was asked
_PIECE = 1024 * 1024  # bytes, as many as a file takes to be read

_Cached = dict[str, tuple[str, Scenario, bytes]]  # by path: the stamp of a file, what a list shows of it, and the rest

PathLike = str | os.PathLike[str]


def scenario_dirs(extra: Sequence[PathLike] = ()) -> list[str]:
    """Return the folders of scenarios: the one that comes with tuilab, then the given ones, or those of TUILAB_SCENARIOS."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    installed = f"{package}/_scenarios"
    who = "--scenarios" if extra else "TUILAB_SCENARIOS, or the config file (`tuilab config` shows which),"
    extra = extra or [folder for folder in os.environ.get("TUILAB_SCENARIOS", "").split(os.pathsep) if folder]
    for folder in extra:
        if not os.path.isdir(folder):
            raise UsageError(f"{show(folder)} is not a folder; {who} takes a folder with scenario files")
    folders = [installed if os.path.isdir(installed) else f"{package}/../scenarios", *extra]
    return list(dict.fromkeys(os.path.realpath(folder) for folder in folders))


def load(extra: Sequence[PathLike] = ()) -> list[Scenario]:
    """Return all scenarios in the order of the course, those that cannot be used among them."""
    folders = scenario_dirs(extra)
    order = course.read(folders)
    found = _refuse_twins(_read_files(folders, _whole, _read_whole))
    return order.sort(one._replace(builds_on=order.lessons.get(one.id, ())) for one in found)


def listed(extra: Sequence[PathLike] = ()) -> tuple[list[Scenario], Mapping[str, str]]:
    """Return the scenarios as a list has them, without what stands below their titles, and what each topic is about."""
    folders = scenario_dirs(extra)
    order = course.read(folders)
    return order.sort(_refuse_twins(_read_files(folders, lambda head, rest: head, _read_head))), order.topics


def _read_files(
    folders: Sequence[str],
    unpack: "Callable[[Scenario, bytes], Scenario | None]",
    read: "Callable[[str], tuple[Scenario, bytes]]",
) -> list[Scenario]:
    """Return what the files in some folders say: of one that was read before, what is unpacked of that, if it is enough."""
    cached = _read_cache()
    if not cached:
        _keep_memory()
    fresh: _Cached = {}
    scenarios = []
    for path, stamp in dict(file for folder in folders for file in _list_files(folder)).items():
        known = cached.get(path)
        if known and known[0] == stamp and (scenario := unpack(*known[1:])):
            scenarios.append(scenario)
            continue
        scenario, rest = read(path)
        scenarios.append(scenario)
        if stamp and not scenario.error:
            fresh[path] = stamp, scenario, rest
    if fresh:
        _write_cache({**(cached if len(cached) < _CACHED_FILES else {}), **fresh})
    return scenarios


def stamps(extra: Sequence[PathLike] = ()) -> dict[str, str]:
    """Return by path what changes when a file of a scenario does."""
    return dict(file for folder in scenario_dirs(extra) for file in _list_files(folder))


def topics(extra: Sequence[PathLike] = ()) -> dict[str, str]:
    """Return what each topic is about."""
    return course.read(scenario_dirs(extra)).topics


def find(catalog: Sequence[Scenario], name: str, extra: Sequence[PathLike] = ()) -> list[Scenario]:
    """Return what NAME means: an id, topic/id, a topic, `all`, or the path of a .py file; an unknown name is refused."""
    if not (found := named(catalog, name)):
        meant = _meant(catalog, name, extra)
        end = "" if meant.endswith("?") else ";"
        raise UsageError(f"no scenario named {show(name, 60)}{meant}{end} `tuilab list` lists all scenarios")
    return found


def named(catalog: Sequence[Scenario], name: str) -> list[Scenario]:
    """Return what NAME means; nothing where no scenario is called so."""
    if not name.strip():
        raise UsageError("the name of a scenario is empty; `tuilab list` lists all scenarios")
    if name.endswith(".py"):
        given = _read_source(name)
        if given.error.startswith("cannot be read: "):
            raise UsageError(f"{show(name)} {given.error}; `tuilab list` lists the scenarios by name")
        return [given]
    topic, _, id = name.rpartition("/")
    if found := [s for s in catalog if s.id == id and topic in ("", s.topic)]:
        return [s for s in found if not s.error] or found
    return [s for s in catalog if name in (s.topic, "all")]


def _meant(catalog: Sequence[Scenario], name: str, extra: Sequence[PathLike]) -> str:
    """Return the end of a sentence about an unknown name: a file here, lessons that have the word, or what was meant."""
    from tuilab.catalogue.search import speaking_of  # only who mistypes waits for it, and for the lessons

    if os.path.isfile(file := f"{name.rpartition('/')[2]}.py"):  # lists and results tell it without the ending
        return f"; for the file in this folder, write ./{show(file, 60)}"
    if lessons := speaking_of(load(extra), name)[:_HINTS]:
        return f"; scenarios that mention it: {join(one.id for one in lessons)}"
    return did_you_mean(name, dict.fromkeys(word for s in catalog for word in (s.id, s.topic, f"{s.topic}/{s.id}")))


def find_whole(heads: Sequence[Scenario], name: str, extra: Sequence[PathLike] = ()) -> list[Scenario]:
    """Return all of what NAME means among those that are listed: of the others no more is read."""
    found = find(heads, name, extra)
    return found if name.endswith(".py") else _whole_of(found, scenario_dirs(extra))


def _whole_of(heads: Sequence[Scenario], folders: Sequence[str]) -> list[Scenario]:
    wanted, order = {head.path for head in heads}, course.read(folders)
    read = _read_files(
        folders,
        lambda head, rest: _whole(head, rest) if head.path in wanted else head,
        lambda path: _read_whole(path) if path in wanted else _read_head(path),
    )
    whole = {one.path: one for one in read}
    return [
        found._replace(error=head.error or found.error, builds_on=order.lessons.get(head.id, ()))
        for head in heads
        for found in [whole.get(head.path, head)]
    ]


def _read_source(path: str) -> Scenario:
    from tuilab.catalogue.source import read  # slow to load; most of the time the cache has all that is asked for

    return read(path)


def _keep_memory() -> None:
    """Have what one file took be there for the next: a tenth of reading many is to have it anew for each.

    The C library returns to the system what is freed, unless that is less than what was once returned in one piece.
    """
    bytes(_PIECE)


def _read_whole(path: str) -> tuple[Scenario, bytes]:
    """Return all that a file says, and what is kept of it below what a list shows."""
    scenario = _read_source(path)
    return scenario, sealed(json.dumps(scenario[_HEAD:]).encode())


def _read_head(path: str) -> tuple[Scenario, bytes]:
    """Return what a list shows of a file, with nothing below it, where that is sure without all of the file; else all."""
    from tuilab.catalogue.reading import title

    head = title.read(path)
    return (head, b"") if head else _read_whole(path)


def _list_files(folder: str, is_topic: bool = False) -> Iterator[tuple[str, str]]:
    """Yield path and stamp of the files in a folder and in its topic folders."""
    try:
        with os.scandir(folder) as found:
            entries = sorted((_is_folder(e), e.name, e) for e in found if e.name[0] not in "._")
    except OSError:
        yield folder, ""  # reading it as if it were a file says why
        return
    for is_folder, name, entry in entries:
        if is_folder and not is_topic:
            yield from _list_files(entry.path, is_topic=True)
        elif not is_folder and name.endswith(".py"):
            yield entry.path, _stamp(entry)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads in a circle


def _refuse_twins(scenarios: list[Scenario]) -> Iterator[Scenario]:
    """Keep the first scenario of an id; the others say which files share it."""
    first: dict[str, Scenario] = {}
    for scenario in scenarios:
        twin = first.setdefault(scenario.id, scenario)
        if twin is scenario:
            yield scenario
        else:
            yield scenario._replace(error=f"{scenario.path} has the same name as {twin.path}; rename one")


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
    folder = os.path.dirname(__file__)
    ours = [os.stat(f"{folder}/{name}.py").st_mtime_ns for name in ("catalog", *_READ_BY)]
    return f"{__version__} {sys.hexversion} {ours}"


def cache_path() -> str:
    """Return the cache of this tuilab, by where it is installed."""
    return f"{places.cache_folder()}/catalog-{crc32(os.fsencode(__file__)):08x}.json"


def _read_cache() -> _Cached:
    """Return stamp and scenario of every file read before; of a cache of no use nothing, so that it is made again."""
    with suppress(Unusable, TuilabError):
        return read_small(cache_path(), _decode, _CACHE_LIMIT)
    return {}


def _decode(data: bytes) -> _Cached:
    """Take in what `_write_cache` wrote."""
    end = data.index(b"\n")
    try:
        maker, files, lengths = json.loads(unsealed(data[:end]))
        if maker != _maker():
            raise Unusable(Fault.FOREIGN, "it is another tuilab's")
        if not all(isinstance(word, str) for words in files for word in words):
            raise ValueError("it holds something else than scenarios")
        rests = (data[start + 1 : end] for start, end in pairwise(accumulate(lengths, initial=end)))
        read = zip(files, rests, strict=True)
        return {path: (stamp, Scenario(id, topic, path, title), rest) for (stamp, id, topic, path, title), rest in read}
    except TypeError as problem:
        raise ValueError("it holds something else than scenarios") from problem


def _write_cache(files: _Cached) -> None:
    heads = [[stamp, *head[:_HEAD]] for stamp, head, _ in files.values()]
    rests = [rest for _, _, rest in files.values()]
    head = json.dumps([_maker(), heads, [len(rest) + 1 for rest in rests]]).encode()
    with suppress(OSError, TuilabError):
        path = cache_path()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        replace(path, b"\n".join([sealed(head), *rests]))


def _whole(head: Scenario, rest: bytes) -> Scenario | None:
    """Return all of a scenario; what is no such thing is read again."""
    with suppress(TypeError, ValueError, AttributeError, RecursionError):
        return _scenario_of(head, json.loads(unsealed(rest)))
    return None


def _scenario_of(head: Scenario, fields: "list[Any]") -> Scenario:
    lesson, sections, read_params, arms, claims, error, is_timed, imports, settings, quiet, *_ = fields
    found = tuple(Param(name, kind, value, tuple(choices), *rest) for name, kind, value, choices, *rest in read_params)
    stated = tuple(Stated(*claim) for claim in claims)
    raced = tuple((name, whom) for name, whom in settings)
    words = [lesson, error, *sections.values(), *arms, *imports, *(word for one in raced for word in one)]
    words += [word for claim in stated for word in claim]
    words += [word for param in found for word in (param.name, param.type, param.label)]
    if not all(isinstance(word, str) for word in words):
        raise TypeError("it holds something else than scenarios")
    id, topic, path, title, *_ = head
    return Scenario(
        id, topic, path, title, lesson, sections, found, tuple(arms), stated, error, bool(is_timed), tuple(imports), raced,
        bool(quiet),
    )  # fmt: skip
