"""Define what the plan knows about a script, and what it answers for each treatment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tuilab.commands.step_parts import BACKWARD, FORWARD, REST
from tuilab.commands.tune.planning.change import Edit
from tuilab.commands.tune.planning.machine import TunedMachine
from tuilab.commands.tune.planning.measured_steps import MeasuredSteps
from tuilab.commands.tune.planning.possible_gain import PossibleGain, gain_without
from tuilab.commands.tune.planning.sources import ScriptSource
from tuilab.commands.tune.script_facts import ScriptFacts
from tuilab.judging.intervals import UNKNOWN_SD
from tuilab.record.tuning.outcomes import Outcome


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is known about a script and its machine before any treatment was tried."""

    facts: ScriptFacts
    steps: MeasuredSteps
    machine: TunedMachine
    environ: Mapping[str, str] = field(default_factory=dict)  # of the script
    script: str = ""  # the path of the script, as the facts name files; empty: not known
    # The user's files in which the facts place something, by the path in the facts.
    sources: Mapping[str, ScriptSource] = field(default_factory=dict)
    recompilations: int = 0  # graphs that torch.compile made again while the script was watched
    # The standard deviation between processes; larger on a machine that others use.
    process_sd: float = UNKNOWN_SD

    @property
    def has_gpu(self) -> bool:
        """Whether the script uses a GPU."""
        return self.facts.settings.has_cuda

    @property
    def capability(self) -> tuple[int, int] | None:
        """The capability of the GPU that the script uses; None if it is not known."""
        major, _, minor = self.facts.settings.capability.partition(".")
        if major.isdecimal() and minor.isdecimal() and len(major) + len(minor) < 10:
            return int(major), int(minor)
        return None

    @property
    def cores(self) -> int:
        """The logical cores for one rank of the script, at least 1."""
        cores = self.machine.cores
        if self.facts.settings.cores:
            cores = min(cores, self.facts.settings.cores)
        return max(1, cores // max(self.facts.settings.world, 1))

    @property
    def physical_cores(self) -> int:
        """The physical cores for one rank of the script, at least 1."""
        cores = self.machine.physical_cores // max(self.facts.settings.world, 1)
        return max(1, min(cores, self.cores))

    def gain_without(self, stays: Mapping[str, float], subject: str) -> PossibleGain:
        """Return the possible gain if only a share of these parts stays at best."""
        return gain_without(self.steps, stays, subject, self.process_sd)

    def gain_of_computing(self, stays: float) -> PossibleGain:
        """Return the possible gain if only a share of forward and backward stays at best.

        A forward or backward that was not timed is included in the rest of a step.
        """
        timed = [part for part in (FORWARD, BACKWARD) if part not in self.steps.lacks]
        if len(timed) == 2:
            return self.gain_without(dict.fromkeys(timed, stays), "forward and backward take")
        subject = "the step without data and optimizer takes"
        return self.gain_without(dict.fromkeys([*timed, REST], stays), subject)


class RejectedTreatment(NamedTuple):
    """A treatment that is not tried, with the outcome and its reason."""

    outcome: str
    why: str
    value: str = ""  # of the treatment, if it has several values


@dataclass(frozen=True, kw_only=True)
class ApplicableTreatment:
    """A treatment that applies, with a value."""

    gain: PossibleGain
    change: str  # as the user would write it
    value: str = ""
    title: str = ""  # if the catalogue has none for this value
    edits: list[Edit] = field(default_factory=list)  # of the user's files
    env: dict[str, str] = field(default_factory=dict)
    prefix: list[str] = field(default_factory=list)
    lesson: str = ""  # if it is not that of the catalogue
    memory: str = ""  # if it is not that of the catalogue


Answer = list[ApplicableTreatment | RejectedTreatment]


def already_set(why: str, value: str = "") -> Answer:
    """Return the answer that the script does this already."""
    return [RejectedTreatment(Outcome.ALREADY_SET, why, value)]


def not_applicable(why: str, value: str = "") -> Answer:
    """Return the answer that the treatment would do nothing."""
    return [RejectedTreatment(Outcome.NOT_APPLICABLE, why, value)]
