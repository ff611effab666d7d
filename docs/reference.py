"""Writes the pages of the reference that follow from the code, such as subcommands and keys.

    python docs/reference.py     writes the pages into docs/reference/

`tests/test_reference.py` fails if a page is out of date.
"""

import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent.parent))

from tuilab.cli import subcommands as group
from tuilab.cli.front_page import GROUPS
from tuilab.commands.tune.planning.treatments import CATALOGUE
from tuilab.errors import MEANINGS
from tuilab.tui.keys import KEYS
from tuilab.tui.shown_keys import shown

FOLDER = Path(__file__).resolve().parent / "reference"
NOTICE = "<!-- `python docs/reference.py` writes this page. Change the code or docs/reference.py instead. -->"
LINE_WIDTH = 128  # columns; rows of tables are longer
# Options, the mark that ends them, and variables with an underscore, which are code on a page.
CODE = re.compile(r"(?<![\w-])(?:--?[a-zA-Z][\w-]*|--(?![\w-])|\$?[A-Z]+(?:_[A-Z]+)+)")
DEFAULT = re.compile(r" \(default: ([^)]*)\)")

ABOUT_COMMANDS = """
`tuilab SUBCOMMAND --help` prints the same. `tuilab run NAME --help` adds the parameters of a scenario.
`DURATION` is a number of seconds, or a time such as `90s`, `2m` or `1.5h`. `RUN` is the id of a run, the unique
start of the id, `last`, or `last~1` for the run before the last.
"""
ABOUT_SCREENS = """
Without a subcommand, tuilab opens the [screens](../screens.md). These options belong to the screens.
"""
ABOUT_KEYS = """
`?` shows the keys that work on the current screen, and the footer shows the most important ones. `^` means the
Ctrl key: `^p` is Ctrl and p. A key for a part or a state of a screen replaces the same key of the whole screen.
In read-only mode (`--read-only`), keys that change something do nothing.
"""
ABOUT_EXIT_CODES = """
An INCONCLUSIVE claim is not a failure. An INVALID claim is: a control failed, so the measurements cannot be
trusted. JUnit and the report of a machine use the same table.
"""
OWN_EXIT_CODES = """
Some subcommands have exit codes of their own:

- [`tuilab exec`](commands.md#tuilab-exec): the code of your command, or 125, 126 or 127.
- [`tuilab tune`](commands.md#tuilab-tune): 0 if it ended, whatever the outcomes of its treatments are.
- [`tuilab doctor`](commands.md#tuilab-doctor): 1 for warnings, 2 if a check failed; with `--gpu`, 3 if no GPU can
  be used.
- [`tuilab check`](commands.md#tuilab-check) and [`tuilab verify`](commands.md#tuilab-verify): 1 for a mistake.
- [`tuilab compare --fail-on`](commands.md#tuilab-compare): 1 if it found what you named.

The screens end with 130 after SIGTERM, SIGINT and SIGQUIT. SIGHUP, as from a closed terminal, ends them like `q`. An
open pager or editor ends first, and does not change the code.
"""

ABOUT_TREATMENTS = """
These are the changes that [`tuilab tune`](../tune.md) can try. `--only` takes their names. A treatment that has several
values, such as a number of workers, is an arm for each value that is tried. Of the treatments of a group, at most one
becomes part of a combination.
"""
# How a treatment changes what the script learns, by the word in the catalogue.
LEARNING = {
    "same": "bit for bit the same",
    "rounding": "the same, but for the order of operations",
    "other rounding": "computes in another dtype",
    "bound": "learns something else on purpose: it only shows an upper bound",
}

# The places of `KEYS` below the screen on which they are; a part that several screens have comes after the screens.
PLACES = {
    "Everywhere": ["everywhere"],
    "Lab": [
        "lab",
        "topic",
        "running runs",
        "lesson",
        "code",
        "form",
        "choice",
        "past runs",
        "prediction",
    ],
    "Run": [
        "run",
        "several charts",
        "NaN or Inf",
        "other GPUs",
        "other running runs",
        "running run",
        "frozen run",
        "failed run",
        "finished lesson",
        "finished run",
        "replay",
    ],
    "Queue": ["queue"],
    "History": ["history", "marked runs", "running run in the list"],
    "Compare": ["compare"],
    "Box": ["box"],
    "Doctor": ["doctor"],
    "Advise": ["advise"],
    "Calibrate": ["calibrate"],
    "Doctor, Advise and Calibrate": ["running subcommand"],
    "Help": ["help"],
    "Texts and filters": ["text", "printed text", "search", "searched", "filter"],
    "Questions, menus and lines to fill in": [
        "question",
        "question about stopping",
        "menu",
        "written line",
    ],
}


def write_commands() -> str:
    """Return the page of the subcommands, grouped as in `tuilab --help`."""
    parts = [
        "# Subcommands",
        NOTICE,
        wrap(ABOUT_COMMANDS),
        "## tuilab",
        usage(group.tuilab, "tuilab"),
    ]
    parts += [wrap(ABOUT_SCREENS), options_table(group.tuilab)]
    for heading, subcommands in GROUPS.items():
        parts.append(f"## {heading}")
        for name in subcommands:
            command = group.tuilab.get_command(click.Context(group.tuilab), name)
            assert command is not None
            parts.extend(describe_command(command, f"tuilab {name}", "###"))
    return join(parts)


def describe_command(command: click.Command, name: str, mark: str) -> Iterator[str]:
    """Yield the parts of a section about a command, then the sections about its own subcommands."""
    yield f"{mark} {name}"
    yield usage(command, name)
    yield from describe_help(command.help or "")
    yield options_table(command)
    if isinstance(command, click.Group):
        for child_name, child in sorted(command.commands.items()):
            yield from describe_command(child, f"{name} {child_name}", f"{mark}#")


def usage(command: click.Command, name: str) -> str:
    """Return the line that shows how a command is typed."""
    pieces = command.collect_usage_pieces(click.Context(command))
    return f"```text\n{' '.join([name, *pieces])}\n```"


def describe_help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; a paragraph that click prints as it is becomes a block."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            lines = textwrap.dedent(paragraph.removeprefix("\b\n")).rstrip()
            yield f"```text\n{lines}\n```"
        else:
            yield wrap(to_markdown(paragraph))


def options_table(command: click.Command) -> str:
    """Return a table of the options of a command."""
    rows = []
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden:
            rows.append([spell_option(param), describe_option(param), describe_default(param)])
    return table(["option", "meaning", "default"], rows)


def spell_option(option: click.Option) -> str:
    """Return the names of an option, with the word for its value."""
    *short, longest = option.opts
    names = [f"`{name}`" for name in short]
    if option.metavar:
        longest += f" {option.metavar}"
    elif not option.is_flag and not isinstance(option.type, click.Choice):
        longest += f" {option.type.name.upper()}"
    return ", ".join([*names, f"`{longest}`"])


def describe_option(option: click.Option) -> str:
    """Return what an option does and which values it takes, without its default."""
    meaning = to_markdown(DEFAULT.sub("", option.help or ""))
    values = describe_values(option)
    if values:
        meaning += f" Values: {values}."
    return meaning


def describe_default(option: click.Option) -> str:
    """Return the default that the help of an option names, or that click adds to it."""
    stated = DEFAULT.search(option.help or "")
    if stated:
        return to_markdown(stated[1])
    if option.show_default:
        return f"`{option.default}`"
    return ""


def describe_values(option: click.Option) -> str:
    """Return the values that an option takes, if its type limits them."""
    kind = option.type
    if isinstance(kind, click.Choice):
        return "" if option.metavar else ", ".join(f"`{choice}`" for choice in kind.choices)
    if isinstance(kind, click.IntRange | click.FloatRange):
        if kind.max is None:
            return f"{kind.min:g} or more"
        return f"{kind.min:g} to {kind.max:g}"
    return ""


def write_keys() -> str:
    """Return the page of the keys of all screens."""
    parts = ["# Keys", NOTICE, wrap(ABOUT_KEYS)]
    for heading, places in PLACES.items():
        parts.append(f"## {heading}")
        for place in places:
            if place.lower() != heading.lower():
                parts.append(f"### {place[:1].upper()}{place[1:]}")
            rows = [[f"`{shown(key)}`", to_markdown(key.help)] for key in KEYS[place]]
            parts.append(table(["key", "what it does"], rows))
    return join(parts)


def write_exit_codes() -> str:
    """Return the page of the exit codes."""
    rows = [[f"{int(code)}", to_markdown(meaning)] for code, meaning in MEANINGS.items()]
    parts = [
        "# Exit codes",
        NOTICE,
        wrap(ABOUT_EXIT_CODES),
        table(["code", "when"], rows),
        OWN_EXIT_CODES.strip(),
    ]
    return join(parts)


def write_treatments() -> str:
    """Return the page of all treatments of a tuning."""
    rows = []
    for name, treatment in CATALOGUE.items():
        lesson = f"`{treatment.lesson}`" if treatment.lesson else ""
        rows.append(
            [
                f"`{name}`",
                treatment.title,
                LEARNING[treatment.learns],
                treatment.memory,
                treatment.group,
                lesson,
            ]
        )
    head = ["name", "treatment", "what the script learns", "memory", "group", "lesson"]
    return join([NOTICE, "# Treatments", wrap(ABOUT_TREATMENTS), table(head, rows)])


def to_markdown(text: str) -> str:
    """Return a text of the help as Markdown, with options and variables as code."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):  # the parts between two backticks are code already
        parts[index] = CODE.sub(r"`\g<0>`", parts[index])
    return "`".join(parts)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table without the columns that are empty in every row."""
    filled = [index for index in range(len(head)) if any(row[index] for row in rows)]
    lines = []
    for row in [head, ["---"] * len(head), *rows]:
        cells = [row[index] for index in filled]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def wrap(text: str) -> str:
    return textwrap.fill(
        " ".join(text.split()), LINE_WIDTH, break_long_words=False, break_on_hyphens=False
    )


def join(parts: Sequence[str]) -> str:
    """Return the parts of a page with an empty line between them."""
    return "\n\n".join(parts) + "\n"


PAGES = {
    "commands.md": write_commands,
    "keys.md": write_keys,
    "exit-codes.md": write_exit_codes,
    "treatments.md": write_treatments,
}

if __name__ == "__main__":
    for name, write in PAGES.items():
        (FOLDER / name).write_text(write())
