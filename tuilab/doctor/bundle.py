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
from tuilab.runs.redaction import secrets_of_source
from tuilab.scrub import scrub, scrubber_of
from tuilab.storage import places
from tuilab.storage.files import open_regular, replace
from tuilab.text.display import show, show_lines

_FAILURES = 5
_LOOKED_AT = 200  # runs, the newest
_LOG_BYTES = 4 << 20  # a run keeps less of a log
# Bytes of a log that are searched for secrets: more than is shown, so that none is cut in half.
_SEARCHED_BYTES = 64 * 1024
_SHOWN = 8 * 1024  # characters of a log
_TRACEBACK = 4000  # characters
_FAULTS = 4  # logs of workers that crashed
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\0")  # colours, and every other byte of UTF-16


def write(path: Path, doctor: dict[str, object]) -> None:
    """Write the bundle as a JSON document, or as an archive for .tar.gz and .tgz.

    Raises CannotRecord if the file cannot be written.
    """
    parts = scrub(
        {
            "doctor": doctor,
            "software": software(),
            "constraints": constraints(),
            "failures": failures(),
        }
    )
    is_archive = path.name.endswith((".tar.gz", ".tgz"))
    data = _archive(parts) if is_archive else _json(parts)
    try:
        _replace(path, data)
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
    packages = set()
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            packages.add(f"{name}=={distribution.version}")
    return sorted(packages, key=str.lower)


def failures() -> list[dict[str, Any]]:
    """Return the last runs that failed, with reason, traceback and the end of their output."""
    try:
        root = Path(places.runs_folder())
        folders = store.list_runs(root)[:_LOOKED_AT]
    except TuilabError:
        return []
    index = Index(root)
    reports = []
    for folder in folders:
        entry = index.entry(folder.name)
        if entry.state in BROKEN_STATES:
            remove_secrets = scrubber_of(secrets_of_source(folder))
            reports.append(remove_secrets(_report_failure(folder, entry)))
            if len(reports) == _FAILURES:
                break
    return reports


def _report_failure(folder: Path, entry: RunEntry) -> dict[str, Any]:
    """Return what is known about a failed run: its reason, its traceback, and the ends of its logs.

    If the record of the run cannot be read, the traceback and the versions are left out.
    """
    log = folder / "stderr.log"
    report: dict[str, Any] = {
        "run": entry.run,
        "scenario": entry.name,
        "state": entry.state,
        "reason": entry.reason,
        "changed": spell_out(entry.changed),
        "stderr": _read_tail(log),
        "fault": _read_fault_logs(folder),
    }
    try:
        summary = read_run(folder)
    except TuilabError:
        return report
    captured = summary.outputs.get("stderr")
    if captured:
        report["stderr"] = _read_tail(log, captured.secrets)
    report["tuilab"] = summary.run.tuilab if summary.run else None
    report["unavailable"] = summary.unavailable
    failure = summary.failure
    if failure:
        report["type"] = failure.type
        report["message"] = failure.message
        report["traceback"] = show_lines(scrub(failure.traceback))[-_TRACEBACK:]
    return report


def _read_fault_logs(folder: Path) -> str:
    """Return the stacks of the workers that crashed."""
    logs = []
    for path in sorted(folder.glob("fault-*.log"))[:_FAULTS]:
        log = _read_tail(path)
        if log:
            logs.append(log)
    return "\n".join(logs)


def _read_tail(path: Path, secrets: Sequence[tuple[int, int]] = ()) -> str:
    """Return the last lines of a log without secrets, or an empty string if it cannot be read.

    `secrets` has the places (begin, end) of the secrets that are known. They count only if the
    whole log is read; otherwise a search finds what looks like a secret.
    """
    try:
        with open(open_regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - _LOG_BYTES, 0))
            data = file.read(_LOG_BYTES)
    except OSError:
        return ""
    if size <= _LOG_BYTES:
        data = without_places(data, secrets)
    if len(data) > _SEARCHED_BYTES:
        data = data[-_SEARCHED_BYTES:]
        data = data.partition(b"\n")[2] or data  # half a line may be half a secret
    text = _CONTROL.sub("", data.decode(errors="surrogateescape"))
    return show_lines(scrub(text))[-_SHOWN:]


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def _archive(parts: dict[str, Any]) -> bytes:
    """Return the parts as a compressed tar archive: a JSON file each, and the packages as text."""
    files = {}
    for name, value in parts.items():
        if name != "constraints":
            files[f"tuilab-doctor/{name}.json"] = _json(value)
    constraint_lines = [f"{constraint}\n" for constraint in parts["constraints"]]
    files["tuilab-doctor/constraints.txt"] = "".join(constraint_lines).encode()
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as archive,
    ):
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = 0o600
            member.mtime = int(time.time())
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()
