"""The bundle of `tuilab doctor --bundle` for an issue: findings, software and the last failures.

It contains no secrets.
"""

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
_LOG = 4 << 20  # bytes of a log: a run keeps less
# Bytes of a log that are searched for secrets: more than is shown, so that none is cut in half.
_READ = 64 * 1024
_SHOWN = 8 * 1024  # characters of a log
_TRACEBACK = 4000  # characters
_FAULTS = 4  # logs of workers that crashed
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\0")  # colours, and every other byte of UTF-16


def write(path: Path, doctor: dict[str, object]) -> None:
    """Write the bundle as a JSON document, or as an archive for .tar.gz and .tgz."""
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
    """Replace a regular file, or create it; only the user may read it."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "it exists and is not a regular file")
    replace(path, data)


def software() -> dict[str, Any]:
    """Return versions, and the variables that control threads, allocators and CUDA."""
    return environment_facts()


def constraints() -> list[str]:
    """Return every installed package as `name==version`, sorted."""
    packages = {
        f"{distribution.metadata['Name']}=={distribution.version}"
        for distribution in metadata.distributions()
        if distribution.metadata["Name"]
    }
    return sorted(packages, key=str.lower)


def failures() -> list[dict[str, Any]]:
    """Return the last runs that failed, with reason, traceback and the end of their output."""
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
    """Return the stacks of the workers that crashed."""
    return "\n".join(filter(None, map(_tail, sorted(folder.glob("fault-*.log"))[:_FAULTS])))


def _tail(path: Path, secrets: Sequence[tuple[int, int]] = ()) -> str:
    """Return the last lines of a log without secrets.

    `secrets` has the places (begin, end) where some are known to be.
    """
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
        data = data[-_READ:]
        data = data.partition(b"\n")[2] or data  # half a line may be half a secret
    text = _CONTROL.sub("", data.decode(errors="surrogateescape"))
    return show_lines(scrub(text))[-_SHOWN:]


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
