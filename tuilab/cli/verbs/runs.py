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


class RunSelection(NamedTuple):
    """Which runs are listed. A field that is empty or None selects all runs."""

    scenario: str | None = None
    states: Sequence[str] = ()
    since_s: float | None = None
    verdicts: Sequence[str] = ()
    tags: Sequence[str] = ()
    run_filter: RunFilter = RunFilter()

    def may_match(self, run: str) -> bool:
        """Return False if the name of a run is enough to leave it out."""
        if not self.run_filter.may_match(run):
            return False
        if self.since_s is None:
            return True
        started_s = RunName(run).started_s
        return started_s is not None and started_s >= self.since_s

    def matches(self, entry: RunEntry) -> bool:
        """Return whether a run is listed; its tags and the filter are left out."""
        if self.scenario and self.scenario not in (entry.scenario, entry.topic, entry.name):
            return False
        if self.states and entry.state not in self.states:
            return False
        if not self.verdicts:
            return True
        verdicts = {VERDICTS[word] for word in self.verdicts}
        return any(verdict in verdicts for _, verdict in entry.claims)


@click.command(
    help=__doc__,
    params=[
        click.Argument(["words"], nargs=-1, metavar="[FILTER]..."),
        click.Option(
            ["--limit"],
            type=options.WholeNumber(1),
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
            help=f"Show only runs in this state: {join(STATES)}. "
            "May be repeated, to allow several.",
        ),
        click.Option(
            ["--since"],
            type=options.Since(),
            metavar="TIME",
            help="Show only runs that started since then: 2h, 3d, today, "
            "or a day such as 2026-11-21 (UTC).",
        ),
        click.Option(
            ["--verdict", "verdicts"],
            type=click.Choice(list(VERDICTS)),
            metavar="VERDICT",
            multiple=True,
            help=f"Show only runs with a claim that got this verdict: {join(VERDICTS)}. "
            "May be repeated, to allow several.",
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
    for word in words:
        options.refuse_empty("FILTER", word)
    run_list = LazyRunList(options.root_names(roots))
    run_filter = _parse_filter(words, run_list)
    selection = RunSelection(scenario, states, since, verdicts, tags, run_filter)
    # One row more than is shown: then it is known whether there are more.
    rows = list(islice(_select_rows(run_list, selection), limit + 1))
    if run_filter.unknown_key and not rows:
        click.echo(
            f"tuilab: {show(run_filter.unknown_key, 60)} is not a known filter "
            f"and was searched for as text; filters are: {HINT}",
            err=True,
        )
    is_more = len(rows) > limit
    rows = rows[:limit]
    if claim is not None:
        _print_claim([row.folder for row in reversed(rows)], claim, as_json=as_json)
    elif as_json:
        document = _describe_folders(run_list)
        document["runs"] = [_describe_row(row) for row in rows]
        options.print_document("tuilab.runs/1", **document)
    else:
        if selection == RunSelection():
            count = run_list.count(limit)
        else:
            count = _describe_count(len(rows), len(run_list.runs), is_more=is_more)
        click.echo(describe_list(run_list, rows, count), color=True)


def _parse_filter(words: Sequence[str], run_list: LazyRunList) -> RunFilter:
    """Return the filter of the command line; UsageError if a word cannot be used."""
    entries = (run_list.entry(root, run) for root, run in run_list.runs)
    run_filter = parse(with_sweeps(" ".join(words), entries), time.time())
    if run_filter.problem:
        raise UsageError(f"{run_filter.problem}; filters are: {HINT}")
    for word in words:
        if not parse(word, 0.0).terms:
            raise UsageError(f"{show(word, 60)} is an incomplete filter; filters are: {HINT}")
    return run_filter


def _select_rows(run_list: LazyRunList, selection: RunSelection) -> Iterator[RunRow]:
    """Yield the selected runs, newest first; a run is read only when the caller gets to it."""
    for root, run in run_list.runs:
        if not selection.may_match(run) or not run_list.has_journal(root, run):
            continue
        entry = run_list.entry(root, run)
        if not selection.matches(entry):
            continue
        run_notes = notes.read(f"{root}/{run}")
        read_words = partial(words_of, entry, run_notes)
        is_filtered_in = selection.run_filter.matches(entry, run_notes, read_words)
        if is_filtered_in and set(selection.tags) <= set(run_notes.tags):
            yield RunRow(root, entry, run_notes)


def _describe_count(shown: int, total: int, *, is_more: bool) -> str:
    """Return how many runs match, with `{}` where the size of all runs belongs."""
    if not shown:
        return f"0 of {plural(total, 'run')} match"
    count = f"{shown} of {plural(total, 'run')}"
    if is_more:
        count = f"the newest {shown} that match"
    return f"{count}, all runs: {{}}"


def _print_claim(folders: Sequence[str], claim: str, *, as_json: bool) -> None:
    """Print the verdicts of one claim in these runs, the oldest first."""
    import shutil
    from pathlib import Path

    # Imported here: msgspec takes a tenth of the time of `tuilab runs`.
    from tuilab.record.encoding import for_programs
    from tuilab.reports import claim_history_text
    from tuilab.reports.documents.compare_document import history_document
    from tuilab.runs.comparing.claim_history import history_of

    history = history_of([Path(folder) for folder in folders], claim)
    if as_json:
        click.echo(for_programs(history_document(history)))
        return
    style = style_of(sys.stdout)
    width = shutil.get_terminal_size((100, 24)).columns
    lines = [
        claim_history_text.render(history, style, width),
        claim_history_text.summed_up(history),
    ]
    click.echo(style.fit("\n".join(lines)), color=True)


# ---- the document of --json


def _describe_folders(run_list: LazyRunList) -> dict[str, Any]:
    """Return the fields about the folders of runs as a whole."""
    used_bytes, is_complete = run_list.count_bytes()
    spoilt = []
    for folder in run_list.passed_over:
        if has_spoilt_journal(folder):
            spoilt.append({"run": os.path.basename(folder), "path": folder})
    return {
        "total": len(run_list.runs),
        "closed": count_closed(run_list.passed_over),
        "spoilt": spoilt,
        "bytes": used_bytes if is_complete else None,
    }


def _describe_row(row: RunRow) -> dict[str, Any]:
    """Return the fields of a run for `--json`."""
    entry = row.entry
    claims = []
    for (text, verdict), key in zip_longest(entry.claims, entry.claim_keys):
        claims.append({"key": key or None, "text": text, "verdict": verdict or None})
    sweep = None
    if entry.sweep:
        sweep = {"id": entry.sweep, "point": entry.point}
    gpus = [{"uuid": uuid, "name": name} for uuid, name in entry.gpu_names.items()]
    texts = [{"wall_s": wall_s, "text": text} for wall_s, text in row.notes.texts]
    return {
        "run": entry.run,
        "path": row.folder,
        "scenario": entry.scenario,
        "topic": entry.topic,
        "changed": entry.changed,
        "state": entry.state,
        "reason": entry.reason,
        "sweep": sweep,
        "elapsed_s": entry.elapsed_s,
        "bytes": entry.bytes_total,
        "claims": claims,
        "host": entry.host or None,
        "gpus": gpus,
        "tags": row.notes.tags,
        "notes": texts,
    }
