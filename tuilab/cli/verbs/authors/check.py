"""Check scenario files for mistakes; without a name, check all scenarios.

tuilab prints each mistake as PATH:LINE: SENTENCE. The exit code is 0, or 1 if there is a mistake.
Warnings are advice, and do not change the exit code: about sentences that are hard to read, a long
title, a lesson that does not say what to do in practice, or a claim that needs the lesson.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from tuilab.catalogue import catalog, course
from tuilab.catalogue.check import check
from tuilab.catalogue.check_guide import check_guide
from tuilab.catalogue.check_words import check_words
from tuilab.catalogue.checked_file import CheckFinding
from tuilab.catalogue.scenario import Scenario
from tuilab.cli import completion, options
from tuilab.text.display import plural, show

_Located = tuple[str, CheckFinding]  # the path of a file, and a mistake in it


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
    listed = catalog.load(scenarios)
    chosen: dict[str, Scenario] = {}
    named_paths: set[str] = set()  # of scenarios that are named one by one
    for name in names or ["all"]:
        matches = catalog.find(listed, name, scenarios)
        chosen |= {scenario.path: scenario for scenario in matches}
        if len(matches) == 1:
            named_paths.add(matches[0].path)
    findings: list[_Located] = []
    warnings: list[_Located] = []
    for path, scenario in chosen.items():
        findings += [(path, finding) for finding in check(scenario)]
        advice = sorted([*check_guide(scenario), *check_words(scenario)])
        warnings += [(path, warning) for warning in advice]
    if not names or "all" in names:
        findings += _check_courses(listed, scenarios)
    code = 1 if findings else 0
    if as_json:
        options.print_document(
            "tuilab.check/1",
            exit_code=code,
            paths=[str(path) for path in chosen],
            findings=_to_objects(findings),
            warnings=_to_objects(warnings),
        )
        return code
    for path, finding in findings:
        click.echo(_line(path, finding))
    shown_warnings = 0
    for path, warning in warnings:
        if path in named_paths or not _is_of_tuilab(path):
            shown_warnings += 1
            click.echo(_line(path, warning, "warning: "))
    click.echo(_sum_up(len(findings), shown_warnings, len(chosen)), err=True)
    return code


def _check_courses(listed: Sequence[Scenario], folders: Sequence[str]) -> list[_Located]:
    """Return the mistakes in the order of lessons of each folder that has one."""
    findings: list[_Located] = []
    for folder in catalog.scenario_dirs(folders):
        path = f"{folder}/{course.FILE}"
        if not os.path.exists(path):
            continue
        scenarios = []
        for scenario in listed:
            topic_folder = os.path.dirname(scenario.path)
            if os.path.dirname(topic_folder) == folder:
                scenarios.append(scenario)
        for fault in course.check(course.read([folder]), scenarios):
            findings.append((path, CheckFinding(*fault)))
    return findings


def _is_of_tuilab(path: str) -> bool:
    """Return whether a scenario came with tuilab; its words are not the user's to change."""
    return Path(path).is_relative_to(catalog.scenario_dirs()[0])


def _line(path: str, finding: CheckFinding, kind: str = "") -> str:
    here = Path.cwd()
    shown_path = Path(path).relative_to(here) if Path(path).is_relative_to(here) else path
    return f"{show(shown_path)}:{finding.line}: {kind}{show(finding.sentence)}"


def _sum_up(findings: int, warnings: int, scenarios: int) -> str:
    """Return the last line: `0 findings, 2 warnings in 1 scenario`."""
    counts = plural(findings, "finding")
    if warnings:
        counts += f", {plural(warnings, 'warning')}"
    return f"{counts} in {plural(scenarios, 'scenario')}"


def _to_objects(findings: Iterable[_Located]) -> list[dict[str, str | int]]:
    """Return findings as the objects of the JSON document."""
    return [{"path": path, **finding._asdict()} for path, finding in findings]
