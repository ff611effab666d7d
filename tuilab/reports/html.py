"""The report as one HTML file: no outside address, readable without scripts, every text through one autoescaping template."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tuilab import __version__
from tuilab.lesson import code_parts
from tuilab.reports.box import opening_of
from tuilab.reports.pages import page_of
from tuilab.reports.subject import Subject
from tuilab.scenario import Scenario
from tuilab.text import show_lines

_TEMPLATES = Path(__file__).with_name("templates")


def render(subjects: Sequence[Subject], known: Sequence[Scenario] = ()) -> str:
    """Return the report on one run, or on several with an opening page."""
    is_many = len(subjects) != 1
    pages = [page_of(subject, is_brief=is_many) for subject in subjects]
    style, script = (Markup((_TEMPLATES / f"report.{kind}").read_text()) for kind in ("css", "js"))
    template = _environment().get_template("report.html.jinja")
    return template.render(
        title=f"{pages[0].name}: {pages[0].title}" if len(pages) == 1 else "What holds on this box",
        pages=pages,
        opening=opening_of(subjects, known) if is_many else None,
        version=__version__,
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
        code_parts=code_parts,
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
    environment.globals["code_parts"] = code_parts
    return environment


def _displayable(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return show_lines(value)


def _digest(text: str) -> str:
    """Return what a browser compares a style or script with before it takes it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
