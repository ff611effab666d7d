"""Write a report of runs to a file that you can share.

The extension of FILE sets the format:

\b
  .html          one page                  .csv          every number
  .md            Markdown                  .trace.json   Chrome, Perfetto
  .json          all data, raw samples     .tfevents     a TensorBoard folder
  .xml           JUnit

RUNS are runs or sweeps (default: the last run), or `all`: for each scenario its newest successful
run, preferably one with default parameters, or else its newest run. Several runs make one report;
runs of the same scenario are shown side by side. Text that looks like a secret is removed, and the
report says how much.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuilab.cli import completion, options
from tuilab.errors import UsageError
from tuilab.runs import store
from tuilab.text.display import plural, show

if TYPE_CHECKING:
    from tuilab.reports.reported_run import ReportedRun
    from tuilab.runs.entry import RunEntry

_SUMMARY = "GITHUB_STEP_SUMMARY"  # variable with the file that a step of GitHub Actions shows
_FORMATS = ("html", "md", "json", "csv", "junit", "trace", "tensorboard")


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.runs_or_all_or_sweeps),
        click.Option(
            ["-o", "--output", "target"],
            metavar="FILE",
            help="Write to FILE; its extension sets the format; - is stdout.",
            shell_complete=completion.files,
        ),
        click.Option(
            ["--as", "kind"],
            type=click.Choice(_FORMATS),
            metavar="FORMAT",
            help=f"Use this format, whatever the extension: {', '.join(_FORMATS)}.",
        ),
        click.Option(
            ["--github"],
            is_flag=True,
            help="Write Markdown of at most 65,000 characters; without -o, append it to the file "
            f"${_SUMMARY}.",
        ),
        options.KEEP_PRIVATE,
        click.Option(
            ["--schema"],
            is_flag=False,
            flag_value="report",
            metavar="[NAME]",
            help="Print the JSON Schema of a .json report, or of what another subcommand prints, "
            "such as runs; write nothing.",
        ),
        *options.FOLDERS,
    ],
)
def command(
    runs: Sequence[str],
    target: str | None,
    kind: str | None,
    github: bool,
    keep_private: bool,
    schema: str | None,
    scenarios: Sequence[str],
    root: str | None,
) -> None:
    if schema is not None:
        click.echo(_find_schema(schema), nl=False)
        return
    from tuilab.reports import write_report

    is_appended = github and not target
    if is_appended:
        target = os.environ.get(_SUMMARY, "")
    if not target:
        reason = f"{_SUMMARY} is not set; " if github else ""
        raise UsageError(f"{reason}name an output file, for example -o report.html (- is stdout)")
    if is_appended and not kind:
        kind = "md"
    format_name = write_report.format_of(target, kind or "")
    if github and format_name != "md":
        raise UsageError(
            f"--github writes Markdown, but {show(target, 200)} would be {format_name}; "
            "use the extension .md, or drop -o"
        )
    write_report.tell_lack(format_name)
    folder = options.root_path(root)
    run_dirs = find_runs(runs or ["last"], folder)
    listed = []
    if "all" in runs:
        from tuilab.catalogue import catalog

        listed = catalog.load(scenarios)
    subjects = write_report.read_subjects(run_dirs, keeps_private=keep_private)
    subjects = _add_sweeps(subjects, runs, folder)
    _print_damage(subjects)
    write_report.write(
        subjects,
        target,
        format_name,
        scenarios=listed,
        limit=write_report.GITHUB_LIMIT if github else 0,
        is_appended=is_appended,
    )
    if target != write_report.STDOUT:
        print(f"{plural(len(run_dirs), 'run')}: {show(target, 500)}", file=sys.stderr)


def _find_schema(name: str) -> str:
    """Return a schema by its full name, such as `tuilab.runs/1`, or its short one, `runs`.

    Raises UsageError for another name.
    """
    from tuilab.cli import schemas

    full_names = {}
    for full_name in schemas.names():
        short_name, _, _ = full_name.removeprefix("tuilab.").partition("/")
        full_names[short_name] = full_name
    full_name = full_names.get(name, name)
    if full_name not in full_names.values():
        raise UsageError(
            f"no schema is named {show(name, 60)}; --schema takes {', '.join(full_names)}"
        )
    return schemas.schema_of(full_name)


def find_runs(references: Sequence[str], root: Path) -> list[Path]:
    """Return the folders of the named runs, each once; raise UsageError for an unknown name.

    `all` means the run that represents each scenario, or the newest run if there is none. A sweep
    means its points.
    """
    from tuilab.runs import sweeps
    from tuilab.runs.index import Index
    from tuilab.runs.representative import runs_to_report

    run_dirs: list[Path] = []
    for reference in references:
        if reference == "all":
            representatives = [root / run for run in runs_to_report(Index(root))]
            run_dirs += representatives or [store.find("last", root)]
        elif reference.startswith(sweeps.PREFIX):
            run_dirs += sweeps.find(reference, root).runs
        else:
            run_dirs.append(store.find(reference, root))
    return list(dict.fromkeys(run_dirs))


def _add_sweeps(
    subjects: "Sequence[ReportedRun]", references: Sequence[str], root: Path
) -> "list[ReportedRun]":
    """Return the runs, those of a named sweep with their entry as one of its points."""
    from tuilab.runs import sweeps

    entries: dict[str, RunEntry] = {}
    for reference in references:
        if reference.startswith(sweeps.PREFIX):
            entries |= {entry.run: entry for entry in sweeps.find(reference, root).entries}
    return [replace(subject, of_sweep=entries.get(subject.run_dir.name)) for subject in subjects]


def _print_damage(subjects: "Sequence[ReportedRun]") -> None:
    """Print for each run with an incomplete record what is missing; the report says it as well."""
    from tuilab.reports.missing_data import damage

    for subject in subjects:
        problems = " ".join(damage(subject))
        if problems:
            print(f"tuilab: the data of {subject.id} is incomplete: {problems}", file=sys.stderr)
