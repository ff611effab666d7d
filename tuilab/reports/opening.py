"""The opening of a report on several runs.

It says which claims hold on the machine and by how much, which were not tested, and what to set.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuilab.catalogue.params import spell
from tuilab.catalogue.scenario import Scenario
from tuilab.record.events import RunStarted
from tuilab.record.states import RUNNING_STATES, RunState
from tuilab.record.verdicts import NOT_JUDGED, Verdict
from tuilab.reports.advice.advised import AdvisedSetting, advise
from tuilab.reports.advice.env_file import describe_comparison, env_file
from tuilab.reports.advice.validity import Facts, facts_of
from tuilab.reports.charts.spreads import Interval
from tuilab.reports.pages import ClaimRow, claim_rows
from tuilab.reports.reported_run import ReportedRun
from tuilab.runs.command_line import changes
from tuilab.text.display import plural, show

_HOLDS = "holds"
_EXACTLY = "exactly"  # holds, and was counted rather than timed
_WEAKER = "holds, but by less"
_DOES_NOT_HOLD = "does not hold"
_CONTROL_FAILED = "control failed"
_NOT_DECIDED = "not decided"
_NOT_TESTED = "not testable here"
_GROUPS = (  # heading, explanation, and the outcome of the findings in the group
    ("Holds on this machine, and by how much", "", _HOLDS),
    ("Holds, but by less than is claimed", "The direction is right, the size is not.", _WEAKER),
    ("Does not hold on this machine", "", _DOES_NOT_HOLD),
    (
        "A control failed",
        "The measurements cannot be trusted, so they say nothing about these claims.",
        _CONTROL_FAILED,
    ),
    (
        "Not decided",
        "Measured, but not precisely enough; more repeats or a quieter machine may help.",
        _NOT_DECIDED,
    ),
    (
        "Not tested here, and why",
        "If the reason names an option or a value, a run with it tests the claim.",
        _NOT_TESTED,
    ),
    ("Holds exactly", "Counts, values and bytes: the same on every machine.", _EXACTLY),
)

_OUTCOME_OF_KIND = {
    "good": _HOLDS,
    "fair": _WEAKER,
    "bad": _DOES_NOT_HOLD,
    "open": _NOT_DECIDED,
    "none": _NOT_TESTED,
}
_KIND_OF_OUTCOME = {  # in the order of the bar; the kind gives the colour
    _HOLDS: "good",
    _WEAKER: "fair",
    _DOES_NOT_HOLD: "bad",
    _CONTROL_FAILED: "bad",
    _NOT_DECIDED: "open",
    _NOT_TESTED: "none",
}


@dataclass(frozen=True)
class ClaimFinding:
    """One claim of one run."""

    id: str
    # The name of the scenario, the parameters that differ from its defaults, and the machine and
    # the GPU if there are several.
    name: str
    text: str
    verdict: str
    mark: str
    kind: str
    measured: str
    details: str = ""
    interval: Interval | None = None
    claims: int = 1  # number of claims that the finding is about


@dataclass(frozen=True)
class FindingGroup:
    """The claims with one outcome; a folded group shows only its heading at first."""

    heading: str
    about: str
    findings: tuple[ClaimFinding, ...]
    is_folded: bool = False


@dataclass(frozen=True)
class OutcomeShare:
    """The claims with one outcome, as a part of the bar that shows all claims at a glance."""

    words: str
    kind: str
    count: int
    left: float  # in percent
    width: float


@dataclass(frozen=True)
class RecommendedSetting:
    """A setting, the values that it was compared with, and what speaks against it."""

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
    box: str  # the machine in a line
    counts: str
    parts: tuple[OutcomeShare, ...]
    groups: tuple[FindingGroup, ...]
    settings: tuple[RecommendedSetting, ...]
    env: str
    has_env: bool  # `env` says more than that nothing is set
    not_run: tuple[tuple[str, str], ...]


def opening_of(subjects: Sequence[ReportedRun], scenarios: Sequence[Scenario] = ()) -> Opening:
    """Return the opening of a report; it names those of the scenarios that no run is of."""
    boxes = boxes_of(subjects)
    hosts = list(boxes)
    title = "What holds on this machine"
    if len(hosts) > 1:
        title = f"What holds on {len(hosts)} machines"
    box = ""
    if len(hosts) == 1:
        box = _describe_box(boxes[hosts[0]][0])

    findings = _list_findings(subjects, boxes)
    supported = sum(finding.verdict == Verdict.SUPPORTED for finding in findings)
    claims = sum(len(subject.summary.claims) for subject in subjects)
    runs = plural(len(subjects), "run")
    counts = f"{runs}; {supported} of {plural(claims, 'claim')} supported"

    facts: Facts = {}
    if hosts:
        facts = _newest_facts(boxes[hosts[0]])
    advice = advise(subjects, facts, scenarios=scenarios)
    settings = [_recommended_setting(setting) for setting in advice.settings]

    return Opening(
        host=show(", ".join(hosts), 200) or "n/a",
        when=_newest_day(subjects),
        title=title,
        box=box,
        counts=counts,
        parts=tuple(_share_outcomes(findings)),
        groups=tuple(_group_findings(findings)),
        settings=tuple(settings),
        env=env_file(advice),
        has_env=bool(advice.settings or advice.unchanged or advice.conflicts or advice.unused),
        not_run=tuple(_list_not_run(subjects, scenarios)),
    )


def _newest_day(subjects: Sequence[ReportedRun]) -> str:
    """Return the day on which the newest run began, or n/a."""
    newest_ns = 0
    for subject in subjects:
        if subject.summary.run:
            newest_ns = max(newest_ns, subject.summary.run.wall_ns)
    if not 0 < newest_ns < 2**62:
        return "n/a"
    return time.strftime("%Y-%m-%d", time.gmtime(newest_ns / 1e9))


def _list_not_run(
    subjects: Sequence[ReportedRun], scenarios: Sequence[Scenario]
) -> list[tuple[str, str]]:
    """Return the name and the title of each scenario that no run is of."""
    ran = set()
    for subject in subjects:
        if subject.summary.run:
            ran.add(subject.summary.run.scenario)
    not_run = []
    for scenario in scenarios:
        if not scenario.error and scenario.id not in ran:
            not_run.append((f"{scenario.topic}/{scenario.id}", scenario.title))
    return not_run


# ---- machines


def boxes_of(subjects: Sequence[ReportedRun]) -> dict[str, list[ReportedRun]]:
    """Return the runs of each machine, by the name of the machine.

    That is its host name, with the node if several nodes of a cluster have the same host name. A
    run outside the cluster names no node: its boot tells which node it ran on.
    """
    starts: list[tuple[ReportedRun, RunStarted]] = []
    for subject in subjects:
        run = subject.summary.run
        if run and run.supervisor.host:
            starts.append((subject, run))

    nodes: dict[tuple[str, str], str] = {}  # by host and boot
    for _, run in starts:
        if run.node:
            nodes[run.supervisor.host, run.supervisor.boot] = run.node
    nodes_of_host: dict[str, set[str]] = {}
    for (host, _), node in nodes.items():
        nodes_of_host.setdefault(host, set()).add(node)

    boxes: dict[str, list[ReportedRun]] = {}
    for subject, run in starts:
        name = run.supervisor.host
        node = nodes.get((name, run.supervisor.boot), "")
        if node and len(nodes_of_host[name]) > 1:
            name = f"{name} ({node})"
        boxes.setdefault(name, []).append(subject)
    return boxes


def _describe_box(subject: ReportedRun) -> str:
    """Return a machine in a line, as one of its runs recorded it: GPUs, CPU, cores and torch.

    What was not recorded is left out. Without a recorded GPU, the line says so.
    """
    summary = subject.summary
    box = summary.environment.get("box")
    cpu = None
    if isinstance(box, dict):
        cpu = box.get("cpu")
    gpu_names = Counter(gpu.name for gpu in summary.gpus.values())
    parts = []
    for name, count in gpu_names.items():
        parts.append(f"{count}x {name}" if count > 1 else name)
    if not parts:
        parts.append("no GPU")
    if isinstance(cpu, dict):
        if cpu.get("model"):
            parts.append(str(cpu["model"]))
        if isinstance(cpu.get("usable_cores"), int):
            parts.append(plural(cpu["usable_cores"], "core"))
    torch_version = summary.environment.get("torch", {}).get("version")
    if torch_version:
        parts.append(f"torch {torch_version}")
    return " · ".join(show(part, 80) for part in parts if part)


def _newest_facts(subjects: Sequence[ReportedRun]) -> Facts:
    """Return the facts about a machine, as the newest of its runs recorded them."""
    newest_ns = -1
    facts: Facts = {}
    for subject in subjects:
        run = subject.summary.run
        if run and run.wall_ns > newest_ns:
            newest_ns = run.wall_ns
            facts = facts_of(subject.summary)
    return facts


def _recommended_setting(advised: AdvisedSetting) -> RecommendedSetting:
    """Return a setting to change, with the comparison and the run that recommend it."""
    return RecommendedSetting(
        setting=f"{advised.name}={advised.choice.value}",
        about=show(advised.declared.about),
        compared=describe_comparison(advised),
        against=show(advised.raced.against),
        id=advised.subject.id,
        name=advised.subject.name,
    )


# ---- findings


def _list_findings(
    subjects: Sequence[ReportedRun], boxes: Mapping[str, Sequence[ReportedRun]]
) -> list[ClaimFinding]:
    """Return the findings of all runs, those with details first.

    Each names its machine if there are several, and its GPU if there are several.
    """
    box_of_run: dict[int, str] = {}  # by id(subject)
    if len(boxes) > 1:
        for name, members in boxes.items():
            for subject in members:
                box_of_run[id(subject)] = name
    gpus: set[str] = set()
    for subject in subjects:
        gpus.update(_gpus(subject))
    findings = []
    for subject in subjects:
        box = box_of_run.get(id(subject), "")
        findings += _findings_of_run(subject, box, has_several_gpus=len(gpus) > 1)
    return sorted(findings, key=lambda finding: not finding.details)


def _gpus(subject: ReportedRun) -> list[str]:
    """Return the GPUs on which the claims of a run were measured, in words."""
    gpus = [claim.gpu for claim in subject.summary.claims.values() if claim.gpu]
    return list(dict.fromkeys(gpus))


def _findings_of_run(
    subject: ReportedRun, box: str, *, has_several_gpus: bool
) -> list[ClaimFinding]:
    """Return the claims of a run as findings.

    If the run did not succeed, the claims without a verdict become a single finding, which says how
    the run ended.
    """
    parts = [subject.name, _describe_changes(subject.summary.run), show(box, 60)]
    if has_several_gpus:
        parts.append(show(", ".join(_gpus(subject)), 120))
    name = ", ".join(filter(None, parts))
    has_succeeded = subject.state == RunState.SUCCEEDED
    rows = claim_rows(subject)
    findings = []
    for row in rows:
        if has_succeeded or row.verdict != NOT_JUDGED:
            findings.append(_finding(subject, name, row))
    if not has_succeeded:
        not_judged = len(rows) - len(findings)
        findings.append(_finding_about_end(subject, name, not_judged))
    return findings


def _describe_changes(run: RunStarted | None) -> str:
    """Return the parameters that differ from the defaults of the scenario."""
    if run is None:
        return ""
    params = []
    for name, value in changes(run).items():
        params.append(f"{show(name, 40)}={show(spell(value), 40)}")
    return ", ".join(params)


def _finding(subject: ReportedRun, name: str, row: ClaimRow) -> ClaimFinding:
    """Return a claim of a run as a finding, with details if a ratio was estimated."""
    measured = row.why
    details = ""
    if row.estimate:
        measured = row.estimate
        details = f"{row.claimed}; {row.why}"
    return ClaimFinding(
        id=subject.id,
        name=name,
        text=row.text,
        verdict=row.verdict,
        mark=row.mark,
        kind=row.kind,
        measured=measured,
        details=details,
        interval=row.interval,
    )


def _finding_about_end(subject: ReportedRun, name: str, open_claims: int) -> ClaimFinding:
    """Return how a run ended that did not succeed, and how many of its claims were not judged."""
    ended = "ended:"
    why = "it has no recorded end"
    if subject.state in RUNNING_STATES:
        ended = "is"
        why = "it has no end yet"
    why = show(subject.summary.reason) or why
    if open_claims:
        why += f"; {plural(open_claims, 'claim')} not judged"
    text = f"{subject.title}: the run {ended} {show(subject.state)}"
    return ClaimFinding(subject.id, name, text, NOT_JUDGED, "!", "bad", why, claims=open_claims)


# ---- groups of findings


def _group_findings(findings: Sequence[ClaimFinding]) -> list[FindingGroup]:
    """Return the groups that have findings.

    Claims that hold by counting need no attention, so they are a folded group of their own.
    """
    members: dict[str, list[ClaimFinding]] = {}
    for finding in findings:
        outcome = _outcome(finding)
        if finding.verdict == Verdict.SUPPORTED and not finding.details:
            outcome = _EXACTLY
        members.setdefault(outcome, []).append(finding)
    groups = []
    for heading, about, outcome in _GROUPS:
        if outcome in members:
            is_folded = outcome == _EXACTLY
            groups.append(FindingGroup(heading, about, tuple(members[outcome]), is_folded))
    return groups


def _share_outcomes(findings: Sequence[ClaimFinding]) -> list[OutcomeShare]:
    """Return how many claims have each outcome, the good ones first."""
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[_outcome(finding)] += finding.claims
    shares = []
    left = 0.0
    for outcome, kind in _KIND_OF_OUTCOME.items():
        count = counts[outcome]
        if count:
            width = round(100 * count / counts.total(), 3)
            shares.append(OutcomeShare(outcome, kind, count, left, width))
            left = round(left + width, 3)
    return shares


def _outcome(finding: ClaimFinding) -> str:
    """Return how a claim came out, in words."""
    if finding.verdict == Verdict.INVALID:
        return _CONTROL_FAILED
    if finding.verdict == NOT_JUDGED:
        return _NOT_DECIDED
    return _OUTCOME_OF_KIND[finding.kind]
