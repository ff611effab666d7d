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
from tuilab.cli.verbs.list import describe_scenario
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
    matches = catalog.find(catalog.load(scenarios), name, scenarios)
    if as_json:
        documents = [_describe(scenario, has_source=source) for scenario in matches]
        options.print_document("tuilab.show/1", scenarios=documents)
        return
    shown = [translated(scenario) for scenario in matches]
    if chosen() != ENGLISH and shown == matches:
        click.echo(f"tuilab: no translation into {show(chosen(), 40)}; showing English", err=True)
    width = min(shutil.get_terminal_size().columns, 100)
    parts = []
    for scenario in shown:
        text = render(scenario, width)
        if source:
            text += _source_text(scenario)
        parts.append(text)
    click.echo(f"\n{'─' * width}\n\n".join(parts), nl=False)


def _describe(scenario: Scenario, *, has_source: bool) -> dict[str, object]:
    """Return a scenario for `--json`."""
    fields = describe_scenario(scenario)
    fields["lesson"] = scenario.lesson
    fields["sections"] = scenario.sections
    if has_source:
        try:
            fields["source"] = read_text(scenario.path)
        except Broken as problem:
            fields["source"] = None
            fields["why"] = str(problem)
    return fields


# ---- text


def render(scenario: Scenario, width: int) -> str:
    """Return a scenario as text for people."""
    heading = f"{show(scenario.topic)}/{show(scenario.id)}  {show(scenario.path)}"
    if scenario.error:
        return f"{heading}\ncannot be used: {show(scenario.error)}\n"
    origin = [heading]
    if scenario.builds_on:
        lessons = ", ".join(show(lesson) for lesson in scenario.builds_on)
        origin += _wrap_item(f"builds on {lessons}", width)
    mechanism = intro_of(scenario.lesson)
    remaining_lesson = notes_apart(scenario.lesson[len(mechanism) :])
    parameters = []
    for param in scenario.params:
        parameters += _describe_param(param, width)
    arms = ", ".join(show(arm) for arm in scenario.arms)
    blocks = [
        "\n".join(wrapping.wrap(show(scenario.title), width)),
        "\n".join(origin),
        wrap_text(show_lines(mechanism.strip()), width),
        _arms_text(scenario),
        wrap_text(show_lines(remaining_lesson), width),
        _block("Parameters", parameters),
        _block("Arms", _wrap_item(arms, width)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _block(heading: str, lines: list[str]) -> str:
    if not lines:
        return ""
    return "\n".join([f"## {heading}", *lines])


def _describe_param(param: Param, width: int) -> list[str]:
    """Return lines about a parameter: its option, its values and defaults, and its label."""
    default = f"default {show(spell(param.default))}"
    if param.quick is not None:
        default += f", with --quick {show(spell(param.quick))}"
    lines = _wrap_item(f"{option_of(param.name)}  {describe(param)} ({default})", width)
    label_lines = wrapping.wrap(show(param.label), width - 4)
    lines += [f"    {line}" for line in label_lines]
    return lines


def _arms_text(scenario: Scenario) -> str:
    """Return the code of the arms, indented; empty if the file has gone since it was listed."""
    try:
        code = arms_code(read_text(scenario.path))
    except Broken:
        return ""
    return show_lines(textwrap.indent(code, "    "))


def _source_text(scenario: Scenario) -> str:
    try:
        return "\n## File\n" + show_lines(read_text(scenario.path))
    except Broken as problem:
        return f"\nthe source cannot be shown: {show(problem)}\n"


# ---- wrapping of a lesson


def wrap_text(text: str, width: int) -> str:
    """Return text with wrapped paragraphs and list items; headings and indented lines stay."""
    paragraphs: list[list[str]] = []
    for line in text.split("\n"):
        if paragraphs and _continues(paragraphs[-1], line):
            paragraphs[-1].append(line.strip())
        else:
            paragraphs.append([line])
    wrapped: list[str] = []
    for lines in paragraphs:
        if _is_prose(lines[0]):
            wrapped += _wrap_item("\n".join(lines), width)
        else:
            wrapped += lines
    return "\n".join(wrapped)


def _continues(paragraph: Sequence[str], line: str) -> bool:
    """Return whether a line continues a paragraph or a list item."""
    first = paragraph[0]
    if first.startswith("refutes: ") and not paragraph[-1].endswith(","):
        return False
    if not line or not _is_prose(first) or _ITEM.match(line.lstrip()):
        return False
    if _is_prose(line):
        return True
    # An indented line continues a list item, but not a paragraph.
    return line[0] != "#" and _ITEM.match(first) is not None


def _is_prose(line: str) -> bool:
    return bool(line) and line[0] not in "# \t"


def _wrap_item(text: str, width: int) -> list[str]:
    """Return a paragraph or list item wrapped; the later lines of an item are indented."""
    indent = "  " if text.startswith(("- ", "* ")) else ""
    return wrapping.wrap(text, width, hang=indent, keeps_words=True)
