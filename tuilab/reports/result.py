"""The result of a run as one tree: the JSON document, from which every other report is rendered.

The text below a field is its description in the JSON Schema, and so is the docstring of a class. A
float of a document may be the text "nan", "inf" or "-inf".
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, field

from tuilab.judging.evidence import wall_clock_ratio
from tuilab.judging.prediction import Nearness, find_answer, rate_prediction
from tuilab.record.blocks import (
    Measure,
    NoiseFloor,
    counted,
    in_order,
    measure_of,
    noise_of,
    scale_of,
)
from tuilab.record.digest import digest_of
from tuilab.record.encoding import spell_out
from tuilab.record.events import (
    CLAIM_LIMIT,
    BarsShown,
    Cell,
    RunStarted,
    VerdictReached,
)
from tuilab.record.finding_words import noise_words, reason_words, why_not_judged
from tuilab.record.gpus.own_gpus import own_gpus
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block, Claim, GpuTenants
from tuilab.record.timing.clocks import CPU, clock_of, cpu_times
from tuilab.record.verdicts import NOT_JUDGED, Verdict, is_against
from tuilab.reports.documents.document_part import DocumentPart
from tuilab.reports.notices import notices_of
from tuilab.reports.numbers import key_numbers
from tuilab.reports.tuning.document import ResultTuning
from tuilab.reports.tuning.make_document import tuning_of
from tuilab.text.display import brief, clip, interval_words, show

Part = TypeVar("Part", bound="DocumentPart")

_CLAIM_WIDTH = 600  # characters of a claim in a terminal; other reports have all of a longer one


Key = Annotated[
    str | None,
    Meta(
        description="key of the claim, the same in every run of the scenario; "
        "null in old records without keys"
    ),
]
StateWord = Annotated[str, Meta(extra_json_schema={"enum": list(RunState)})]
VerdictWord = Annotated[str, Meta(extra_json_schema={"enum": list(Verdict)})]
Writer = Annotated[str, Meta(description="process that wrote the values")]


class ResultGpu(DocumentPart, frozen=True):
    uuid: str
    name: str


class ResultRatio(DocumentPart, frozen=True):
    """What a claim about a ratio claims."""

    over: str
    """arm in the numerator of the ratio"""
    under: str
    op: Annotated[
        str, Meta(extra_json_schema={"enum": ["equals", "at_most", "at_least", "between"]})
    ]
    bound: float
    margin: float
    confidence: float
    cores: int

    @property
    def arms(self) -> str:
        return f"{self.over}/{self.under}"

    @property
    def words(self) -> str:
        return f"{self.op.replace('_', ' ')} {self.bound:g}"


class ResultVerdict(DocumentPart, frozen=True):
    """A verdict with what it rests on."""

    key: Key
    text: str
    verdict: VerdictWord | None
    """verdict; null: not judged"""
    why: str
    """reason for the verdict, or why there is none"""
    estimate: float | None
    """claim about time: ratio of two arms; exact claim: the number that was judged"""
    low: float | None
    """lower end of the interval"""
    high: float | None
    """upper end of the interval"""
    confidence: float | None
    """confidence of the interval, such as 0.95"""
    units: int | None
    """number of units behind the interval"""
    unit: str | None
    """what a unit is: repeats, or rounds of one process"""
    noise_floor: float | None
    """how far the A/A control is from 1"""
    smallest_effect: float | None
    """smallest effect that this run can detect, as a ratio minus 1"""
    more_repeats: int | None
    """repeats still needed for an answer"""
    rule: str | None
    """rule by which the claim was judged"""
    measure: str | None
    """claim about time: the clock that judged, wall or cpu"""
    gpu: ResultGpu | None
    """GPU on which the claim was measured"""

    @property
    def outcome(self) -> str:
        """The verdict, or the word for a claim without one."""
        return self.verdict or NOT_JUDGED


class ResultValue(DocumentPart, frozen=True):
    numbers: list[float]
    words: str
    """text, if there are no numbers"""
    value: Any
    """value as it was compared: a number, a text, true or false, or lists of these"""


class ResultMeasured(DocumentPart, frozen=True):
    got: ResultValue
    op: str
    want: ResultValue
    tolerance: float
    unit: str


class ResultClaim(ResultVerdict, frozen=True):
    """A claim, what was measured for it, and its verdict."""

    measured: list[ResultMeasured]
    """exact claim: what each repeat measured"""
    claimed: ResultRatio | None
    """claim about time: what was declared before it was measured"""
    noise_arms: list[str]
    """arms whose A/A controls the noise floor is from"""
    wall_estimate: float | None
    """claim about time, judged on CPU time: the same ratio on the wall clock"""

    @property
    def claim_id(self) -> str:
        return self.key or self.text

    @property
    def is_contradicted(self) -> bool:
        """Whether the verdict is against the claim."""
        if self.verdict is None:
            return False
        if self.claimed is None:
            return is_against(self.verdict, None)
        return is_against(self.verdict, self.claimed.bound)

    @property
    def is_ratio(self) -> bool:
        """Whether a ratio was estimated."""
        return self.claimed is not None and self.estimate is not None

    @property
    def noise(self) -> NoiseFloor | None:
        if self.claimed is None or self.noise_floor is None:
            return None
        first, *others = self.noise_arms or [""]
        return NoiseFloor(self.noise_floor, first, tuple(others))

    def ratio_words(self, *, has_confidence: bool = False) -> str:
        """Return the estimate of a ratio with its interval; nothing if no ratio was estimated.

        The clock is named if it is not the wall clock.
        """
        if self.claimed is None or self.estimate is None:
            return ""
        interval = interval_words(self.estimate, self.low, self.high, self.claimed.bound)
        words = f"{self.claimed.arms} {interval}"
        if has_confidence and self.confidence:
            words += f" ({100 * self.confidence:.3g} %)"
        if self.measure == CPU and self.verdict != Verdict.NOT_TESTABLE:
            words += " in CPU time"
            if self.wall_estimate is not None:
                words += f" ({brief(self.wall_estimate)} on the wall clock)"
        return words

    @property
    def evidence(self) -> str:
        """The estimate with its interval, or what was measured, in one line."""
        if self.verdict is None:
            return self.why
        ratio = self.ratio_words()
        if not ratio or self.claimed is None:
            return reason_words(self.verdict, self.why)
        measured = f"{ratio}, claimed {self.claimed.words}"
        return "; ".join(filter(None, (measured, self.why, noise_words(self.noise))))


class ResultAnswer(DocumentPart, frozen=True):
    value: float | None
    claim: str | None
    """key of the claim that measured the answer; null: not answered"""
    predicted: float | None
    nearness: Nearness | None
    """right: within a factor of 1.1; near: within a factor of 2"""


class ResultAxes(DocumentPart, frozen=True):
    metric: str
    x: str
    y: str
    log: Annotated[str | None, Meta(extra_json_schema={"enum": ["", "x", "y", "xy", None]})]


class ResultSeries(DocumentPart, frozen=True):
    """A summary of a curve."""

    name: str
    arm: str
    writer: Writer
    count: int
    last: float | None
    last_step: int | float | None
    low: float | None
    high: float | None
    bad_count: int = field(name="not_finite")
    """number of values that are NaN or infinite"""
    first_bad_step: int | float | None = field(name="first_not_finite_step")


class ResultMeasure(DocumentPart, frozen=True):
    name: str
    unit: str
    values: list[float]


class ResultRace(DocumentPart, frozen=True):
    """The times of an arm in one process."""

    writer: str
    arm: str
    step_s: list[float]
    """seconds of a call on the wall clock, for each block that counts; empty if something else was
    measured"""
    thread_s: list[float]
    """the same in CPU time of the calling thread; empty if a block did not record it"""
    measured: ResultMeasure | None
    """what commands were compared by instead of the time of a step, for each process"""


class ResultMemory(DocumentPart, frozen=True):
    name: str
    arm: str
    values: dict[str, float]


class ResultTenant(DocumentPart, frozen=True):
    pid: int
    user: str | None
    most_bytes: int | None


class ResultDevice(DocumentPart, frozen=True):
    """A GPU of the machine."""

    uuid: str
    index: int
    name: str
    bytes: int | None
    is_own: bool
    """true: the run was given this GPU, timed on it, or was seen on it"""
    others: list[ResultTenant]
    """other processes that were seen on a GPU of the run"""


class ResultText(DocumentPart, frozen=True):
    title: str
    text: str


class ResultBars(DocumentPart, frozen=True):
    title: str
    unit: str
    names: list[str]
    values: list[float]


class ResultTable(DocumentPart, frozen=True):
    title: str
    head: list[str]
    rows: list[list[Cell]]


class ResultPlace(DocumentPart, frozen=True):
    """A line of a watched script that copies between host and device, or reads a value."""

    file: str
    line: int
    source: str
    """text of the line"""
    kind: str
    """host to device, device to host, or .item()"""
    memory: str
    """copy: memory of the host, pageable or pinned; read: type of the device"""
    count: int
    """how often in the counted steps"""
    bytes: int
    """of all these times"""


class ResultCounted(DocumentPart, frozen=True):
    """What a counted step of a watched command computed, copied and read."""

    arm: str
    step: int
    """number of the step in the curves"""
    steps: int
    """number of steps behind the sums, usually 1"""
    flops: int
    kinds: dict[str, int]
    """FLOPs by dtype; tf32 is float32 that a GPU rounds"""
    uncounted: list[str]
    """operators and kernels whose FLOPs are not known"""
    tokens: int | None
    """tokens that were seen in the counted step; null: none"""
    copies: int
    """copies between host and device, in lines of the script"""
    device_reads: int
    """.item() on a GPU or another device, in lines of the script; those on the CPU are in places"""
    places: list[ResultPlace]
    packages: dict[str, list[int]]
    """copies and device reads of installed packages"""


class ResultUse(DocumentPart, frozen=True):
    """How much of its device a watched command used."""

    arm: str
    step_s: float
    """mean of the steady steps, without the counted ones"""
    steps: int
    flops: float | None
    """FLOPs of a step; null: the counted steps differ"""
    tokens: float | None
    """tokens of a step, by --tokens or the counted steps; null: not known, or these differ"""
    tokens_from: str
    """module, DataLoader or --tokens"""
    kind: str
    """dtype of most FLOPs, or tf32"""
    device: str
    matmul_flops_s: float | None
    """FLOPs a second of a matrix product in this dtype on the same device"""
    why: str
    """why the steps are not compared with a product, for example because they waited for a core"""
    peak_flops_s: float | None
    """FLOPs a second of the data sheet, by --peak-tflops"""


class ResultSpan(DocumentPart, frozen=True):
    arm: str
    writer: str
    lane: str
    began: float
    ended: float
    name: str
    unit: str


class ResultAlert(DocumentPart, frozen=True):
    what: str
    text: str
    arm: str


class ResultFailure(DocumentPart, frozen=True):
    type: str
    message: str
    traceback: str
    hint: str


class ResultRecord(DocumentPart, frozen=True):
    records: int
    corrupt: int
    missing: int
    lost: int
    unknown: int
    digest: str
    """digest of the record on disk, which `verify` prints as well; or n/a with the reason"""


class ResultNumber(DocumentPart, frozen=True):
    name: str
    words: str


class Result(DocumentPart, frozen=True):
    """One run."""

    run: str
    """id of the run"""
    path: str
    """folder of the run, on the machine that wrote the report"""
    scenario: str | None
    topic: str | None
    title: str | None
    params: dict[str, str | float | bool]
    """parameters of the run"""
    changed: list[str]
    """parameters that differ from the defaults of the scenario"""
    state: StateWord
    reason: str
    """why the run ended in this state"""
    box_lacks: str
    """what the run needs and the machine lacks; empty: nothing"""
    node: str
    """node of the cluster on which it ran; empty: the machine that recorded it"""
    ranks: dict[str, str]
    """node of each rank, if the ranks are on several nodes"""
    retry_of: str
    """run that was lost with its node, and that this run repeats; empty: none"""
    elapsed_s: float
    claims: list[ResultClaim]
    answer: ResultAnswer
    """answer to the question of the lesson, and the prediction of the user"""
    axes: list[ResultAxes]
    """names of the axes of a chart, and which of them are logarithmic; null: chosen by the
    values"""
    series: list[ResultSeries]
    """summary of each logged curve; a report has every value in samples"""
    races: list[ResultRace]
    memory: list[ResultMemory]
    """measured with lab.memory"""
    resources: list[ResultSeries]
    """what the run used of the machine: a summary of each line"""
    gpus: list[ResultDevice]
    texts: list[ResultText]
    bars: list[ResultBars]
    tables: list[ResultTable]
    spans: list[ResultSpan]
    """bars in lanes along time; the spans of an arm are one picture"""
    counted_steps: list[ResultCounted]
    """watched command: FLOPs, tokens, copies and reads of the counted steps"""
    uses: list[ResultUse]
    """watched command: its FLOPs next to those of a matrix product"""
    alerts: list[ResultAlert]
    """alarms during the run, for example a stall or a NaN"""
    unavailable: dict[str, str]
    """what could not be measured, and why"""
    environment: dict[str, Any]
    """the machine, its software and its variables, as recorded"""
    failure: ResultFailure | None
    leftovers: list[str]
    """processes that the run left behind, and that tuilab ended"""
    record: ResultRecord
    """whether the record is complete"""
    notices: list[str]
    """what is to be known before the result is read, as clauses"""
    numbers: list[ResultNumber]
    """the numbers beside the claims as reports show them, with units"""
    tuning: ResultTuning | None
    """what a run of `tuilab tune` tried; null: another run"""


class Results(DocumentPart, tag_field="schema", tag="tuilab.result/1", frozen=True):
    """What `tuilab run --json` prints."""

    exit_code: int
    """exit code of the command"""
    runs: list[Result]


def with_key(key: str | None, text: str) -> str:
    """Return the text of a claim, behind its key if it has one."""
    words = clip(show(text, CLAIM_LIMIT), _CLAIM_WIDTH)
    if key:
        words = f"[{key}] {words}"
    return words


def document(part: DocumentPart) -> dict[str, Any]:
    """Return a document for JSON, in which numbers that are not finite are texts."""
    fields: dict[str, Any] = spell_out(msgspec.to_builtins(part))
    return fields


def results_of(runs: Sequence[tuple[RunSummary, str, Path]], exit_code: int) -> Results:
    """Return the document about runs, each of which is given as summary, state and folder."""
    results = []
    for summary, state, run_dir in runs:
        results.append(result_of(summary, state, run_dir))
    return Results(int(exit_code), results)


def result_of(summary: RunSummary, state: str, run_dir: Path, path: str = "") -> Result:
    """Return the result of a run.

    `path` is the path of its folder in the report, if that is not the real one.
    """
    bars = []
    tables = []
    for figure in summary.figures.values():
        if isinstance(figure, BarsShown):
            bars.append(_convert(ResultBars, figure))
        else:
            tables.append(_convert(ResultTable, figure))
    failure = None
    if summary.failure:
        failure = _convert(ResultFailure, summary.failure)
    return Result(
        **_fields_of_run(summary.run),
        run=run_dir.name,
        path=path or str(run_dir),
        state=state,
        reason=summary.reason,
        box_lacks=summary.box_lacks,
        ranks={str(placed.rank): placed.node for placed in summary.ranks.values()},
        elapsed_s=summary.elapsed_s,
        claims=[claim_of(claim, summary) for claim in summary.claims.values()],
        answer=_answer(summary),
        axes=_convert_each(ResultAxes, summary.axes.values()),
        series=_convert_each(ResultSeries, summary.series.values()),
        races=_races(summary),
        memory=_convert_each(ResultMemory, summary.memory),
        resources=_convert_each(ResultSeries, summary.resources.values()),
        gpus=_gpus(summary),
        texts=_convert_each(ResultText, summary.texts),
        bars=bars,
        tables=tables,
        spans=_spans(summary),
        counted_steps=_convert_each(ResultCounted, summary.counted_steps),
        uses=_convert_each(ResultUse, summary.uses.values()),
        alerts=_convert_each(ResultAlert, summary.alerts),
        unavailable={**summary.unavailable, **summary.left_out},
        environment=summary.environment,
        failure=failure,
        leftovers=summary.leftovers,
        record=_record(summary, digest_of(run_dir, state)),
        notices=notices_of(summary),
        numbers=[ResultNumber(name, words) for name, words in key_numbers(summary)],
        tuning=tuning_of(summary),
    )


def _fields_of_run(run: RunStarted | None) -> dict[str, Any]:
    """Return the fields that come from the first record of a run, which may be lost."""
    if run is None:
        return {
            "scenario": None,
            "topic": None,
            "title": None,
            "params": {},
            "changed": [],
            "node": "",
            "retry_of": "",
        }
    return {
        "scenario": run.scenario,
        "topic": run.topic,
        "title": run.title,
        "params": run.params,
        "changed": run.changed,
        "node": run.node,
        "retry_of": run.retry_of,
    }


def _convert(part: type[Part], record: object) -> Part:
    """Return a part made of those attributes of a record that are its fields."""
    return msgspec.convert(record, part, from_attributes=True)


def _convert_each(part: type[Part], records: Iterable[object]) -> list[Part]:
    return [_convert(part, record) for record in records]


def _record(summary: RunSummary, digest: str) -> ResultRecord:
    """Return how complete the record is, with its digest."""
    damage = summary.damage
    return ResultRecord(
        records=summary.records,
        corrupt=damage.corrupt_count,
        missing=damage.missing_count,
        lost=damage.lost_count,
        unknown=damage.unknown_count,
        digest=digest,
    )


# ---- claims


def claim_of(claim: Claim, summary: RunSummary) -> ResultClaim:
    """Return a claim, what was measured for it, and its verdict, or why it has none."""
    reached = claim.verdict
    if reached:
        fields = _fields_of_verdict(reached)
        fields["measure"] = None
        if claim.declared:
            fields["measure"] = reached.measure
    else:
        fields = dict.fromkeys(ResultVerdict.__struct_fields__)
        fields["why"] = why_not_judged(claim, summary)
    fields["key"] = claim.key or None
    fields["text"] = claim.text
    claimed = None
    if claim.declared:
        claimed = _convert(ResultRatio, claim.declared)
    wall_estimate = None
    if claim.declared and clock_of(claim) == CPU:
        wall_estimate = wall_clock_ratio(claim.declared, summary)
    noise = noise_of(claim, summary)
    noise_arms = []
    if noise:
        noise_arms = [arm for arm in (noise.arm, *noise.others) if arm]
    return ResultClaim(
        **fields,
        measured=_convert_each(ResultMeasured, claim.measured),
        claimed=claimed,
        noise_arms=noise_arms,
        wall_estimate=wall_estimate,
    )


def verdict_of(reached: VerdictReached) -> ResultVerdict:
    """Return a verdict with the numbers that it rests on."""
    return ResultVerdict(**_fields_of_verdict(reached))


def _fields_of_verdict(reached: VerdictReached) -> dict[str, Any]:
    """Return the fields of a verdict as the document has them: None instead of an empty key or GPU.

    A verdict without a confidence is about no time, so it has no measure.
    """
    fields = {name: getattr(reached, name) for name in ResultVerdict.__struct_fields__}
    fields["key"] = reached.key or None
    if reached.confidence is None:  # nothing was timed
        fields["measure"] = None
    fields["gpu"] = None
    if reached.gpu:
        fields["gpu"] = ResultGpu(reached.gpu, reached.gpu_name)
    return fields


def _answer(summary: RunSummary) -> ResultAnswer:
    """Return the answer to the lesson's question, the claim that gave it, and the prediction."""
    answer = find_answer(summary.claims.values())
    predicted = None
    if summary.run:
        predicted = summary.run.prediction
    if answer is None:
        return ResultAnswer(None, None, predicted, None)
    nearness = None
    if predicted is not None:
        nearness = rate_prediction(predicted, answer.value)
    return ResultAnswer(answer.value, answer.claim.key or None, predicted, nearness)


# ---- races, GPUs and spans


def _races(summary: RunSummary) -> list[ResultRace]:
    """Return the times of each arm in each process, without blocks that do not count."""
    measure = measure_of(summary)
    races = []
    for (writer, arm), blocks in in_order(summary).items():
        races.append(_race(writer, arm, counted(blocks), measure))
    return races


def _race(writer: str, arm: str, blocks: Sequence[Block], measure: Measure) -> ResultRace:
    """Return the times of an arm, or the values by which commands are compared instead."""
    values = [block.step_s * scale_of(measure.unit) for block in blocks]
    if measure.unit == "s":
        return ResultRace(writer, arm, values, cpu_times(blocks), None)
    return ResultRace(writer, arm, [], [], ResultMeasure(measure.name, measure.unit, values))


def _gpus(summary: RunSummary) -> list[ResultDevice]:
    """Return the GPUs of the machine: which the run used, and which other processes used them."""
    own = {gpu.nvml_uuid for gpu in own_gpus(summary)}
    devices = []
    for gpu in summary.gpus.values():
        tenants = []
        for used in summary.neighbours.get(gpu.uuid, GpuTenants()).processes.values():
            tenant = used.tenant
            tenants.append(ResultTenant(tenant.pid, tenant.user or None, used.most_bytes))
        device = ResultDevice(
            uuid=gpu.uuid,
            index=gpu.index,
            name=gpu.name,
            bytes=gpu.bytes_total,
            is_own=gpu.uuid in own,
            others=tenants,
        )
        devices.append(device)
    return devices


def _spans(summary: RunSummary) -> list[ResultSpan]:
    """Return all spans of a run, those of one arm and process together."""
    results = []
    for (arm, writer), spans in summary.spans.items():
        for span in spans:
            result = ResultSpan(
                arm=arm,
                writer=writer,
                lane=span.lane,
                began=span.began,
                ended=span.ended,
                name=span.name,
                unit=span.unit,
            )
            results.append(result)
    return results
