"""Export runs as a folder for TensorBoard: a folder for each run, and in it one for each arm.

TensorBoard lists each folder as a run and draws curves of one name in one chart. So the arms of a
race share charts, each by its first process. The curves of the other processes have the name of
their process before their own, which TensorBoard shows as separate groups.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tuilab.errors import CannotRecord
from tuilab.record.events import BarsShown, TableShown
from tuilab.record.states import RunState
from tuilab.reports.formats import event_file
from tuilab.reports.formats.markup import bullets, fence, table
from tuilab.reports.formats.safe_names import add_digest, safe_name
from tuilab.reports.missing_data import damage, gaps
from tuilab.reports.png import png
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.samples import SamplePiece, read_samples
from tuilab.storage.scratch import scratch
from tuilab.text.display import show, show_lines

_EVENT_FILE = re.compile(r"events\.out\.tfevents\.\d+\.tuilab")
_MAX_NAME_BYTES = 200  # of a folder, without its digest: file systems allow 255
_SAFE_CHARACTERS = "-_ .=+,@()[]"

_Record = tuple[tuple[str, ...], bytes]  # names of the folders below each other, and the record


class _Curve(NamedTuple):
    tag: str
    wall_s: list[float]
    steps: list[int]
    values: list[Any]


# ---- files and folders


def export(subjects: Sequence[ReportedRun], target: str) -> None:
    """Write the folder, all files at once. Files of an earlier export of the runs are replaced.

    If several runs have the same folder name, only the last is written. Raise `CannotRecord` if the
    disk refuses; an existing folder may then lack event files that were already replaced.
    """
    path = Path(target)
    subject_of_name = {subject.run_dir.name: subject for subject in subjects}  # the last copy
    try:
        with scratch(path.parent, 0o777) as fresh:
            for subject in subject_of_name.values():
                _write(subject, fresh)
            _move(fresh, path)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise CannotRecord(
            f"cannot write the folder {show(target, 300)}: {why}; name another with -o"
        ) from problem


def folder_name(name: str) -> str:
    """Return a name that is safe and unique as a folder; a changed name gets a digest."""
    characters = []
    for character in show(name, len(name) + 1):
        is_safe = character.isalnum() or character in _SAFE_CHARACTERS
        characters.append(character if is_safe else "_")
    safe = "".join(characters).strip(". ")
    shortened = safe.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
    return add_digest(shortened, name, "-")


def _write(subject: ReportedRun, root: Path) -> None:
    """Write the event files of a run below `root`: one in its folder, and one for each arm."""
    began_s = 0.0
    if subject.summary.run:
        began_s = subject.summary.run.wall_ns / 1e9
    begun: set[Path] = set()
    for names, record in _list_records(subject, began_s):
        folder = root.joinpath(*map(folder_name, names))
        file = folder / f"events.out.tfevents.{int(began_s)}.tuilab"
        if file not in begun:
            folder.mkdir(parents=True, exist_ok=True)
            record = event_file.file_header(began_s) + record
            begun.add(file)
        with file.open("ab") as events:
            events.write(record)


def _move(fresh: Path, target: Path) -> None:
    """Move the files to the target, without the event files that it had of the same runs."""
    if not os.path.exists(target):
        fresh.rename(target)
        return
    for run in sorted(fresh.iterdir()):
        _remove_event_files(target / run.name)
    for folder, _, names in os.walk(fresh):
        target_folder = target / Path(folder).relative_to(fresh)
        target_folder.mkdir(exist_ok=True)
        for name in names:
            os.replace(Path(folder) / name, target_folder / name)


def _remove_event_files(run: Path) -> None:
    """Remove the files of an earlier export, and the folders that are empty then."""
    for folder, _, names in os.walk(run, topdown=False):
        for name in names:
            if _EVENT_FILE.fullmatch(name):
                os.unlink(os.path.join(folder, name))
        with suppress(OSError):  # other files are in it
            os.rmdir(folder)


# ---- records


def _list_records(subject: ReportedRun, began_s: float) -> Iterator[_Record]:
    """Yield every record of a run with its folders: texts and verdicts, pictures, then all curves.

    If several processes recorded a curve of an arm, the first keeps its name. The name of the
    process is put before the others.
    """
    run_name = subject.run_dir.name
    for record in _list_run_records(subject, began_s):
        yield (run_name,), record
    for image in subject.summary.images.values():
        data = png(image)
        if data:
            tag = f"pictures/{safe_name(image.title)}"
            wall_s = _wall_s(subject, image.t, began_s)
            record = event_file.image_record(tag, data, image.rows, image.cols, wall_s, image.step)
            yield _folders(run_name, image.arm), record
    first_writers: dict[tuple[str, str], str] = {}  # of each curve, by arm and tag
    for piece in read_samples(subject.run_dir, subject.word):
        piece_wall_s = [_wall_s(subject, t, began_s) for t in piece.times]
        arm = piece.arm
        if piece.kind == "sampled":
            arm = ""  # its `arm` is the GPU
        for curve in _split_curves(piece, piece_wall_s):
            tag = curve.tag
            if piece.writer != first_writers.setdefault((arm, tag), piece.writer):
                tag = f"{safe_name(piece.writer)}/{tag}"
            records = event_file.scalar_records(tag, curve.wall_s, curve.steps, curve.values)
            yield _folders(run_name, arm), records


def _folders(run_name: str, arm: str) -> tuple[str, ...]:
    if not arm:
        return (run_name,)
    return run_name, arm


def _wall_s(subject: ReportedRun, t: int, began_s: float) -> float:
    return began_s + (t - subject.summary.first_t) / 1e9


def _split_curves(piece: SamplePiece, wall_s: list[float]) -> Iterator[_Curve]:
    """Yield the curves of a piece.

    Blocks that are warm-ups, disturbed or of a control are curves of their own.
    """
    tag = f"{piece.kind}/{safe_name(piece.name)}"
    if piece.kind == "sampled" and piece.arm:
        tag = f"{piece.kind}/{safe_name(piece.arm)}/{safe_name(piece.name)}"
    if piece.kind == "timed":
        indices_by_note: dict[str, list[int]] = {}
        for index, note in enumerate(piece.notes):
            indices_by_note.setdefault(note, []).append(index)
        for note, indices in indices_by_note.items():
            yield _select_points(f"{tag} {note}".strip(), piece, wall_s, indices)
    elif any(piece.notes):  # some values may be missing, or all of them
        indices = [index for index, value in enumerate(piece.values) if value is not None]
        if indices:
            yield _select_points(tag, piece, wall_s, indices)
    else:
        yield _Curve(tag, wall_s, piece.steps, piece.values)


def _select_points(
    tag: str, piece: SamplePiece, wall_s: list[float], indices: Sequence[int]
) -> _Curve:
    """Return the curve of those points of a piece that `indices` name."""
    return _Curve(
        tag,
        wall_s=[wall_s[index] for index in indices],
        steps=[int(piece.steps[index]) for index in indices],
        values=[piece.values[index] for index in indices],
    )


def _list_run_records(subject: ReportedRun, began_s: float) -> Iterator[bytes]:
    """Yield the records of the run as a whole: its parameters, verdicts and texts."""
    summary = subject.summary
    yield from _list_hyperparameters(subject, began_s)
    problems = damage(subject)
    if problems:
        yield event_file.text_record("THE RECORD IS DAMAGED", bullets(problems), began_s)
    missing = gaps(subject)
    if missing:
        yield event_file.text_record("what is missing", bullets(missing), began_s)
    yield from _list_verdicts(subject, began_s)
    names = _make_name_table(subject)
    if names:
        yield event_file.text_record("names", names, began_s)
    for step, text in enumerate(summary.texts):
        tag = f"text/{safe_name(text.title) or 'untitled'}"
        words = fence(show_lines(text.text))
        yield event_file.text_record(tag, words, _wall_s(subject, text.t, began_s), step)
    for figure in summary.figures.values():
        tag = f"figure/{safe_name(figure.title)}"
        words = _make_figure_table(figure)
        yield event_file.text_record(tag, words, _wall_s(subject, figure.t, began_s))


def _list_hyperparameters(subject: ReportedRun, began_s: float) -> Iterator[bytes]:
    """Yield the parameters of a run, and how it ended if it has ended.

    Nothing is yielded if the first record is lost. Each state but `succeeded` counts as a failure.
    """
    summary = subject.summary
    run = summary.run
    if run is None:
        return
    values: dict[str, Any] = {
        "scenario": subject.name,
        "run": subject.id,
        "tuilab": show(run.tuilab),
    }
    for name, value in run.params.items():
        if isinstance(value, str):
            value = show(value)
        values[safe_name(name)] = value
    yield event_file.parameters_record(values, subject.run_dir.name, began_s)
    if summary.is_over or subject.state == RunState.LOST:
        has_succeeded = subject.state == RunState.SUCCEEDED
        yield event_file.end_record(has_succeeded, began_s + summary.elapsed_s)


def _list_verdicts(subject: ReportedRun, began_s: float) -> Iterator[bytes]:
    """Yield the verdicts as a table, and each estimate with its interval as numbers.

    TensorBoard takes the numbers for metrics of the run.
    """
    claims = subject.result.claims
    ended_s = began_s + subject.summary.elapsed_s
    rows = [(claim.outcome, claim.text, claim.evidence) for claim in claims]
    verdicts = table(("Verdict", "Claim", "Measured"), rows)
    yield event_file.text_record("verdicts", verdicts, ended_s)
    for claim in claims:
        for field in ("estimate", "low", "high"):
            value = getattr(claim, field)
            if value is not None:
                tag = f"claim/{safe_name(claim.claim_id)}/{field}"
                yield event_file.scalar_records(tag, [ended_s], [0], [value])


def _make_name_table(subject: ReportedRun) -> str:
    """Return the names of the arms whose folders have other names."""
    summary = subject.summary
    arms = [arm for _, arm, _ in summary.series]
    arms += [arm for _, arm in summary.blocks]
    arms += [arm for _, arm in summary.images]
    rows = []
    for arm in dict.fromkeys(arms):
        folder = folder_name(arm)
        if arm and folder != arm:
            rows.append((folder, arm))
    return table(("Folder", "What it is"), rows)


def _make_figure_table(figure: BarsShown | TableShown) -> str:
    if isinstance(figure, TableShown):
        columns = max(map(len, figure.rows), default=1)
        return table(figure.head or [""] * columns, figure.rows)
    return table(("", figure.unit), list(zip(figure.names, figure.values, strict=True)))
