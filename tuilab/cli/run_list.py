"""The runs as `tuilab runs` prints them."""

import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from tuilab.drawings.glyphs import Style, style_of
from tuilab.record.states import RunState
from tuilab.runs import notes
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.listing import folders
from tuilab.runs.listing.entry import WAITS, Entry, changed_words, own_words
from tuilab.runs.notes import Notes
from tuilab.runs.run_name import RunName, by_time
from tuilab.text import plural, show
from tuilab.words import size

LIMIT = 20  # runs, where nobody says how many
_LOOK_AROUND_S = 0.05


class Row(NamedTuple):
    """A run that is shown."""

    root: str
    entry: Entry
    notes: Notes

    @property
    def folder(self) -> str:
        return f"{self.root}/{self.entry.run}"


class RunList:
    """The runs of some folders, newest first; of each no more is read than somebody asks for."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = roots
        self._caches = {root: LedgerCache(root) for root in roots}
        self._names = {root: folders.look(root) for root in roots}
        found = [(root, name) for root, (names, _) in self._names.items() for name in names]
        self.runs = found if len(roots) == 1 else sorted(found, key=lambda run: by_time(run[1]), reverse=True)

    @property
    def passed_over(self) -> list[str]:
        """The folders with the name of a run that are none."""
        return [f"{root}/{name}" for root, (_, names) in self._names.items() for name in names]

    def count(self, limit: int) -> str:
        """Return how many there are, of which so many are shown, and `{}` for what they take."""
        total = len(self.runs)
        return f"{f'… and {total - limit} more: --limit {total}' if total > limit else plural(total, 'run')}, {{}}"

    def entry(self, root: str, run: str) -> Entry:
        return self._caches[root].named(run)

    def row(self, root: str, run: str) -> Row:
        return Row(root, self.entry(root, run), notes.read(f"{root}/{run}"))

    def used(self) -> tuple[int, bool]:
        """Return the bytes of all runs on disk, and whether that is all of them; what was learnt meanwhile is kept."""
        found = [self._used(cache, self._names[root][0]) for root, cache in self._caches.items()]
        return sum(used for used, _ in found), all(is_whole for _, is_whole in found)

    def _used(self, cache: LedgerCache, runs: Sequence[str]) -> tuple[int, bool]:
        cache.look_around(runs, _LOOK_AROUND_S)
        cache.keep()
        return cache.size(runs)


def told(found: RunList, rows: Sequence[Row], count: str) -> str:
    """Return rows as text, below them how many there are (`count`, with `{}` for what they take), and what is to be minded."""
    style = style_of(sys.stdout)
    lines = [_line(row, style, has_box=len(found.roots) > 1) for row in rows]
    used, is_all = found.used()
    not_listed = folders.why_not_listed(found.passed_over, found.roots)
    if found.runs:
        lines.append(count.format(f"{'' if is_all else 'more than '}{size(used)} on disk"))
    elif not not_listed:
        lines.append(f"no runs yet; start one: {_hint(found.roots[0])}")
    return style.fit("\n".join([*lines, *not_listed, *_full_disks(found.roots, rows)]))


def _line(row: Row, style: Style, *, has_box: bool) -> str:
    name, entry = RunName(row.entry.run), row.entry
    marks = "".join(style.mark(verdict) for _, verdict in entry.claims)
    told = show(entry.reason, 200) if entry.state == RunState.UNREADABLE else marks or show(own_words(entry), 60)
    tags = " ".join(f"#{tag}" for tag in row.notes.tags)
    last = style.dim(row.notes.texts[-1][1][:60]) if row.notes.texts else ""
    box = style.dim(show(row.root)) if has_box else ""
    gpus = style.dim(f"on {show(', '.join(entry.gpus), 120)}") if entry.gpus else ""
    more = "  ".join(part for part in (told, _point(entry, style), gpus, tags, last, box) if part)
    return f"{name.id}  {name.started:17}  {show(entry.name):32} {entry.state:10} {_lasting(entry):>9}  {more}".rstrip()


def _point(entry: Entry, style: Style) -> str:
    """Return the values of a point of a sweep, and the id of that; nothing of another run."""
    if not entry.sweep:
        return ""
    return f"{changed_words(entry)}  {style.dim(show(entry.sweep, 40))}"


def _lasting(entry: Entry) -> str:
    if entry.elapsed_s is not None:
        return f"{entry.elapsed_s:.1f} s"
    since_s = entry.elapsed_at(time.time())
    return WAITS if entry.is_waiting else "n/a" if since_s is None else f"{since_s:.0f} s +"


def _full_disks(roots: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each folder that has no room, where a run goes on in it that may be one of this box."""
    recording = {row.root for row in rows if row.entry.is_running and row.entry.is_of_this_box}
    if not recording:
        return []
    from pathlib import Path

    from tuilab.runs import disk_room

    return [disk_room.told(root) for root in map(Path, roots) if str(root) in recording and disk_room.is_full(root)]


def _hint(root: str) -> str:
    from tuilab.runs.command_line import hint

    return hint(root, "run", "stability", "--headless")
