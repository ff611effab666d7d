"""What `tuilab doctor --bundle` writes for an issue: what the doctor found, the software, the last failures; no secrets."""

import errno
import gzip
import io
import json
import os
import re
import stat
import tarfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from tuilab.errors import CannotRecord, TuilabError
from tuilab.probes.env import environment_facts
from tuilab.record.encoding import spell_out
from tuilab.record.live_run import read_run
from tuilab.record.secrets import without_places
from tuilab.record.states import BROKEN_STATES
from tuilab.runs import store
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import Index
from tuilab.scrub import scrub
from tuilab.storage import places
from tuilab.storage.files import open_regular, replace
from tuilab.text.display import show, show_lines

_FAILURES = 5
_LOOKED_AT = 200  # runs, the newest
_LOG = 4 << 20  # bytes of a log: more than a run keeps
_READ = (
    64 * 1024
)  # bytes of it that are looked at: more than is told, so that no secret is cut before it is found
_TOLD = 8 * 1024  # characters
_TRACEBACK = 4000  # characters
_FAULTS = 4  # logs of workers that crashed
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\0")  # colours, and every other byte of UTF-16


def write(path: Path, doctor: dict[str, object]) -> None:
    """Write the bundle: one JSON document, or, where the name ends in .tar.gz or .tgz, its parts as files."""
    parts = scrub(
        {
            "doctor": doctor,
            "software": software(),
            "constraints": constraints(),
            "failures": failures(),
        }
    )
    is_archive = path.name.endswith((".tar.gz", ".tgz"))
    try:
        _replace(path, _archive(parts) if is_archive else _json(parts))
    except OSError as problem:
        raise CannotRecord(f"cannot write {show(path)}: {problem.strerror}") from problem


def _replace(path: Path, data: bytes) -> None:
    """Put a new file, which nobody else may read, in the place of whatever file has that name."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "it exists and is not a regular file")
    replace(path, data)


def software() -> dict[str, Any]:
    """Return versions and the variables that steer threads, allocators and CUDA."""
    return environment_facts()


def constraints() -> list[str]:
    """Return every installed package with its version, as pip writes them."""
    packages = {
        f"{one.metadata['Name']}=={one.version}"
        for one in metadata.distributions()
        if one.metadata["Name"]
    }
    return sorted(packages, key=str.lower)


def failures() -> list[dict[str, Any]]:
    """Return the last runs that did not end well: why, where, and the end of what they printed."""
    try:
        root = Path(places.runs_folder())
        folders = store.list_runs(root)[:_LOOKED_AT]
    except TuilabError:
        return []
    index = Index(root)
    entries = ((folder, index.entry(folder.name)) for folder in folders)
    bad = ((folder, entry) for folder, entry in entries if entry.state in BROKEN_STATES)
    return [
        _failure(folder, entry) for (folder, entry), _ in zip(bad, range(_FAILURES), strict=False)
    ]


def _failure(folder: Path, entry: RunEntry) -> dict[str, Any]:
    report: dict[str, Any] = {
        "run": entry.run,
        "scenario": entry.name,
        "state": entry.state,
        "reason": entry.reason,
    }
    log = folder / "stderr.log"
    report |= {"changed": spell_out(entry.changed), "stderr": _tail(log), "fault": _faults(folder)}
    try:
        summary = read_run(folder)
    except TuilabError:
        return report
    if captured := summary.outputs.get("stderr"):
        report["stderr"] = _tail(log, captured.secrets)
    report["tuilab"] = summary.run.tuilab if summary.run else None
    report["unavailable"] = summary.unavailable
    if failure := summary.failure:
        traceback = show_lines(scrub(failure.traceback))[-_TRACEBACK:]
        report |= {"type": failure.type, "message": failure.message, "traceback": traceback}
    return report


def _faults(folder: Path) -> str:
    """Return where the workers were that crashed."""
    return "\n".join(filter(None, map(_tail, sorted(folder.glob("fault-*.log"))[:_FAULTS])))


def _tail(path: Path, secrets: Sequence[tuple[int, int]] = ()) -> str:
    """Return the last lines of a file that a run printed into, without secrets, also those in places that are known."""
    try:
        with open(open_regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - _LOG, 0))
            data = file.read(_LOG)
    except OSError:
        return ""
    if size <= _LOG:
        data = without_places(data, secrets)
    if len(data) > _READ:
        data = (
            data[-_READ:].partition(b"\n")[2] or data[-_READ:]
        )  # half a line may be half a secret
    text = _CONTROL.sub("", data.decode(errors="surrogateescape"))
    return show_lines(scrub(text))[-_TOLD:]


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def _archive(parts: dict[str, Any]) -> bytes:
    files = {
        f"tuilab-doctor/{name}.json": _json(value)
        for name, value in parts.items()
        if name != "constraints"
    }
    files["tuilab-doctor/constraints.txt"] = "\n".join([*parts["constraints"], ""]).encode()
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as archive,
    ):
        for name, data in files.items():
            about = tarfile.TarInfo(name)
            about.size, about.mode, about.mtime = len(data), 0o600, int(time.time())
            archive.addfile(about, io.BytesIO(data))
    return packed.getvalue()
