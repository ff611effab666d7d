"""Runs as a folder for TensorBoard: below it one for each run, and in that one for each arm.

TensorBoard lists each folder as a run of its own, and lays curves of one name over each other. So the arms of a race are laid
over each other, each by its first process. What the other processes have is in groups of curves that are called like them.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tuilab.errors import CannotRecord
from tuilab.record.events import TableShown
from tuilab.record.states import RunState
from tuilab.reports.formats import event_file
from tuilab.reports.formats.markup import bullets, fence, table
from tuilab.reports.formats.safe_names import marked, whole
from tuilab.reports.missing_data import damage, gaps
from tuilab.reports.png import png
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.samples import SamplePiece, read_samples
from tuilab.storage.scratch import scratch
from tuilab.text.display import show, show_lines

_OURS = re.compile(r"events\.out\.tfevents\.\d+\.tuilab")
_LONGEST = 200  # bytes of the name of a folder, beside its digest: file systems take 255

Columns = tuple[list[float], list[int], list[Any]]  # when, the step, the value
Record = tuple[
    tuple[str, ...], bytes
]  # the names of the folders that it belongs in, and what is added to the file there


def export(subjects: Sequence[ReportedRun], target: str) -> None:
    """Write the folder, each file of it at once: of a run that was written before they are replaced, not added to."""
    path = Path(target)
    try:
        with scratch(path.parent, 0o777) as fresh:
            for subject in {
                subject.run_dir.name: subject for subject in subjects
            }.values():  # of copies of a run the last one
                _write(subject, fresh)
            _move(fresh, path)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise CannotRecord(
            f"cannot write the folder {show(target, 300)}: {why}; name another with -o"
        ) from problem


def folder_of(name: str) -> str:
    """Return a name that stays in its folder, and is that of no other: whole where it can be, otherwise with a digest."""
    safe = "".join(
        c if c.isalnum() or c in "-_ .=+,@()[]" else "_" for c in show(name, len(name) + 1)
    ).strip(". ")
    return marked(safe.encode()[:_LONGEST].decode(errors="ignore"), name, "-")


def _write(subject: ReportedRun, root: Path) -> None:
    run = subject.summary.run
    began_s = (run.wall_ns if run else 0) / 1e9
    known: set[Path] = set()
    for names, record in _records(subject, began_s):
        file = root.joinpath(*map(folder_of, names), f"events.out.tfevents.{int(began_s)}.tuilab")
        if file not in known:
            file.parent.mkdir(parents=True, exist_ok=True)
            record = event_file.head(began_s) + record
            known.add(file)
        with file.open("ab") as events:
            events.write(record)


def _move(fresh: Path, target: Path) -> None:
    """Put the files where they are wanted; what else lies there stays, but for what was written of the same runs before."""
    if not os.path.exists(target):
        fresh.rename(target)
        return
    for run in sorted(fresh.iterdir()):
        _remove_ours(target / run.name)
    for folder, _, names in os.walk(fresh):
        place = target / Path(folder).relative_to(fresh)
        place.mkdir(exist_ok=True)
        for name in names:
            os.replace(Path(folder) / name, place / name)


def _remove_ours(run: Path) -> None:
    """Remove the files that an export left of a run, and the folders that are empty then."""
    for folder, _, names in os.walk(run, topdown=False):
        for name in names:
            if _OURS.fullmatch(name):
                os.unlink(os.path.join(folder, name))
        with suppress(OSError):  # something else is in it
            os.rmdir(folder)


def _records(subject: ReportedRun, began_s: float) -> Iterator[Record]:
    name = subject.run_dir.name
    yield from (((name,), record) for record in _of_run(subject, began_s))
    for image in subject.summary.images.values():
        if data := png(image):
            tag, wall_s = f"pictures/{whole(image.title)}", _wall_s(subject, image.t, began_s)
            yield (
                _place(name, image.arm),
                event_file.picture(tag, data, image.rows, image.cols, wall_s, image.step),
            )
    firsts: dict[tuple[str, str], str] = {}  # the first process that has a curve, by arm and name
    for piece in read_samples(subject.run_dir, subject.word):
        walls = [_wall_s(subject, t, began_s) for t in piece.times]
        arm = "" if piece.kind == "sampled" else piece.arm  # of what was sampled, it is the GPU
        for tag, some in _curves(piece, walls):
            first = firsts.setdefault((arm, tag), piece.writer)
            shown = tag if piece.writer == first else f"{whole(piece.writer)}/{tag}"
            yield _place(name, arm), event_file.scalars(shown, *some)


def _place(name: str, arm: str) -> tuple[str, ...]:
    """Return the names of the folders that something of a run belongs in."""
    return (name, arm) if arm else (name,)


def _curves(piece: SamplePiece, walls: list[float]) -> Iterator[tuple[str, Columns]]:
    """Yield the curves of a piece: blocks that are warm-ups, disturbed or of a control are curves of their own."""
    tag = f"{piece.kind}/{whole(piece.name)}"
    if piece.kind == "sampled" and piece.arm:
        tag = f"{piece.kind}/{whole(piece.arm)}/{whole(piece.name)}"
    if piece.kind != "timed":
        yield tag, _without_gaps(walls, piece)
        return
    for note in dict.fromkeys(piece.notes):
        chosen = [at for at, found in enumerate(piece.notes) if found == note]
        columns = [[column[at] for at in chosen] for column in (walls, piece.steps, piece.values)]
        yield f"{tag} {note}".strip(), (columns[0], [*map(int, columns[1])], columns[2])


def _without_gaps(walls: list[float], piece: SamplePiece) -> Columns:
    if not any(piece.notes):
        return walls, piece.steps, piece.values
    told = [at for at, value in enumerate(piece.values) if value is not None]
    return (
        [walls[at] for at in told],
        [piece.steps[at] for at in told],
        [piece.values[at] for at in told],
    )


def _of_run(subject: ReportedRun, began_s: float) -> Iterator[bytes]:
    """Yield what belongs to the run as a whole: its parameters, verdicts and texts."""
    summary, run = subject.summary, subject.summary.run
    if run:
        values = {
            whole(name): show(value) if isinstance(value, str) else value
            for name, value in run.params.items()
        }
        told = {"scenario": subject.name, "run": subject.id, "tuilab": show(run.tuilab)}
        yield event_file.parameters(told | values, subject.run_dir.name, began_s)
        if summary.is_over or subject.state == RunState.LOST:
            yield event_file.ending(
                subject.state == RunState.SUCCEEDED, began_s + summary.elapsed_s
            )
    if problems := damage(subject):
        yield event_file.text("THE RECORD IS DAMAGED", bullets(problems), began_s)
    if found := gaps(subject):
        yield event_file.text("what is missing", bullets(found), began_s)
    yield from _claims(subject, began_s)
    if names := _names(subject):
        yield event_file.text("names", names, began_s)
    for step, shown in enumerate(summary.texts):
        wall_s = _wall_s(subject, shown.t, began_s)
        yield event_file.text(
            f"text/{whole(shown.title) or 'untitled'}", fence(show_lines(shown.text)), wall_s, step
        )
    for figure in summary.figures.values():
        yield event_file.text(
            f"figure/{whole(figure.title)}", _figure(figure), _wall_s(subject, figure.t, began_s)
        )


def _claims(subject: ReportedRun, began_s: float) -> Iterator[bytes]:
    """Yield the verdicts as a text, and each estimate with its interval as numbers, which are metrics of the run."""
    claims = subject.result.claims
    ended_s = began_s + subject.summary.elapsed_s
    rows = [(claim.outcome, claim.text, claim.evidence) for claim in claims]
    yield event_file.text("verdicts", table(("Verdict", "Claim", "Measured"), rows), ended_s)
    for claim in claims:
        for what in ("estimate", "low", "high"):
            value = getattr(claim, what)
            if value is not None:
                yield event_file.scalars(
                    f"claim/{whole(claim.claim_id)}/{what}", [ended_s], [0], [value]
                )


def _names(subject: ReportedRun) -> str:
    """Return what the folders are called whose names could not hold it."""
    summary = subject.summary
    names = [arm for _, arm, _ in summary.series]
    names += [arm for _, arm in summary.blocks]
    names += [arm for _, arm in summary.images]
    rows = [
        (folder_of(name), name) for name in dict.fromkeys(names) if name and folder_of(name) != name
    ]
    return table(("Folder", "What it is"), rows)


def _figure(figure: object) -> str:
    if isinstance(figure, TableShown):
        return table(figure.head or [""] * max(map(len, figure.rows), default=1), figure.rows)
    rows = zip(figure.names, figure.values, strict=True)  # type: ignore[attr-defined]
    return table(("", getattr(figure, "unit", "")), [*rows])


def _wall_s(subject: ReportedRun, t: int, began_s: float) -> float:
    return began_s + (t - subject.summary.first_t) / 1e9
