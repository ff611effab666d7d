"""Render the report as one HTML file.

It loads nothing from outside, can be read without scripts, and escapes every text.
"""

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

_MAX_BYTES, _MAX_BYTES_OF_MANY = 300_000, 2_000_000
_TEMPLATES = Path(__file__).with_name("templates")
# Indents, empty lines and comments of styles and scripts: readers of a report do not need them.
_TO_STRIP = re.compile(r"(?m)^(?:\s+|//.*\n)")


def render(
    subjects: Sequence[ReportedRun],
    scenarios: Sequence[Scenario] = (),
    groups: Sequence[Sequence[ReportedRun]] = (),
) -> str:
    """Return the report on one run, or on several with an opening page.

    `groups` of runs are shown side by side instead of the opening. A report that would be too large
    is rendered again with the next smaller budget, and says what is left out. The smallest budget
    is the last: its report is returned whatever its size.
    """
    outline = outline_of(subjects, scenarios, groups)
    budgets: Sequence[PageBudget] = PAGE_BUDGETS
    max_bytes = _MAX_BYTES
    if outline.is_many:
        budgets = BRIEF_PAGE_BUDGETS
        max_bytes = _MAX_BYTES_OF_MANY
    page = ""
    for budget in budgets:
        page = _render_page(subjects, outline, budget)
        if len(page.encode(errors="replace")) <= max_bytes:
            break
    return page


def _render_page(subjects: Sequence[ReportedRun], outline: Outline, budget: PageBudget) -> str:
    """Return the whole HTML file, with at most as many shapes and characters as the budget allows.

    A report on many runs has the environment once for each machine, from the first of its runs.
    """
    pages = [page_of(subject, budget, is_brief=outline.is_many) for subject in subjects]
    compared = [side_by_side(group, budget) for group in outline.groups]
    sweeps = [(sweep, _draw_sweep(sweep, budget)) for sweep in outline.sweeps]
    environments = []
    if outline.is_many:
        for host, group in boxes_of(subjects).items():
            environments.append((host, environment_of(group[0])))
    style = _read_stripped("report.css")
    script = _read_stripped("report.js")
    template = _make_environment().get_template("report.html.jinja")
    return template.render(
        title=_make_title(pages, outline, compared),
        pages=pages,
        opening=outline.opening,
        compared=compared,
        sweeps=sweeps,
        is_brief=outline.is_many,
        environments=environments,
        version=__version__,
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
    )


def _read_stripped(name: str) -> Markup:
    return Markup(_TO_STRIP.sub("", (_TEMPLATES / name).read_text()))


def _draw_sweep(sweep: SweepSummary, budget: PageBudget) -> list[ChartShapes | None]:
    """Return the chart of each claim, None without one, then the charts of the curves."""
    charts: list[ChartShapes | None] = []
    for claim in sweep.claims:
        if claim.panel:
            charts.append(draw_chart(claim.panel, places=budget.places))
        else:
            charts.append(None)
    for panel in sweep.curves:
        charts.append(draw_chart(panel, places=budget.places))
    return charts


def _make_title(
    pages: Sequence[ReportPage], outline: Outline, compared: Sequence[SideBySide]
) -> str:
    """Return the title of the page: that of the opening, else of what the report shows first."""
    if outline.opening:
        return outline.opening.title
    if len(pages) == 1:
        return f"{pages[0].name}: {pages[0].title}"
    if outline.sweeps:
        return f"{outline.sweeps[0].name} {outline.sweeps[0].title}"
    if len(compared) == 1:
        return f"{compared[0].title}, side by side"
    return f"{len(compared)} scenarios, side by side"


def _make_environment() -> Environment:
    """Return the environment of all templates: it escapes every text and makes it displayable."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=_make_displayable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (code_parts, link_parts, colour, dash, letter):
        environment.globals[function.__name__] = function
    environment.filters["shorten"] = shorten
    return environment


def _make_displayable(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return show_lines(value)


def _digest(text: str) -> str:
    """Return the digest by which a browser accepts a style or script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
