"""The opening of a report on several runs: which advice holds here, by how much, what was not tested, what to set."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.catalogue.params import spell
from tuilab.catalogue.scenario import Scenario
from tuilab.record.states import RUNNING_STATES, RunState
from tuilab.record.verdicts import NOT_JUDGED, Verdict
from tuilab.reports.advice.advised import AdvisedSetting, advise
from tuilab.reports.advice.env_file import describe_comparison, env_file
from tuilab.reports.advice.validity import Facts, facts_of
from tuilab.reports.charts.spreads import Interval
from tuilab.reports.pages import ClaimRow, claim_row
from tuilab.reports.reported_run import ReportedRun
from tuilab.runs.command_line import changes
from tuilab.text.display import plural, show

_EXACT = "Holds exactly"
_NOT_TESTED = "not testable here"
_GROUPS = (
    ("Holds on this machine, and by how much", "", "holds"),
    ("Holds, but by less than is claimed", "The direction is right, the size is not.", "holds, but by less"),
    ("Does not hold on this machine", "", "does not hold"),
    ("A control failed", "The measurements cannot be trusted, so they say nothing about these claims.", "control failed"),
    ("Not decided", "Measured, but not precisely enough; more repeats or a quieter machine may help.", "not decided"),
    ("Not tested here, and why", "If the reason names an option or a value, a run with it tests the claim.", _NOT_TESTED),
    (_EXACT, "Counts, values and bytes: the same on every machine.", "exactly"),
)  # fmt: skip


_PARTS = {  # how a claim came out, and its colour
    "holds": "good",
    "holds, but by less": "fair",
    "does not hold": "bad",
    "control failed": "bad",
    "not decided": "open",
    _NOT_TESTED: "none",
}


@dataclass(frozen=True)
class ClaimFinding:
    """One claim of one run."""

    id: str
    name: str  # of the scenario, with what was asked otherwise than its defaults, and the box and GPU where there are several
    text: str
    verdict: str
    mark: str
    kind: str
    measured: str
    details: str = ""
    interval: Interval | None = None
    claims: int = 1  # that it is about


@dataclass(frozen=True)
class FindingGroup:
    heading: str
    about: str
    findings: tuple[ClaimFinding, ...]
    is_folded: bool = False


@dataclass(frozen=True)
class Part:
    """A part of all claims, in a bar that shows them at a glance."""

    words: str
    kind: str
    count: int
    left: float  # in percent
    width: float


@dataclass(frozen=True)
class Followed:
    """A setting that follows, what it was held against, and what speaks against it."""

    setting: str
    about: str
    compared: str
    against: str
    id: str
    name: str


@dataclass(frozen=True)
class Opening:
    """The first page."""

    host: str
    when: str
    title: str
    box: str  # what the box is, in a line
    counts: str
    parts: tuple[Part, ...]
    groups: tuple[FindingGroup, ...]
    settings: tuple[Followed, ...]
    env: str
    has_env: bool  # whether there is more in it than that nothing is set
    not_run: tuple[tuple[str, str], ...]


def opening_of(subjects: Sequence[ReportedRun], known: Sequence[Scenario] = ()) -> Opening:
    """Return the opening of a report; `known` are scenarios that are told as never run when they have no run here."""
    boxes = boxes_of(subjects)
    hosts = list(boxes)
    where = (
        {id(one): name for name, group in boxes.items() for one in group} if len(hosts) > 1 else {}
    )
    gpus = {gpu for subject in subjects for gpu in _gpus(subject)}
    found = [
        finding
        for subject in subjects
        for finding in _findings(subject, where.get(id(subject), ""), has_gpu=len(gpus) > 1)
    ]
    findings = sorted(found, key=lambda finding: not finding.details)
    advice = advise(subjects, _facts_now(boxes[hosts[0]]) if hosts else {}, scenarios=known)
    ran = {subject.summary.run.scenario for subject in subjects if subject.summary.run}
    groups = [
        FindingGroup(name, about, tuple(f for f in findings if _place(f) == place), name == _EXACT)
        for name, about, place in _GROUPS
    ]
    supported = sum(finding.verdict == Verdict.SUPPORTED for finding in findings)
    newest = max(
        (subject.summary.run.wall_ns for subject in subjects if subject.summary.run), default=0
    )
    claims = sum(len(subject.summary.claims) for subject in subjects)
    return Opening(
        host=show(", ".join(hosts), 200) or "n/a",
        when=time.strftime("%Y-%m-%d", time.gmtime(newest / 1e9)) if 0 < newest < 2**62 else "n/a",
        title="What holds on this machine"
        if len(hosts) < 2
        else f"What holds on {len(hosts)} machines",
        box=_box_words(boxes[hosts[0]][0]) if len(hosts) == 1 else "",
        counts=f"{plural(len(subjects), 'run')}; {supported} of {plural(claims, 'claim')} supported",
        parts=tuple(_parts(findings)),
        groups=tuple(group for group in groups if group.findings),
        settings=tuple(map(_followed, advice.settings)),
        env=env_file(advice),
        has_env=bool(advice.settings or advice.unchanged or advice.conflicts or advice.unused),
        not_run=tuple(
            (f"{s.topic}/{s.id}", s.title) for s in known if not s.error and s.id not in ran
        ),
    )


def boxes_of(subjects: Sequence[ReportedRun]) -> dict[str, list[ReportedRun]]:
    """Return, by what a box is called, the runs that were made there.

    That is its host name; of several nodes of a cluster that have one host name the node, too. What ran there beside the
    cluster is known by the boot.
    """
    starts = [
        (subject, run, run.supervisor.boot)
        for subject in subjects
        if (run := subject.summary.run) and run.supervisor.host
    ]
    nodes = {(run.supervisor.host, boot): run.node for _, run, boot in starts if run.node}
    named = Counter(host for host, _ in {(host, node) for (host, _), node in nodes.items()})
    found: dict[str, list[ReportedRun]] = {}
    for subject, run, boot in starts:
        host = run.supervisor.host
        node = nodes.get((host, boot), "") if named[host] > 1 else ""
        found.setdefault(f"{host} ({node})" if node else host, []).append(subject)
    return found


def _box_words(subject: ReportedRun) -> str:
    """Return what a box is in a line, from what one of its runs recorded."""
    summary = subject.summary
    box = summary.environment.get("box", {})
    cpu = box.get("cpu") if isinstance(box, dict) else None
    cpu = cpu if isinstance(cpu, dict) else {}
    model, cores = cpu.get("model"), cpu.get("usable_cores")
    gpus = [gpu.name for gpu in summary.gpus.values()]
    parts = [
        f"{count}x {name}" if (count := gpus.count(name)) > 1 else name
        for name in dict.fromkeys(gpus)
    ] or ["no GPU"]
    parts.append(str(model) if model else "")
    parts.append(plural(cores, "core") if isinstance(cores, int) else "")
    torch = summary.environment.get("torch", {}).get("version")
    parts.append(f"torch {torch}" if torch else "")
    return " · ".join(show(part, 80) for part in parts if part)


def _parts(findings: Sequence[ClaimFinding]) -> list[Part]:
    """Return how many claims came out how, the good ones first."""
    found: list[Part] = []
    claims = sum(finding.claims for finding in findings)
    left = 0.0
    for words, kind in _PARTS.items():
        if count := sum(finding.claims for finding in findings if _part(finding) == words):
            width = round(100 * count / claims, 3)
            found.append(Part(words, kind, count, left, width))
            left = round(left + width, 3)
    return found


def _followed(one: AdvisedSetting) -> Followed:
    setting = f"{one.name}={one.choice.value}"
    return Followed(
        setting,
        show(one.declared.about),
        describe_comparison(one),
        show(one.raced.against),
        one.subject.id,
        one.subject.name,
    )


def _facts_now(subjects: Sequence[ReportedRun]) -> Facts:
    """Return what a box is, as the newest of its runs recorded it."""
    starts = [(run.wall_ns, facts_of(one.summary)) for one in subjects if (run := one.summary.run)]
    return max(starts, key=lambda start: start[0])[1]


def _gpus(subject: ReportedRun) -> list[str]:
    """Return the GPUs on which the claims of a run were measured, in words."""
    return [*dict.fromkeys(claim.gpu for claim in subject.summary.claims.values() if claim.gpu)]


def _findings(subject: ReportedRun, box: str, *, has_gpu: bool) -> list[ClaimFinding]:
    """Return a run's claims; of one that ended badly, what was judged until then, and how it ended."""
    run = subject.summary.run
    rows = [
        claim_row(claim, subject.before.get(claim.claim_id, "")) for claim in subject.result.claims
    ]
    asked = (
        ", ".join(
            f"{show(key, 40)}={show(spell(value), 40)}" for key, value in changes(run).items()
        )
        if run
        else ""
    )
    gpus = show(", ".join(_gpus(subject)), 120) if has_gpu else ""
    name = ", ".join(filter(None, [subject.name, asked, show(box, 60), gpus]))
    if subject.state == RunState.SUCCEEDED:
        return [_finding(subject, name, row) for row in rows]
    judged = [row for row in rows if row.verdict != NOT_JUDGED]
    open = len(rows) - len(judged)
    left = f"; {plural(open, 'claim')} not judged" if open else ""
    goes_on = subject.state in RUNNING_STATES
    why = (
        show(subject.summary.reason) or f"it has no {'end yet' if goes_on else 'recorded end'}"
    ) + left
    text = f"{subject.title}: the run {'is' if goes_on else 'ended:'} {show(subject.state)}"
    ended = ClaimFinding(subject.id, name, text, NOT_JUDGED, "!", "bad", why, claims=open)
    return [*(_finding(subject, name, row) for row in judged), ended]


def _place(finding: ClaimFinding) -> str:
    """Return the group that a finding belongs to: what is supported by counting needs nobody's attention."""
    return (
        "exactly"
        if finding.verdict == Verdict.SUPPORTED and not finding.details
        else _part(finding)
    )


def _part(finding: ClaimFinding) -> str:
    """Return how a claim came out, in words."""
    if finding.verdict == Verdict.INVALID:
        return "control failed"
    if finding.verdict == NOT_JUDGED:
        return "not decided"
    return next(words for words, kind in _PARTS.items() if kind == finding.kind)


def _finding(subject: ReportedRun, name: str, row: ClaimRow) -> ClaimFinding:
    details = f"{row.claimed}; {row.why}" if row.estimate else ""
    measured = row.estimate or row.why
    return ClaimFinding(
        subject.id, name, row.text, row.verdict, row.mark, row.kind, measured, details, row.interval
    )
