"""List the sweeps of a folder, as `tuilab sweep` prints them without a scenario or command."""

import sys
from pathlib import Path

from tuilab.cli import options
from tuilab.drawings.glyphs import Style, style_of
from tuilab.reports.sweeps.points import describe_settings
from tuilab.runs import store, sweeps
from tuilab.runs.command_line import hint, short
from tuilab.runs.run_name import RunName
from tuilab.runs.sweeps import RecordedSweep
from tuilab.text.display import plural, shorten, show
from tuilab.text.wrapping import terminal_width, wrap

_MOST = 20  # sweeps in the list
_UNBOUNDED = 1000  # columns: in a pipe, each sweep is one line


def print_sweeps(root: Path, *, as_json: bool) -> None:
    """Print the newest sweeps: what each one runs, its values and its progress."""
    newest, total = sweeps.newest(root, _MOST)
    if as_json:
        documents = [_describe(begun) for begun in newest]
        options.print_document("tuilab.sweeps/1", total=total, sweeps=documents)
        return
    style = style_of(sys.stdout)
    width = terminal_width() if sys.stdout.isatty() else _UNBOUNDED
    lines = []
    for begun in newest:
        lines += _lines(begun, style, width)
    lines.append(_describe_count(len(newest), total, root))
    print(style.fit("\n".join(lines)))


def _lines(begun: RecordedSweep, style: Style, width: int) -> list[str]:
    """Return a sweep as wrapped lines: its id, start, progress, name and settings."""
    sweep_id = begun.sweep.id
    started = RunName(begun.entries[0].run).started
    counts = sweeps.describe_counts(begun.counts)
    settings = shorten("; ".join(describe_settings(begun.sweep)), 200)
    text = f"{sweep_id}  {started}  {counts}  {_name_of(begun)}: {settings}"
    first, *rest = wrap(text, max(width, 30), hang="  ")
    return [style.bold(sweep_id) + first.removeprefix(sweep_id), *rest]


def _describe_count(shown: int, total: int, root: Path) -> str:
    if not total:
        step = hint(root, "sweep", "row-reduce", "--set", "rows=20,200")
        return f"no sweeps yet; start one: {step}"
    count = plural(total, "sweep")
    return count if shown == total else f"the newest {shown} of {count}"


def _name_of(begun: RecordedSweep) -> str:
    """Return what a sweep runs: a scenario, or a command with the names of settings in braces."""
    words = begun.sweep.argv
    if "--" in words:
        name = short(words[words.index("--") + 1 :])
    else:
        name = begun.entries[0].name
    return shorten(show(name), 80)


def _describe(begun: RecordedSweep) -> dict[str, object]:
    """Return a sweep for `--json`."""
    return {
        "sweep": begun.sweep.id,
        "name": _name_of(begun),
        "values": begun.sweep.values,
        "points": begun.counts,
        "runs": [store.fields(run_dir) for run_dir in begun.runs],
    }
