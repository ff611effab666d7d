"""List past and current runs, newest first.

FILTER selects runs, as on the History screen: a word that must occur, !word for a word that must
not occur, verdict:refuted, state:stopped, since:1d or tag:mine. Several filters and options select
the runs that match all of them.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import click

from tuilab.cli import completion, options
from tuilab.cli.run_list import LIMIT, LazyRunList, RunRow, describe_list
from tuilab.drawings.glyphs import style_of
from tuilab.errors import UsageError
from tuilab.runs import notes
from tuilab.runs.entry import RunEntry
from tuilab.runs.filters import HINT, STATES, VERDICTS, RunFilter, parse, with_sweeps, words_of
from tuilab.runs.folders import count_closed, has_spoilt_journal
from tuilab.runs.run_name import RunName
from tuilab.text.display import join, plural, show

_ALL = RunFilter()


class RunSelection(NamedTuple):
    """Which runs are wanted; an empty field, or None, asks for nothing."""

    scenario: str | None = None
    states: Sequence[str] = ()
    since_s: float | None = None
    verdicts: Sequence[str] = ()
    tags: Sequence[str] = ()
    words: RunFilter = _ALL

    def may_match(self, run: str) -> bool:
        """Say whether a run may be wanted, by the name of its folder alone."""
        started = RunName(run).started_s if self.since_s is not None else None
        return self.words.may_match(run) and (
            self.since_s is None or (started is not None and started >= self.since_s)
        )

    def matches(self, entry: RunEntry) -> bool:
        """Say whether a run is wanted, but for its tags."""
        if self.scenario and self.scenario not in (entry.scenario, entry.topic, entry.name):
            return False
        if self.states and entry.state not in self.states:
            return False
        return not self.verdicts or bool(
            {verdict for _, verdict in entry.claims} & {VERDICTS[word] for word in self.verdicts}
        )


@click.command(
    help=__doc__,
    params=[
        click.Argument(["words"], nargs=-1, metavar="[FILTER]..."),
        click.Option(
            ["--limit"],
            type=options.Whole(1),
            metavar="N",
            default=LIMIT,
            show_default=True,
            help="Show at most N runs.",
        ),
        click.Option(
            ["--scenario"],
            metavar="NAME",
            help="Show only runs of this scenario or topic.",
            shell_complete=completion.scenarios,
        ),
        click.Option(
            ["--state", "states"],
            type=click.Choice(STATES),
            metavar="STATE",
            multiple=True,
            help=f"Show only runs in this state: {join(STATES)}. May be repeated, to allow several.",
        ),
        click.Option(
            ["--since"],
            type=options.Since(),
            metavar="TIME",
            help="Show only runs that started since then: 2h, 3d, today, or a day such as 2026-11-21 (UTC).",
        ),
        click.Option(
            ["--verdict", "verdicts"],
            type=click.Choice(list(VERDICTS)),
            metavar="VERDICT",
            multiple=True,
            help=f"Show only runs with a claim that got this verdict: {join(VERDICTS)}. May be repeated, to allow several.",
        ),
        completion.tag_option("--tag", "Show only runs with this tag; may be repeated."),
        click.Option(
            ["--claim"],
            metavar="KEY",
            help="Follow one claim through the runs, and show what changed between them.",
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
    folders = options.root_names(roots)
    for word in words:
        options.refuse_empty("FILTER", word)
    found = LazyRunList(folders)
    asked = parse(
        with_sweeps(" ".join(words), (found.entry(*run) for run in found.runs)), time.time()
    )
    if asked.problem:
        raise UsageError(f"{asked.problem}; filters are: {HINT}")
    if idle := next((word for word in words if not parse(word, 0.0).terms), ""):
        raise UsageError(f"{show(idle, 60)} is an incomplete filter; filters are: {HINT}")
    wanted = RunSelection(scenario, states, since, verdicts, tags, asked)
    rows = [*islice(_chosen(found, wanted), limit + 1)]
    if asked.unknown_key and not rows:
        click.echo(
            f"tuilab: {show(asked.unknown_key, 60)} is not a known filter and was searched for as text; filters are: {HINT}",
            err=True,
        )
    is_more, rows = len(rows) > limit, rows[:limit]
    if claim is not None:
        _show_claim([row.folder for row in reversed(rows)], claim, as_json=as_json)
    elif as_json:
        options.print_document(
            "tuilab.runs/1", **_document(found), runs=[_fields(row) for row in rows]
        )
    else:
        count = (
            found.count(limit)
            if wanted == RunSelection()
            else _count(len(rows), len(found.runs), is_more=is_more)
        )
        click.echo(describe_list(found, rows, count), color=True)


def _document(found: LazyRunList) -> dict[str, Any]:
    used, is_all = found.used()
    spoilt = [
        {"run": os.path.basename(folder), "path": folder}
        for folder in found.passed_over
        if has_spoilt_journal(folder)
    ]
    closed = count_closed(found.passed_over)
    return {
        "total": len(found.runs),
        "closed": closed,
        "spoilt": spoilt,
        "bytes": used if is_all else None,
    }


def _show_claim(folders: Sequence[str], claim: str, *, as_json: bool) -> None:
    """Print how one claim came out in these runs, the oldest first."""
    import shutil
    from pathlib import Path

    from tuilab.record.encoding import (
        for_programs,
    )  # imported here: msgspec takes a tenth of the time of `tuilab runs`
    from tuilab.reports import claim_history_text
    from tuilab.reports.compare_document import history_document
    from tuilab.runs.comparing.claim_history import history_of

    history = history_of([Path(folder) for folder in folders], claim)
    if as_json:
        click.echo(for_programs(history_document(history)))
        return
    style = style_of(sys.stdout)
    width = shutil.get_terminal_size((100, 24)).columns
    click.echo(
        style.fit(
            f"{claim_history_text.render(history, style, width)}\n{claim_history_text.summed_up(history)}"
        ),
        color=True,
    )


def _chosen(found: LazyRunList, wanted: RunSelection) -> Iterator[RunRow]:
    """Yield the runs that are wanted, reading no more of them than somebody asks for."""
    for root, run in found.runs:
        if not (wanted.may_match(run) and found.is_there(root, run)):
            continue
        entry = found.entry(root, run)
        if wanted.matches(entry):
            written = notes.read(f"{root}/{run}")
            is_worded = wanted.words.matches(entry, written, partial(words_of, entry, written))
            if is_worded and set(wanted.tags) <= set(written.tags):
                yield RunRow(root, entry, written)


def _count(shown: int, total: int, *, is_more: bool) -> str:
    """Return how many of the runs are like that, and `{}` for what all of them take."""
    if not shown:
        return f"0 of {plural(total, 'run')} match"
    count = f"the newest {shown} that match" if is_more else f"{shown} of {plural(total, 'run')}"
    return f"{count}, all runs: {{}}"


def _fields(row: RunRow) -> dict[str, Any]:
    entry = row.entry
    return {
        "run": entry.run,
        "path": row.folder,
        "scenario": entry.scenario,
        "topic": entry.topic,
        "changed": entry.changed,
        "state": entry.state,
        "reason": entry.reason,
        "sweep": {"id": entry.sweep, "point": entry.point} if entry.sweep else None,
        "elapsed_s": entry.elapsed_s,
        "bytes": entry.bytes_total,
        "claims": [
            {"key": key or None, "text": text, "verdict": verdict or None}
            for (text, verdict), key in zip_longest(entry.claims, entry.claim_keys)
        ],
        "host": entry.host or None,
        "gpus": [{"uuid": uuid, "name": name} for uuid, name in entry.gpu_names.items()],
        "tags": row.notes.tags,
        "notes": [{"wall_s": when, "text": text} for when, text in row.notes.texts],
    }
