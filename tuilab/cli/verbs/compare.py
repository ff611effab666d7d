"""Compare runs: claims with intervals, curves, and differences in parameters, source and machine.

A and B are runs, or folders of runs, for example of two machines. The first is the reference for
all others. One run alone is compared with the baseline of its scenario: the newest run with the tag
`baseline` (`tuilab note RUN --tag baseline`). If there is none, it is compared with the newest
earlier run that succeeded, quick or not as it is itself. Folders are compared scenario by scenario,
for each scenario that all folders have. From each folder, this takes the run that `report all`
takes: the newest finished run with default parameters, if there is one.

The exit code is 0, or 1 if --fail-on finds something:

\b
  regression  a claim got a worse verdict than in the first run, or is missing
  difference  a claim got another verdict, another value, or an estimate
              beyond what the intervals allow
  slower:5%   a call takes longer by more than 5 %, beyond doubt; for runs of
              `tuilab exec`, a step does

Each of them also finds a run that did not succeed although the first run did.
"""

import os
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import click

from tuilab.cli import completion, options
from tuilab.cli.fail_on import Gate, GateType, find_failures, find_undecided
from tuilab.drawings.glyphs import style_of
from tuilab.errors import ExitCode, TuilabError, UsageError
from tuilab.record.encoding import for_programs
from tuilab.reports.compare_text import render, width_here
from tuilab.reports.comparison_words import running_positions
from tuilab.reports.documents.compare_document import CompareDocument, compared_runs
from tuilab.reports.reported_run import ReportedRun, read_subject
from tuilab.runs import store
from tuilab.runs.command_line import hint
from tuilab.runs.comparing.comparison import Comparison, compare
from tuilab.runs.entry import from_name
from tuilab.runs.index import Index
from tuilab.runs.representative import needed_reference, representative_runs
from tuilab.text.display import plural, show

# A run, or for a folder of runs the run that represents each scenario.
_Reference = Path | dict[str, Path]


class _Compared(NamedTuple):
    """Runs that are compared with each other, and the result."""

    runs: list[ReportedRun]
    comparison: Comparison


@click.command(
    help=__doc__,
    params=[
        click.Argument(
            ["runs"],
            nargs=-1,
            required=True,
            metavar="A B...",
            shell_complete=completion.runs_or_folders,
        ),
        options.AS_JSON,
        click.Option(
            ["-o", "--output", "target"],
            metavar="FILE",
            help="Write the comparison to FILE, which ends in .html, .md or .json; - is stdout.",
            shell_complete=completion.files,
        ),
        click.Option(
            ["--fail-on", "gates"],
            type=GateType(),
            multiple=True,
            metavar="GATE",
            help="Exit with 1 for a regression, a difference, or slower:5% (see above); "
            "may be repeated.",
        ),
        options.KEEP_PRIVATE,
        click.Option(
            ["--plot"], is_flag=True, help="Print the curves even if stdout is not a terminal."
        ),
        options.ROOTS,
    ],
)
def command(
    runs: Sequence[str],
    as_json: bool,
    target: str | None,
    gates: Sequence[Gate],
    keep_private: bool,
    plot: bool,
    roots: Sequence[str],
) -> int:
    format_name = _format_of(target) if target else ""
    if plot:
        options.refuse_without_effect("--plot", {"--json": as_json, "-o": target})
    if as_json and format_name != "json":
        options.refuse_without_effect("--json", {f"-o {show(target or '', 200)}": target})
    folders = options.root_paths(roots)
    references = [_find_reference(reference, folders) for reference in runs]
    groups, only_in_some = _group_runs(_add_baseline(references, folders))
    if not groups:
        raise UsageError("nothing to compare: no scenario has a run in each of these folders")
    all_compared = []
    for group in groups:
        keeps_private = keep_private or not target
        reported_runs = [_read_run(run_dir, keeps_private=keeps_private) for run_dir in group]
        summaries = [run.summary for run in reported_runs]
        comparison = compare(summaries, running_positions(reported_runs))
        all_compared.append(_Compared(reported_runs, comparison))
    failures, undecided = _check_gates(gates, all_compared)
    code = ExitCode.REFUTED if failures else ExitCode.DONE
    document = ""
    if as_json or format_name == "json":
        comparisons = [compared_runs(runs, comparison) for runs, comparison in all_compared]
        failure_sentences = [failure.sentence for failure in failures]
        undecided_sentences = [finding.sentence for finding in undecided]
        document = for_programs(
            CompareDocument(
                int(code), comparisons, only_in_some, failure_sentences, undecided_sentences
            )
        )
    if target:
        from tuilab.reports import write_report

        if format_name == "json":
            write_report.write_text(target, document + "\n")
        else:
            groups_of_runs = [compared.runs for compared in all_compared]
            write_report.write_compared(groups_of_runs, target, format_name)
        click.echo(f"{plural(len(all_compared), 'comparison')}: {show(target, 500)}", err=True)
    elif as_json:
        click.echo(document)
        return code
    else:
        _print_comparisons(all_compared, only_in_some, has_chart=plot or sys.stdout.isatty())
    for failure in failures:
        click.echo(failure.line, err=bool(target))
    for finding in undecided:
        click.echo(finding.line, err=True)
    return code


def _format_of(target: str) -> str:
    """Return html, md or json for a file; raise UsageError if it has no such extension."""
    from tuilab.reports.write_report import format_of

    try:
        format_name = format_of(target)
    except UsageError:  # it lists the extensions of reports, and a comparison takes fewer
        format_name = ""
    if format_name not in ("html", "md", "json"):
        raise UsageError(
            f"a comparison cannot be written to {show(target, 200)}; "
            "use the extension .html, .md or .json"
        )
    return format_name


def _print_comparisons(
    all_compared: Sequence[_Compared], only_in_some: Sequence[str], *, has_chart: bool
) -> None:
    """Print the comparisons one below the other, and the scenarios that not all folders have."""
    style = style_of(sys.stdout)
    width = width_here()
    parts = []
    for runs, comparison in all_compared:
        parts.append(render(runs, comparison, style, width, has_chart=has_chart))
    if only_in_some:
        parts.append(f"not in all folders: {', '.join(map(show, only_in_some))}")
    click.echo(style.fit("\n\n".join(parts)), color=True)


# ---- gates


class _GateFinding(NamedTuple):
    """A sentence about runs that fail a gate, or may fail it."""

    gate: Gate
    sentence: str

    @property
    def line(self) -> str:
        return show(f"{self.gate.name}: {self.sentence}", 2000)


def _check_gates(
    gates: Sequence[Gate], all_compared: Sequence[_Compared]
) -> tuple[list[_GateFinding], list[_GateFinding]]:
    """Return what does not pass the gates, and what is not decided."""
    failures = []
    for gate in gates:
        for runs, comparison in all_compared:
            for sentence in find_failures(gate, runs, comparison):
                failures.append(_GateFinding(gate, sentence))
    undecided = []
    for gate in gates:
        for runs, _ in all_compared:
            for sentence in find_undecided(gate, runs):
                undecided.append(_GateFinding(gate, sentence))
    return failures, undecided


# ---- the runs that are compared


def _find_reference(reference: str, roots: Sequence[Path]) -> _Reference:
    """Return the run, or the runs of the folder, that an argument names.

    A name without a slash is looked up among the runs first. Raises UsageError if nothing has that
    name, or if a folder has no runs.
    """
    path = Path(reference)
    if os.sep not in reference and reference not in (".", ".."):
        try:
            return store.find_among(reference, roots)
        except UsageError:
            if not reference.strip() or not os.path.isdir(path):
                raise
    if not os.path.isdir(path):  # pathlib raises for a path that is too long or closed
        raise UsageError(
            f"{show(reference)} is not a folder; name a run, its folder, or a folder of runs"
        )
    path = path.absolute()
    if os.path.isdir(path / "journal"):
        return path
    runs = representative_runs(Index(path))
    if not runs:
        raise UsageError(f"there are no runs in {show(path)}")
    return {scenario: path / run for scenario, run in runs.items()}


def _add_baseline(references: list[_Reference], roots: Sequence[Path]) -> list[_Reference]:
    """Return the references; put the run to compare with before a single run.

    Raises UsageError for a single folder, or if there is no run to compare with.
    """
    if len(references) > 1:
        return references
    run_dir = references[0]
    if not isinstance(run_dir, Path):
        step = hint(roots, "runs")
        raise UsageError(
            f"nothing to compare with: name a second run or folder; list the runs: {step}"
        )
    return [needed_reference(run_dir, Index(run_dir.parent)), run_dir]


def _group_runs(references: Sequence[_Reference]) -> tuple[list[list[Path]], list[str]]:
    """Return the groups of runs that are compared with each other, one for each scenario.

    The second list has the scenarios that not every folder has.
    """
    run_dirs = [reference for reference in references if isinstance(reference, Path)]
    if len(run_dirs) == len(references):
        return [run_dirs], []
    folders: list[dict[str, Path]] = []
    for reference in references:
        if isinstance(reference, Path):
            reference = {from_name(reference.name).scenario: reference}
        folders.append(reference)
    scenarios = dict.fromkeys(chain.from_iterable(folders))
    groups = []
    only_in_some = []
    for scenario in scenarios:
        if all(scenario in folder for folder in folders):
            groups.append([folder[scenario] for folder in folders])
        else:
            only_in_some.append(scenario)
    return groups, only_in_some


def _read_run(run_dir: Path, *, keeps_private: bool) -> ReportedRun:
    """Return a run for a comparison; raise TuilabError if its start was not recorded."""
    run = read_subject(run_dir, keeps_private=keeps_private)
    if run.summary.run is None:
        raise TuilabError(
            f"cannot compare {show(run.id)}: its start was not recorded; name another run"
        )
    return run
