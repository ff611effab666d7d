"""Read the catalogue of scenarios from the source text of their files, without importing them.

A file that cannot be used is listed with the reason and does not affect other files. The result
is kept in the user's cache folder, because reading 83 files takes 0.2 s and reading the cache
3 ms. If the cache is broken or cannot be written, tuilab works without it. Each installed tuilab
has a cache of its own, because it could not use the cache of another version.
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
from tuilab.catalogue.scenario import Param, Scenario, StatedClaim
from tuilab.errors import TuilabError, UsageError
from tuilab.storage import places
from tuilab.storage.files import Fault, Unusable, read_small, replace, sealed, unsealed
from tuilab.text.display import did_you_mean, join, show

_CACHE_LIMIT = 16 * 1024 * 1024
_CACHED_FILES = 500  # from this many files on, the cache keeps only those that were just read
_HINTS = 3  # scenarios that the error about an unknown name suggests

_Cached = dict[str, tuple[str, Scenario]]  # the stamp and the scenario of each file, by path

PathLike = str | os.PathLike[str]


def scenario_dirs(extra: Sequence[PathLike] = ()) -> list[str]:
    """Return the folders of scenarios: first the one that comes with tuilab, then `extra`.

    If `extra` is empty, the folders of TUILAB_SCENARIOS take its place. Raise UsageError if one of
    them is no folder.
    """
    origin = "--scenarios"
    if not extra:
        origin = "TUILAB_SCENARIOS, or the config file (`tuilab config` shows which),"
        paths = os.environ.get("TUILAB_SCENARIOS", "").split(os.pathsep)
        extra = [path for path in paths if path]
    for folder in extra:
        if not os.path.isdir(folder):
            raise UsageError(
                f"{show(folder)} is not a folder; {origin} takes a folder with scenario files"
            )
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    own_folder = f"{package}/_scenarios"
    if not os.path.isdir(own_folder):  # in a checkout
        own_folder = f"{package}/../scenarios"
    folders = [os.path.realpath(folder) for folder in (own_folder, *extra)]
    return list(dict.fromkeys(folders))


def load(extra: Sequence[PathLike] = ()) -> list[Scenario]:
    """Return all scenarios in the order of the course, also those that cannot be used.

    Files that were read are added to the cache. Raise UsageError if one of `extra` is no folder.
    """
    folders = scenario_dirs(extra)
    order = course.read(folders)
    scenarios = []
    for scenario in _refuse_twins(_read_files(folders)):
        scenarios.append(scenario._replace(builds_on=order.lessons.get(scenario.id, ())))
    return order.sort(scenarios)


def _read_files(folders: Sequence[str]) -> list[Scenario]:
    """Return the scenarios of the files in some folders, and cache those that were read.

    An unchanged file comes from the cache. A file that cannot be used is read each time.
    """
    cached = _read_cache()
    fresh: _Cached = {}
    scenarios = []
    for path, stamp in _stamps_of(folders).items():
        cached_stamp, scenario = cached.get(path, ("", None))
        if scenario is None or cached_stamp != stamp:
            scenario = _read_source(path)
            if stamp and not scenario.error:
                fresh[path] = stamp, scenario
        scenarios.append(scenario)
    if fresh and len(cached) < _CACHED_FILES:
        _write_cache(cached | fresh)
    elif fresh:
        _write_cache(fresh)
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
    """Return the description of each topic."""
    return course.read(scenario_dirs(extra)).topics


def find(catalog: Sequence[Scenario], name: str, extra: Sequence[PathLike] = ()) -> list[Scenario]:
    """Return the scenarios that a name means: an id, topic/id, a topic, `all`, or a .py file.

    UsageError if it means none.
    """
    scenarios = named(catalog, name)
    if scenarios:
        return scenarios
    if os.path.isdir(name):
        command = f"tuilab run NAME --scenarios {show(name, 60)}"
        raise UsageError(
            f"{show(name, 60)} is a folder; "
            f"name a .py file in it, or use it as a catalogue: {command}"
        )
    if os.path.isfile(name):
        raise UsageError(f"{show(name, 60)} is not a scenario: its name does not end in .py")
    hint = _hint_for_unknown(catalog, name, extra)
    if not hint.endswith("?"):
        hint += ";"
    raise UsageError(f"no scenario named {show(name, 60)}{hint} `tuilab list` lists all scenarios")


def named(catalog: Sequence[Scenario], name: str) -> list[Scenario]:
    """Return the scenarios that a name means; none if it is unknown.

    A path that ends in .py is read as a file. Raise UsageError if the name is empty, or if that
    file cannot be read.
    """
    if not name.strip():
        raise UsageError("the name of a scenario is empty; `tuilab list` lists all scenarios")
    if name.endswith(".py"):
        scenario = _read_source(name)
        if scenario.error.startswith("cannot be read: "):
            raise UsageError(
                f"{show(name)} {scenario.error}; `tuilab list` lists the scenarios by name"
            )
        return [scenario]
    topic, _, id = name.rpartition("/")
    scenarios = [scenario for scenario in catalog if scenario.id == id]
    if topic:
        scenarios = [scenario for scenario in scenarios if scenario.topic == topic]
    if scenarios:
        return [scenario for scenario in scenarios if not scenario.error] or scenarios
    if name == "all":
        return list(catalog)
    return [scenario for scenario in catalog if scenario.topic == name]


def _hint_for_unknown(catalog: Sequence[Scenario], name: str, extra: Sequence[PathLike]) -> str:
    """Return the end of the sentence about an unknown name.

    It suggests a file in this folder, lessons that contain the words, or similar names.
    """
    # imported here: only an unknown name needs it, and the lessons
    from tuilab.catalogue.search import mentioning

    file = f"{name.rpartition('/')[2]}.py"  # lists and results show its name without .py
    if os.path.isfile(file):
        return f"; for the file in this folder, write ./{show(file, 60)}"
    lessons = mentioning(load(extra), name)[:_HINTS]
    if lessons:
        return f"; scenarios that mention it: {join(lesson.id for lesson in lessons)}"
    names: list[str] = []
    for scenario in catalog:
        names += (scenario.id, scenario.topic, f"{scenario.topic}/{scenario.id}")
    return did_you_mean(name, dict.fromkeys(names))


def _read_source(path: str) -> Scenario:
    # imported here: it is slow to load, and usually the cache has everything
    from tuilab.catalogue.source import read

    return read(path)


def _list_files(folder: str, is_topic: bool = False) -> Iterator[tuple[str, str]]:
    """Yield path and stamp of the files in a folder, then of those in its topic folders.

    `is_topic`: the folder is one of a topic, whose own folders are not searched. Names that begin
    with a dot or an underscore are skipped.
    """
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError:
        yield folder, ""  # to read it as a file fails, and gives the reason
        return
    topic_folders = []
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if _is_folder(entry):
            topic_folders.append(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.path, _stamp(entry)
    if not is_topic:
        for path in topic_folders:
            yield from _list_files(path, is_topic=True)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a symbolic link that points to itself


def _refuse_twins(scenarios: list[Scenario]) -> Iterator[Scenario]:
    """Yield the scenarios; all but the first of an id get an error that names both files."""
    first_of_id: dict[str, Scenario] = {}
    for scenario in scenarios:
        first = first_of_id.setdefault(scenario.id, scenario)
        if first is not scenario:
            error = f"{scenario.path} has the same name as {first.path}; rename one"
            scenario = scenario._replace(error=error)
        yield scenario


# ---- the cache


def _stamp(entry: os.DirEntry[str]) -> str:
    """Return a text that changes when the file does; empty if it cannot be examined.

    The change time (ctime) also differs if another file was moved into its place.
    """
    try:
        status = entry.stat()
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size}"


def _reader_version() -> str:
    """Return a text that changes when the same file may be read differently.

    It has the versions of tuilab and Python, and the times of the modules that read.
    """
    folder = os.path.dirname(__file__)
    with os.scandir(folder) as entries:
        modified_ns = [entry.stat().st_mtime_ns for entry in entries if entry.name.endswith(".py")]
    return f"{__version__} {sys.hexversion} {sorted(modified_ns)}"


def cache_path() -> str:
    """Return the path of the cache; each place where tuilab is installed has its own."""
    return f"{places.cache_folder()}/catalog-{crc32(os.fsencode(__file__)):08x}.json"


def _read_cache() -> _Cached:
    """Return stamp and scenario of every file in the cache; none if the cache is unusable."""
    with suppress(Unusable, TuilabError):
        return read_small(cache_path(), _decode, _CACHE_LIMIT)
    return {}


def _decode(data: bytes) -> _Cached:
    """Return the files that `_write_cache` wrote; ValueError or Unusable if they are not those."""
    document = json.loads(unsealed(data))
    try:
        if document["reader"] != _reader_version():
            raise Unusable(Fault.FOREIGN, "another tuilab wrote it")
        files = {}
        for path, (stamp, fields) in document["files"].items():
            files[path] = (stamp, _scenario_of(fields))
        return files
    except (TypeError, KeyError, AttributeError) as problem:
        raise ValueError("it does not hold scenarios") from problem


def _write_cache(files: _Cached) -> None:
    document = {"reader": _reader_version(), "files": files}
    with suppress(OSError, TuilabError):
        path = cache_path()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        replace(path, sealed(json.dumps(document).encode()))


def _scenario_of(fields: list[Any]) -> Scenario:
    """Return the scenario with these fields, which the cache has in their order.

    TypeError or ValueError if they are not the fields of a scenario.
    """
    scenario = Scenario(*fields)
    # JSON has lists for all tuples.
    params = [_param_of(*param) for param in scenario.params]
    claims = [StatedClaim(*claim) for claim in scenario.claims]
    settings = [(name, scope) for name, scope in scenario.settings]
    scenario = scenario._replace(
        params=tuple(params),
        arms=tuple(scenario.arms),
        claims=tuple(claims),
        imports=tuple(scenario.imports),
        settings=tuple(settings),
        builds_on=tuple(scenario.builds_on),
    )
    _check_texts(scenario)
    return scenario


def _param_of(name: str, type: Any, default: Any, choices: Sequence[Any], *rest: Any) -> Param:
    return Param(name, type, default, tuple(choices), *rest)


def _check_texts(scenario: Scenario) -> None:
    """Raise a TypeError if a field that must be a text is not."""
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
