"""Files that a scenario keeps with its run."""

import hashlib
import os
from pathlib import Path

from tuilab.lab.given import checked, told, words
from tuilab.record.events import ArtifactSaved


def keep(folder: Path, name: str, data: bytes | str) -> tuple[Path, ArtifactSaved]:
    """Write a new file into a folder; return where it is and the record of it."""
    name = words("name", name)
    if not name or name != Path(name).name or name.startswith(".") or "\0" in name or len(os.fsencode(name)) > 255:
        raise ValueError(f"name takes a plain file name, not {told(name)}")
    content = _content(data)
    digest = hashlib.sha256(content).hexdigest()
    record = checked(ArtifactSaved(name=name, bytes_total=len(content), sha256=digest))
    try:
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError as problem:
        raise ValueError(f"the artifact {told(name)} exists already; choose another name") from problem
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return folder / name, record


def _content(data: bytes | str) -> bytes:
    """Return what an artifact is to hold."""
    if not isinstance(data, str | bytes | bytearray):
        raise TypeError(f"data takes bytes or a text, not {told(data)}")
    try:
        return data.encode() if isinstance(data, str) else bytes(data)
    except UnicodeEncodeError as problem:
        raise ValueError(f"data takes a text that can be written as UTF-8: {problem}") from problem
