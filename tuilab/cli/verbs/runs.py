"""`tuilab runs [WORDS]`: the runs on this box, or on several, newest first; options choose among them, and words do.

WORDS are those of the filter of History: words that it must have, !word that it must not, verdict:refuted, state:stopped,
since:1d, tag:mine.
"""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from tuilab.cli import completion, options
from tuilab.drawings.glyphs import Style, style_of
from tuilab.errors import UsageError
from tuilab.record.encoding import for_programs
from tuilab.record.states import RunState
from tuilab.runs import disk_room, notes, store
from tuilab.runs.command_line import hint
from tuilab.runs.filters import HINT, STATES, VERDICTS, Filter, own_words, parse, words_of
from tuilab.runs.ledger import WAITS, Entry
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.notes import Notes
from tuilab.runs.run_name import RunName
from tuilab.text import plural, show
from tuilab.words import size

_LOOK_AROUND_S = 0.05
_ALL = Filter()


@dataclass(frozen=True)
class Wanted:
    """Which runs are wanted; what is empty or None asks for nothing."""

    scenario: str | None = None
    states: Sequence[str] = ()
    since_s: float | None = None
    verdicts: Sequence[str] = ()
    tags: Sequence[str] = ()
    words: Filter = _ALL

    def may_match(self, run: str) -> bool:
        """Say whether a run may be wanted, by the name of its folder alone."""
        started = RunName(run).started_s if self.since_s is not None else None
        return self.words.may_match(run) and (self.since_s is None or (started is not None and started >= self.since_s))

    def matches(self, entry: Entry) -> bool:
        """Say whether a run is wanted, but for its tags."""
        if self.scenario and self.scenario not in (entry.scenario, entry.topic, entry.name):
            return False
        if self.states and entry.state not in self.states:
            return False
        return not self.verdicts or bool({verdict for _, verdict in entry.claims} & {VERDICTS[word] for word in self.verdicts})


@dataclass(frozen=True)
class Row:
    """A run that is shown."""

    folder: Path
    entry: Entry
    notes: Notes


@click.command(
    help=__doc__,
    params=[
        click.Argument(["words"], nargs=-1),
        click.Option(["--limit"], type=click.IntRange(1), default=20, show_default=True, help="How many to show."),
        click.Option(["--scenario"], metavar="NAME", help="Of this scenario or topic.", shell_complete=completion.scenarios),
        click.Option(["--state", "states"], type=click.Choice(STATES), multiple=True, help="In this state; may be repeated."),
        click.Option(
            ["--since"], type=options.Since(), help="Started since: 2h, 3d, today, or a day such as 2026-11-21 (UTC)."
        ),
        click.Option(
            ["--verdict", "verdicts"], type=click.Choice(list(VERDICTS)), multiple=True, help="With a claim that came out so."
        ),
        completion.tag_option("--tag", "With this tag; may be repeated."),
        click.Option(
            ["--claim"],
            metavar="KEY",
            help="This claim of them, run after run, and what changed in between.",
            shell_complete=completion.claims,
        ),
        options.AS_JSON,
        options.ROOTS,
    ],
)
def command(
    words: Sequence[str],
    limit: int,
    scenario: str | None,
    states: Sequence[str],
    since: float | None,
    verdicts: Sequence[str],
    tags: Sequence[str],
    claim: str | None,
    as_json: bool,
    roots: Sequence[str],
) -> None:
    folders = options.roots(roots)
    for word in words:
        options.refuse_empty("WORDS", word)
    asked = parse(" ".join(words), time.time())
    if asked.problem:
        raise UsageError(f"{asked.problem}; WORDS are {HINT}")
    wanted = Wanted(scenario, states, since, verdicts, tags, asked)
    runs = store.newest(folders)
    caches = {root: LedgerCache(root) for root in folders}
    rows: list[Row] = []
    is_more = False
    for row in _chosen(runs, caches, wanted):
        if len(rows) == limit:
            is_more = True
            break
        rows.append(row)
    if claim is not None:
        _show_claim([row.folder for row in reversed(rows)], claim, as_json=as_json)
        return
    sizes = [_size(cache, [run for run in runs if run.parent == root]) for root, cache in caches.items()]
    used, is_all = sum(found for found, _ in sizes), all(is_whole for _, is_whole in sizes)
    if as_json:
        passed_over = {"closed": store.closed(folders), "spoilt": [*map(store.fields, store.spoilt(folders))]}
        document = {"total": len(runs), **passed_over, "bytes": used if is_all else None}
        options.print_document("tuilab.runs/1", **document, runs=[_fields(row) for row in rows])
        return
    style = style_of(sys.stdout)
    lines = [_line(row, style, has_box=len(folders) > 1) for row in rows]
    disk = f"{'' if is_all else 'more than '}{size(used)} on disk"
    not_listed = store.not_listed(folders)
    lines += [] if not_listed and not runs else _footer(folders, len(rows), len(runs), disk, wanted, is_more=is_more)
    lines += not_listed
    lines += [disk_room.told(root) for root in folders if _records_in(root, rows) and disk_room.is_full(root)]
    click.echo(style.fit("\n".join(lines)), color=True)


def _records_in(root: Path, rows: Sequence[Row]) -> bool:
    """Say whether a run goes on in a folder that may be one of this box."""
    return any(row.entry.is_running and row.folder.parent == root and row.entry.is_of_this_box for row in rows)


def _show_claim(run_dirs: Sequence[Path], claim: str, *, as_json: bool) -> None:
    """Print how one claim came out in these runs, the oldest first."""
    from tuilab.reports import claim_history_text as told
    from tuilab.runs.comparing.claim_history import history_of

    history = history_of(run_dirs, claim)
    if as_json:
        click.echo(for_programs(told.fields(history)))
        return
    style = style_of(sys.stdout)
    width = shutil.get_terminal_size((100, 24)).columns
    click.echo(style.fit(f"{told.render(history, style, width)}\n{told.summed_up(history)}"), color=True)


def _chosen(runs: Sequence[Path], caches: dict[Path, LedgerCache], wanted: Wanted) -> Iterator[Row]:
    """Yield the runs that are wanted, reading no more of them than somebody asks for."""
    for run_dir in runs:
        if not wanted.may_match(run_dir.name):
            continue
        entry = caches[run_dir.parent].entry(run_dir)
        if wanted.matches(entry):
            written = notes.read(run_dir)
            is_worded = wanted.words.matches(entry, written, partial(words_of, entry, written))
            if is_worded and set(wanted.tags) <= set(written.tags):
                yield Row(run_dir, entry, written)


def _line(row: Row, style: Style, *, has_box: bool) -> str:
    name, entry = RunName(row.folder.name), row.entry
    marks = "".join(style.mark(verdict) for _, verdict in entry.claims)
    told = show(entry.reason, 200) if entry.state == RunState.UNREADABLE else marks or show(own_words(entry), 60)
    tags = " ".join(f"#{tag}" for tag in row.notes.tags)
    last = style.dim(row.notes.texts[-1][1][:60]) if row.notes.texts else ""
    box = style.dim(show(row.folder.parent)) if has_box else ""
    gpus = style.dim(f"on {show(', '.join(entry.gpus), 120)}") if entry.gpus else ""
    more = "  ".join(part for part in (told, gpus, tags, last, box) if part)
    return f"{name.id}  {name.started:17}  {show(entry.name):32} {entry.state:10} {_lasting(entry):>9}  {more}".rstrip()


def _lasting(entry: Entry) -> str:
    if entry.elapsed_s is not None:
        return f"{entry.elapsed_s:.1f} s"
    since_s = entry.elapsed_at(time.time())
    return WAITS if entry.is_waiting else "n/a" if since_s is None else f"{since_s:.0f} s +"


def _size(cache: LedgerCache, runs: Sequence[Path]) -> tuple[int, bool]:
    """Return the bytes of runs on disk, and whether that is all of them; what was learnt meanwhile is kept."""
    cache.look_around(runs, _LOOK_AROUND_S)
    cache.keep()
    return cache.size(run.name for run in runs)


def _footer(roots: Sequence[Path], shown: int, total: int, disk: str, wanted: Wanted, *, is_more: bool) -> list[str]:
    if not total:
        return [f"no runs yet; make one: {hint(roots[0], 'run', 'stability', '--headless')}"]
    if not shown:
        return [f"none of {plural(total, 'run')} is like that"]
    if wanted == Wanted():
        return [f"{f'… and {total - shown} more: --limit {total}' if total > shown else plural(total, 'run')}, {disk}"]
    count = f"the newest {shown} that are like that" if is_more else f"{shown} of {plural(total, 'run')}"
    return [f"{count}, all runs: {disk}"]


def _fields(row: Row) -> dict[str, Any]:
    entry = row.entry
    return {
        "run": row.folder.name,
        "path": str(row.folder),
        "scenario": entry.scenario,
        "topic": entry.topic,
        "changed": entry.changed,
        "state": entry.state,
        "reason": entry.reason,
        "elapsed_s": entry.elapsed_s,
        "bytes": entry.bytes_total,
        "claims": [
            {"key": key or None, "text": text, "verdict": verdict or None}
            for (text, verdict), key in zip_longest(entry.claims, entry.claim_keys)
        ],
        "gpus": [{"uuid": uuid, "name": name} for uuid, name in entry.gpu_names.items()],
        "tags": row.notes.tags,
        "notes": [{"wall_s": when, "text": text} for when, text in row.notes.texts],
    }
