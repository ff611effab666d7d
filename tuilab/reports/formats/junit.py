"""Claims as test cases, for whatever shows JUnit's XML: a failure is a verdict against its claim, as in the exit code.

A case is called by the key of its claim, which stays when the words of the claim get better; they stand in what it says. A run
that was asked for with --strict is judged as strictly here. A record that is not whole is an error, whatever the verdicts are.
"""

import re
import time
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as xml

from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.tracebacks import as_named
from tuilab.record.verdicts import NOT_JUDGED, Verdict
from tuilab.reports.formats.safe_names import marked, names_of, whole
from tuilab.reports.missing_data import damage
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import ResultClaim
from tuilab.reports.sweeps.sweep_summary import drop_repeated_points
from tuilab.runs import command_line
from tuilab.text.display import show, show_lines

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNDECIDED = (Verdict.INCONCLUSIVE, NOT_JUDGED)
_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error"}
_MOST = 10_000  # characters of a sentence


def render(subjects: Sequence[ReportedRun]) -> str:
    """Return a suite for each run and a case for each of its claims; what was run again in a sweep fails nothing."""
    subjects = drop_repeated_points(subjects)
    root = xml.Element("testsuites", name="tuilab")
    for at, (subject, name) in enumerate(zip(subjects, names_of(subjects), strict=True)):
        _put_suite(root, subject, name, at)
    _count(root)
    root.set("time", f"{sum(subject.summary.elapsed_s for subject in subjects):.3f}")
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _put_suite(root: xml.Element, subject: ReportedRun, name: str, at: int) -> None:
    elapsed = f"{subject.summary.elapsed_s:.3f}"
    known = {"name": _name(name), "id": str(at), "time": elapsed, **_origin(subject.summary)}
    suite = xml.SubElement(root, "testsuite", known)
    _put_properties(suite, subject)
    for claim in subject.result.claims:
        _put_case(suite, subject, name, claim)
    if subject.state != RunState.SUCCEEDED:
        case = _case(suite, name, "the run succeeds")
        why = subject.summary.reason or subject.state
        xml.SubElement(case, "error", type=_told(subject.state), message=_told(why)).text = _trace(
            subject
        )
    if problems := damage(subject):
        case = _case(suite, name, "the record is whole")
        xml.SubElement(case, "error", type="damaged", message=_told(" ".join(problems)))
    _count(suite)
    suite.set("skipped", str(sum(1 for _ in suite.iter("skipped"))))


def _origin(summary: RunSummary) -> dict[str, str]:
    """Return when a run began, in UTC, and where; nothing of one that left no record."""
    run = summary.run
    if run is None:
        return {}
    known = {"hostname": _told(run.supervisor.host)} if run.supervisor.host else {}
    if run.wall_ns < 2**62:
        known["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(run.wall_ns / 1e9))
    return known


def _put_properties(suite: xml.Element, subject: ReportedRun) -> None:
    properties = xml.SubElement(suite, "properties")
    for name, value in _properties(subject):
        xml.SubElement(properties, "property", name=_name(name), value=_told(value))


def _properties(subject: ReportedRun) -> Iterator[tuple[str, str]]:
    """Yield what is to be known of the run beside its claims."""
    summary, run = subject.summary, subject.summary.run
    yield from (
        ("run", subject.run_dir.name),
        ("state", subject.state),
        ("record", subject.result.record.digest),
    )
    if run is None:
        return
    yield from (
        ("tuilab", run.tuilab),
        ("title", run.title),
        ("repeats", str(summary.planned_repeats)),
    )
    yield "command", command_line.rerun_line(run, summary.planned_repeats)
    for part, fact in (("torch", "version"), ("gpu", "driver")):
        if known := summary.environment.get(part, {}).get(fact):
            yield f"{part} {fact}", str(known)
    yield from ((f"parameter {name}", str(value)) for name, value in run.params.items())


def _put_case(suite: xml.Element, subject: ReportedRun, name: str, claim: ResultClaim) -> None:
    verdict = claim.outcome
    case = _case(suite, name, claim.claim_id)
    if claim.claimed and (
        seconds := _seconds_raced(subject.summary, {claim.claimed.over, claim.claimed.under})
    ):
        case.set("time", f"{seconds:.3f}")
    said = f"{claim.text}: " if claim.key else ""
    told = _told(f"{said}{verdict}: {claim.evidence}")
    if claim.is_contradicted or (_is_strict(subject.summary) and verdict in _UNDECIDED):
        xml.SubElement(case, "failure", type=verdict, message=told)
    elif verdict in (Verdict.NOT_TESTABLE, *_UNDECIDED):
        xml.SubElement(case, "skipped", message=told)
    else:
        xml.SubElement(case, "system-out").text = told


def _is_strict(summary: RunSummary) -> bool:
    """Say whether the run was asked for with --strict: its exit code went by that."""
    return summary.run is not None and "--strict" in summary.run.argv


def _seconds_raced(summary: RunSummary, arms: set[str]) -> float:
    """Return for how long these arms were timed, in all repeats."""
    return (
        sum(
            block.wall_ns
            for (_, arm), blocks in summary.blocks.items()
            if arm in arms
            for block in blocks
        )
        / 1e9
    )


def _case(suite: xml.Element, run: str, name: str) -> xml.Element:
    return xml.SubElement(
        suite, "testcase", classname=_name(run.replace("/", ".")), name=_name(name)
    )


def _count(element: xml.Element) -> None:
    for attribute, tag in _COUNTED.items():
        element.set(attribute, str(sum(1 for _ in element.iter(tag))))


def _trace(subject: ReportedRun) -> str:
    failure = subject.summary.failure
    text = (
        as_named(failure.traceback, subject.summary)
        if failure
        else "\n".join(subject.summary.faults)
    )
    return _NOT_XML.sub("\ufffd", show_lines(text))


def _name(name: str) -> str:
    """Return a name, whole: what XML cannot hold is told apart."""
    clean = _NOT_XML.sub("\ufffd", name)
    return whole(name) if clean == name else marked(whole(clean), name, " #")


def _told(text: str) -> str:
    return _NOT_XML.sub("\ufffd", show(text, _MOST))
