"""Show a scenario: lesson, parameters and claims; with --source also its source."""

import re
import shutil
import textwrap
from collections.abc import Sequence

import click

from tuilab.catalogue import catalog
from tuilab.catalogue.arms_code import arms_code
from tuilab.catalogue.lesson import notes_apart
from tuilab.catalogue.params import describe, option_of, spell
from tuilab.catalogue.scenario import Param, Scenario
from tuilab.catalogue.source import Broken, read_text
from tuilab.catalogue.stated_claims import intro_of
from tuilab.catalogue.translation import ENGLISH, chosen, translated
from tuilab.cli import completion, options
from tuilab.cli.verbs.list import fields_of
from tuilab.text import wrapping
from tuilab.text.display import show, show_lines

_ITEM = re.compile(r"[-*] |[0-9]+\. |`--|refutes: ")  # begins a line of its own


@click.command(
    help=__doc__,
    params=[
        click.Argument(["name"], shell_complete=completion.scenarios),
        click.Option(["--source"], is_flag=True, help="Also print the source."),
        options.AS_JSON,
        options.LANG,
        options.SCENARIOS,
    ],
)
def command(name: str, source: bool, as_json: bool, scenarios: Sequence[str]) -> None:
    found = catalog.find(catalog.load(scenarios), name, scenarios)
    if as_json:
        options.print_document(
            "tuilab.show/1", scenarios=[_fields(scenario, has_source=source) for scenario in found]
        )
        return
    shown = [translated(scenario) for scenario in found]
    if chosen() != ENGLISH and shown == found:
        click.echo(f"tuilab: no translation into {show(chosen(), 40)}; showing English", err=True)
    width = min(shutil.get_terminal_size().columns, 100)
    parts = [render(scenario, width) + (_source(scenario) if source else "") for scenario in shown]
    click.echo(f"\n{'─' * width}\n\n".join(parts), nl=False)


def _fields(scenario: Scenario, *, has_source: bool) -> dict[str, object]:
    fields = {**fields_of(scenario), "lesson": scenario.lesson, "sections": scenario.sections}
    if has_source:
        try:
            fields["source"] = read_text(scenario.path)
        except Broken as problem:
            fields |= {"source": None, "why": str(problem)}
    return fields


def render(scenario: Scenario, width: int) -> str:
    """Return a scenario as text for people."""
    where = f"{show(scenario.topic)}/{show(scenario.id)}  {show(scenario.path)}"
    if scenario.error:
        return f"{where}\ncannot be used: {show(scenario.error)}\n"
    mechanism = intro_of(scenario.lesson)
    blocks = [
        "\n".join(wrapping.wrap(show(scenario.title), width)),
        "\n".join(
            [where, *_hang(f"builds on {', '.join(map(show, scenario.builds_on))}", width)]
            if scenario.builds_on
            else [where]
        ),
        wrap(show_lines(mechanism.strip()), width),
        _code(scenario),
        wrap(show_lines(notes_apart(scenario.lesson[len(mechanism) :])), width),
        _block(
            "Parameters", [line for param in scenario.params for line in _describe(param, width)]
        ),
        _block("Arms", _hang(", ".join(map(show, scenario.arms)), width)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def wrap(text: str, width: int) -> str:
    """Return text with its paragraphs and list items wrapped; headings and indented lines stay as they are."""
    paragraphs: list[list[str]] = []
    for line in text.split("\n"):
        if paragraphs and _goes_on(paragraphs[-1], line):
            paragraphs[-1].append(line.strip())
        else:
            paragraphs.append([line])
    return "\n".join(
        line
        for words in paragraphs
        for line in (_hang("\n".join(words), width) if _flows(words[0]) else words)
    )


def _goes_on(words: Sequence[str], line: str) -> bool:
    """Say whether a line belongs to a paragraph or list item."""
    first = words[0]
    if first.startswith("refutes: ") and not words[-1].endswith(","):
        return False
    if not line or not _flows(first) or _ITEM.match(line.lstrip()):
        return False
    return _flows(line) or (line[0] != "#" and _ITEM.match(first) is not None)


def _flows(line: str) -> bool:
    return bool(line) and line[0] not in "# \t"


def _hang(text: str, width: int) -> list[str]:
    indent = "  " if text.startswith(("- ", "* ")) else ""
    return wrapping.wrap(text, width, hang=indent, keeps_words=True)


def _block(heading: str, lines: list[str]) -> str:
    return "\n".join([f"## {heading}", *lines]) if lines else ""


def _describe(param: Param, width: int) -> list[str]:
    quick = "" if param.quick is None else f", with --quick {show(spell(param.quick))}"
    takes = (
        f"{option_of(param.name)}  {describe(param)} (default {show(spell(param.default))}{quick})"
    )
    return [
        *_hang(takes, width),
        *(f"    {line}" for line in wrapping.wrap(show(param.label), width - 4)),
    ]


def _code(scenario: Scenario) -> str:
    """Return the arms, indented as code is; the file may have gone since it was listed."""
    try:
        code = arms_code(read_text(scenario.path))
    except Broken:
        return ""
    return show_lines(textwrap.indent(code, "    "))


def _source(scenario: Scenario) -> str:
    try:
        return "\n## File\n" + show_lines(read_text(scenario.path))
    except Broken as problem:
        return f"\nthe source cannot be shown: {show(problem)}\n"
