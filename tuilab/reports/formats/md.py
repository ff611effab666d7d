"""The report as Markdown with plain-text charts; short enough for a comment on a code host when asked."""

from collections.abc import Sequence

from tuilab.catalogue.lesson import code_parts
from tuilab.catalogue.scenario import Scenario
from tuilab.drawings.figures import draw_figure, figures_of
from tuilab.drawings.gpu_strips import (
    describe_throttling,
    find_throttling,
    recorded_metrics,
    span_of,
    strips_of,
)
from tuilab.drawings.shade import shade
from tuilab.drawings.strips import draw_strips
from tuilab.drawings.table import format_cell
from tuilab.drawings.text_chart import line_chart
from tuilab.record.events import TableShown
from tuilab.record.gpus.own_gpus import Throttling, own_gpus
from tuilab.record.series import first_of_each_arm, siblings
from tuilab.reports.charts.panels import names_of
from tuilab.reports.comparison_words import axes_of, overlaid
from tuilab.reports.formats.markup import bullets, escape, fence, table
from tuilab.reports.opening import Opening
from tuilab.reports.outline import outline_of
from tuilab.reports.pages import PAGE_BUDGETS, ReportPage, page_of
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.side_by_side import side_by_side
from tuilab.reports.sweeps.panels import chart
from tuilab.reports.sweeps.swept import Swept
from tuilab.text.display import shorten

_WIDTH, _HEIGHT = 78, 12
_FIGURES = 20
_GPUS, _ROWS = 8, 8  # that are drawn, and so many rows more for the strips of each
_PARTS = (
    "source",
    "environment",
    "texts",
    "lesson",
    "pictures",
    "machine",
    "figures",
    "charts",
    "numbers",
)  # what a short report does without first


def render(
    subjects: Sequence[ReportedRun],
    known: Sequence[Scenario] = (),
    limit: int = 0,
    groups: Sequence[Sequence[ReportedRun]] = (),
) -> str:
    """Return the report, of at most `limit` characters when there is one: then the least important parts go first."""
    sections = _sections(subjects, known, groups)
    left_out: list[str] = []
    text = _joined(sections, left_out)
    for part in _PARTS:
        if not limit or len(text) <= limit:
            break
        left_out.append(part)
        text = _joined(sections, left_out)
    return text if not limit or len(text) <= limit else _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    """Return whole lines of a text; a block of code that is open there is closed."""
    note = "\n\n_The report is cut off here; the .html report is complete._\n"
    kept = text[: limit - len(note) - 20].rpartition("\n")[0]
    open_fence = ""
    for line in kept.splitlines():
        if line.startswith("```") and not open_fence:
            open_fence = line[: len(line) - len(line.lstrip("`"))]
        elif open_fence and line == open_fence:
            open_fence = ""
    return kept + (f"\n{open_fence}" if open_fence else "") + note


def _sections(
    subjects: Sequence[ReportedRun],
    known: Sequence[Scenario],
    groups: Sequence[Sequence[ReportedRun]],
) -> list[dict[str, str]]:
    """Return what the report says, section by section; the parts of a section have names."""
    outline = outline_of(subjects, known, groups)
    level = "##" if outline.opening else "#"
    sections = []
    if outline.opening:
        sections.append({"opening": _opening(outline.opening)})
    sections += [_swept(sweep, level) for sweep in outline.sweeps]
    sections += [_compared(group, level) for group in outline.groups]
    return sections + [_run(subject, outline.is_many) for subject in subjects]


def _joined(sections: Sequence[dict[str, str]], left_out: Sequence[str]) -> str:
    parts = [
        text
        for section in sections
        for name, text in section.items()
        if text and name not in left_out
    ]
    parts += [f"_Left out for its length: {', '.join(left_out)}._"] if left_out else []
    return "\n\n".join(parts) + "\n"


def _opening(opening: Opening) -> str:
    parts = [
        f"# {opening.title}",
        f"{escape(opening.host)}, {opening.when}: {opening.counts}",
        escape(opening.box),
    ]
    parts += [
        "## Recommended settings",
        fence(opening.env, "sh")
        if opening.has_env
        else "None: no value measurably beat the default on this machine.",
    ]
    for group in opening.groups:
        rows = [
            (
                f.mark + " " + f.verdict,
                f.text,
                ", ".join(filter(None, (f.measured, f.details))),
                f"{f.name} {f.id}",
            )
            for f in group.findings
        ]
        parts += [
            f"## {group.heading}",
            group.about,
            table(("Verdict", "Claim", "Measured", "Run"), rows),
        ]
    if opening.not_run:
        parts += [
            "## Never run on this machine",
            "\n".join(f"- {escape(name)}: {escape(title)}" for name, title in opening.not_run),
        ]
    return "\n\n".join(part for part in parts if part)


def _swept(found: Swept, level: str) -> dict[str, str]:
    """Return each claim of a sweep with its points, and from where on it holds."""
    claims = []
    for claim in found.claims:
        rows = [
            (f"{one.row.mark} {one.row.verdict}", one.words, f"{one.found} ({one.id})")
            for one in claim.told
        ]
        drawn = chart(claim.panel) if claim.panel else ""
        points = table(("Verdict", "At", "Measured"), rows)
        holds = "\n".join(f"- **{escape(words)}**" for words in claim.holds)
        claims.append(
            "\n\n".join(
                filter(
                    None,
                    [
                        f"{level}# {escape(claim.text)}",
                        escape(claim.about),
                        holds,
                        points,
                        drawn and fence(drawn),
                    ],
                )
            )
        )
    return {
        "head": f"{level} {escape(found.name)} {escape(found.title)}",
        "settings": f"{escape(found.id)}, {escape(found.counts)}: {escape('; '.join(found.settings))}",
        "missing": f"Without a result:\n\n{bullets(found.missing)}" if found.missing else "",
        "doubts": "\n\n".join(f"**{escape(words)}**" for words in found.doubts),
        "claims": "\n\n".join([*claims, *([escape(found.note)] if found.note else [])]),
        "numbers": table(found.numbers[0], found.numbers[1:]) if found.numbers else "",
        "charts": "\n\n".join(fence(drawn) for panel in found.curves if (drawn := chart(panel))),
    }


def _compared(group: Sequence[ReportedRun], level: str) -> dict[str, str]:
    found = side_by_side(group, PAGE_BUDGETS[-1])
    runs = [
        f"run {number}, {box}" if found.has_boxes else f"run {number}"
        for number, _, _, box, *_ in found.runs
    ]
    claims = []
    for claim in found.claims:
        claims.append(
            (
                claim.text,
                *(f"{side.mark} {side.verdict} {side.found}" for side in claim.sides),
                claim.words,
            )
        )
    summaries = [subject.summary for subject in group]
    curves = [lines for chart in found.charts[:4] if (lines := overlaid(summaries, chart.name))]
    charts = [
        line_chart(lines[:6], _WIDTH, _HEIGHT, whole=lines, axes=axes_of(summaries, lines[0].name))
        for lines in curves
    ]
    return {
        "head": f"{level} {escape(found.title)}, side by side",
        "runs": table(("Run", "", "Scenario", "Box", "When", "End"), found.runs),
        "differences": table(
            ("What differs", *runs),
            [(f"{row.part} {row.name}", *row.values) for row in found.differences],
        ),
        "same": f"{found.same} facts (parameters, source, environment) and {found.same_numbers} values are the same.",
        "source": fence("\n".join(found.changes), "diff") if found.changes else "",
        "claims": table(("Claim", *runs, "How they differ"), claims),
        "numbers": table(("Number", *runs), found.numbers),
        "charts": "\n\n".join(map(fence, filter(None, charts))),
    }


def _run(subject: ReportedRun, is_many: bool) -> dict[str, str]:
    page = page_of(subject, is_brief=is_many)
    level = "##" if is_many else "#"
    found = {
        "head": f"{level} {escape(page.title)}\n\n{escape(page.name)}, run {escape(page.id)}, {page.when}: "
        f"**{escape(page.state)}** in {', '.join(filter(None, (page.elapsed, page.repeats)))}; digest {escape(page.digest)}",
        "ways": bullets(page.arms),
        "notes": "\n\n".join(
            [escape(page.tags), *(f"> {when}: {escape(text)}" for when, text in page.notes)]
        ).strip(),
        "claims": _claims(page),
        "arms": "" if is_many or not page.has_arms else _figures(subject),
        "failure": _failure(page),
        "gaps": f"{level}# What is missing\n\n{bullets(page.gaps)}" if page.gaps else "",
        "charts": _charts(subject, 1 if is_many else 12),
        "figures": "" if is_many or page.has_arms else _figures(subject),
        "machine": "" if is_many else _gpus(subject, f"{level}# GPU"),
        "numbers": "" if is_many else _facts(f"{level}# Numbers", page.numbers),
        "pictures": "" if is_many else _pictures(subject),
        "texts": "\n\n".join(
            f"{f'**{escape(title)}**' if title else ''}\n\n{fence(text)}"
            for title, text in page.texts
        ).strip(),
        "lesson": "" if is_many else _lesson(page, level),
        "again": _again(page, level),
        "deciding": f"To settle the inconclusive claims:\n\n{fence(page.deciding, 'sh')}"
        if page.deciding
        else "",
        "params": "" if is_many else _params(page, level),
        "environment": "\n\n".join(
            _facts(f"{level}# Environment: {escape(part)}", rows) for part, rows in page.environment
        ),
        "source": ""
        if is_many or not page.source
        else f"{level}# {page.source_title}\n\n{fence(page.source, 'python')}",
    }
    first = (
        ("head", "notes", "failure", "texts", "figures") if page.is_watched else ()
    )  # what was seen, before its curves
    return {name: found[name] for name in dict.fromkeys((*first, *found))}


def _claims(page: ReportPage) -> str:
    rows = [
        (f"{c.mark} {c.verdict}", c.text, "; ".join(filter(None, (c.estimate, c.claimed, c.why)))) for c in page.claims
    ]  # fmt: skip
    return table(("Verdict", "Claim", "Measured"), rows)


def _again(page: ReportPage, level: str) -> str:
    if not page.command:
        return ""
    parts = [f"{level}# Run it again", fence(page.command, "sh"), escape(page.why_not_again)]
    return "\n\n".join(filter(None, parts))


def _failure(page: ReportPage) -> str:
    if not (page.failure or page.faults):
        return ""
    words, traceback, hint = page.failure or ("", "", "")
    parts = [
        escape(words),
        f"Hint: {escape(hint)}" if hint else "",
        fence(traceback) if traceback else "",
    ]
    return "\n\n".join(part for part in (*parts, *(fence(fault) for fault in page.faults)) if part)


def _charts(subject: ReportedRun, most: int) -> str:
    found = []
    for name in names_of(subject.summary)[:most]:
        axes, kin = subject.summary.axes_of(name), siblings(subject.summary.series, name)
        chart = line_chart(
            first_of_each_arm(subject.summary.series, name), _WIDTH, _HEIGHT, whole=kin, axes=axes
        )
        bad = sum(line.bad_count for line in kin if line.name == name)
        shown = fence(chart or f"{shorten(name, 60)}: nothing to draw")
        found.append(shown + (f"\n\n{bad} values are not finite." if bad else ""))
    return "\n\n".join(found)


def _figures(subject: ReportedRun) -> str:
    """Return bars, tables and lanes."""
    found = []
    for figure in figures_of(subject.summary)[:_FIGURES]:
        if isinstance(figure, TableShown):
            heads = figure.head or [""] * max(map(len, figure.rows), default=0)
            found.append(
                f"**{escape(figure.title)}**\n\n{table(heads, [[*map(format_cell, row)] for row in figure.rows])}"
            )
        else:
            found.append(fence(draw_figure(figure, _WIDTH).text))
    return "\n\n".join(found)


def _gpus(subject: ReportedRun, heading: str) -> str:
    """Return what the GPUs of the run did along time; nothing where it had none."""
    summary = subject.summary
    gpus = [
        gpu.found for gpu in own_gpus(summary) if gpu.found and recorded_metrics(summary, gpu.found)
    ][:_GPUS]
    if not gpus:
        return ""
    held = find_throttling(summary, gpus, Throttling())
    rows = strips_of(summary, gpus, held)
    picture = draw_strips(
        rows, _WIDTH, _ROWS * len(gpus) + len(rows) + 1, span=span_of(rows, is_over=True)
    )
    words = describe_throttling(held)
    return "\n\n".join(
        filter(None, [heading, fence(picture.text), f"{escape(words)}." if words else ""])
    )


def _pictures(subject: ReportedRun) -> str:
    return "\n\n".join(
        fence(shade(image, 32)) for image in list(subject.summary.images.values())[:8]
    )


def _lesson(page: ReportPage, level: str) -> str:
    if not page.lesson:
        return ""
    parts = [f"{level}# The lesson"]
    for heading, found in page.lesson:
        if heading:
            parts.append(f"**{escape(heading)}**")
        for kind, text in found:
            shown = (
                fence(text)
                if kind == "code"
                else "".join(_inline(*part) for part in code_parts(text))
            )
            if kind == "note":
                indent = "  " if parts[-1].startswith("- ") else ""
                parts[-1] += f"\\\n{indent}{shown}"
            elif kind in ("bullet", "item") and parts[-1].startswith("- "):
                parts[-1] += f"\n- {shown}"
            else:
                parts.append(f"- {shown}" if kind in ("bullet", "item") else shown)
    return "\n\n".join(parts)


def _inline(is_code: bool, words: str) -> str:
    """Return a piece of a paragraph; a code span shows what is in it as it is."""
    return f"`{words}`" if is_code else escape(words)


def _params(page: ReportPage, level: str) -> str:
    rows = [
        (p.name, p.value, "changed" if p.is_changed else "default", p.label) for p in page.params
    ]
    return (
        f"{level}# Parameters\n\n{table(('Name', 'Value', '', 'What it is'), rows)}" if rows else ""
    )


def _facts(heading: str, rows: Sequence[tuple[str, str]]) -> str:
    return f"{heading}\n\n{table(('', ''), rows)}" if rows else ""
