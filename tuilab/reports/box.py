"""The opening of a report on several runs: which advice holds here, by how much, what was not tested, what to set."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.advice import Advice, advise, env_file, host_of
from tuilab.reports.pages import ClaimRow, claim_row, environment_of
from tuilab.reports.subject import Subject
from tuilab.scenario import Scenario
from tuilab.text import plural, show

_EXACT = "Holds exactly"
_GROUPS = (
    ("Holds on this box, and by how much", "", ("SUPPORTED",)),
    ("Holds, but by less than is claimed", "The direction is right, the size is not.", ("WEAKER THAN CLAIMED",)),
    ("Does not hold on this box", "", ("REFUTED", "NO MEANINGFUL DIFFERENCE")),
    ("Not decided", "Measured, but the measurement does not carry an answer; more repeats or a quieter box may.",
     ("INCONCLUSIVE", "INVALID", "not judged")),
    ("Could not be tested here, and why", "", ("NOT TESTABLE HERE",)),
    (_EXACT, "Counts, values and bytes: the same on every machine that computes rightly.", ("exactly",)),
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One claim of one run."""

    id: str
    name: str
    text: str
    verdict: str
    mark: str
    kind: str
    measured: str
    details: str = ""


@dataclass(frozen=True)
class Group:
    heading: str
    about: str
    findings: tuple[Finding, ...]
    is_folded: bool = False


@dataclass(frozen=True)
class Opening:
    """The first page."""

    host: str
    when: str
    title: str
    counts: str
    groups: tuple[Group, ...]
    settings: bool
    env: str
    not_run: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    advice: Advice


def opening_of(subjects: Sequence[Subject], known: Sequence[Scenario] = ()) -> Opening:
    """Return the opening of a report; `known` are scenarios that are told as never run when they have no run here."""
    findings = sorted((f for subject in subjects for f in _findings(subject)), key=lambda finding: not finding.details)
    hosts = list(dict.fromkeys(filter(None, map(host_of, subjects))))
    advice = advise(subjects, hosts[0] if hosts else "")
    ran = {subject.summary.run.scenario for subject in subjects if subject.summary.run}
    groups = [
        Group(name, about, tuple(f for f in findings if _place(f) in kinds), name == _EXACT) for name, about, kinds in _GROUPS
    ]
    supported = sum(finding.verdict == "SUPPORTED" for finding in findings)
    newest = max((subject.summary.run.wall_ns for subject in subjects if subject.summary.run), default=0)
    return Opening(
        host=show(", ".join(hosts), 200) or "n/a",
        when=time.strftime("%Y-%m-%d", time.gmtime(newest / 1e9)) if 0 < newest < 2**62 else "n/a",
        title="What holds on this box" if len(hosts) < 2 else f"What holds on {len(hosts)} boxes",
        counts=f"{plural(len(subjects), 'run')}; {supported} of {plural(len(findings), 'claim')} supported",
        groups=tuple(group for group in groups if group.findings),
        settings=bool(advice.settings),
        env=env_file(advice),
        not_run=tuple((f"{s.topic}/{s.id}", s.title) for s in known if not s.error and s.id not in ran),
        environment=environment_of(subjects[0]) if subjects else (),
        advice=advice,
    )


def _findings(subject: Subject) -> list[Finding]:
    """Return a run's claims; one that ended badly before any of them says so, too."""
    rows = [claim_row(claim) for claim in subject.summary.claims.values()]
    found = [_finding(subject, row) for row in rows]
    if subject.state != "succeeded":
        why = show(subject.summary.reason) or "it has no end in the record"
        text = f"{subject.title}: the run ended as {show(subject.state)}"
        found.append(Finding(subject.id, subject.name, text, "not judged", "!", "bad", why))
    return found


def _place(finding: Finding) -> str:
    """Return the kind of group that a finding belongs to: what is supported by counting needs nobody's attention."""
    return "exactly" if finding.verdict == "SUPPORTED" and not finding.details else finding.verdict


def _finding(subject: Subject, row: ClaimRow) -> Finding:
    details = f"{row.claimed}; {row.why}" if row.estimate else ""
    return Finding(subject.id, subject.name, row.text, row.verdict, row.mark, row.kind, row.estimate or row.why, details)
