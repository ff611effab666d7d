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
from pathlib import Path

import click

from tuilab.cli import completion, options
from tuilab.cli.fail_on import Gate, GateType, stopped_by, undecided_by
from tuilab.drawings.glyphs import style_of
from tuilab.errors import ExitCode, TuilabError, UsageError
from tuilab.record.encoding import for_programs
from tuilab.reports.compare_document import CompareDocument, compared_runs
from tuilab.reports.compare_text import render, width_here
from tuilab.reports.comparison_words import running_positions
from tuilab.reports.reported_run import ReportedRun, read_subject
from tuilab.runs import store
from tuilab.runs.command_line import hint
from tuilab.runs.comparing import comparison
from tuilab.runs.entry import from_name
from tuilab.runs.index import Index
from tuilab.runs.representative import needed_reference, representative_runs
from tuilab.text.display import plural, show

Chosen = (
    Path | dict[str, Path]
)  # a run, or the run that represents each scenario in a folder of runs


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
            help="Exit with 1 for a regression, a difference, or slower:5% (see above); may be repeated.",
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
    kind = _format(target) if target else ""
    if plot:
        options.refuse_without_effect("--plot", {"--json": as_json, "-o": target})
    if as_json and kind != "json":
        options.refuse_without_effect("--json", {f"-o {show(target or '', 200)}": target})
    folders = options.roots(roots)
    groups, only = _groups(
        _with_reference([_choose(reference, folders) for reference in runs], folders)
    )
    if not groups:
        raise UsageError("nothing to compare: no scenario has a run in each of these folders")
    compared = []
    for group in groups:
        looks = [_look(run_dir, keeps_private=keep_private or not target) for run_dir in group]
        compared.append(
            (looks, comparison.compare([look.summary for look in looks], running_positions(looks)))
        )
    stopped = [
        (gate, words)
        for gate in gates
        for looks, result in compared
        for words in stopped_by(gate, looks, result)
    ]
    found = [sentence for _, sentence in stopped]
    undecided = [
        (gate, words)
        for gate in gates
        for looks, _ in compared
        for words in undecided_by(gate, looks)
    ]
    code = ExitCode.REFUTED if found else ExitCode.DONE
    document = ""
    if as_json or kind == "json":
        comparisons = [compared_runs(looks, result) for looks, result in compared]
        document = for_programs(
            CompareDocument(int(code), comparisons, only, found, [words for _, words in undecided])
        )
    if target:
        from tuilab.reports import write_report

        if kind == "json":
            write_report.write_text(target, document + "\n")
        else:
            write_report.write_compared([looks for looks, _ in compared], target, kind)
        click.echo(f"{plural(len(compared), 'comparison')}: {show(target, 500)}", err=True)
    elif as_json:
        click.echo(document)
        return code
    else:
        _print(compared, only, has_chart=plot or sys.stdout.isatty())
    for gate, sentence in stopped:
        click.echo(show(f"{gate.name}: {sentence}", 2000), err=bool(target))
    for gate, sentence in undecided:
        click.echo(show(f"{gate.name}: {sentence}", 2000), err=True)
    return code


def _format(target: str) -> str:
    from tuilab.reports.write_report import format_of

    try:
        kind = format_of(target)
    except UsageError:  # it lists the extensions of reports, and a comparison takes fewer
        kind = ""
    if kind not in ("html", "md", "json"):
        raise UsageError(
            f"a comparison cannot be written to {show(target, 200)}; use the extension .html, .md or .json"
        )
    return kind


Compared = Sequence[tuple[Sequence[ReportedRun], comparison.Comparison]]


def _print(compared: Compared, only: Sequence[str], *, has_chart: bool) -> None:
    style = style_of(sys.stdout)
    shown = [
        render(looks, result, style, width_here(), has_chart=has_chart)
        for looks, result in compared
    ]
    if only:
        shown.append(f"not in all folders: {', '.join(map(show, only))}")
    click.echo(style.fit("\n\n".join(shown)), color=True)


def _choose(reference: str, roots: Sequence[Path]) -> Chosen:
    """Return the run, or the runs of the folder, that a word on the line means; a name is looked for among the runs first."""
    path = Path(reference)
    if os.sep not in reference and reference not in (".", ".."):
        try:
            return store.find_among(reference, roots)
        except UsageError:
            if not reference.strip() or not os.path.isdir(path):
                raise
    if not os.path.isdir(path):  # a path that is too long or closed raises in pathlib
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


def _with_reference(chosen: Sequence[Chosen], roots: Sequence[Path]) -> Sequence[Chosen]:
    """Return what is compared: the runs that were named, and before a single run its reference."""
    match chosen:
        case [Path() as run_dir]:
            return [needed_reference(run_dir, Index(run_dir.parent)), run_dir]
        case [_]:
            raise UsageError(
                f"nothing to compare with: name a second run or folder; list the runs: {hint(roots, 'runs')}"
            )
    return chosen


def _groups(chosen: Sequence[Chosen]) -> tuple[list[list[Path]], list[str]]:
    """Return the runs that are compared with each other, and the scenarios that not every folder has."""
    boxes = [
        one if isinstance(one, dict) else {from_name(one.name).scenario: one} for one in chosen
    ]
    if not any(isinstance(one, dict) for one in chosen):
        return [[one for one in chosen if isinstance(one, Path)]], []
    names = dict.fromkeys(name for box in boxes for name in box)
    shared = [name for name in names if all(name in box for box in boxes)]
    return [[box[name] for box in boxes] for name in shared], [
        name for name in names if name not in shared
    ]


def _look(run_dir: Path, *, keeps_private: bool) -> ReportedRun:
    found = read_subject(run_dir, keeps_private=keeps_private)
    if found.summary.run is None:
        raise TuilabError(
            f"cannot compare {show(found.id)}: its start was not recorded; name another run"
        )
    return found
