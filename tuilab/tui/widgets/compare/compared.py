"""A comparison of runs as sections of a sheet: each run is a number, and what differs comes first."""

from collections.abc import Container, Sequence

from textual.content import Content

from tuilab.record.finding_words import for_how_long
from tuilab.record.verdicts import NOT_DECIDED, NOT_JUDGED
from tuilab.reports.comparison_words import number_tables, shift_words
from tuilab.runs.comparing.claim_pairs import ClaimPair, Side
from tuilab.runs.comparing.comparison import (
    Comparison,
    claim_groups,
    key_words,
    no_claims,
    verdict_words,
)
from tuilab.runs.comparing.differences import Difference
from tuilab.runs.entry import RunEntry
from tuilab.runs.representative import TAG
from tuilab.runs.store import short_id
from tuilab.text.display import plural
from tuilab.text.words import format_time
from tuilab.tui.looks.lesson_layout import together
from tuilab.tui.looks.marks import mark, state_words, tally, to_content
from tuilab.tui.looks.times import ago, lasting
from tuilab.tui.widgets.sheet import Section

_TITLES = {
    "run": "How it was run",
    "parameter": "Parameters",
    "source": "Source",
    "environment": "Environment",
    "conditions": "How busy the machine was",
}
_VALUE = 120  # characters


def numbers(count: int, boxes: Sequence[str] = ()) -> list[Content]:
    """Return the names of so many runs, and their boxes where these differ; letters are what a chart calls its lines."""
    names = [Content.styled(f"run {number(at)}", "bold $text-primary") for at in range(count)]
    return (
        [
            Content.assemble(name, ", ", to_content(box, 30))
            for name, box in zip(names, boxes, strict=True)
        ]
        if boxes
        else names
    )


def number(at: int) -> str:
    return str(at + 1)


def run_rows(entries: Sequence[RunEntry], baselines: Container[str], now_s: float) -> Section:
    """Return which runs these are, and which of them are the baselines of their scenarios."""
    rows = []
    has_names = len({entry.name for entry in entries}) > 1  # else the heading has the one
    for name, entry in zip(numbers(len(entries)), entries, strict=True):
        past, at = ago(entry.started_s, now_s), format_time(entry.started_s)
        when = at if at.startswith(past) else f"{past}, {at}"
        counts = tally(verdict for _, verdict in entry.claims)
        told = Content.styled(TAG if entry.run in baselines else "", "$text-accent")
        facts = [
            to_content(entry.name if has_names else "", 60),
            told,
            state_words(entry.state),
            counts,
            Content(for_how_long(lasting(entry.elapsed_at(now_s)), entry.state)),
        ]
        rows.append(
            (
                name,
                to_content(short_id(entry.run), 20),
                Content("  ").join(map(together, filter(None, facts))),
                Content.styled(when, "dim"),
            )
        )
    return Section(Content(""), rows)


def difference_sections(found: Comparison, changes: Sequence[str]) -> list[Section]:
    """Return what differs in what was asked and where it ran; the conditions last."""
    count = len(found.names)
    sections = []
    for part in ("parameter", "source", "run", "environment", "conditions"):
        rows = [_difference(row) for row in found.differences if row.part == part]
        if rows:
            heads = (Content(""), *numbers(count, found.boxes)) if part != "source" else ()
            sections.append(Section(Content.styled(_TITLES[part], "bold"), rows, heads))
        if part == "source" and rows and changes:
            sections.append(Section(Content(""), [(_changed(line),) for line in changes]))
    real = [row for row in found.differences if row.part != "conditions"]
    same = f"{plural(found.same, 'fact')} about parameters, source and environment {'is' if found.same == 1 else 'are'} the same"
    summary = same if real else f"Only the measurements differ: {same}"
    return [*sections, Section(Content.styled(summary, "dim"), [])]


def claim_sections(found: Comparison) -> list[Section]:
    """Return the claims side by side, those that differ first, those that not every run makes last."""
    heads = (Content(""), *numbers(len(found.names), found.boxes), Content(""))
    sections = []
    for title, pairs in claim_groups(found).items():
        named = Content.styled(f"{title}: {plural(len(pairs), 'claim')}", "bold")
        sections.append(Section(named, [_claim(pair) for pair in pairs], heads))
    return sections or [Section(Content.styled(no_claims(found), "dim"), [])]


def number_sections(found: Comparison) -> list[Section]:
    """Return the times of a call and the measured sizes, each beside the first run's."""
    heads = (Content(""), *numbers(len(found.names), found.boxes))
    sections = []
    for table in number_tables(found):
        rows = [
            (to_content(name, 60, "dim"), *(to_content(cell, _VALUE) for cell in cells))
            for name, *cells in table.rows
        ]
        sections.append(Section(Content.styled(table.title, "bold"), rows, heads))
        if table.note:
            sections.append(Section(Content.styled(table.note, "dim"), []))
    return sections


def _difference(row: Difference) -> tuple[Content, ...]:
    return (to_content(row.name, 60, "dim"), *(to_content(value, _VALUE) for value in row.values))


def _changed(line: str) -> Content:
    style = {"+": "$text-success", "-": "$text-error", "@": "dim"}.get(line[:1], "")
    return to_content(line, 200, style)


def _claim(pair: ClaimPair) -> tuple[Content, ...]:
    words = [
        to_content(told, None, "$text-warning")
        for told in (verdict_words(pair), key_words(pair))
        if told
    ]
    for number, shift in enumerate(pair.shifts, 2):
        if shift:
            words.append(
                Content.styled(
                    shift_words(number, shift), "$text-warning" if shift.is_apart else "dim"
                )
            )
    return (to_content(pair.text, 300), *map(_side, pair.sides), Content("\n").join(words))


def _side(side: Side | None) -> Content:
    if side is None:
        return Content.styled("–", "dim")
    unjudged = NOT_DECIDED if side.is_open else NOT_JUDGED
    told = side.ratio_words or side.measured or side.why or (side.verdict.lower() or unjudged)
    return Content.assemble(mark(side.verdict or "pending"), " ", to_content(told, _VALUE))
