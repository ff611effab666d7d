"""Whether the libraries that LD_PRELOAD names were really loaded: of those that it cannot load the linker only warns."""

import os
import re
from pathlib import Path

from tuilab.errors import BoxLacks


def check(wanted: str) -> None:
    """Raise BoxLacks when a library that LD_PRELOAD names is not mapped into this process."""
    mapped = mapped_files(Path("/proc/self/maps").read_text(errors="surrogateescape"))
    for name in re.split("[: ]+", wanted):
        if name and "$" not in name and not _is_mapped(name, mapped):
            raise BoxLacks(
                f"LD_PRELOAD names {name}, which was not loaded: the file is missing, or not for this machine"
            )


def mapped_files(maps: str) -> set[str]:
    """Return the files in a process's memory map."""
    lines = (line.split(maxsplit=5) for line in maps.splitlines())
    return {fields[5] for fields in lines if len(fields) == 6 and fields[5].startswith("/")}


def _is_mapped(name: str, mapped: set[str]) -> bool:
    """Say whether a library is mapped: one with a folder by where it is, one without by what the linker's folders call it."""
    if "/" in name:
        return os.path.realpath(name) in mapped
    return any(
        os.path.realpath(os.path.join(os.path.dirname(path), name)) == path for path in mapped
    )
