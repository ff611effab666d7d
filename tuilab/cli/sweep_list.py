"""The sweeps of a folder, as `tuilab sweep` prints them where it is given nothing to go through."""

import sys
from pathlib import Path

from tuilab.cli import options
from tuilab.drawings.glyphs import Style, style_of
from tuilab.reports.sweeps.points import describe_settings
from tuilab.runs import store, sweeps
from tuilab.runs.command_line import hint, short
from tuilab.runs.run_name import RunName
from tuilab.runs.sweeps import Begun
from tuilab.text.display import plural, shorten, show
from tuilab.text.wrapping import terminal_width, wrap

_MOST = 20


def print_sweeps(root: Path, *, as_json: bool) -> None:
    """Print the newest sweeps, what each goes through, and how far it is."""
    found, total = sweeps.newest(root, _MOST)
    if as_json:
        options.print_document(
            "tuilab.sweeps/1", total=total, sweeps=[_fields(one) for one in found]
        )
        return
    style = style_of(sys.stdout)
    width = terminal_width() if sys.stdout.isatty() else 1000  # in a pipe a sweep is a line
    print(
        style.fit(
            "\n".join(
                [
                    *(line for one in found for line in _lines(one, style, width)),
                    _end(len(found), total, root),
                ]
            )
        )
    )


def _lines(begun: Begun, style: Style, width: int) -> list[str]:
    began = RunName(begun.entries[0].run).started
    what = f"{_name(begun)}: {shorten('; '.join(describe_settings(begun.sweep)), 200)}"
    first, *rest = wrap(
        f"{begun.sweep.id}  {began}  {sweeps.describe_counts(begun.counts)}  {what}",
        max(width, 30),
        hang="  ",
    )
    return [style.bold(begun.sweep.id) + first.removeprefix(begun.sweep.id), *rest]


def _end(shown: int, total: int, root: Path) -> str:
    if not total:
        return (
            f"no sweeps yet; start one: {hint(root, 'sweep', 'row-reduce', '--set', 'rows=20,200')}"
        )
    return (
        plural(total, "sweep")
        if shown == total
        else f"the newest {shown} of {plural(total, 'sweep')}"
    )


def _name(begun: Begun) -> str:
    """Return what a sweep runs: a scenario, or a command of the user's as it was typed, with names in braces."""
    words = begun.sweep.argv
    return shorten(
        show(short(words[words.index("--") + 1 :]) if "--" in words else begun.entries[0].name), 80
    )


def _fields(begun: Begun) -> dict[str, object]:
    return {
        "sweep": begun.sweep.id,
        "name": _name(begun),
        "values": begun.sweep.values,
        "points": begun.counts,
        "runs": [store.fields(run_dir) for run_dir in begun.runs],
    }
