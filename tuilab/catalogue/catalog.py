"""The catalogue: what every scenario file says about itself, read from its source text and never by importing it.

A file that cannot be used is listed with the reason and hurts no other. What was read is kept in the user's cache folder,
because reading 83 files takes 0.2 s and reading the cache 3 ms. If the cache is broken or cannot be written, tuilab works
without it. Each installed tuilab has a cache of its own, because it could not use the cache of another version.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from zlib import crc32

from tuilab import __version__
from tuilab.catalogue import course
from tuilab.catalogue.scenario import Param, Scenario, Stated
from tuilab.errors import TuilabError, UsageError
from tuilab.storage import places
from tuilab.storage.files import Fault, Unusable, read_small, replace, sealed, unsealed
from tuilab.text.display import did_you_mean, join, show

_CACHE_LIMIT = 16 * 1024 * 1024
_CACHED_FILES = 500  # if the cache holds more files, only those that were listed last are kept
_HINTS = 3  # scenarios that are named if no scenario has the name that was asked for

_Cached = dict[str, tuple[str, Scenario]]  # the stamp of each file and what it says, by path

PathLike = str | os.PathLike[str]


def scenario_dirs(extra: Sequence[PathLike] = ()) -> list[str]:
    """Return the folders of scenarios: the one that comes with tuilab, then the given ones, or those of TUILAB_SCENARIOS."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    installed = f"{package}/_scenarios"
    who = (
        "--scenarios"
        if extra
        else "TUILAB_SCENARIOS, or the config file (`tuilab config` shows which),"
    )
    extra = extra or [
        folder for folder in os.environ.get("TUILAB_SCENARIOS", "").split(os.pathsep) if folder
    ]
    for folder in extra:
        if not os.path.isdir(folder):
            raise UsageError(
                f"{show(folder)} is not a folder; {who} takes a folder with scenario files"
            )
    folders = [installed if os.path.isdir(installed) else f"{package}/../scenarios", *extra]
    return list(dict.fromkeys(os.path.realpath(folder) for folder in folders))


def load(extra: Sequence[PathLike] = ()) -> list[Scenario]:
    """Return all scenarios in the order of the course, also those that cannot be used."""
    folders = scenario_dirs(extra)
    order = course.read(folders)
    scenarios = []
    for scenario in _refuse_twins(_read_files(folders)):
        scenarios.append(scenario._replace(builds_on=order.lessons.get(scenario.id, ())))
    return order.sort(scenarios)


def _read_files(folders: Sequence[str]) -> list[Scenario]:
    """Return what the files in some folders say; a file that has not changed since it was last read comes from the cache."""
    cached = _read_cache()
    fresh: _Cached = {}
    scenarios = []
    for path, stamp in _stamps_of(folders).items():
        known_stamp, scenario = cached.get(path, ("", None))
        if scenario is None or known_stamp != stamp:
            scenario = _read_source(path)
            if stamp and not scenario.error:
                fresh[path] = stamp, scenario
        scenarios.append(scenario)
    if fresh:
        kept = cached if len(cached) < _CACHED_FILES else {}
        _write_cache({**kept, **fresh})
    return scenarios


def stamps(extra: Sequence[PathLike] = ()) -> dict[str, str]:
    """Return a stamp of each scenario file, by path; the stamp changes when the file does."""
    return _stamps_of(scenario_dirs(extra))


def _stamps_of(folders: Sequence[str]) -> dict[str, str]:
    stamps: dict[str, str] = {}
    for folder in folders:
        stamps.update(_list_files(folder))
    return stamps


def topics(extra: Sequence[PathLike] = ()) -> dict[str, str]:
    """Return what each topic is about."""
    return course.read(scenario_dirs(extra)).topics


def find(catalog: Sequence[Scenario], name: str, extra: Sequence[PathLike] = ()) -> list[Scenario]:
    """Return what NAME means: an id, topic/id, a topic, `all`, or the path of a .py file; an unknown name is refused."""
    if not (found := named(catalog, name)):
        if os.path.isdir(name):
            step = f"tuilab run NAME --scenarios {show(name, 60)}"
            raise UsageError(
                f"{show(name, 60)} is a folder; name a .py file in it, or use it as a catalogue: {step}"
            )
        if os.path.isfile(name):
            raise UsageError(f"{show(name, 60)} is not a scenario: its name does not end in .py")
        meant = _meant(catalog, name, extra)
        end = "" if meant.endswith("?") else ";"
        raise UsageError(
            f"no scenario named {show(name, 60)}{meant}{end} `tuilab list` lists all scenarios"
        )
    return found


def named(catalog: Sequence[Scenario], name: str) -> list[Scenario]:
    """Return what NAME means; nothing where no scenario is called so."""
    if not name.strip():
        raise UsageError("the name of a scenario is empty; `tuilab list` lists all scenarios")
    if name.endswith(".py"):
        given = _read_source(name)
        if given.error.startswith("cannot be read: "):
            raise UsageError(
                f"{show(name)} {given.error}; `tuilab list` lists the scenarios by name"
            )
        return [given]
    topic, _, id = name.rpartition("/")
    if found := [s for s in catalog if s.id == id and topic in ("", s.topic)]:
        return [s for s in found if not s.error] or found
    return [s for s in catalog if name in (s.topic, "all")]


def _meant(catalog: Sequence[Scenario], name: str, extra: Sequence[PathLike]) -> str:
    """Return the end of a sentence about an unknown name: a file here, lessons that have the word, or what was meant."""
    from tuilab.catalogue.search import (
        speaking_of,
    )  # only who mistypes waits for it, and for the lessons

    if os.path.isfile(
        file := f"{name.rpartition('/')[2]}.py"
    ):  # lists and results tell it without the ending
        return f"; for the file in this folder, write ./{show(file, 60)}"
    if lessons := speaking_of(load(extra), name)[:_HINTS]:
        return f"; scenarios that mention it: {join(one.id for one in lessons)}"
    return did_you_mean(
        name, dict.fromkeys(word for s in catalog for word in (s.id, s.topic, f"{s.topic}/{s.id}"))
    )


def _read_source(path: str) -> Scenario:
    from tuilab.catalogue.source import (
        read,
    )  # slow to load; most of the time the cache has all that is asked for

    return read(path)


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


def _is_folder(entry: os.DirEntry[str]) -> bool:
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
            yield scenario._replace(
                error=f"{scenario.path} has the same name as {twin.path}; rename one"
            )


# ---- the cache


def _stamp(entry: os.DirEntry[str]) -> str:
    """Return what changes when a file does; the change time sees a file that was moved into the place of another."""
    try:
        status = entry.stat()
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size}"


def _reader() -> str:
    """Return a text that changes when the same file could be read differently: the versions and the modules that read it."""
    folder = os.path.dirname(__file__)
    with os.scandir(folder) as entries:
        changed_ns = [entry.stat().st_mtime_ns for entry in entries if entry.name.endswith(".py")]
    return f"{__version__} {sys.hexversion} {sorted(changed_ns)}"


def cache_path() -> str:
    """Return the cache of this tuilab, by where it is installed."""
    return f"{places.cache_folder()}/catalog-{crc32(os.fsencode(__file__)):08x}.json"


def _read_cache() -> _Cached:
    """Return stamp and scenario of every file read before; of a cache of no use nothing, so that it is made again."""
    with suppress(Unusable, TuilabError):
        return read_small(cache_path(), _decode, _CACHE_LIMIT)
    return {}


def _decode(data: bytes) -> _Cached:
    """Return what `_write_cache` wrote."""
    document = json.loads(unsealed(data))
    try:
        if document["reader"] != _reader():
            raise Unusable(Fault.FOREIGN, "another tuilab wrote it")
        return {
            path: (stamp, _scenario_of(fields))
            for path, (stamp, fields) in document["files"].items()
        }
    except (TypeError, KeyError, AttributeError) as problem:
        raise ValueError("it does not hold scenarios") from problem


def _write_cache(files: _Cached) -> None:
    document = {"reader": _reader(), "files": files}
    with suppress(OSError, TuilabError):
        path = cache_path()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        replace(path, sealed(json.dumps(document).encode()))


def _scenario_of(fields: list[Any]) -> Scenario:
    """Return a scenario from the fields that the cache has of it, in their order; TypeError or ValueError for anything else."""
    scenario = Scenario(*fields)
    scenario = scenario._replace(
        params=tuple(_param_of(*param) for param in scenario.params),
        arms=tuple(scenario.arms),
        claims=tuple(Stated(*claim) for claim in scenario.claims),
        imports=tuple(scenario.imports),
        settings=tuple((name, whom) for name, whom in scenario.settings),
        builds_on=tuple(scenario.builds_on),
    )
    _check_texts(scenario)
    return scenario


def _param_of(name: str, type: Any, default: Any, choices: Sequence[Any], *rest: Any) -> Param:
    return Param(name, type, default, tuple(choices), *rest)


def _check_texts(scenario: Scenario) -> None:
    """Raise a TypeError if something that is to be a text is not."""
    texts = [
        scenario.id,
        scenario.topic,
        scenario.path,
        scenario.title,
        scenario.lesson,
        scenario.error,
    ]
    texts += [*scenario.sections.values(), *scenario.arms, *scenario.imports]
    for setting in scenario.settings:
        texts += setting
    for claim in scenario.claims:
        texts += claim
    for param in scenario.params:
        texts += [param.name, param.type, param.label]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text of a scenario is none")
