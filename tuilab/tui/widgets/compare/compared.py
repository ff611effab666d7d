"""A comparison of runs as sections of a sheet: each run is a number, and differences come first."""

from collections.abc import Container, Sequence

from textual.content import Content

from tuilab.record.finding_words import for_how_long
from tuilab.record.verdicts import NOT_DECIDED, NOT_JUDGED
from tuilab.reports.comparison_words import number_tables, shift_words
from tuilab.runs.comparing.claim_pairs import ClaimPair, Side
from tuilab.runs.comparing.comparison import (
    Comparison,
    claim_groups,
    difference_words,
    key_words,
    no_claims,
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
    "parameter": "Parameters",
    "source": "Source",
    "run": "How it was run",
    "environment": "Environment",
    "conditions": "How busy the machine was",
}
_MAX_VALUE = 120  # characters
_DIFF_STYLES = {"+": "$text-success", "-": "$text-error", "@": "dim"}


def number(place: int) -> str:
    """Return the name of a run: charts use letters for their lines, so that runs are numbers."""
    return str(place + 1)


def run_names(count: int, machines: Sequence[str] = ()) -> list[Content]:
    """Return the names of so many runs, with their machines if these differ."""
    names = []
    for place in range(count):
        name = Content.styled(f"run {number(place)}", "bold $text-primary")
        if machines:
            name = Content.assemble(name, ", ", to_content(machines[place], 30))
        names.append(name)
    return names


# ---- the runs and their differences


def run_rows(entries: Sequence[RunEntry], baselines: Container[str], now_s: float) -> Section:
    """Return the runs, and which of them are the baselines of their scenarios."""
    different_names = {entry.name for entry in entries}
    are_names_shown = len(different_names) > 1  # else the heading has the only name
    rows = []
    for run_name, entry in zip(run_names(len(entries)), entries, strict=True):
        facts = []
        if are_names_shown:
            facts.append(to_content(entry.name, 60))
        if entry.run in baselines:
            facts.append(Content.styled(TAG, "$text-accent"))
        facts.append(state_words(entry.state))
        facts.append(tally(verdict for _, verdict in entry.claims))
        duration = lasting(entry.elapsed_at(now_s))
        facts.append(Content(for_how_long(duration, entry.state)))
        cells = (
            run_name,
            to_content(short_id(entry.run), 20),
            Content("  ").join([together(fact) for fact in facts if fact]),
            Content.styled(_describe_start(entry.started_s, now_s), "dim"),
        )
        rows.append(cells)
    return Section(Content(""), rows)


def _describe_start(started_s: float | None, now_s: float) -> str:
    """Return how long ago a run started, and the time. From 30 days on the age is the date."""
    age = ago(started_s, now_s)
    time = format_time(started_s)
    if time.startswith(age):
        return time
    return f"{age}, {time}"


def difference_sections(comparison: Comparison, changes: Sequence[str]) -> list[Section]:
    """Return the differences of parameters, source, environment and conditions.

    `changes` are the lines of a diff of the sources.
    """
    heads = (Content(""), *run_names(len(comparison.names), comparison.boxes))
    sections = []
    for part, title in _TITLES.items():
        rows = []
        for difference in comparison.differences:
            if difference.part == part:
                rows.append(_difference_cells(difference))
        if not rows:
            continue
        heading = Content.styled(title, "bold")
        if part != "source":
            sections.append(Section(heading, rows, heads))
            continue
        sections.append(Section(heading, rows))
        if changes:
            diff_rows = [(_diff_line(line),) for line in changes]
            sections.append(Section(Content(""), diff_rows))
    sections.append(Section(Content.styled(_describe_same(comparison), "dim"), []))
    return sections


def _describe_same(comparison: Comparison) -> str:
    """Return how many facts are the same. Conditions are measured, so they are not counted."""
    verb = "is" if comparison.same == 1 else "are"
    facts = plural(comparison.same, "fact")
    sentence = f"{facts} about parameters, source and environment {verb} the same"
    if all(difference.part == "conditions" for difference in comparison.differences):
        return f"Only the measurements differ: {sentence}"
    return sentence


def _difference_cells(difference: Difference) -> tuple[Content, ...]:
    values = [to_content(value, _MAX_VALUE) for value in difference.values]
    return (to_content(difference.name, 60, "dim"), *values)


def _diff_line(line: str) -> Content:
    return to_content(line, 200, _DIFF_STYLES.get(line[:1], ""))


# ---- the claims


def claim_sections(comparison: Comparison) -> list[Section]:
    """Return the claims next to each other.

    Those with different verdicts come first, those that not every run makes come last.
    """
    names = run_names(len(comparison.names), comparison.boxes)
    heads = (Content(""), *names, Content(""))
    sections = []
    for title, pairs in claim_groups(comparison).items():
        heading = Content.styled(f"{title}: {plural(len(pairs), 'claim')}", "bold")
        rows = [_claim_cells(pair) for pair in pairs]
        sections.append(Section(heading, rows, heads))
    if not sections:
        sections.append(Section(Content.styled(no_claims(comparison), "dim"), []))
    return sections


def _claim_cells(pair: ClaimPair) -> tuple[Content, ...]:
    """Return the row of a claim: its text, its verdict in each run, and what has changed."""
    verdicts = [_verdict_cell(side) for side in pair.sides]
    changes = []
    for words in (difference_words(pair), key_words(pair)):
        if words:
            changes.append(to_content(words, None, "$text-warning"))
    for run_number, shift in enumerate(pair.shifts, 2):
        if shift:
            style = "$text-warning" if shift.is_apart else "dim"
            changes.append(Content.styled(shift_words(run_number, shift), style))
    return (to_content(pair.text, 300), *verdicts, Content("\n").join(changes))


def _verdict_cell(side: Side | None) -> Content:
    """Return the verdict of a run on a claim; a dash if the run does not make the claim."""
    if side is None:
        return Content.styled("–", "dim")
    evidence = side.ratio_words or side.measured or side.why or side.verdict.lower()
    if not evidence:
        evidence = NOT_DECIDED if side.is_open else NOT_JUDGED
    sign = mark(side.verdict or "pending")
    return Content.assemble(sign, " ", to_content(evidence, _MAX_VALUE))


# ---- the numbers


def number_sections(comparison: Comparison) -> list[Section]:
    """Return the times of a call and the measured sizes, each next to that of the first run."""
    heads = (Content(""), *run_names(len(comparison.names), comparison.boxes))
    sections = []
    for table in number_tables(comparison):
        rows = []
        for name, *cells in table.rows:
            values = [to_content(cell, _MAX_VALUE) for cell in cells]
            rows.append((to_content(name, 60, "dim"), *values))
        heading = Content.styled(table.title, "bold")
        sections.append(Section(heading, rows, heads))
        if table.note:
            sections.append(Section(Content.styled(table.note, "dim"), []))
    return sections
