"""The part of a report's page that is about a tuning, before it becomes HTML or Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.glyphs import VERDICT_MARKS, Style
from tuilab.reports.charts.gains import Gain, GainShapes, draw_gains
from tuilab.reports.notices import as_sentence
from tuilab.reports.tuning.document import (
    ResultTuning,
    TunedArm,
    TunedTreatment,
)
from tuilab.reports.tuning.rows import (
    MACHINE_NOTE,
    TuningRow,
    describe_bounds,
    describe_change,
    describe_files,
    describe_watching,
    find_winners,
    sections_of,
)
from tuilab.text.display import brief, show
from tuilab.text.words import seconds

_STYLE = Style()
_MOST_FILES = 20
_MOST_ARMS_OF_PARTS = 4  # columns next to the unchanged script
_OWN_ROWS = ("faster", "combined")  # sections whose rows have a diff that is shown at once


@dataclass(frozen=True)
class TuningPageRow:
    """A treatment or a combination as pages show it."""

    mark: str
    kind: str  # of the outcome, which gives the colour
    outcome: str
    title: str
    change: str
    details: tuple[str, ...]
    measured: str
    facts: str  # learning, memory and the upper bound
    diff: str
    lesson: str
    command: str  # that shows what is open
    did: str


@dataclass(frozen=True)
class TuningPageSection:
    heading: str
    rows: tuple[TuningPageRow, ...]
    is_open: bool  # whether the diffs are shown at once


@dataclass(frozen=True)
class TuningPage:
    """All that a page shows of a tuning."""

    sentences: tuple[str, ...]  # about the unchanged script
    gains: GainShapes
    sections: tuple[TuningPageSection, ...]
    parts: tuple[tuple[str, ...], ...]  # a table, whose first row has the heads
    parts_title: str
    notes: tuple[str, ...]  # what else a reader needs to know


def tuning_page(tuning: ResultTuning, max_characters: int, max_rows: int) -> TuningPage:
    """Return the page of a tuning: at most so many rows a section, and characters a text."""
    gains = []
    shown = []
    notes = []
    for section in sections_of(tuning):
        rows = tuple(_make_row(row, max_characters) for row in section.rows[:max_rows])
        shown.append(TuningPageSection(section.heading, rows, section.heading in _OWN_ROWS))
        left_out = len(section.rows) - len(rows)
        if left_out:
            notes.append(f"{section.heading}: {left_out} more, see the .json report.")
        for row in section.rows[:max_rows]:
            gain = _make_gain(row)
            if gain is not None:
                gains.append(gain)
    parts = _make_parts(tuning)
    return TuningPage(
        sentences=tuple(map(as_sentence, _list_clauses(tuning))),
        gains=draw_gains(gains),
        sections=tuple(shown),
        parts=parts,
        parts_title=_title_of_parts(parts),
        notes=(*notes, *_list_notes(tuning)),
    )


def _list_clauses(tuning: ResultTuning) -> list[str]:
    """Return what is known about the unchanged script before any comparison."""
    clauses = [describe_watching(tuning), *describe_bounds(tuning)]
    return [clause for clause in clauses if clause]


def _label(row: TuningRow) -> str:
    """Return the title of a row, behind its rank if it has one."""
    if not row.rank:
        return row.title
    return f"{row.rank}. {row.title}"


def _kind(row: TuningRow) -> str:
    """Return the kind of an outcome, which gives its colour."""
    if row.mark in VERDICT_MARKS:
        return VERDICT_MARKS[row.mark][2]
    return "open"


def _make_row(row: TuningRow, max_characters: int) -> TuningPageRow:
    arm = row.arm
    change = diff = lesson = command = ""
    if isinstance(arm, TunedTreatment):
        change = describe_change(arm)[:max_characters]
        diff = arm.diff[:max_characters]
        lesson = arm.lesson
        command = arm.next_command
    details = [row.reason[:max_characters]] if row.reason else []
    details += [detail[:max_characters] for detail in row.details]
    return TuningPageRow(
        mark=_STYLE.mark(row.mark),
        kind=_kind(row),
        outcome=row.outcome or "no result yet",
        title=_label(row),
        change=change,
        details=tuple(details),
        measured=row.faster,
        facts=_describe_facts(row),
        diff=diff,
        lesson=lesson,
        command=command,
        did=", ".join(show(word, 200) for word in arm.did),
    )


def _describe_facts(row: TuningRow) -> str:
    """Return the learning, the memory and the upper bound of an arm in words."""
    facts = []
    if row.faster and row.learning:
        facts.append(f"learning: {row.learning}")
    if row.memory and row.memory != "n/a":
        facts.append(f"memory: {row.memory}")
    elif row.faster:
        facts.append("memory: n/a, not measured")
    if isinstance(row.arm, TunedTreatment):
        bound = describe_bound(row.arm)
        if bound not in row.reason:
            facts.append(bound)
    return "; ".join(filter(None, facts))


def describe_bound(treatment: TunedTreatment) -> str:
    """Return the most that a treatment can gain, and how that is known."""
    if treatment.at_most is None:
        return treatment.at_most_why
    words = f"at most {brief(treatment.at_most)}x"
    if treatment.at_most_why:
        words += f" ({treatment.at_most_why})"
    return words


def _make_gain(row: TuningRow) -> Gain | None:
    """Return the gain of a row for the chart; None if it was not compared."""
    ratio = row.arm.ratio
    if ratio is None or ratio.estimate is None or not row.faster:
        return None
    at_most = None
    if isinstance(row.arm, TunedTreatment):
        at_most = row.arm.at_most
    return Gain(
        label=_label(row),
        words=row.faster,
        kind=_kind(row),
        estimate=ratio.estimate,
        low=ratio.low,
        high=ratio.high,
        at_most=at_most,
    )


# ---- the parts of a step


def _make_parts(tuning: ResultTuning) -> tuple[tuple[str, ...], ...]:
    """Return the parts of a step before and after, or those that were watched before.

    The columns are the unchanged script, the best treatments, and the combination.
    """
    arms: list[TunedArm] = [arm for arm in find_winners(tuning) if arm.part_s]
    arms = arms[:_MOST_ARMS_OF_PARTS]
    arms += [arm for arm in tuning.combinations if arm.part_s][-1:]
    if not tuning.part_s or not arms:
        return _watched_parts(tuning)
    rows = [("part of a step", "unchanged", *(show(arm.title, 60) for arm in arms))]
    for part, before_s in tuning.part_s.items():
        after = [seconds(arm.part_s[part]) if part in arm.part_s else "n/a" for arm in arms]
        rows.append((part, seconds(before_s), *after))
    before_s = sum(tuning.part_s.values())
    after = [seconds(sum(arm.part_s.values())) for arm in arms]
    rows.append(("these parts together", seconds(before_s), *after))
    return tuple(rows)


def _watched_parts(tuning: ResultTuning) -> tuple[tuple[str, ...], ...]:
    """Return the shares of a step of the unchanged script; empty if they are not known."""
    if not tuning.parts:
        return ()
    rows = [("part of a step", "share")]
    for part, share in sorted(tuning.parts.items(), key=lambda item: -item[1]):
        rows.append((show(part, 60), f"{share:.1f} %"))
    return tuple(rows)


def _title_of_parts(parts: Sequence[tuple[str, ...]]) -> str:
    """Return the title of the table of parts, which is without arms before a comparison."""
    if len(parts) and len(parts[0]) > 2:
        return "The parts of a step before and after (median of the processes)"
    return "The parts of a step"


def _list_notes(tuning: ResultTuning) -> list[str]:
    """Return sentences about side effects, and about what the results hold for."""
    notes = []
    if tuning.disabled:
        words = describe_files(tuning.disabled, _MOST_FILES)
        notes.append(f"Switched off in all processes: {words}.")
    if tuning.written:
        words = describe_files(tuning.written, _MOST_FILES)
        notes.append(f"Files that the script wrote while it was watched: {words}.")
    if find_winners(tuning):
        notes.append(MACHINE_NOTE)
    return notes
