"""Which settings follow from what was measured on a box: only those whose claim was SUPPORTED, each with that claim."""

import shlex
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from tuilab.errors import TuilabError
from tuilab.probes.settings import PASSED_ON, Setting, read_setting
from tuilab.record import presence
from tuilab.record.imported import is_imported
from tuilab.record.parts import Claim
from tuilab.record.states import RunState
from tuilab.record.told import evidence
from tuilab.record.verdicts import Verdict
from tuilab.reports.subject import Subject, read_subject
from tuilab.runs import command_line
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.text import plural, show


@dataclass(frozen=True, eq=False)
class Advised:
    """A setting, and the claim of a run that speaks for it."""

    setting: Setting
    claim: Claim
    subject: Subject

    @property
    def verdict(self) -> str:
        return self.claim.outcome


@dataclass
class Advice:
    """What to set; where claims disagree, nothing is set."""

    host: str = ""
    settings: dict[str, list[Advised]] = field(default_factory=dict)  # by variable: all claims that speak for one value
    conflicts: dict[str, list[Advised]] = field(default_factory=dict)
    unsupported: list[Advised] = field(default_factory=list)
    elsewhere: list[Subject] = field(default_factory=list)  # runs of another box


def of_runs(folders: Sequence[Path], cache: LedgerCache | None = None) -> tuple[Advice, list[str]]:
    """Return what follows from runs of this box, and a sentence about each or all that were left out."""
    own = [folder for folder in folders if not is_imported(folder)]
    left = len(folders) - len(own)
    notes = [f"left out {plural(left, 'run')} from archives: nothing here follows from them"] if left else []
    subjects = []
    for folder in own:
        try:
            subjects.append(read_subject(folder, cache))
        except TuilabError as problem:
            if len(own) == 1:
                raise
            notes.append(f"left out {show(folder.name)}: {show(str(problem))}")
    starts = [subject.summary.run for subject in subjects if subject.summary.run]
    names = {run.supervisor.host for run in starts if presence.is_of_this_box(run.supervisor)}
    return advise(subjects, presence.host_name(), names), notes


def advise(subjects: Sequence[Subject], host: str, other_names: Set[str] = frozenset()) -> Advice:
    """Return what follows from the runs that were made on a box, under its name or others that it had."""
    advice = Advice(host)
    supported: dict[str, list[Advised]] = {}
    for subject in subjects:
        if host_of(subject) not in {host, *other_names}:
            advice.elsewhere.append(subject)
            continue
        for one in _advised(subject):
            if one.verdict == Verdict.SUPPORTED and subject.state == RunState.SUCCEEDED:
                supported.setdefault(one.setting.name, []).append(one)
            else:
                advice.unsupported.append(one)
    for name, found in supported.items():
        is_one = len({one.setting.value for one in found}) == 1
        (advice.settings if is_one else advice.conflicts)[name] = found
    return advice


def host_of(subject: Subject) -> str:
    """Return the name of the box on which a run was made."""
    return subject.summary.run.supervisor.host if subject.summary.run else ""


def env_file(advice: Advice) -> str:
    """Return the settings as a file for a shell, each below the claim that it stands on."""
    own = [name for name in advice.settings if name not in PASSED_ON]
    passed = [name for name in advice.settings if name in PASSED_ON]
    parts = [_head(advice)]
    parts += [_block(advice.settings[name]) for name in own]
    parts += ["# The following are read by nothing by themselves: pass them on in your script or your command."] * bool(passed)
    parts += [_block(advice.settings[name]) for name in passed]
    parts += [_conflict(name, found) for name, found in advice.conflicts.items()]
    parts += [_not_set(advice)] if advice.unsupported else []
    return "\n\n".join(parts) + "\n"


def _head(advice: Advice) -> str:
    lines = [
        f"Settings for the box {show(advice.host, 100)}, from runs of tuilab. Each stands on a claim that was SUPPORTED there."
    ]
    if advice.settings:
        lines.append("To use them in a shell: set -a; . ./box.env; set +a")
    else:
        lines.append("Nothing is set: no claim that speaks for a setting was supported on this box.")
    if advice.elsewhere:
        names = ", ".join(f"{subject.name} {subject.id}" for subject in advice.elsewhere[:5])
        lines.append(f"Left out, because they ran on another box: {names}{' …' if len(advice.elsewhere) > 5 else ''}")
    return _comment(lines)


def _block(found: Sequence[Advised]) -> str:
    lines = [line for one in found for line in _reasons(one)]
    setting = found[0].setting
    return f"{_comment(lines)}\n{setting.name}={shlex.quote(setting.value)}"


def _reasons(one: Advised) -> list[str]:
    summary, run = one.subject.summary, one.subject.summary.run
    again = [f"  again: {command_line.line(command_line.rerun_words(run, summary.planned_repeats))}"] if run else []
    return [
        f"{one.claim.text}: {one.verdict}",
        f"  {evidence(one.claim)}",
        f"  {one.subject.name}, run {one.subject.id}{_where(one.claim)}",
        *again,
    ]


def _conflict(name: str, found: Sequence[Advised]) -> str:
    lines = [f"{name} is not set: supported claims speak for different values"]
    return _comment(
        [*lines, *(f"  {one.setting.value}: {one.claim.text} ({one.subject.id}{_where(one.claim)})" for one in found)]
    )


def _not_set(advice: Advice) -> str:
    lines = ["Not set, because the claim was not supported here:"]
    for one in advice.unsupported:
        lines.append(f"  {one.setting.name}={one.setting.value}: {one.verdict}: {one.claim.text}")
        lines.append(f"    {evidence(one.claim)}, run {one.subject.id}{_where(one.claim)}")
    return _comment(lines)


def _where(claim: Claim) -> str:
    """Return the GPU that a claim was measured on: it is about that one."""
    return f", on {claim.gpu}" if claim.gpu else ""


def _comment(lines: Sequence[str]) -> str:
    return "\n".join(f"# {show(line)}" for line in lines)


def _advised(subject: Subject) -> list[Advised]:
    """Return the settings that a run's claims speak for; what is no setting is passed over: a journal may say anything."""
    found = []
    for claim in subject.summary.claims.values():
        if claim.advises:
            try:
                found.append(Advised(read_setting(claim.advises), claim, subject))
            except ValueError:
                continue
    return found
