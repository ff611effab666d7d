"""Render claims as test cases, for programs that show JUnit's XML.

A failure is a verdict against its claim, as in the exit code. A case is named by the key of its
claim, which stays when the text of the claim improves; the message has the text. A run that was
started with --strict is judged as strictly here. An incomplete record is an error, whatever the
verdicts are.
"""

import re
import time
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as xml

from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.tracebacks import as_named
from tuilab.record.tuning.stages import count_processes, is_tuning
from tuilab.record.verdicts import NOT_JUDGED, Verdict
from tuilab.reports.formats.safe_names import add_digest, distinct_names, safe_name
from tuilab.reports.missing_data import damage
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import ResultClaim
from tuilab.reports.sweeps.sweep_summary import drop_repeated_points
from tuilab.runs import command_line
from tuilab.text.display import show, show_lines

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNDECIDED = (Verdict.INCONCLUSIVE, NOT_JUDGED)
_COUNTED_TAGS = {"tests": "testcase", "failures": "failure", "errors": "error"}
_TEXT_LENGTH = 10_000  # characters
_MAX_WALL_NS = 2**62  # a later time is not shown


def render(subjects: Sequence[ReportedRun]) -> str:
    """Return a suite for each run and a case for each of its claims.

    Runs of a sweep whose point was run again are left out, so that they fail nothing.
    """
    subjects = drop_repeated_points(subjects)
    root = xml.Element("testsuites", name="tuilab")
    names = distinct_names(subjects)
    for number, (subject, name) in enumerate(zip(subjects, names, strict=True)):
        _add_suite(root, subject, name, number)
    _set_counts(root)
    elapsed_s = sum(subject.summary.elapsed_s for subject in subjects)
    root.set("time", f"{elapsed_s:.3f}")
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _add_suite(root: xml.Element, subject: ReportedRun, name: str, number: int) -> None:
    """Add the suite of a run to `root`, with a case for each claim, and set its counts.

    A run that did not succeed, and a damaged record, are added as a case with an error.
    """
    suite = xml.SubElement(root, "testsuite", name=_format_name(name), id=str(number))
    suite.set("time", f"{subject.summary.elapsed_s:.3f}")
    _set_origin(suite, subject.summary)
    properties = xml.SubElement(suite, "properties")
    for key, value in _list_properties(subject):
        xml.SubElement(properties, "property", name=_format_name(key), value=_format_text(value))
    for claim in subject.result.claims:
        _add_claim(suite, subject, name, claim)
    if subject.state != RunState.SUCCEEDED:
        case = _add_case(suite, name, "the run succeeds")
        message = _format_text(subject.summary.reason or subject.state)
        state = _format_text(subject.state)
        error = xml.SubElement(case, "error", type=state, message=message)
        error.text = _format_failure(subject)
    problems = damage(subject)
    if problems:
        case = _add_case(suite, name, "the record is whole")
        message = _format_text(" ".join(problems))
        xml.SubElement(case, "error", type="damaged", message=message)
    _set_counts(suite)
    suite.set("skipped", str(_count(suite, "skipped")))


def _set_origin(suite: xml.Element, summary: RunSummary) -> None:
    """Set on which machine a run began and when, in UTC, if it left a record."""
    run = summary.run
    if run is None:
        return
    if run.supervisor.host:
        suite.set("hostname", _format_text(run.supervisor.host))
    if run.wall_ns < _MAX_WALL_NS:
        began = time.gmtime(run.wall_ns / 1e9)
        suite.set("timestamp", time.strftime("%Y-%m-%dT%H:%M:%S", began))


def _list_properties(subject: ReportedRun) -> Iterator[tuple[str, str]]:
    """Yield facts about the run that are not claims; fewer if its first record is lost."""
    summary = subject.summary
    run = summary.run
    yield "run", subject.run_dir.name
    yield "state", subject.state
    yield "record", subject.result.record.digest
    if run is None:
        return
    yield "tuilab", run.tuilab
    yield "title", run.title
    if is_tuning(summary):  # its planned repeats are only a limit
        yield "processes", str(count_processes(summary))
    else:
        yield "repeats", str(summary.planned_repeats)
    yield "command", command_line.rerun_line(run, summary.planned_repeats)
    for part, fact in (("torch", "version"), ("gpu", "driver")):
        value = summary.environment.get(part, {}).get(fact)
        if value:
            yield f"{part} {fact}", str(value)
    for name, parameter in run.params.items():
        yield f"parameter {name}", str(parameter)


# ---- cases


def _add_claim(suite: xml.Element, subject: ReportedRun, name: str, claim: ResultClaim) -> None:
    """Add the case of a claim: passed, skipped or failed.

    It fails if the verdict is against the claim, and with --strict if it is undecided. A claim that
    is not testable here is skipped, as is an undecided claim without --strict. A treatment of a
    tuning was only tried, so it does not fail if it is not faster.
    """
    verdict = claim.outcome
    case = _add_case(suite, name, claim.claim_id)
    if claim.claimed:
        timed_s = _timed_s(subject.summary, {claim.claimed.over, claim.claimed.under})
        if timed_s:
            case.set("time", f"{timed_s:.3f}")
    message = f"{verdict}: {claim.evidence}"
    if claim.key:  # otherwise the name of the case is the text of the claim
        message = f"{claim.text}: {message}"
    message = _format_text(message)
    is_undecided = verdict in _UNDECIDED
    is_against = claim.is_contradicted and subject.summary.tuning.plan is None
    if is_against or (is_undecided and _is_strict(subject.summary)):
        xml.SubElement(case, "failure", type=verdict, message=message)
    elif is_undecided or verdict == Verdict.NOT_TESTABLE:
        xml.SubElement(case, "skipped", message=message)
    else:
        xml.SubElement(case, "system-out").text = message


def _is_strict(summary: RunSummary) -> bool:
    """Return whether the run was started with --strict, as its exit code was."""
    if summary.run is None:
        return False
    words = summary.run.argv
    # The command of a user may have such an option as well.
    return "--strict" in words[: len(words) - len(summary.run.command)]


def _timed_s(summary: RunSummary, arms: set[str]) -> float:
    """Return for how long some arms were timed, in all repeats."""
    total_ns = 0
    for (_, arm), blocks in summary.blocks.items():
        if arm in arms:
            total_ns += sum(block.wall_ns for block in blocks)
    return total_ns / 1e9


def _format_failure(subject: ReportedRun) -> str:
    """Return the traceback of a run that failed; without one, what its processes left as faults."""
    failure = subject.summary.failure
    if failure:
        text = as_named(failure.traceback, subject.summary)
    else:
        text = "\n".join(subject.summary.faults)
    return _replace_not_xml(show_lines(text))


def _add_case(suite: xml.Element, run: str, name: str) -> xml.Element:
    class_name = _format_name(run.replace("/", "."))
    return xml.SubElement(suite, "testcase", classname=class_name, name=_format_name(name))


def _set_counts(element: xml.Element) -> None:
    for attribute, tag in _COUNTED_TAGS.items():
        element.set(attribute, str(_count(element, tag)))


def _count(element: xml.Element, tag: str) -> int:
    return len(list(element.iter(tag)))


# ---- text


def _format_name(name: str) -> str:
    """Return a whole name. Names that differ in characters that XML cannot hold stay distinct."""
    clean = _replace_not_xml(name)
    if clean == name:
        return safe_name(name)
    return add_digest(safe_name(clean), name, " #")


def _format_text(text: str) -> str:
    return _replace_not_xml(show(text, _TEXT_LENGTH))


def _replace_not_xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
