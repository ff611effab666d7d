"""Claims as test cases, for whatever shows JUnit's XML: a failure is a verdict against its claim, as in the exit code.

A case is called by the key of its claim, which stays when the words of the claim get better; they stand in what it says.
"""

import re
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from tuilab.record.parts import Claim
from tuilab.record.states import RunState
from tuilab.record.told import evidence
from tuilab.record.verdicts import NOT_JUDGED, Verdict
from tuilab.reports.subject import Subject
from tuilab.text import show, show_lines

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SKIPPED = (Verdict.NOT_TESTABLE, Verdict.INCONCLUSIVE, NOT_JUDGED)


def render(subjects: Sequence[Subject]) -> str:
    """Return a suite for each run and a case for each of its claims."""
    root = xml.Element("testsuites", name="tuilab")
    for subject in subjects:
        _put_suite(root, subject)
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _put_suite(root: xml.Element, subject: Subject) -> None:
    suite = xml.SubElement(root, "testsuite", name=_safe(subject.name), time=f"{subject.summary.elapsed_s:.3f}")
    for claim in subject.summary.claims.values():
        _put_case(suite, subject, claim)
    if subject.state != RunState.SUCCEEDED:
        case = _case(suite, subject, "the run succeeds")
        why = subject.summary.reason or subject.state
        xml.SubElement(case, "error", message=_safe(why)).text = _trace(subject)
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(1 for _ in suite.iter(tag))))


def _put_case(suite: xml.Element, subject: Subject, claim: Claim) -> None:
    verdict = claim.outcome
    case = _case(suite, subject, claim.claim_id)
    said = f"{claim.text}: " if claim.key else ""
    told = _safe(f"{said}{verdict}: {evidence(claim)}")
    if claim.is_contradicted:
        xml.SubElement(case, "failure", type=verdict, message=told)
    elif verdict in _SKIPPED:
        xml.SubElement(case, "skipped", message=told)
    else:
        xml.SubElement(case, "system-out").text = told


def _case(suite: xml.Element, subject: Subject, name: str) -> xml.Element:
    return xml.SubElement(suite, "testcase", classname=_safe(subject.name.replace("/", ".")), name=_safe(name))


def _trace(subject: Subject) -> str:
    failure = subject.summary.failure
    text = failure.traceback if failure else "\n".join(subject.summary.faults)
    return _NOT_XML.sub("\ufffd", show_lines(text))


def _safe(text: str) -> str:
    return _NOT_XML.sub("\ufffd", show(text))
