"""Render the report as Markdown with plain-text charts, short enough for a comment if asked to."""

from collections.abc import Iterable, Sequence

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
from tuilab.reports.charts.panels import metric_names
from tuilab.reports.comparison_words import axes_of, overlay_curves
from tuilab.reports.formats.markup import bullets, escape, fence, table
from tuilab.reports.opening import Opening
from tuilab.reports.outline import outline_of
from tuilab.reports.pages import PAGE_BUDGETS, ReportPage, page_of
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.side_by_side import side_by_side
from tuilab.reports.sweeps.panels import draw_text_chart
from tuilab.reports.sweeps.sweep_summary import ClaimAlongSweep, SweepSummary
from tuilab.reports.tuning.page import TuningPage
from tuilab.text.display import shorten

_WIDTH, _HEIGHT = 78, 12  # of a chart
_MAX_CHARTS, _MAX_CHARTS_BRIEF, _MAX_CHARTS_COMPARED = 12, 1, 4
_MAX_LINES_COMPARED = 6
_MAX_FIGURES = 20
_MAX_GPUS, _ROWS_OF_GPU = 8, 8
_MAX_PICTURES, _PICTURE_WIDTH = 8, 32
# The parts that a short report leaves out, the least important first.
_OPTIONAL_PARTS = (
    "source",
    "environment",
    "texts",
    "lesson",
    "pictures",
    "machine",
    "figures",
    "charts",
    "numbers",
)
# A watched command has no claims: the report begins with its texts.
_FIRST_PARTS_IF_WATCHED = ("head", "notes", "failure", "texts", "figures")
_CUT_NOTE = "\n\n_The report is cut off here; the .html report is complete._\n"
_CUT_RESERVE = 20  # characters for the end of an open code block

_Section = dict[str, str]  # parts of a section by their names, in order


def render(
    subjects: Sequence[ReportedRun],
    scenarios: Sequence[Scenario] = (),
    limit: int = 0,
    groups: Sequence[Sequence[ReportedRun]] = (),
) -> str:
    """Return the report, without its least important parts if it has more than `limit` characters.

    0 is no limit. `groups` of runs are shown side by side.
    """
    sections = _render_sections(subjects, scenarios, groups)
    left_out: list[str] = []
    text = _join_sections(sections, left_out)
    if not limit:
        return text
    for part in _OPTIONAL_PARTS:
        if len(text) <= limit:
            return text
        left_out.append(part)
        text = _join_sections(sections, left_out)
    if len(text) > limit:
        text = _cut(text, limit)
    return text


def _join_sections(sections: Sequence[_Section], left_out: Sequence[str]) -> str:
    """Return the report without the parts in `left_out`, which a last line then names."""
    parts = []
    for section in sections:
        for name, text in section.items():
            if text and name not in left_out:
                parts.append(text)
    if left_out:
        parts.append(f"_Left out for its length: {', '.join(left_out)}._")
    return "\n\n".join(parts) + "\n"


def _cut(text: str, limit: int) -> str:
    """Return the start of a text in at most `limit` characters, with a note that it is cut.

    The start has whole lines. A code block that is open at its end is closed.
    """
    shortened = text[: limit - len(_CUT_NOTE) - _CUT_RESERVE].rpartition("\n")[0]
    open_fence = ""
    for line in shortened.splitlines():
        if line.startswith("```") and not open_fence:
            open_fence = line[: len(line) - len(line.lstrip("`"))]
        elif open_fence and line == open_fence:
            open_fence = ""
    if open_fence:
        shortened += f"\n{open_fence}"
    return shortened + _CUT_NOTE


def _render_sections(
    subjects: Sequence[ReportedRun],
    scenarios: Sequence[Scenario],
    groups: Sequence[Sequence[ReportedRun]],
) -> list[_Section]:
    """Return the sections of the report: opening, sweeps, runs side by side, then each run."""
    outline = outline_of(subjects, scenarios, groups)
    level = "##" if outline.opening else "#"
    sections = []
    if outline.opening:
        sections.append({"opening": _render_opening(outline.opening)})
    for sweep in outline.sweeps:
        sections.append(_render_sweep(sweep, level))
    for group in outline.groups:
        sections.append(_render_side_by_side(group, level))
    for subject in subjects:
        sections.append(_render_run(subject, is_many=outline.is_many))
    return sections


def _join(parts: Iterable[str]) -> str:
    """Return the parts that are not empty as paragraphs."""
    return "\n\n".join(filter(None, parts))


# ---- the opening


def _render_opening(opening: Opening) -> str:
    """Return the first page of a report on several runs: settings, findings, what never ran."""
    settings = "None: no value measurably beat the default on this machine."
    if opening.has_env:
        settings = fence(opening.env, "sh")
    parts = [
        f"# {opening.title}",
        f"{escape(opening.host)}, {opening.when}: {opening.counts}",
        escape(opening.box),
        "## Recommended settings",
        settings,
    ]
    for group in opening.groups:
        rows = []
        for finding in group.findings:
            verdict = f"{finding.mark} {finding.verdict}"
            measured = ", ".join(filter(None, (finding.measured, finding.details)))
            run = f"{finding.name} {finding.id}"
            rows.append((verdict, finding.text, measured, run))
        findings = table(("Verdict", "Claim", "Measured", "Run"), rows)
        parts += [f"## {group.heading}", group.about, findings]
    if opening.not_run:
        scenarios = []
        for name, title in opening.not_run:
            scenarios.append(f"- {escape(name)}: {escape(title)}")
        parts += ["## Never run on this machine", "\n".join(scenarios)]
    return _join(parts)


# ---- sweeps


def _render_sweep(sweep: SweepSummary, level: str) -> _Section:
    """Return each claim of a sweep with its points, and where it holds."""
    settings = escape("; ".join(sweep.settings))
    missing = ""
    if sweep.missing:
        missing = f"Without a result:\n\n{bullets(sweep.missing)}"
    numbers = ""
    if sweep.numbers:
        numbers = table(sweep.numbers[0], sweep.numbers[1:])
    claims = [_render_swept_claim(claim, level) for claim in sweep.claims]
    claims.append(escape(sweep.note))
    doubts = [f"**{escape(doubt)}**" for doubt in sweep.doubts]
    charts = []
    for panel in sweep.curves:
        chart = draw_text_chart(panel)
        if chart:
            charts.append(fence(chart))
    return {
        "head": f"{level} {escape(sweep.name)} {escape(sweep.title)}",
        "settings": f"{escape(sweep.id)}, {escape(sweep.counts)}: {settings}",
        "missing": missing,
        "doubts": _join(doubts),
        "claims": _join(claims),
        "numbers": numbers,
        "charts": _join(charts),
    }


def _render_swept_claim(claim: ClaimAlongSweep, level: str) -> str:
    """Return a claim of a sweep: where it holds, a row for each point, and its chart if any."""
    rows = []
    for point in claim.points:
        verdict = f"{point.row.mark} {point.row.verdict}"
        rows.append((verdict, point.words, f"{point.measured} ({point.id})"))
    holds = [f"- **{escape(sentence)}**" for sentence in claim.holds]
    parts = [
        f"{level}# {escape(claim.text)}",
        escape(claim.about),
        "\n".join(holds),
        table(("Verdict", "At", "Measured"), rows),
    ]
    chart = ""
    if claim.panel:
        chart = draw_text_chart(claim.panel)
    if chart:
        parts.append(fence(chart))
    return _join(parts)


# ---- runs side by side


def _render_side_by_side(group: Sequence[ReportedRun], level: str) -> _Section:
    """Return the parts of runs side by side, with charts of the first curves that they share."""
    # The smallest budget: its charts are not used, and it limits claims and numbers to 60 each.
    compared = side_by_side(group, PAGE_BUDGETS[-1])
    runs = []
    for number, _, _, box, *_ in compared.runs:
        run = f"run {number}"
        if compared.has_boxes:
            run += f", {box}"
        runs.append(run)
    claims = []
    for claim in compared.claims:
        sides = [f"{side.mark} {side.verdict} {side.measured}" for side in claim.sides]
        claims.append((claim.text, *sides, claim.words))
    differences = []
    for row in compared.differences:
        differences.append((f"{row.part} {row.name}", *row.values))
    facts = f"{compared.same} facts (parameters, source, environment)"
    source = ""
    if compared.changes:
        source = fence("\n".join(compared.changes), "diff")
    names = [chart.name for chart in compared.charts[:_MAX_CHARTS_COMPARED]]
    return {
        "head": f"{level} {escape(compared.title)}, side by side",
        "runs": table(("Run", "", "Scenario", "Box", "When", "End"), compared.runs),
        "differences": table(("What differs", *runs), differences),
        "same": f"{facts} and {compared.same_numbers} values are the same.",
        "source": source,
        "claims": table(("Claim", *runs, "How they differ"), claims),
        "numbers": table(("Number", *runs), compared.numbers),
        "charts": _draw_overlaid_charts(group, names),
        "left out": compared.left_out,
    }


def _draw_overlaid_charts(group: Sequence[ReportedRun], names: Sequence[str]) -> str:
    """Return a chart for each name with the curves of all runs, as far as it can be drawn."""
    summaries = [subject.summary for subject in group]
    charts = []
    for name in names:
        series = overlay_curves(summaries, name)
        if not series:
            continue
        axes = axes_of(summaries, series[0].name)
        drawn = series[:_MAX_LINES_COMPARED]
        chart = line_chart(drawn, _WIDTH, _HEIGHT, whole=series, axes=axes)
        if chart:
            charts.append(fence(chart))
    return _join(charts)


# ---- one run


def _render_run(subject: ReportedRun, *, is_many: bool) -> _Section:
    """Return the parts of a run. For a watched command, its texts come before the rest."""
    page = page_of(subject, is_brief=is_many)
    if is_many:
        section = _render_brief_run(subject, page)
    else:
        section = _render_whole_run(subject, page)
    if not page.is_watched:
        return section
    reordered = {}
    for name in (*_FIRST_PARTS_IF_WATCHED, *section):
        if name in section:
            reordered[name] = section[name]
    return reordered


def _render_brief_run(subject: ReportedRun, page: ReportPage) -> _Section:
    """Return the parts of one of many runs."""
    return {
        "head": _render_head(page, "##"),
        "ways": bullets(page.arms),
        "notes": _render_notes(page),
        "tuning": _render_tuning(page.tuning, "###"),
        "claims": _render_claims(page),
        "failure": _render_failure(page),
        "gaps": _render_gaps(page, "##"),
        "charts": _draw_charts(subject, _MAX_CHARTS_BRIEF),
        "again": _render_command(page, "##"),
        "deciding": _render_deciding(page),
    }


def _render_whole_run(subject: ReportedRun, page: ReportPage) -> _Section:
    """Return all parts of the only run of a report. Parts that the run does not have are empty."""
    figures = _render_figures(subject)
    environment = []
    for part, facts in page.environment:
        environment.append(_render_facts(f"## Environment: {escape(part)}", facts))
    source = ""
    if page.source:
        source = f"## {page.source_title}\n\n{fence(page.source, 'python')}"
    return {
        "head": _render_head(page, "#"),
        "ways": bullets(page.arms),
        "notes": _render_notes(page),
        "tuning": _render_tuning(page.tuning, "##"),
        "claims": _render_claims(page),
        "arms": figures if page.has_arms else "",
        "failure": _render_failure(page),
        "gaps": _render_gaps(page, "#"),
        "charts": _draw_charts(subject, _MAX_CHARTS),
        "figures": "" if page.has_arms else figures,
        "machine": _draw_gpus(subject, "## GPU"),
        "numbers": _render_facts("## Numbers", page.numbers),
        "pictures": _draw_pictures(subject),
        "texts": _render_texts(page),
        "lesson": _render_lesson(page),
        "again": _render_command(page, "#"),
        "deciding": _render_deciding(page),
        "params": _render_params(page),
        "environment": "\n\n".join(environment),
        "source": source,
    }


def _render_head(page: ReportPage, level: str) -> str:
    run = f"{escape(page.name)}, run {escape(page.id)}, {page.when}"
    effort = ", ".join(filter(None, (page.elapsed, page.repeats)))
    end = f"**{escape(page.state)}** in {effort}"
    return f"{level} {escape(page.title)}\n\n{run}: {end}; digest {escape(page.digest)}"


def _render_notes(page: ReportPage) -> str:
    parts = [escape(page.tags)]
    for when, text in page.notes:
        parts.append(f"> {when}: {escape(text)}")
    return "\n\n".join(parts).strip()


def _render_claims(page: ReportPage) -> str:
    rows = []
    for claim in page.claims:
        measured = "; ".join(filter(None, (claim.estimate, claim.claimed, claim.why)))
        rows.append((f"{claim.mark} {claim.verdict}", claim.text, measured))
    return table(("Verdict", "Claim", "Measured"), rows)


def _render_tuning(tuning: TuningPage | None, level: str) -> str:
    """Return what a tuning tried, with the diffs of what is faster; empty for another run."""
    if tuning is None:
        return ""
    parts = [escape(sentence) for sentence in tuning.sentences]
    for section in tuning.sections:
        rows = []
        for row in section.rows:
            outcome = f"{row.mark} {row.outcome}"
            about = "; ".join(filter(None, (row.change, *row.details, row.facts)))
            rows.append((outcome, row.title, row.measured, about))
        parts.append(f"{level} {section.heading.capitalize()}")
        parts.append(table(("Outcome", "Treatment", "Times faster", ""), rows))
        if section.is_open:
            parts += [fence(row.diff, "diff") for row in section.rows if row.diff]
        for row in section.rows:
            if row.command:
                parts.append(f"To show what is open about {escape(row.title)}:")
                parts.append(fence(row.command, "sh"))
    if tuning.parts:
        parts.append(f"{level} {tuning.parts_title}")
        parts.append(table(tuning.parts[0], tuning.parts[1:]))
    parts += [escape(note) for note in tuning.notes]
    return _join(parts)


def _render_failure(page: ReportPage) -> str:
    """Return the exception, its hint and traceback, and other faults; empty if nothing failed."""
    parts = []
    if page.failure:
        words, traceback, hint = page.failure
        parts.append(escape(words))
        if hint:
            parts.append(f"Hint: {escape(hint)}")
        if traceback:
            parts.append(fence(traceback))
    parts += map(fence, page.faults)
    return _join(parts)


def _render_gaps(page: ReportPage, level: str) -> str:
    if not page.gaps:
        return ""
    return f"{level}# What is missing\n\n{bullets(page.gaps)}"


def _render_texts(page: ReportPage) -> str:
    """Return the texts that the scenario showed, each below its title if it has one."""
    parts = []
    for title, text in page.texts:
        heading = ""
        if title:
            heading = f"**{escape(title)}**"
        parts.append(f"{heading}\n\n{fence(text)}")
    return "\n\n".join(parts).strip()


def _render_command(page: ReportPage, level: str) -> str:
    if not page.command:
        return ""
    heading = f"{level}# Run it again"
    return _join([heading, fence(page.command, "sh"), escape(page.why_not_again)])


def _render_deciding(page: ReportPage) -> str:
    if not page.deciding:
        return ""
    return f"To settle the inconclusive claims:\n\n{fence(page.deciding, 'sh')}"


def _render_params(page: ReportPage) -> str:
    """Return the table of parameters, with those that were changed; empty if there are none."""
    rows = []
    for param in page.params:
        origin = "changed" if param.is_changed else "default"
        rows.append((param.name, param.value, origin, param.label))
    if not rows:
        return ""
    return f"## Parameters\n\n{table(('Name', 'Value', '', 'What it is'), rows)}"


def _render_facts(heading: str, rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    return f"{heading}\n\n{table(('', ''), rows)}"


# ---- drawings of a run


def _draw_charts(subject: ReportedRun, max_charts: int) -> str:
    """Return a chart of each of the first metrics, and how many of its values are not finite."""
    summary = subject.summary
    parts = []
    for name in metric_names(summary)[:max_charts]:
        series = first_of_each_arm(summary.series, name)
        kin = siblings(summary.series, name)
        chart = line_chart(series, _WIDTH, _HEIGHT, whole=kin, axes=summary.axes_of(name))
        parts.append(fence(chart or f"{shorten(name, 60)}: nothing to draw"))
        bad = 0
        for line in kin:
            if line.name == name:
                bad += line.bad_count
        if bad:
            parts.append(f"{bad} values are not finite.")
    return "\n\n".join(parts)


def _render_figures(subject: ReportedRun) -> str:
    """Return bars, tables and lanes."""
    parts = []
    for figure in figures_of(subject.summary)[:_MAX_FIGURES]:
        if isinstance(figure, TableShown):
            columns = max(map(len, figure.rows), default=0)
            heads = figure.head or [""] * columns
            rows = []
            for row in figure.rows:
                rows.append([format_cell(cell) for cell in row])
            parts.append(f"**{escape(figure.title)}**\n\n{table(heads, rows)}")
        else:
            parts.append(fence(draw_figure(figure, _WIDTH).text))
    return "\n\n".join(parts)


def _draw_gpus(subject: ReportedRun, heading: str) -> str:
    """Return strips of the GPUs of the run along time, or an empty string if it had none."""
    summary = subject.summary
    gpus = []
    for gpu in own_gpus(summary):
        if gpu.nvml and recorded_metrics(summary, gpu.nvml):
            gpus.append(gpu.nvml)
    gpus = gpus[:_MAX_GPUS]
    if not gpus:
        return ""
    throttled = find_throttling(summary, gpus, Throttling())
    rows = strips_of(summary, gpus, throttled)
    height = _ROWS_OF_GPU * len(gpus) + len(rows) + 1
    picture = draw_strips(rows, _WIDTH, height, span=span_of(rows, is_over=True))
    parts = [heading, fence(picture.text)]
    reasons = describe_throttling(throttled)
    if reasons:
        parts.append(f"{escape(reasons)}.")
    return _join(parts)


def _draw_pictures(subject: ReportedRun) -> str:
    images = list(subject.summary.images.values())
    pictures = []
    for image in images[:_MAX_PICTURES]:
        pictures.append(fence(shade(image, _PICTURE_WIDTH)))
    return "\n\n".join(pictures)


# ---- the lesson


def _render_lesson(page: ReportPage) -> str:
    """Return the lesson as Markdown, or an empty string. Items of a list stay together.

    A note is part of the item or paragraph before it, after a line break.
    """
    if not page.lesson:
        return ""
    parts = ["## The lesson"]
    for heading, blocks in page.lesson:
        if heading:
            parts.append(f"**{escape(heading)}**")
        for kind, text in blocks:
            if kind == "code":
                shown = fence(text)
            else:
                shown = _render_paragraph(text)
            is_item = kind in ("bullet", "item")
            follows_item = parts[-1].startswith("- ")
            if kind == "note":
                indent = "  " if follows_item else ""  # within the item
                parts[-1] += f"\\\n{indent}{shown}"
            elif is_item and follows_item:
                parts[-1] += f"\n- {shown}"
            elif is_item:
                parts.append(f"- {shown}")
            else:
                parts.append(shown)
    return "\n\n".join(parts)


def _render_paragraph(text: str) -> str:
    """Return a paragraph. A code span shows its content as it is."""
    words = ""
    for is_code, part in code_parts(text):
        if is_code:
            words += f"`{part}`"
        else:
            words += escape(part)
    return words
