"""The report as one HTML file: no outside address, readable without scripts, every text through one autoescaping template."""

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tuilab import __version__
from tuilab.catalogue.lesson import code_parts, link_parts
from tuilab.catalogue.scenario import Scenario
from tuilab.reports.charts.frame import colour, dash, letter
from tuilab.reports.charts.geometry import ChartShapes, draw_chart
from tuilab.reports.opening import boxes_of
from tuilab.reports.outline import Outline, outline_of
from tuilab.reports.pages import (
    BRIEF_PAGE_BUDGETS,
    PAGE_BUDGETS,
    PageBudget,
    ReportPage,
    environment_of,
    page_of,
)
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.side_by_side import SideBySide, side_by_side
from tuilab.reports.sweeps.sweep_summary import SweepSummary
from tuilab.text.display import shorten, show_lines

_ONE_BYTES, _MANY_BYTES = 300_000, 2_000_000
_TEMPLATES = Path(__file__).with_name("templates")
_TO_STRIP = re.compile(
    r"(?m)^(?:\s+|//.*\n)"
)  # indents, empty lines and comments: only those who change it need them


def render(
    subjects: Sequence[ReportedRun],
    known: Sequence[Scenario] = (),
    groups: Sequence[Sequence[ReportedRun]] = (),
) -> str:
    """Return the report on one run, or on several with an opening page; `groups` of runs are shown side by side instead of it.

    What does not fit into the size that a report should have is thinned or cut, and the page says so.
    """
    outline = outline_of(subjects, known, groups)
    rooms, limit = (
        (BRIEF_PAGE_BUDGETS, _MANY_BYTES) if outline.is_many else (PAGE_BUDGETS, _ONE_BYTES)
    )
    page = ""
    for room in rooms:
        page = _render(subjects, outline, room)
        if len(page.encode(errors="replace")) <= limit:
            break
    return page


def _render(subjects: Sequence[ReportedRun], outline: Outline, room: PageBudget) -> str:
    pages = [page_of(subject, room, is_brief=outline.is_many) for subject in subjects]
    compared = [side_by_side(group, room) for group in outline.groups]
    boxes = boxes_of(subjects) if outline.is_many else {}
    style, script = (
        Markup(_TO_STRIP.sub("", (_TEMPLATES / f"report.{kind}").read_text()))
        for kind in ("css", "js")
    )
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            title=_title(pages, outline, compared),
            pages=pages,
            opening=outline.opening,
            compared=compared,
            sweeps=[(sweep, _charts(sweep, room)) for sweep in outline.sweeps],
            is_brief=outline.is_many,
            environments=[(host, environment_of(group[0])) for host, group in boxes.items()],
            version=__version__,
            style=style,
            script=script,
            style_digest=_digest(style),
            script_digest=_digest(script),
        )
    )


def _charts(found: SweepSummary, room: PageBudget) -> list[ChartShapes | None]:
    """Return the chart of each claim, where it has one, and behind those where curves ended."""
    panels = [*(claim.panel for claim in found.claims), *found.curves]
    return [draw_chart(panel, places=room.places) if panel else None for panel in panels]


def _title(pages: Sequence[ReportPage], outline: Outline, compared: Sequence[SideBySide]) -> str:
    if outline.opening:
        return outline.opening.title
    if len(pages) == 1:
        return f"{pages[0].name}: {pages[0].title}"
    if outline.sweeps:
        return f"{outline.sweeps[0].name} {outline.sweeps[0].title}"
    return (
        f"{compared[0].title}, side by side"
        if len(compared) == 1
        else f"{len(compared)} scenarios, side by side"
    )


def _environment() -> Environment:
    """Return the one place where templates are made: everything is escaped, and safe to display in the first place."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=_displayable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        one.__name__: one for one in (code_parts, link_parts, colour, dash, letter)
    }
    environment.filters["shorten"] = shorten
    return environment


def _displayable(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return show_lines(value)


def _digest(text: str) -> str:
    """Return what a browser compares a style or script with before it takes it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
