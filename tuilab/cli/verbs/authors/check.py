"""Check scenario files for mistakes; without a name, check all scenarios.

tuilab prints each mistake as PATH:LINE: SENTENCE. The exit code is 0, or 1 if there is a mistake.
Sentences of a lesson that are hard to read are warnings, which do not change the exit code.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from tuilab.catalogue import catalog, course
from tuilab.catalogue.check import check
from tuilab.catalogue.check_words import check_words
from tuilab.catalogue.checked_file import CheckFinding
from tuilab.catalogue.scenario import Scenario
from tuilab.cli import completion, options
from tuilab.text.display import plural, show


@click.command(
    help=__doc__,
    params=[
        click.Argument(
            ["names"], nargs=-1, metavar="[NAME|FILE|all]...", shell_complete=completion.scenarios
        ),
        options.AS_JSON,
        options.SCENARIOS,
    ],
)
def command(names: Sequence[str], as_json: bool, scenarios: Sequence[str]) -> int:
    known = catalog.load(scenarios)
    paths: dict[str, Scenario] = {}
    named_alone: set[str] = set()
    for name in names or ["all"]:
        meant = catalog.find(known, name, scenarios)
        paths |= {scenario.path: scenario for scenario in meant}
        if len(meant) == 1:
            named_alone.add(meant[0].path)
    chosen = paths.values()
    findings = [(scenario.path, finding) for scenario in chosen for finding in check(scenario)]
    if not names or "all" in names:
        findings += _of_courses(known, scenarios)
    warnings = [
        (scenario.path, warning) for scenario in chosen for warning in check_words(scenario)
    ]
    if as_json:
        return _print_document(paths, findings, warnings)
    shown = [
        (path, warning)
        for path, warning in warnings
        if path in named_alone or not _is_of_tuilab(path)
    ]
    for path, finding in findings:
        click.echo(_line(path, finding))
    for path, warning in shown:
        click.echo(_line(path, warning, "warning: "))
    click.echo(_sum_up(len(findings), len(shown), len(chosen)), err=True)
    return 1 if findings else 0


def _is_of_tuilab(path: str) -> bool:
    """Return whether a scenario came with tuilab; its words are not the user's to change."""
    return Path(path).is_relative_to(catalog.scenario_dirs()[0])


def _sum_up(findings: int, warnings: int, scenarios: int) -> str:
    """Return the last line: `0 findings, 2 warnings in 1 scenario`."""
    counts = plural(findings, "finding")
    if warnings:
        counts += f", {plural(warnings, 'warning')}"
    return f"{counts} in {plural(scenarios, 'scenario')}"


def _print_document(
    paths: Iterable[str],
    findings: Sequence[tuple[str, CheckFinding]],
    warnings: Sequence[tuple[str, CheckFinding]],
) -> int:
    """Print the result as JSON and return the exit code."""
    code = 1 if findings else 0
    options.print_document(
        "tuilab.check/1",
        exit_code=code,
        paths=[str(path) for path in paths],
        findings=_to_objects(findings),
        warnings=_to_objects(warnings),
    )
    return code


def _to_objects(findings: Iterable[tuple[str, CheckFinding]]) -> list[dict[str, str | int]]:
    """Return findings as the objects of the JSON document."""
    return [{"path": path, **finding._asdict()} for path, finding in findings]


def _of_courses(
    known: Sequence[Scenario], folders: Sequence[str]
) -> list[tuple[str, CheckFinding]]:
    """Return what is wrong in the order of the lessons of each folder that gives one."""
    found = []
    for folder in catalog.scenario_dirs(folders):
        path = f"{folder}/{course.FILE}"
        if os.path.exists(path):
            within = [
                scenario
                for scenario in known
                if os.path.dirname(os.path.dirname(scenario.path)) == folder
            ]
            found += [
                (path, CheckFinding(*fault))
                for fault in course.check(course.read([folder]), within)
            ]
    return found


def _line(path: str, finding: CheckFinding, kind: str = "") -> str:
    shown = Path(path).relative_to(Path.cwd()) if Path(path).is_relative_to(Path.cwd()) else path
    return f"{show(shown)}:{finding.line}: {kind}{show(finding.sentence)}"
