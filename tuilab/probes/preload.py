"""Check that the libraries in LD_PRELOAD were loaded: the linker only warns if they were not."""

import os
import re
from pathlib import Path

from tuilab.errors import BoxLacks


def check(preload: str) -> None:
    """Raise BoxLacks if a library in this value of LD_PRELOAD is not mapped into this process.

    Names with a variable such as $LIB, which the linker replaces, are not checked.
    """
    mapped = mapped_files(Path("/proc/self/maps").read_text(errors="surrogateescape"))
    for name in re.split("[: ]+", preload):
        if name and "$" not in name and not _is_mapped(name, mapped):
            raise BoxLacks(
                f"LD_PRELOAD names {name}, which was not loaded: "
                "the file is missing, or not for this machine"
            )


def mapped_files(maps: str) -> set[str]:
    """Return the files in a process's memory map, which has the format of /proc/PID/maps."""
    files = set()
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/"):
            files.add(fields[5])
    return files


def _is_mapped(name: str, mapped: set[str]) -> bool:
    """Return whether a library is mapped.

    A name without a folder is one in a folder of the linker. It may be a link to the mapped file.
    """
    if "/" in name:
        return os.path.realpath(name) in mapped
    for path in mapped:
        if os.path.realpath(os.path.join(os.path.dirname(path), name)) == path:
            return True
    return False
