"""What is gathered for a claim from the records: which blocks count, by which clock, and what the sensors say of them."""

import math
from typing import Any

import pytest

from tests.made_runs import started
from tuilab.judging.controls import describe_circumstances, describe_doubt
from tuilab.judging.evidence import Evidence, gather_evidence
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.blocks import NoiseFloor, noise_of
from tuilab.record.finding_words import noise_words
from tuilab.record.folding.fold import fold
from tuilab.record.journal.lines import Item
from tuilab.record.summary import RunSummary

CLAIM = events.ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=2.0)
MS = 1_000_000


def block(arm: str, number: int = 0, wall_ns: int = 100, **more: Any) -> events.BlockTimed:
    usual: dict[str, Any] = {"slot": 0, "loops": 1, "cpu_ns": 1, **more}
    return events.BlockTimed(arm=arm, round=number, wall_ns=wall_ns, **usual)


def repeat(number: int, *records: events.Record, **race: Any) -> list[tuple[str, Item]]:
    """Return the records of a repeat that ran one race to its end."""
    writer = f"worker-{number}"
    usual: dict[str, Any] = {
        "threads": 1,
        "device": "cpu",
        "loops": {},
        "base": "b",
        "delay": 0.05,
        **race,
    }
    return [
        ("supervisor", events.WorkerStarted(writer=writer, pid=1, start=1, repeat=number)),
        (writer, events.RaceStarted(arms=["a", "b"], **usual)),
        *((writer, record) for record in records),
        (writer, events.RaceFinished(arms=["a", "b"])),
        ("supervisor", events.WorkerExited(writer=writer, code=0)),
    ]


def gathered(items: list[tuple[str, Item]] | RunSummary) -> Evidence:
    found = gather_evidence(CLAIM, items if isinstance(items, RunSummary) else fold(items))
    assert found is not None
    return found


def test_a_ratio_takes_each_round_that_has_both_arms_and_no_warm_up() -> None:
    warm = [block(arm, 0, wall_ns, is_warmup=True) for arm, wall_ns in (("a", 900), ("b", 100))]

    found = gathered(repeat(0, *warm, block("a", 1, 400), block("b", 1, 200), block("a", 2, 1)))

    assert found.rounds == [[math.log(2)]]


def test_a_block_that_was_run_again_counts_with_its_first_time() -> None:
    """The second time it is warm in the cache, and faster for no other reason."""
    found = gathered(
        repeat(
            0,
            block("a", wall_ns=400, is_disturbed=True),
            block("a", wall_ns=300, is_rerun=True),
            block("b", wall_ns=200),
        )
    )

    assert (found.rounds, found.disturbed_share, found.marks) == ([[math.log(2)]], 0.5, [[1]])


def test_a_control_is_the_ratio_of_an_arm_to_itself() -> None:
    controls = [block("b", control="same"), block("b", wall_ns=105, control="delayed")]

    found = gathered(repeat(0, block("a", wall_ns=500), block("b"), *controls))

    assert (found.same, found.delayed) == ([[0.0]], [[math.log(1.05)]])


def test_where_processes_hold_other_arms_against_themselves_the_noise_is_of_all_of_them() -> None:
    """The controls are of an arm about as fast as the fastest, which of arms that are alike is another one by chance."""
    arms = (block("a"), block("b"))
    reached = events.VerdictReached(text="c", verdict="SUPPORTED", rule="r", noise_floor=0.05)

    for other, words in (
        ("b", "noise floor ±5 % (b against itself)"),
        ("a", "noise floor ±5 % (b and a, each against itself)"),
    ):
        raced = [*repeat(0, *arms), *repeat(1, *arms, base=other)]
        summary = fold([("worker-0", CLAIM), *raced, ("judge", reached)])
        assert noise_words(noise_of(summary.claims["c"], summary)) == words
    assert (
        noise_words(NoiseFloor(0.05, "a", ("b", "c", "d", "e")))
        == "noise floor ±5 % (a and b and c and 2 more, each against itself)"
    )


def test_a_warm_up_that_did_not_settle_is_counted() -> None:
    items = [item for number in range(3) for item in repeat(number, block("a"), block("b"))]
    for number, (_, item) in enumerate(items):
        if isinstance(item, events.RaceFinished):
            item.is_settled = number > 5

    assert gathered(items).unsettled_repeats == 1


def test_a_tick_of_the_clock_is_the_least_that_a_ratio_varies_by() -> None:
    """Whole times ten milliseconds: a tenth of one arm and a fifth of the other one."""
    times = [(100, 50), (110, 40), (90, 60)]
    arms = [
        (block("a", wall_ns=over * MS), block("b", wall_ns=under * MS)) for over, under in times
    ]

    apart = gathered(
        [
            item
            for number, pair in enumerate(arms)
            for item in repeat(number, *pair, device="process")
        ]
    )
    together = gathered(
        [item for number, pair in enumerate(arms) for item in repeat(number, *pair)]
    )
    assert apart.tick_sd == pytest.approx(math.hypot(0.1, 0.2))
    assert together.tick_sd == 0.0


@pytest.mark.parametrize(
    ("last", "race", "is_one_draw"),
    [
        ([1039, 1039], {"measure": "last loss"}, True),
        ([1039, 1040], {"measure": "last loss"}, False),
        ([1039], {"measure": "last loss"}, False),
        ([1039, 1039], {"measure": "peak memory", "unit": "bytes"}, False),
        ([1039, 1039], {}, False),
    ],
)
def test_a_curve_that_ends_at_one_value_in_every_process_is_one_draw_and_the_verdict_says_so(
    last: list[int], race: dict[str, Any], is_one_draw: bool
) -> None:
    arms = [(block("a", wall_ns=value), block("b", wall_ns=8)) for value in last]

    found = gathered(
        [item for n, pair in enumerate(arms) for item in repeat(n, *pair, device="process", **race)]
    )
    assert found.is_one_draw == is_one_draw
    assert ("one seed" in "; ".join(describe_circumstances(found))) == is_one_draw


# ---- wall clock or CPU time


def on_a_busy_box(
    count: int = 6,
    share: float = 0.5,
    race: dict[str, Any] | None = None,
    into: RunSummary | None = None,
    **more: Any,
) -> RunSummary:
    """Return a run whose arms take 20 and 10 ms of one thread; what others took is on the wall clock alone."""
    items: list[tuple[str, Item]] = []
    for number in range(count):
        records = []
        for turn in range(10):
            is_disturbed = turn < 10 * share
            for arm, control, thread_ns in (
                ("a", "", 20),
                ("b", "", 10),
                ("b", "same", 10),
                ("b", "delayed", 10.5),
            ):
                mine = {
                    "thread_ns": int(thread_ns * MS),
                    "cpu_ns": int(thread_ns * MS),
                    "waits": 0,
                    **more,
                }
                wall_ns = int(
                    thread_ns * MS * (1 + 3 * is_disturbed * (1 + (turn * 7 + number) % 5))
                )
                records.append(
                    block(arm, turn, wall_ns, control=control, is_disturbed=is_disturbed, **mine)
                )
        items += repeat(number, *records, **race or {})
    return fold(items, into)


def test_where_the_wall_is_disturbed_the_cpu_time_of_one_thread_is_taken_for_arms_and_controls() -> (
    None
):
    found = gathered(on_a_busy_box())

    assert (found.clock, found.disturbed_share) == ("cpu", 0.5)
    assert found.rounds == [[math.log(2)] * 10] * 6
    assert found.same == [[0.0] * 10] * 6
    assert found.delayed[0][0] == pytest.approx(math.log(1.05))


def commands_on_a_busy_box(
    disturbed: int = 15, command: bool = True, of_slower: dict[str, Any] | None = None, **more: Any
) -> RunSummary:
    """Return a race of two commands whose steps take 20 and 10 ms of CPU time, and five times that on the wall clock."""
    items: list[tuple[str, Item]] = []
    if command:
        items.append(("supervisor", started(repeats=6, command=["python", "train.py"])))
    for number in range(6):
        records = []
        for arm, control, own_ms in (("a", "", 20), ("b", "", 10), ("b", "same", 10)):
            mine: dict[str, Any] = {"thread_ns": own_ms * MS, "cpu_ns": own_ms * MS, "waited_ns": 0}
            mine |= {"steps": 20, "disturbed_steps": disturbed, **more}
            if arm == "a":
                mine |= of_slower or {}
            wall_ns = own_ms * MS * (5 + (number * 3 + own_ms) % 4)
            records.append(block(arm, 0, wall_ns, control=control, **mine))
        items += repeat(number, *records, device="process", has_instances=True)
    return fold(items)


def test_commands_with_disturbed_steps_are_judged_on_cpu_time() -> None:
    found = gathered(commands_on_a_busy_box())

    assert (found.clock, found.clock_choice.disturbed_share) == ("cpu", 0.75)
    assert found.rounds == [[math.log(2)]] * 6
    assert found.same == [[0.0]] * 6
    assert (
        describe_circumstances(found)[0] == "judged on CPU time: 75 % of the steps were disturbed"
    )


@pytest.mark.parametrize(
    ("of_slower", "reason"),
    [
        ({"cpu_ns": 21 * MS}, "a works on more than one thread or process"),
        ({"waited_ns": 1 * MS}, "a waits 4.8 % of its time for something other than a core"),
        ({"helped_by": "workers of a DataLoader"}, "a has workers of a DataLoader"),
        ({"thread_ns": None}, "a has no CPU time of its own"),
        ({"thread_ns": 0}, "a has no CPU time of its own"),
    ],
)
def test_commands_of_more_than_one_thread_keep_the_wall_clock_with_a_reason(
    of_slower: dict[str, Any], reason: str
) -> None:
    found = gathered(commands_on_a_busy_box(of_slower=of_slower))

    assert found.clock == "wall"
    assert (
        describe_circumstances(found)[0]
        == f"judged on the wall clock, though 75 % of the steps were disturbed: {reason}"
    )


@pytest.mark.parametrize(
    ("why", "more"),
    [
        ("calm", {"disturbed": 1}),
        ("an older record", {"steps": None}),
        (
            "an older record",
            {"steps": None, "thread_ns": None, "waited_ns": None, "disturbed_steps": None},
        ),
        ("no command", {"command": False}),
    ],
)
def test_other_processes_keep_the_wall_clock_without_a_word(why: str, more: dict[str, Any]) -> None:
    found = gathered(commands_on_a_busy_box(**more))

    assert (found.clock, found.clock_choice.why_wall, found.starved) == ("wall", "", "")
    assert not any("judged on" in part for part in describe_circumstances(found))


def test_command_that_gets_less_of_a_core_makes_no_verdict_on_cpu_time() -> None:
    summary = commands_on_a_busy_box()
    for (_, arm), blocks in summary.blocks.items():
        for one in blocks:
            one.wall_ns *= 4 if arm == "a" else 1

    found = gathered(summary)

    assert found.starved == "a gets less of a core than b: it may be its own doing"
    assert describe_doubt(CLAIM, found) == found.starved


def test_where_hardly_a_block_is_disturbed_the_wall_clock_stays() -> None:
    assert gathered(on_a_busy_box(share=0.0)).clock == "wall"


@pytest.mark.parametrize(
    ("why", "race", "more"),
    [
        ("an accelerator", {"device": "cuda"}, {}),
        ("a process of its own", {"device": "process"}, {}),
        ("other threads", {}, {"cpu_ns": 25 * MS}),
        ("waiting", {}, {"waits": 1}),
        ("not recorded", {}, {"waits": None}),
        ("not recorded", {}, {"thread_ns": None}),
        ("no work at all", {}, {"thread_ns": 0}),
    ],
)
def test_an_arm_that_is_not_all_work_of_one_thread_keeps_the_wall_clock(
    why: str, race: dict[str, Any], more: dict[str, Any]
) -> None:
    found = gathered(on_a_busy_box(race=race, **more))

    assert (found.clock, found.disturbed_share) == ("wall", 0.5)


def test_the_times_have_no_say_in_which_clock_is_taken() -> None:
    summary = on_a_busy_box()
    for blocks in summary.blocks.values():
        for one in blocks:
            one.wall_ns, one.step_s = 1, 1e-9

    assert gathered(summary).clock == "cpu"


def test_a_verdict_on_cpu_time_says_so() -> None:
    claim = events.ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=1.5)

    declared: list[tuple[str, Item]] = [(f"worker-{number}", claim) for number in range(6)]

    (reached,) = judge(on_a_busy_box(into=fold(declared)))
    assert (reached.verdict, reached.measure) == ("SUPPORTED", "cpu")
    assert "judged on CPU time: 50 % of the blocks were disturbed" in reached.why


def controlled_repeat(
    number: int, times: dict[tuple[str, str], int], **race: Any
) -> list[tuple[str, Item]]:
    """Return the records of a repeat with one round, from the time of each arm and control."""
    blocks = []
    for (arm, control), wall_ns in times.items():
        blocks.append(block(arm, wall_ns=wall_ns, control=control))
    return repeat(number, *blocks, **race)


def test_base_counts_with_the_mean_of_its_two_instances() -> None:
    times = {("a", ""): 400, ("b", ""): 100, ("b", "same"): 400}

    found = gathered(controlled_repeat(0, times))

    assert found.rounds == [[math.log(2)]]  # 400 to the geometric mean of 100 and 400
    assert found.same == [[math.log(4)]]
    assert found.doubled_share == 1.0


def test_claim_without_the_base_has_no_second_instance() -> None:
    times = {("a", ""): 400, ("b", ""): 100, ("c", ""): 50, ("c", "same"): 90}

    found = gathered(controlled_repeat(0, times, base="c"))

    assert found.rounds == [[math.log(4)]]
    assert found.doubled_share == 0.0


def test_delay_is_the_mean_of_the_delays_of_all_processes() -> None:
    times = {("a", ""): 400, ("b", ""): 100, ("b", "delayed"): 105}
    items = [*controlled_repeat(0, times, delay=0.034), *controlled_repeat(1, times, delay=0.066)]

    assert gathered(items).delay == pytest.approx(0.05)


def test_undisturbed_blocks_are_those_of_which_no_sensor_spoke() -> None:
    disturbed = {"is_disturbed": True, "waits": 0, "wall_ns": 900}
    records = [
        block("a", 0, 200, cpu_ns=200, thread_ns=200, waits=0),
        block("a", 1, cpu_ns=260, thread_ns=260, **disturbed),
        block("b", 0, cpu_ns=100, thread_ns=100, **disturbed),
        block("b", 1, 100, cpu_ns=100, thread_ns=100, waits=0),
    ]

    found = gathered([*repeat(0, *records), *repeat(1, *records[:2], *records[2:3])])

    assert found.clock == "cpu"
    assert found.undisturbed == [math.log(2)]  # the second process has no calm block of b
    assert found.rounds[0] == [math.log(2), math.log(2.6)]


def test_block_that_took_no_time_makes_a_claim_invalid() -> None:
    summary = fold(repeat(0, CLAIM, block("a", 1, 400), block("b", 1, 0)))

    assert [found.verdict for found in judge(summary)] == ["INVALID"]


def test_undisturbed_blocks_tell_on_the_wall_clock_as_well() -> None:
    """One arm may have been disturbed more than the other."""
    rounds = [
        block("a", 0, 200 * MS),
        block("b", 0, 100 * MS),
        block("a", 1, 800 * MS, is_disturbed=True),
        block("b", 1, 100 * MS),
    ]

    found = gathered(repeat(0, *rounds, *(block(arm, 2, 100 * MS) for arm in "ab")))

    assert found.clock == "wall"
    assert found.undisturbed == [pytest.approx(math.log(2) / 2)]


def test_undisturbed_blocks_are_not_looked_at_if_all_are_undisturbed() -> None:
    assert gathered(repeat(0, block("a"), block("b"))).undisturbed == []


@pytest.mark.parametrize(("off_core_ms", "expected"), [(1.9, math.log(2.5)), (2.1, math.log(2))])
def test_block_with_an_unmarked_preemption_is_not_undisturbed(
    off_core_ms: float, expected: float
) -> None:
    """It is judged on CPU time, of which a short preemption costs some as well."""
    own = {"waits": 0, "thread_ns": 100 * MS, "cpu_ns": 100 * MS}
    slow = {"waits": 0, "thread_ns": 200 * MS, "cpu_ns": 200 * MS}
    preempted = {"waits": 0, "thread_ns": 312_500_000, "cpu_ns": 312_500_000}
    rounds = [
        block("a", 0, 200 * MS, **slow),
        block("b", 0, 100 * MS, **own),
        block(
            "a",
            1,
            round((312.5 * (1 + off_core_ms / 100 / (1 - off_core_ms / 100))) * MS),
            **preempted,
        ),
        block("b", 1, 100 * MS, **own),
        block("a", 2, 900 * MS, is_disturbed=True, **slow),
        block("b", 2, 100 * MS, **own),
    ]

    found = gathered(repeat(0, *rounds))

    assert found.clock == "cpu"
    assert found.undisturbed == [pytest.approx(expected)]


def test_race_whose_arms_differ_without_a_reason_is_no_evidence() -> None:
    items = repeat(0, block("a"), block("b"))
    items[-2] = ("worker-0", events.RaceFinished(arms=["a", "b"], is_same=False))

    assert gathered(items).difference == "the arms do not compute the same"
