"""The part of a result that is about a tuning, as the JSON document has it.

The text below a field is its description in the JSON Schema.
"""

from typing import Annotated

from msgspec import Meta

from tuilab.record.tuning.outcomes import Outcome
from tuilab.record.verdicts import Verdict
from tuilab.reports.documents.document_part import DocumentPart

OutcomeWord = Annotated[str, Meta(extra_json_schema={"enum": [*Verdict, *Outcome]})]
LearningWord = Annotated[
    str, Meta(extra_json_schema={"enum": ["same", "rounding", "other rounding", "bound"]})
]


class TunedRatio(DocumentPart, frozen=True):
    """How many times faster a step is than in another arm, from interleaved processes."""

    over: str
    """arm whose time is divided by the time of the treatment"""
    verdict: Annotated[str, Meta(extra_json_schema={"enum": list(Verdict)})] | None
    """verdict on the claim that it is faster; null: not judged"""
    why: str
    estimate: float | None
    """ratio of the times of a step; above 1 is faster"""
    low: float | None
    """lower end of the interval"""
    high: float | None
    """upper end of the interval"""
    confidence: float | None
    """confidence of the interval, such as 0.95"""
    measure: str | None
    """the clock that judged: wall or cpu"""


class TunedArm(DocumentPart, frozen=True):
    """A treatment, or a combination of treatments, and what it has come to."""

    arm: str
    """name in the run, unique; also the key of its claim"""
    title: str
    outcome: OutcomeWord | None
    """a verdict, or why there is none; null: not known yet"""
    why: str
    """reason for the outcome"""
    ratio: TunedRatio | None
    """gain over the unchanged script; null: not compared"""
    learns: LearningWord
    """how it changes what the script learns: not at all, by rounding, or by another dtype; a bound
    learns something else on purpose"""
    did: list[str]
    """what it did in the process"""
    peak_bytes: int | None
    """peak memory with it: of the GPU if one is used, else of the largest process; null: not
    measured"""
    base_peak_bytes: int | None
    """the same of the unchanged script"""
    part_s: dict[str, float]
    """seconds of each part of a step in the comparison, the median of its processes"""


class TunedTreatment(TunedArm, frozen=True):
    """A change to a training that a tuning has thought about."""

    name: str
    """name of the treatment, as in --only"""
    treatments: list[str]
    """what the process applied, as in the variable TUILAB_TREAT"""
    env: dict[str, str]
    """variables that it adds to the environment"""
    prefix: list[str]
    """words that it puts before the command"""
    at_most: float | None
    """the most that it can gain, as a ratio; null: not known"""
    at_most_why: str
    """how that is known, or why it is not"""
    memory: str
    """what it was expected to cost in memory, in words"""
    change: str
    """the change to the script in one line"""
    diff: str
    """the change as a unified diff; empty if its line is not known"""
    file: str
    """file of the change; empty if it is not known"""
    line: int
    lesson: str
    """scenario that explains it; empty if there is none"""
    tried_ratio: float | None
    """gain in the one process before the comparison; null: not tried"""
    graphs: int | None
    """graphs that torch.compile made; null: it was not used"""
    compile_s: float | None
    """seconds for compiling"""
    pays_from_step: int | None
    """the step from which the gain has made up for compiling; null: not known, or never"""
    next_command: str
    """command that shows what is open; empty if nothing is"""


class TunedCombination(TunedArm, frozen=True):
    """The winners of a tuning, all in one process."""

    parts: list[str]
    """its arms, in the order in which they are applied"""
    best: str
    """the best of these arms alone"""
    over_best: TunedRatio | None
    """gain over that arm; null: not compared"""
    left_out: dict[str, str]
    """winners that are not in it: the reason by arm"""


class ResultTuning(DocumentPart, frozen=True):
    """What a tuning planned, tried and compared."""

    steps: int | None
    """steps of each process; null: the plan is not complete"""
    step_s: float | None
    """a step of the unchanged script, in one process before the comparison"""
    base_step_s: float | None
    """the same in the comparison: the median of its processes; null: nothing was compared"""
    process_s: float | None
    """a whole process"""
    processes: int
    """processes of the script that have ended"""
    base: str
    """arm of the unchanged script; empty: nothing was compared"""
    parts: dict[str, float]
    """shares of a step in the process that was watched, in percent"""
    part_s: dict[str, float]
    """seconds of each part of a step of the unchanged script in the comparison"""
    disabled: list[str]
    """what was switched off in all processes, such as uploads"""
    written: list[str]
    """files that the script wrote"""
    treatments: list[TunedTreatment]
    combinations: list[TunedCombination]
