"""Write a report in the chosen format, whole or not at all."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from tuilab.catalogue.scenario import Scenario
from tuilab.errors import CannotRecord, UsageError
from tuilab.reports.reported_run import ReportedRun, read_each
from tuilab.storage.files import replace
from tuilab.text.display import show

# By the ending of a file's name: the format, which is a module of `formats`. The longest ending
# that fits decides.
ENDINGS = {
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
GITHUB_LIMIT = 65_000  # characters; a comment may have 65,536


def format_of(target: str, chosen: str = "") -> str:
    """Return the chosen format of a report, or the format that fits the name of the file.

    Without a choice, stdout gets Markdown. Raise UsageError if no format fits.
    """
    if chosen:
        return chosen
    if target == STDOUT:
        return "md"
    endings = [ending for ending in ENDINGS if target.lower().endswith(ending)]
    if not endings:
        raise UsageError(
            f"cannot tell the report format from {show(target, 200)}; "
            f"use one of the extensions {', '.join(ENDINGS)}, or --as FORMAT"
        )
    return ENDINGS[max(endings, key=len)]


def write(
    subjects: list[ReportedRun],
    target: str,
    kind: str,
    *,
    scenarios: Sequence[Scenario] = (),
    limit: int = 0,
    is_appended: bool = False,
) -> None:
    """Write the report on some runs to a file, or to stdout for `-`; TensorBoard gets a folder.

    `scenarios` are named by the report if no run is of them. `limit` is the number of characters
    that the report may have; 0 sets no limit. Raise UsageError for TensorBoard to stdout, and
    CannotRecord if the target cannot be written.
    """
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
        options["scenarios"] = scenarios
    if limit:
        options["limit"] = limit
    _put(target, _render(kind, subjects, **options), is_appended=is_appended)


def write_compared(groups: Sequence[Sequence[ReportedRun]], target: str, kind: str) -> None:
    """Write a report on runs side by side, with each of the runs below, as HTML or Markdown."""
    subjects = {id(subject): subject for subject in chain.from_iterable(groups)}
    _put(target, _render(kind, list(subjects.values()), groups=groups))


def write_text(target: str, text: str) -> None:
    """Write a text to a file, or to stdout for `-`; CannotRecord if it cannot be written."""
    _put(target, [text])


def check_target(target: str, chosen: str = "") -> str:
    """Return the format of a report that will be written later; `chosen` is empty without --as.

    Errors that can be known before are raised here, so that no run is made in vain: UsageError if
    the format is unknown, CannotRecord if the place cannot be written.
    """
    kind = format_of(target, chosen)
    if target == STDOUT:
        return kind
    folder = os.path.dirname(os.path.abspath(target))
    problem = ""
    if os.path.isdir(target) and kind != "tensorboard":
        problem = "it is a folder"
    elif not os.path.isdir(folder):
        problem = f"there is no folder {show(folder, 300)}"
    elif not os.access(folder, os.W_OK):
        problem = f"you cannot write to the folder {show(folder, 300)}"
    if problem:
        raise CannotRecord(f"cannot write {show(target, 300)}: {problem}; name another file")
    return kind


def tell_lack(kind: str) -> None:
    """Print to stderr which package opens a format, if that is not installed here.

    The report itself needs no such package.
    """
    if kind == "tensorboard" and find_spec("tensorboard") is None:
        step = "install it to open the report: pip install tensorboard"
        print(f"tuilab: TensorBoard is not installed here; {step}", file=sys.stderr)


def read_subjects(runs: Sequence[Path], *, keeps_private: bool = False) -> list[ReportedRun]:
    """Read runs; of several, a run that cannot be read is named on stderr and left out."""

    def warn(words: str) -> None:
        print(f"tuilab: {words}", file=sys.stderr)

    return read_each(runs, warn, keeps_private=keeps_private)


def _put(target: str, pieces: Iterable[str], *, is_appended: bool = False) -> None:
    """Write pieces to a target, as a whole or at its end; CannotRecord if the system refuses.

    Appending keeps what was written if it fails midway. Otherwise the old file stays until the new
    one is complete.
    """
    if target == STDOUT:
        for piece in pieces:
            sys.stdout.write(piece)
        return
    try:
        if is_appended:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            _write_all(os.open(target, flags, 0o666), pieces)
        else:
            _replace(target, pieces)
    except OSError as problem:
        why = problem.strerror or str(problem)
        if isinstance(problem, FileNotFoundError):
            why = f"there is no folder {show(os.path.dirname(os.path.abspath(target)), 300)}"
        raise CannotRecord(
            f"cannot write {show(target, 300)}: {why}; name another file with -o"
        ) from problem


def _render(kind: str, subjects: Sequence[ReportedRun], **options: Any) -> Iterable[str]:
    """Return the report in pieces; the module of its format is imported here."""
    rendered = import_module(f"tuilab.reports.formats.{kind}").render(subjects, **options)
    if isinstance(rendered, str):
        return [rendered]
    pieces: Iterable[str] = rendered
    return pieces


def _replace(target: str, pieces: Iterable[str]) -> None:
    """Replace a file at once; a pipe or a device, such as /dev/stdout, is written into."""
    path = os.path.realpath(target)
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        _write_all(os.open(path, os.O_WRONLY | os.O_CLOEXEC), pieces)
    else:
        replace(path, _encode(pieces), 0o666)


def _write_all(fd: int, pieces: Iterable[str]) -> None:
    with open(fd, "wb") as file:
        file.writelines(_encode(pieces))


def _encode(pieces: Iterable[str]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece.encode("utf-8", "replace")
