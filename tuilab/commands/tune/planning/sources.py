"""Read the files of the user in which a treatment could be written down."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tuilab.commands.tune.script_facts import ScriptFacts, ScriptPlace

_MOST_BYTES = 1_000_000  # of a file; nobody wrote a longer one by hand
_LIBRARY_FOLDERS = ("site-packages", "dist-packages")


class ScriptSource(msgspec.Struct, kw_only=True, frozen=True):
    """The text of a file, and its name in a diff."""

    name: str  # relative to the folder in which the script runs
    text: str  # with its line breaks as they are


def read_sources(facts: ScriptFacts, script: str, folder: str) -> dict[str, ScriptSource]:
    """Return the files that the facts and the command name, by the path that they have there.

    A file is left out if it lies outside of `folder`, belongs to a library, or is not a text in
    UTF-8: then a diff of it could not be applied.
    """
    places: Iterable[ScriptPlace] = [*facts.loaders, *facts.optimizers, *facts.ddp]
    paths = {place.file for place in places if place.file}
    if script:
        paths.add(script)
    sources = {}
    for path in sorted(paths):
        source = _read_source(path, folder)
        if source is not None:
            sources[path] = source
    return sources


def _read_source(path: str, folder: str) -> ScriptSource | None:
    """Return a file of the user; None if no diff of it can be made."""
    try:
        real_folder = Path(folder).resolve()
        real_path = Path(real_folder, path).resolve()
        if not real_path.is_relative_to(real_folder):
            return None
        name = real_path.relative_to(real_folder)
        if any(part in _LIBRARY_FOLDERS for part in name.parts):
            return None
        # A pipe or a device would block, and a huge file would fill the memory.
        if not real_path.is_file() or os.path.getsize(real_path) > _MOST_BYTES:
            return None
        return ScriptSource(name=str(name), text=real_path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RuntimeError):  # also a loop of links, a zero byte, not UTF-8
        return None
