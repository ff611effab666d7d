"""`tuilab report RUN... -o FILE`: what runs found, as a file to hand on.

The ending of FILE says the format: .html (one page), .md, .json (everything, with raw samples), .csv (every number), .xml
(JUnit), .trace.json (Chrome, Perfetto), .pyperf.json, .tfevents (a folder for TensorBoard). `-` is stdout. Several runs, or
`all` (of every scenario the newest run that succeeded, with its defaults where there is one; where none did, the newest), make
one report about the box; runs of one scenario are shown side by side. What looks like a secret is taken out, and the report
says how much.
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
from tuilab.text import plural, show

if TYPE_CHECKING:
    from tuilab.reports.subject import Subject

_SUMMARY = "GITHUB_STEP_SUMMARY"
_FORMATS = ("html", "md", "json", "csv", "junit", "trace", "pyperf", "tensorboard")


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.runs_and_all_or_sweeps),
        click.Option(
            ["-o", "--output", "target"],
            metavar="FILE",
            help="Where to; its ending says the format; - is stdout.",
            shell_complete=completion.files,
        ),
        click.Option(["--as", "kind"], type=click.Choice(_FORMATS), help="The format, whatever the ending says."),
        click.Option(
            ["--github"],
            is_flag=True,
            help=f"Markdown of at most 65,000 characters; without -o appended to ${_SUMMARY}.",
        ),
        options.KEEP_PRIVATE,
        click.Option(
            ["--schema"],
            is_flag=False,
            flag_value="report",
            metavar="[NAME]",
            help="Print the JSON Schema of the .json, or of a document that other verbs print: runs, doctor; write nothing.",
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
    from tuilab.reports import files
    from tuilab.runs import sweeps

    is_appended = github and not target
    target = target or (os.environ.get(_SUMMARY, "") if github else "")
    if not target:
        why = f"{_SUMMARY} is not set, so " if github else ""
        raise UsageError(f"{why}say where the report goes: -o report.html (or {', '.join(files.ENDINGS)}, or - for stdout)")
    found = files.format_of(target, kind or ("md" if is_appended else ""))
    if github and found != "md":
        raise UsageError(
            f"--github is Markdown, and {show(target, 200)} would be {found}; name a file that ends in .md, or none"
        )
    files.tell_lack(found)
    folders = chosen(runs or ["last"], options.root(root))
    known = _known(scenarios) if "all" in runs else []
    subjects = files.read_subjects(folders, keeps_private=keep_private)
    wanted = options.root(root)
    of_sweeps = {one.run: one for run in runs if run.startswith(sweeps.PREFIX) for one in sweeps.find(run, wanted).entries}
    subjects = [replace(one, of_sweep=of_sweeps.get(one.run_dir.name)) for one in subjects]
    _tell_damage(subjects)
    files.write(subjects, target, found, known=known, limit=files.GITHUB_LIMIT if github else 0, is_appended=is_appended)
    if target != files.STDOUT:
        print(f"{plural(len(folders), 'run')}: {show(target, 500)}", file=sys.stderr)


def _schema(wanted: str) -> str:
    """Return the schema that documents name as a whole, `tuilab.runs/1`, or that is called so, `runs`."""
    from tuilab.cli import schemas

    found = {name.removeprefix("tuilab.").partition("/")[0]: name for name in schemas.names()}
    name = found.get(wanted, wanted)
    if name not in found.values():
        raise UsageError(f"no document has the schema {show(wanted, 60)}; there are {', '.join(found)}")
    return schemas.schema_of(name)


def _tell_damage(subjects: "Sequence[Subject]") -> None:
    """Say of each run whose record is not whole what is the matter; the file says it, too."""
    from tuilab.reports.gaps import damage

    for subject in subjects:
        if problems := damage(subject):
            print(f"tuilab: the record of {subject.id} is not whole: {' '.join(problems)}", file=sys.stderr)


def chosen(references: Sequence[str], root: Path) -> list[Path]:
    """Return the runs that are meant, each once: `all` the one that speaks for every scenario, a sweep those of all points."""
    from tuilab.runs import sweeps
    from tuilab.runs.spokesmen import in_order

    found: dict[Path, None] = {}
    for reference in references:
        if reference == "all":
            runs = in_order(root)
        elif reference.startswith(sweeps.PREFIX):
            runs = sweeps.find(reference, root).runs
        else:
            runs = [store.find(reference, root)]
        found |= dict.fromkeys(runs)
    return list(found)


def _known(scenarios: Sequence[str]) -> list[Scenario]:
    from tuilab.catalogue import catalog

    return catalog.load(scenarios)
