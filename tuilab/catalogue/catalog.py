"""The catalogue: what every scenario file says about itself, read from its source text and never by importing it.

A file that cannot be used is listed with the reason and hurts no other. What was read is kept in the user's cache folder,
because reading 56 files takes 0.1 s and the cache 3 ms; one that is broken or cannot be written is done without.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic_ns
from typing import Any
from zlib import crc32

from tuilab import __version__, places
from tuilab.catalogue.scenario import Param, Scenario
from tuilab.catalogue.stated import Stated
from tuilab.errors import TuilabError, UsageError
from tuilab.files import read_regular
from tuilab.text import did_you_mean, show

TOPICS = (
    "basics", "broadcasting", "runtime", "data", "stability", "amp", "memory", "training", "observing", "cpu", "gpu",
    "distributed",
)  # fmt: skip

_CACHE_LIMIT = 16 * 1024 * 1024
_CACHED_FILES = 500  # more than that, and only what was listed last is kept

PathLike = str | os.PathLike[str]


def scenario_dirs(extra: Sequence[PathLike] = ()) -> list[str]:
    """Return the folders of scenarios: the one that comes with tuilab, then the given ones, or those of TUILAB_SCENARIOS."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    installed = f"{package}/_scenarios"
    extra = extra or [folder for folder in os.environ.get("TUILAB_SCENARIOS", "").split(os.pathsep) if folder]
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
        scenarios.append(scenario := _read_source(path))
        if stamp and not scenario.error:
            fresh[path] = [stamp, scenario]
    if fresh:
        _write_cache({**(cached if len(cached) < _CACHED_FILES else {}), **fresh})
    return sorted(_refuse_twins(scenarios), key=_place)


def find(catalog: Sequence[Scenario], name: str) -> list[Scenario]:
    """Return what NAME means: an id, topic/id, a topic, `all`, or the path of a .py file."""
    if not name.strip():
        raise UsageError("the name of a scenario is empty; `tuilab list` shows them all")
    if name.endswith(".py"):
        given = _read_source(name)
        if given.error.startswith("cannot be read: "):
            raise UsageError(f"{show(name)} {given.error}; `tuilab list` shows the scenarios by name")
        return [given]
    topic, _, id = name.rpartition("/")
    if found := [s for s in catalog if s.id == id and topic in ("", s.topic)]:
        return [s for s in found if not s.error] or found
    if found := [s for s in catalog if name in (s.topic, "all")]:
        return found
    known = dict.fromkeys(word for s in catalog for word in (s.id, s.topic, f"{s.topic}/{s.id}"))
    raise UsageError(f"no scenario is called {show(name, 60)}{did_you_mean(name, known)}; `tuilab list` shows them all")


def _read_source(path: str) -> Scenario:
    from tuilab.catalogue.source import read  # slow to load; most of the time the cache has all that is asked for

    return read(path)


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
    ours = [os.stat(f"{folder}/{name}.py").st_mtime_ns for name in ("catalog", "source", "scenario", "params", "stated")]
    return f"{__version__} {sys.hexversion} {ours}"


def _cache_path() -> str:
    return f"{places.cache_folder()}/catalog.json"


def _read_cache() -> dict[str, Any]:
    """Return stamp and fields of every file read before: crc32-hex SP JSON, as in a journal."""
    try:
        data = read_regular(_cache_path(), _CACHE_LIMIT)
        if int(data[:8], 16) != crc32(data[9:]):
            return {}
        maker, files = json.loads(data[9:])
    except (OSError, ValueError, TuilabError):
        return {}
    return dict(files) if maker == _maker() else {}


def _write_cache(files: dict[str, Any]) -> None:
    body = json.dumps([_maker(), files], default=_pack).encode()
    with suppress(OSError, TuilabError):
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
    id, topic, path, title, lesson, sections, read_params, arms, claims, error, is_timed = fields
    found = tuple(Param(name, kind, value, tuple(choices), *rest) for name, kind, value, choices, *rest in read_params)
    stated = tuple(Stated(*claim) for claim in claims)
    return Scenario(id, topic, path, title, lesson, sections, found, tuple(arms), stated, error, is_timed)
