"""Writes a report in the format that is wanted, whole or not at all."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tuilab.catalogue.scenario import Scenario
from tuilab.errors import CannotRecord, UsageError
from tuilab.reports.reported_run import ReportedRun, read_each
from tuilab.storage.files import replace
from tuilab.text.display import show

ENDINGS = {  # how a file's name ends -> the format: a module of `formats`; the longest ending that fits is taken
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
    ".csv": "csv",
    ".xml": "junit",
    ".trace.json": "trace",
    ".tfevents": "tensorboard",
}
STDOUT = "-"
GITHUB_LIMIT = 65_000  # characters, of 65,536 that a comment may have


def format_of(target: str, wanted: str = "") -> str:
    """Return the format of a file: the one that is wanted, else the one that its ending tells."""
    if wanted:
        return wanted
    if target == STDOUT:
        return "md"
    found = [ending for ending in ENDINGS if target.lower().endswith(ending)]
    if not found:
        known = ", ".join(ENDINGS)
        raise UsageError(
            f"cannot tell the report format from {show(target, 200)}; use one of the extensions {known}, or --as FORMAT"
        )
    return ENDINGS[max(found, key=len)]


def write(
    subjects: list[ReportedRun],
    target: str,
    kind: str,
    *,
    known: Sequence[Scenario] = (),
    limit: int = 0,
    is_appended: bool = False,
) -> None:
    """Write the report on some runs to a file, or to stdout for `-`."""
    if kind == "tensorboard":
        from tuilab.reports.formats.tensorboard import export

        if target == STDOUT:
            raise UsageError(
                "a TensorBoard report is a folder and cannot go to stdout; name a folder with -o"
            )
        export(subjects, target)
        return
    options: dict[str, Any] = {}
    if kind in ("html", "md"):
        options["scenarios"] = known
    if limit:
        options["limit"] = limit
    _put(target, _pieces(kind, subjects, **options), is_appended=is_appended)


def write_compared(groups: Sequence[Sequence[ReportedRun]], target: str, kind: str) -> None:
    """Write a report on runs side by side, a page or Markdown, with each of the runs below."""
    subjects = list({id(one): one for group in groups for one in group}.values())
    _put(target, _pieces(kind, subjects, groups=groups))


def write_text(target: str, text: str) -> None:
    """Write a text to a file, or to stdout for `-`."""
    _put(target, [text])


def check_target(target: str, wanted: str = "") -> str:
    """Return the format of a report that will be written later; say now what can be known to fail then."""
    kind = format_of(target, wanted)
    folder = os.path.dirname(os.path.abspath(target))
    is_wrong_kind = os.path.isdir(target) and kind != "tensorboard"
    if target != STDOUT and (
        is_wrong_kind or not os.path.isdir(folder) or not os.access(folder, os.W_OK)
    ):
        if is_wrong_kind:
            what = "it is a folder"
        elif os.path.isdir(folder):
            what = f"you cannot write to the folder {show(folder, 300)}"
        else:
            what = f"there is no folder {show(folder, 300)}"
        raise CannotRecord(f"cannot write {show(target, 300)}: {what}; name another file")
    return kind


def tell_lack(kind: str) -> None:
    """Say what opens a format and is not installed here, before the work is done; it is written all the same."""
    if kind == "tensorboard" and find_spec("tensorboard") is None:
        step = "install it to open the report: pip install tensorboard"
        print(f"tuilab: TensorBoard is not installed here; {step}", file=sys.stderr)


def read_subjects(runs: Sequence[Path], *, keeps_private: bool = False) -> list[ReportedRun]:
    """Read runs; of several, one that cannot be read is named and left out."""
    return read_each(
        runs, lambda words: print(f"tuilab: {words}", file=sys.stderr), keeps_private=keeps_private
    )


def _put(target: str, pieces: Iterable[str], *, is_appended: bool = False) -> None:
    if target == STDOUT:
        for piece in pieces:
            sys.stdout.write(piece)
        return
    try:
        if is_appended:
            _append(target, pieces)
        else:
            _replace(target, pieces)
    except OSError as problem:
        why = problem.strerror or str(problem)
        if isinstance(problem, FileNotFoundError):
            why = f"there is no folder {show(os.path.dirname(os.path.abspath(target)), 300)}"
        raise CannotRecord(
            f"cannot write {show(target, 300)}: {why}; name another file with -o"
        ) from problem


def _pieces(kind: str, subjects: Sequence[ReportedRun], **options: Any) -> Iterable[str]:
    """Return the report in pieces; a format is loaded when it is wanted."""
    rendered = import_module(f"tuilab.reports.formats.{kind}").render(subjects, **options)
    return [rendered] if isinstance(rendered, str) else rendered


def _replace(target: str, pieces: Iterable[str]) -> None:
    """Put a file in the place of an older one at once; what is no file (a pipe, /dev/stdout) is written into."""
    path = os.path.realpath(target)
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        _write_all(os.open(path, os.O_WRONLY | os.O_CLOEXEC), pieces)
    else:
        replace(path, _encode(pieces), 0o666)


def _append(target: str, pieces: Iterable[str]) -> None:
    _write_all(
        os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666), pieces
    )


def _write_all(fd: int, pieces: Iterable[str]) -> None:
    with open(fd, "wb") as file:
        file.writelines(_encode(pieces))


def _encode(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode("utf-8", "replace") for piece in pieces)
