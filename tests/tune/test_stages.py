"""The stages of a tuning are judged one by one, each by its own repeats and its own claims."""

from typing import Any

from tests.made_runs import started
from tuilab.judging.interim_analyses import latest_analysis, list_ended_repeats
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import LEARNING_DOUBT

COMPARISON = "comparison"
COMBINATION = "combination"
STEP_NS = 100_000_000
LOSSES = [2.0, 1.5, 1.2]


class MadeTuning:
    """The records of a tuning: a study, then repeats whose processes take the times given here."""

    def __init__(self) -> None:
        self.records: list[tuple[str, events.Record]] = [
            ("supervisor", started(topic="tune", command=["python"], repeats=81, looks=[6, 8, 12]))
        ]
        self._workers = 0
        self.add_worker()

    def add_worker(self, *records: events.Record, code: int = 0) -> None:
        """Add a worker with these records, which ended with an exit code."""
        name = f"worker-{self._workers}"
        begin = events.WorkerStarted(writer=name, pid=1, start=1, repeat=self._workers)
        self.records.append(("supervisor", begin))
        self.records += [(name, record) for record in records]
        self.records.append(("supervisor", events.WorkerExited(writer=name, code=code)))
        self._workers += 1

    def add_repeat(
        self,
        stage: str,
        ratios: dict[str, float],
        claims: dict[str, str],
        *,
        learns: dict[str, events.Learning] | None = None,
        learned: dict[str, list[float]] | None = None,
        noise: float = 1.0,
    ) -> None:
        """Add a repeat in which each arm of `ratios` is that much faster than the base.

        `claims` has, by arm, the arm that it is claimed to be faster than.
        """
        arms = ["base", *ratios]
        all_learned = dict.fromkeys([*arms, "base again"], LOSSES) | (learned or {})
        race = events.RaceStarted(
            arms=arms,
            threads=0,
            device=events.OWN_PROCESS,
            loops=dict.fromkeys(arms, 1),
            base="base",
            has_instances=True,
            guard="backward root",
            stage=stage,
            learns=learns or {},
        )
        blocks: list[events.Record] = [_block("base", STEP_NS), _block("base", STEP_NS, "same")]
        for arm, ratio in ratios.items():
            blocks.append(_block(arm, round(STEP_NS / ratio * noise)))
        declared = [_claim(over, arm) for arm, over in claims.items()]
        finished = events.RaceFinished(arms=arms, is_settled=True, learned=all_learned)
        self.add_worker(*declared, race, *blocks, finished)

    def summary(self) -> RunSummary:
        return fold(self.records)

    def verdicts(self) -> dict[str, Any]:
        return {verdict.key: verdict for verdict in judge(self.summary())}


def _block(arm: str, wall_ns: int, control: events.Control = "") -> events.BlockTimed:
    return events.BlockTimed(
        arm=arm, round=0, slot=0, loops=1, wall_ns=wall_ns, cpu_ns=wall_ns, control=control
    )


def _claim(over: str, under: str) -> events.ClaimDeclared:
    return events.ClaimDeclared(
        text=f"{under} is faster", key=under, over=over, under=under, op="at_least", bound=1.0
    )


NOISE = (1.0, 1.01, 0.99, 1.005, 0.995, 1.0)


def compare(tuning: MadeTuning, ratio: float = 1.2, **more: Any) -> None:
    for noise in NOISE:
        tuning.add_repeat(COMPARISON, {"fused": ratio}, {"fused": "base"}, noise=noise, **more)


def test_the_study_and_the_other_stage_are_no_failed_repeats() -> None:
    tuning = MadeTuning()
    compare(tuning)
    for noise in NOISE:
        tuning.add_repeat(
            COMBINATION, {"fused": 1.2, "combined": 1.3}, {"combined": "base"}, noise=noise
        )

    verdicts = tuning.verdicts()

    assert verdicts["fused"].verdict == "SUPPORTED"
    assert verdicts["fused"].units == len(NOISE)
    assert verdicts["combined"].verdict == "SUPPORTED"
    assert verdicts["combined"].units == len(NOISE)


def test_a_stage_has_the_analyses_of_its_own_repeats() -> None:
    tuning = MadeTuning()
    compare(tuning)
    tuning.add_repeat(COMBINATION, {"combined": 1.3}, {"combined": "base"})
    summary = tuning.summary()

    assert len(list_ended_repeats(summary)) == 8
    assert len(list_ended_repeats(summary, COMPARISON)) == 6
    assert latest_analysis(summary, COMPARISON).counts == (6,)


def test_a_spent_budget_ends_one_stage_only() -> None:
    tuning = MadeTuning()
    compare(tuning)
    tuning.add_worker(events.BudgetSpent(repeats=6, stage=COMPARISON))
    summary = tuning.summary()

    assert latest_analysis(summary, COMPARISON).spent_shares[-1] == 1.0
    assert not summary.is_budget_spent


def test_a_treatment_that_rounds_otherwise_is_never_plainly_supported() -> None:
    tuning = MadeTuning()
    compare(tuning, learns={"base": "same", "fused": "other rounding"})

    verdict = tuning.verdicts()["fused"]

    assert verdict.verdict == "INCONCLUSIVE"
    assert verdict.low > 1
    assert verdict.why.startswith(LEARNING_DOUBT)


def test_a_slower_treatment_that_rounds_otherwise_is_refuted() -> None:
    tuning = MadeTuning()
    compare(tuning, ratio=0.7, learns={"base": "same", "fused": "other rounding"})

    assert tuning.verdicts()["fused"].verdict == "REFUTED"


def test_a_treatment_that_must_learn_the_same_is_compared_bit_for_bit() -> None:
    tuning = MadeTuning()
    rounded = {"fused": [2.0, 1.5, 1.2000001]}
    compare(tuning, learns={"base": "same", "fused": "same"}, learned=rounded)
    allowed = MadeTuning()
    compare(allowed, learns={"base": "same", "fused": "rounding"}, learned=rounded)

    verdict = tuning.verdicts()["fused"]

    assert verdict.verdict == "INVALID"
    assert "fused learns something else than base" in verdict.why
    assert "--different-learning" not in verdict.why
    assert allowed.verdicts()["fused"].verdict == "SUPPORTED"


def test_a_repeat_without_a_dropped_treatment_is_no_failure_of_the_others() -> None:
    tuning = MadeTuning()
    tuning.add_repeat(
        COMPARISON, {"fused": 1.2, "compile": 1.1}, {"fused": "base", "compile": "base"}
    )
    needs = events.ClaimNotTestable(
        text="compile is faster", key="compile", needs="OVER TIME: stopped after 60 s"
    )
    tuning.records.append(("worker-1", needs))
    compare(tuning)

    verdicts = tuning.verdicts()

    assert verdicts["compile"].verdict == "NOT TESTABLE HERE"
    assert verdicts["fused"].verdict == "SUPPORTED"
