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

from tuilab.catalogue.scenario import Scenario
from tuilab.cli import completion, options
from tuilab.errors import UsageError
from tuilab.runs import store
from tuilab.text.display import plural, show

if TYPE_CHECKING:
    from tuilab.reports.reported_run import ReportedRun

_SUMMARY = "GITHUB_STEP_SUMMARY"
_FORMATS = ("html", "md", "json", "csv", "junit", "trace", "tensorboard")


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.runs_and_all_or_sweeps),
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
            help=f"Write Markdown of at most 65,000 characters; without -o, append it to the file ${_SUMMARY}.",
        ),
        options.KEEP_PRIVATE,
        click.Option(
            ["--schema"],
            is_flag=False,
            flag_value="report",
            metavar="[NAME]",
            help="Print the JSON Schema of a .json report, or of what another subcommand prints, such as runs; write nothing.",
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
        click.echo(_schema(schema), nl=False)
        return
    from tuilab.reports import write_report
    from tuilab.runs import sweeps

    is_appended = github and not target
    target = target or (os.environ.get(_SUMMARY, "") if github else "")
    if not target:
        why = f"{_SUMMARY} is not set; " if github else ""
        raise UsageError(f"{why}name an output file, for example -o report.html (- is stdout)")
    found = write_report.format_of(target, kind or ("md" if is_appended else ""))
    if github and found != "md":
        raise UsageError(
            f"--github writes Markdown, but {show(target, 200)} would be {found}; use the extension .md, or drop -o"
        )
    write_report.tell_lack(found)
    folders = chosen(runs or ["last"], options.root(root))
    known = _known(scenarios) if "all" in runs else []
    subjects = write_report.read_subjects(folders, keeps_private=keep_private)
    wanted = options.root(root)
    of_sweeps = {
        one.run: one
        for run in runs
        if run.startswith(sweeps.PREFIX)
        for one in sweeps.find(run, wanted).entries
    }
    subjects = [replace(one, of_sweep=of_sweeps.get(one.run_dir.name)) for one in subjects]
    _tell_damage(subjects)
    write_report.write(
        subjects,
        target,
        found,
        known=known,
        limit=write_report.GITHUB_LIMIT if github else 0,
        is_appended=is_appended,
    )
    if target != write_report.STDOUT:
        print(f"{plural(len(folders), 'run')}: {show(target, 500)}", file=sys.stderr)


def _schema(wanted: str) -> str:
    """Return the schema that documents name as a whole, `tuilab.runs/1`, or that is called so, `runs`."""
    from tuilab.cli import schemas

    found = {name.removeprefix("tuilab.").partition("/")[0]: name for name in schemas.names()}
    name = found.get(wanted, wanted)
    if name not in found.values():
        raise UsageError(
            f"no schema is named {show(wanted, 60)}; --schema takes {', '.join(found)}"
        )
    return schemas.schema_of(name)


def _tell_damage(subjects: "Sequence[ReportedRun]") -> None:
    """Say of each run whose record is not whole what is the matter; the file says it, too."""
    from tuilab.reports.missing_data import damage

    for subject in subjects:
        if problems := damage(subject):
            print(
                f"tuilab: the data of {subject.id} is incomplete: {' '.join(problems)}",
                file=sys.stderr,
            )


def chosen(references: Sequence[str], root: Path) -> list[Path]:
    """Return the runs that are meant, each once: for `all` the run that represents each scenario, for a sweep its points."""
    from tuilab.runs import sweeps
    from tuilab.runs.index import Index
    from tuilab.runs.representative import runs_to_report

    found: dict[Path, None] = {}
    for reference in references:
        if reference == "all":
            runs = [root / run for run in runs_to_report(Index(root))] or [store.find("last", root)]
        elif reference.startswith(sweeps.PREFIX):
            runs = sweeps.find(reference, root).runs
        else:
            runs = [store.find(reference, root)]
        found |= dict.fromkeys(runs)
    return list(found)


def _known(scenarios: Sequence[str]) -> list[Scenario]:
    from tuilab.catalogue import catalog

    return catalog.load(scenarios)
