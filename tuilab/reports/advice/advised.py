"""Derive from runs which settings to change, for one program or for each of several ranks.

A raced setting is a variable, such as OMP_NUM_THREADS, whose values a run compared.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tuilab.catalogue.scenario import PROCESS, PROGRAM, RANKS, Scenario
from tuilab.probes.settings import PASSED_ON, read_setting
from tuilab.record.events import SettingRaced
from tuilab.record.summary_parts import RacedSetting
from tuilab.reports.advice.validity import Facts, facts_of, why_not_valid
from tuilab.reports.advice.winner import ChosenValue, choose_value
from tuilab.reports.reported_run import ReportedRun


@dataclass(frozen=True, eq=False)
class AdvisedSetting:
    """A setting whose values were compared in a run that counts, and the value that won."""

    raced: RacedSetting
    choice: ChosenValue
    subject: ReportedRun
    facts: Facts  # of the machine, and of the GPU that the values were measured on

    @property
    def declared(self) -> SettingRaced:
        return self.raced.records[0]

    @property
    def name(self) -> str:
        return self.declared.name


@dataclass(frozen=True, eq=False)
class UnusedRun:
    """A run that says nothing about a setting, and why."""

    name: str  # of the setting
    subject: ReportedRun
    why: str


@dataclass
class Advice:
    """The settings to change and those to leave. For each setting, the newest run that counts."""

    ranks: int = 0  # 0: for one program
    facts: Facts = field(default_factory=dict)  # of the machine, while they hold the advice holds
    settings: list[AdvisedSetting] = field(default_factory=list)
    # The default won, or nothing is decided.
    unchanged: list[AdvisedSetting] = field(default_factory=list)
    # Several scenarios recommend different values.
    conflicts: list[AdvisedSetting] = field(default_factory=list)
    unused: list[UnusedRun] = field(default_factory=list)
    # Variables that were not compared here, and the scenario that would compare them.
    unknown: list[tuple[str, Scenario]] = field(default_factory=list)


def advise(
    subjects: Sequence[ReportedRun],
    here: Facts,
    hosts: Collection[str] = (),
    *,
    ranks: int = 0,
    scenarios: Sequence[Scenario] = (),
) -> Advice:
    """Return the advice for a machine with the facts `here`.

    `hosts` are earlier names of the machine. Of each scenario, the newest run that counts decides
    about a setting; a run that does not count is listed with the reason only if no other one does.
    `scenarios` are those that could say more.
    """
    own_hosts = {here.get("host", ""), *hosts}
    counted: dict[tuple[str, str], AdvisedSetting] = {}  # by setting and scenario
    unused = []
    for subject in sorted(subjects, key=_began_ns, reverse=True):
        for raced in subject.summary.settings.values():
            declared = raced.records[0]
            key = (declared.name, subject.name)
            if key in counted or not _is_setting(raced) or not _is_for(declared, ranks):
                continue
            why = why_not_valid(subject, declared, raced.writers, here, own_hosts)
            if why:
                unused.append(UnusedRun(declared.name, subject, why))
                continue
            choice = choose_value(subject.summary, raced)
            facts = facts_of(subject.summary, raced.writers)
            counted[key] = AdvisedSetting(raced, choice, subject, facts)

    advice = Advice(ranks)
    _sort_settings(advice, list(counted.values()))
    if advice.settings and here.get("host"):
        advice.facts["host"] = here["host"]  # the run may have recorded an earlier name
    advice.unused = [run for run in unused if (run.name, run.subject.name) not in counted]
    for scenario in scenarios:
        for name in raced_variables(scenario, ranks):
            if (name, f"{scenario.topic}/{scenario.id}") not in counted:
                advice.unknown.append((name, scenario))
    return advice


def raced_variables(scenario: Scenario, ranks: int) -> list[str]:
    """Return the variables whose values a scenario compares, for one program or for ranks."""
    audiences = (PROCESS, RANKS if ranks else PROGRAM)
    return [name for name, audience in scenario.settings if audience in audiences]


def _began_ns(subject: ReportedRun) -> int:
    if subject.summary.run is None:
        return 0
    return subject.summary.run.wall_ns


def _is_setting(raced: RacedSetting) -> bool:
    """Return whether a race is about plain values of a variable of training.

    A journal may contain any name and any value.
    """
    declared = raced.records[0]
    names = set()
    for candidate in declared.candidates:
        try:
            names.add(read_setting(f"{declared.name}={candidate.value}").name)
        except ValueError:
            return False
    return bool(names) and names.isdisjoint(PASSED_ON)


def _is_for(declared: SettingRaced, ranks: int) -> bool:
    """Return whether a race is about this number of ranks.

    A cost that was counted, not timed, is the same in each process.
    """
    return declared.ranks == ranks or declared.candidates[0].cost is not None


def _sort_settings(advice: Advice, settings: Sequence[AdvisedSetting]) -> None:
    """Add settings to the lists of an advice, by their results.

    If two scenarios chose different values of a variable, all its settings are conflicts. The facts
    of the machine are those of the settings that are recommended.
    """
    values_of_name: dict[str, set[str]] = {}
    for setting in settings:
        if setting.choice.value:
            values_of_name.setdefault(setting.name, set()).add(setting.choice.value)
    for setting in settings:
        if not setting.choice.value:
            advice.unchanged.append(setting)
        elif len(values_of_name[setting.name]) > 1:
            advice.conflicts.append(setting)
        else:
            advice.settings.append(setting)
            advice.facts |= setting.facts
