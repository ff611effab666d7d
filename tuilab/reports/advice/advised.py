"""What follows from runs for one program on this box, or for each of so many ranks: to be set, to be left, not known."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tuilab.catalogue.scenario import PROCESS, PROGRAM, RANKS, Scenario
from tuilab.probes.settings import PASSED_ON, read_setting
from tuilab.record.events import SettingRaced
from tuilab.record.summary_parts import RacedSetting
from tuilab.reports.advice.validity import Facts, facts_of, why_not
from tuilab.reports.advice.winner import ChosenValue, choose
from tuilab.reports.reported_run import ReportedRun


@dataclass(frozen=True, eq=False)
class Advised:
    """A setting whose values were held against each other in a run that counts, and what came of it."""

    raced: RacedSetting
    choice: ChosenValue
    subject: ReportedRun
    facts: Facts  # of the box, and of the GPU that it was measured on

    @property
    def said(self) -> SettingRaced:
        return self.raced.records[0]

    @property
    def name(self) -> str:
        return self.said.name


@dataclass(frozen=True, eq=False)
class Unused:
    """A run that says nothing about a setting, and why."""

    name: str
    subject: ReportedRun
    why: str


@dataclass
class Advice:
    """What to set and what not; of a setting the newest run that counts speaks."""

    ranks: int = 0  # that it is for; 0: one program
    facts: Facts = field(
        default_factory=dict
    )  # what the box was when it was measured: only then it holds
    settings: list[Advised] = field(default_factory=list)
    stays: list[Advised] = field(default_factory=list)  # the default won, or nothing is decided
    conflicts: list[Advised] = field(
        default_factory=list
    )  # of several scenarios that speak for different values
    unused: list[Unused] = field(default_factory=list)
    unknown: list[tuple[str, Scenario]] = field(
        default_factory=list
    )  # not raced here; what would race it


def advise(
    subjects: Sequence[ReportedRun],
    here: Facts,
    hosts: Collection[str] = (),
    *,
    ranks: int = 0,
    known: Sequence[Scenario] = (),
) -> Advice:
    """Return what follows for a box as it is now; `hosts` are names that it had, `known` scenarios that could tell more."""
    advice = Advice(ranks)
    counted: dict[tuple[str, str], Advised] = {}  # by setting and scenario
    for subject in sorted(subjects, key=_began, reverse=True):
        for raced in filter(_is_setting, subject.summary.settings.values()):
            said = raced.records[0]
            if not _is_for(said, ranks) or (said.name, subject.name) in counted:
                continue
            if reason := why_not(
                subject, said, raced.writers, here, {here.get("host", ""), *hosts}
            ):
                advice.unused.append(Unused(said.name, subject, reason))
            else:
                counted[said.name, subject.name] = _advised(subject, raced)
    advice.unused = [one for one in advice.unused if (one.name, one.subject.name) not in counted]
    _sort(advice, list(counted.values()))
    if advice.settings and here.get("host"):
        advice.facts["host"] = here["host"]  # it may have had another name
    advice.unknown = [
        (name, one)
        for one in known
        for name in raced_by(one, ranks)
        if (name, f"{one.topic}/{one.id}") not in counted
    ]
    return advice


def raced_by(scenario: Scenario, ranks: int) -> list[str]:
    """Return the variables whose values a scenario holds against each other, for one program or for ranks."""
    return [
        name for name, whom in scenario.settings if whom in (PROCESS, RANKS if ranks else PROGRAM)
    ]


def _is_setting(raced: RacedSetting) -> bool:
    """Say whether a journal, which may say anything, names a variable of training and plain values."""
    try:
        names = {
            read_setting(f"{raced.records[0].name}={one.value}").name
            for one in raced.records[0].candidates
        }
    except ValueError:
        return False
    return bool(names) and names.isdisjoint(PASSED_ON)


def _is_for(said: SettingRaced, ranks: int) -> bool:
    """Say whether a race tells of so many ranks; what was counted, and not timed, is the same in each process."""
    return said.ranks == ranks or said.candidates[0].cost is not None


def _advised(subject: ReportedRun, raced: RacedSetting) -> Advised:
    facts = facts_of(subject.summary, raced.writers)
    return Advised(raced, choose(subject.summary, raced), subject, facts)


def _sort(advice: Advice, found: Sequence[Advised]) -> None:
    for one in found:
        values = {
            other.choice.value for other in found if other.name == one.name and other.choice.value
        }
        if not one.choice.value:
            advice.stays.append(one)
        elif len(values) > 1:
            advice.conflicts.append(one)
        else:
            advice.settings.append(one)
            advice.facts |= one.facts


def _began(subject: ReportedRun) -> int:
    return subject.summary.run.wall_ns if subject.summary.run else 0
