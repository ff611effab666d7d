"""The types of the documents about scenarios, and about the machine."""

from typing import Literal, TypedDict

from tuilab.cli.schemas.shared import DescribedClaim, ExitCode, Maybe, Path, Seconds
from tuilab.doctor.facts import Fact
from tuilab.judging.calibration_file import Trials
from tuilab.judging.prediction import Nearness

ParamValue = int | float | bool | str


class DescribedParam(TypedDict):
    name: str
    type: str
    default: ParamValue
    choices: list[ParamValue]
    label: str
    low: float | None
    high: float | None
    quick: ParamValue | None


class DescribedFile(TypedDict):
    scenario: str
    topic: str
    path: Path
    title: str
    params: list[DescribedParam]
    arms: list[str]
    claims: list[DescribedClaim]
    error: str
    """why the scenario cannot be used; empty: it can"""
    is_timed: bool
    """true: it has claims about time, which need several processes"""
    builds_on: list[str]


class ListedScenario(DescribedFile):
    last_verdict: str | None
    """on this machine: verdict of its worst claim, or how its run ended"""


class List(TypedDict):
    schema: Literal["tuilab.list/1"]
    topics: dict[str, str]
    """what each topic is about"""
    scenarios: list[ListedScenario]


class DescribedScenario(DescribedFile):
    lesson: str
    sections: dict[str, str]


class Shown(DescribedScenario, total=False):
    source: str | None
    """with --source; null: it cannot be read, and why has the reason"""
    why: str


class Show(TypedDict):
    schema: Literal["tuilab.show/1"]
    scenarios: list[Shown]


class CheckedLine(TypedDict):
    path: Path
    line: int
    sentence: str


class Check(TypedDict):
    schema: Literal["tuilab.check/1"]
    exit_code: ExitCode
    paths: list[str]
    findings: list[CheckedLine]
    warnings: list[CheckedLine]
    """sentences of lessons that are hard to read; not in the exit code"""


class New(TypedDict):
    schema: Literal["tuilab.new/1"]
    path: Path


class Next(TypedDict):
    scenario: str
    topic: str
    title: str
    question: str


class FinishedLesson(TypedDict):
    scenario: str
    run: str
    predicted: Maybe
    measured: Maybe
    nearness: Nearness | None


class Learn(TypedDict):
    schema: Literal["tuilab.learn/1"]
    lessons: int
    next: Next | None
    done: list[FinishedLesson]


class DescribedSetting(TypedDict):
    value: str | float | list[str]
    origin: str


class Config(TypedDict):
    schema: Literal["tuilab.config/1"]
    path: Path
    is_there: bool
    settings: dict[str, DescribedSetting]


class CheckedQuestion(TypedDict):
    id: str
    status: Literal["pass", "warn", "fail", "n/a"]
    found: str
    next_step: str


class Doctor(TypedDict):
    schema: Literal["tuilab.doctor/1"]
    tuilab: str
    wall_s: Seconds
    host: str
    exit_code: ExitCode
    counts: dict[str, int]
    """number of checks by status"""
    checks: list[CheckedQuestion]
    facts: list[Fact]


class Kept(TypedDict):
    wall_s: Seconds
    luck: Maybe
    """standard deviation between processes, of the logarithm of the ratio of identical arms"""
    ways: dict[str, Trials]
    """trials by way of judging, for example within one process"""


class KeptOfGpu(Kept):
    uuid: str
    name: str


class Calibrate(TypedDict):
    schema: Literal["tuilab.calibrate/1"]
    host: str
    cpu: Kept | None
    gpus: list[KeptOfGpu]
