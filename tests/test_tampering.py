"""What somebody edits in a record is found: each of these makes one edit in a real run, with every checksum set right again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from tests.record_journals import JOURNALS
from tuilab.engine.worker_records import stream_counts
from tuilab.judging.honest.integrity import examine
from tuilab.judging.honest.race_record import RaceRecord
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.encoding import spell_out
from tuilab.record.live_run import read_run
from tuilab.record.order import order_of_round
from tuilab.record.origin.imported import mark_imported
from tuilab.record.verdicts import RULE

Fields = dict[str, Any]
Streams = dict[str, list[Fields]]
UNREADABLE = "worker-2: a record of the known kind block_timed that cannot be read"
TWICE = "two products take at least 1.5 times as long as one"


def read(run_dir: Path) -> Streams:
    found = {}
    for path in sorted((run_dir / "journal").glob("*.jsonl")):
        found[path.stem] = [json.loads(line[9:]) for line in path.read_bytes().splitlines()]
    return found


def write(run_dir: Path, streams: Streams) -> None:
    """Write streams as their writers do: numbered, each line with its checksum."""
    shutil.rmtree(run_dir / "journal")
    (run_dir / "journal").mkdir()
    for name, records in streams.items():
        bodies = [json.dumps({**fields, "n": number}).encode() for number, fields in enumerate(records)]
        lines = [b"%08x %b\n" % (crc32(body), body) for body in bodies]
        (run_dir / "journal" / f"{name}.jsonl").write_bytes(b"".join(lines))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of six repeats, judged by this version and ended as this version ends one."""
    run_dir = shutil.copytree(JOURNALS / "tour", tmp_path_factory.mktemp("honest") / "tour")
    streams = read(run_dir)
    reached = [spell_out(msgspec.to_builtins(one)) for one in judge(read_run(run_dir))]
    streams["judge"] = [{**fields, "t": old["t"]} for fields, old in zip(reached, streams["judge"], strict=True)]
    streams["supervisor"][0]["rule"] = RULE
    write(run_dir, streams)
    *before, end = streams["supervisor"]
    counts = [spell_out({**msgspec.to_builtins(one), "t": end["t"]}) for one in stream_counts(run_dir / "journal")]
    write(run_dir, {**streams, "supervisor": [*before, *counts, end]})
    mark_imported(run_dir)  # nobody of another box still writes to it
    return run_dir


def of_kind(records: list[Fields], kind: str, **fields: Any) -> list[Fields]:
    found = [one for one in records if one["k"] == kind and all(one.get(name) == value for name, value in fields.items())]
    assert found
    return found


def blocks(streams: Streams, writer: str = "worker-2", **fields: Any) -> list[Fields]:
    return of_kind(streams[writer], "block_timed", **fields)


def last_round(streams: Streams) -> int:
    return int(max(block["round"] for block in blocks(streams)))


# ---- verdicts


def the_last_verdict_is_cut_off(streams: Streams) -> None:
    streams["judge"].pop()


def the_judge_is_gone(streams: Streams) -> None:
    del streams["judge"]


def a_false_verdict_stands_before_the_right_one(streams: Streams) -> None:
    streams["judge"].insert(0, {**streams["judge"][-1], "verdict": "SUPPORTED"})


def a_verdict_stands_twice(streams: Streams) -> None:
    streams["judge"].append(streams["judge"][-1])


def a_verdict_is_another(streams: Streams) -> None:
    streams["judge"][-1]["verdict"] = "SUPPORTED"


def an_estimate_is_another(streams: Streams) -> None:
    streams["judge"][-2]["estimate"] *= 2


def an_interval_is_narrower(streams: Streams) -> None:
    streams["judge"][-2]["low"] = streams["judge"][-2]["estimate"]


def a_reason_is_another(streams: Streams) -> None:
    streams["judge"][-2]["why"] = "60 repeats"


def a_verdict_is_on_a_claim_that_nobody_made(streams: Streams) -> None:
    streams["judge"].append({**streams["judge"][0], "text": "the moon is made of cheese"})


def a_verdict_stands_among_the_measurements(streams: Streams) -> None:
    streams["worker-0"].insert(3, {**streams["judge"].pop(), "t": streams["worker-0"][2]["t"]})


def all_verdicts_are_by(rule: str) -> Callable[[Streams], None]:
    def tamper(streams: Streams) -> None:
        for verdict in streams["judge"]:
            verdict |= {"verdict": "SUPPORTED", "rule": rule}

    tamper.__name__ = f"all_verdicts_are_by_{rule}"
    return tamper


def one_verdict_is_by_an_older_rule(streams: Streams) -> None:
    streams["judge"][-1] |= {"verdict": "SUPPORTED", "rule": "tuilab-3"}


# ---- streams


def a_repeat_that_nobody_started_is_added(streams: Streams) -> None:
    streams["worker-77"] = streams["worker-3"]


def a_worker_is_gone(streams: Streams) -> None:
    del streams["worker-3"]


def a_worker_is_cut_at_the_end_of_a_line(streams: Streams) -> None:
    del streams["worker-5"][-3:]


def a_worker_that_failed_is_cut(streams: Streams) -> None:
    last = of_kind(streams["supervisor"], "worker_exited")[-1]
    last |= {"code": 1, "reason": "exit code 1"}
    streams["supervisor"][-1] |= {"state": "failed"}
    del streams["worker-5"][-1:]


def the_sampler_is_gone(streams: Streams) -> None:
    del streams["sampler"]


def the_sampler_is_cut_at_the_end_of_a_line(streams: Streams) -> None:
    streams["sampler"].pop()


def a_stream_of_another_name_is_added(streams: Streams) -> None:
    streams["note"] = [{"k": "stage_entered", "name": "x", "t": 1}]


def a_stream_goes_back_in_time(streams: Streams) -> None:
    streams["worker-1"][5], streams["worker-1"][6] = streams["worker-1"][6], streams["worker-1"][5]


def the_sampler_tells_a_block(streams: Streams) -> None:
    streams["sampler"].append({**blocks(streams)[0], "t": streams["sampler"][-1]["t"]})


def a_worker_starts_another(streams: Streams) -> None:
    streams["worker-0"].insert(2, {**of_kind(streams["supervisor"], "worker_started")[1], "t": streams["worker-0"][1]["t"]})


# ---- repeats


def a_repeat_is_cut_out(streams: Streams) -> None:
    streams["supervisor"] = [one for one in streams["supervisor"] if one.get("writer") != "worker-4"]
    del streams["worker-4"]
    (counts,) = of_kind(streams["supervisor"], "streams_counted")
    del counts["records"]["worker-4"]


def two_workers_are_the_same_repeat(streams: Streams) -> None:
    of_kind(streams["supervisor"], "worker_started", writer="worker-4")[0]["repeat"] = 3


def fewer_repeats_were_planned(streams: Streams) -> None:
    streams["supervisor"][0]["repeats"] = 4


def more_repeats_were_planned(streams: Streams) -> None:
    streams["supervisor"][0]["repeats"] = 20


def a_worker_never_ended(streams: Streams) -> None:
    streams["supervisor"].remove(of_kind(streams["supervisor"], "worker_exited", writer="worker-1")[0])


def the_run_starts_twice(streams: Streams) -> None:
    streams["supervisor"].insert(1, streams["supervisor"][0])


def the_end_is_gone(streams: Streams) -> None:
    streams["supervisor"].pop()


def there_are_two_ends(streams: Streams) -> None:
    streams["supervisor"].append(streams["supervisor"][-1] | {"state": "failed"})


# ---- blocks


def a_kind_is_another(streams: Streams) -> None:
    blocks(streams, arm="two", round=last_round(streams) - 1)[0]["k"] = "block_timer"


def a_time_is(value: object) -> Callable[[Streams], None]:
    def tamper(streams: Streams) -> None:
        blocks(streams)[-1]["wall_ns"] = value

    tamper.__name__ = f"a_time_is_{value}"
    return tamper


def loops_are_none(streams: Streams) -> None:
    blocks(streams)[-1]["loops"] = 0


def loops_are_ten_times_as_many(streams: Streams) -> None:
    for block in blocks(streams, arm="two"):
        block["loops"] *= 10


def a_block_is_replaced_by_a_second_one(streams: Streams) -> None:
    records = streams["worker-2"]
    for block in [one for one in blocks(streams, arm="two") if not one.get("is_disturbed") and not one.get("is_rerun")]:
        records.insert(records.index(block) + 1, {**block, "wall_ns": block["wall_ns"] * 2})


def a_block_is_replaced_by_a_false_rerun(streams: Streams) -> None:
    records = streams["worker-2"]
    block = next(one for one in blocks(streams, arm="two") if not one.get("is_disturbed") and not one.get("is_rerun"))
    records.insert(records.index(block) + 1, {**block, "wall_ns": block["wall_ns"] * 2, "is_rerun": True})


def a_block_is_cut_out(streams: Streams) -> None:
    streams["worker-2"].remove(blocks(streams, arm="copy", round=last_round(streams) - 1)[0])


def a_block_of_the_last_round_is_cut_out(streams: Streams) -> None:
    for block in blocks(streams, arm="copy", round=last_round(streams)):
        streams["worker-2"].remove(block)


def a_whole_round_is_cut_out(streams: Streams) -> None:
    gone = blocks(streams, round=last_round(streams) - 1)
    streams["worker-2"] = [one for one in streams["worker-2"] if one not in gone]


def a_block_becomes_another_arm(streams: Streams) -> None:
    blocks(streams, arm="two")[-1]["arm"] = "one"


def a_block_is_of_an_arm_that_did_not_race(streams: Streams) -> None:
    blocks(streams, arm="two")[-1]["arm"] = "ghost"


def a_slow_block_becomes_warm_up(streams: Streams) -> None:
    for block in blocks(streams, arm="two", round=last_round(streams)):
        block["is_warmup"] = True


def a_slow_round_becomes_warm_up(streams: Streams) -> None:
    for block in blocks(streams, round=last_round(streams)):
        block["is_warmup"] = True


def a_control_becomes_a_block(streams: Streams) -> None:
    del blocks(streams, control="same")[-1]["control"]


def the_race_never_started(streams: Streams) -> None:
    streams["worker-2"].remove(of_kind(streams["worker-2"], "race_started")[0])


def the_arms_computed_something_else(streams: Streams) -> None:
    of_kind(streams["worker-2"], "race_finished")[0] |= {"is_same": False, "difference": "two is not one"}


# ---- claims


def a_later_repeat_declares_another_bound(streams: Streams) -> None:
    of_kind(streams["worker-3"], "claim_declared")[0]["bound"] = 9.0


def every_repeat_declares_another_bound(streams: Streams) -> None:
    for name in [name for name in streams if name.startswith("worker")]:
        of_kind(streams[name], "claim_declared")[0]["bound"] = 2.5


def a_claim_is_declared_after_its_race(streams: Streams) -> None:
    records = streams["worker-0"]
    declared = of_kind(records, "claim_declared")[0]
    records.remove(declared)
    started = records.index(of_kind(records, "race_started")[0])
    records.insert(started + 1, declared | {"t": records[started]["t"]})


def a_measured_value_is_another(streams: Streams) -> None:
    of_kind(streams["worker-4"], "claim_measured")[1]["got"] = {"numbers": [7.0]}


def a_value_says_two_things(streams: Streams) -> None:
    of_kind(streams["worker-4"], "claim_measured")[1]["got"]["exact"] = "7"


TAMPERINGS = [
    (the_last_verdict_is_cut_off, "the verdict on “a product and a copy of it differ by at least 1.3 times” is missing"),
    (the_judge_is_gone, "judge: the stream is missing; it had 5 records"),
    (a_false_verdict_stands_before_the_right_one, "2 verdicts on the same claim, “a product and a copy of it differ by at"),
    (a_verdict_stands_twice, "2 verdicts on the same claim, “a product and a copy of it differ by at least 1.3 times”"),
    (a_verdict_is_another, "the verdict on “a product and a copy of it differ by at least 1.3 times” does not follow"),
    (an_estimate_is_another, f"the verdict on “{TWICE}” does not follow"),
    (an_interval_is_narrower, f"the verdict on “{TWICE}” does not follow"),
    (a_reason_is_another, f"the verdict on “{TWICE}” does not follow"),
    (a_verdict_is_on_a_claim_that_nobody_made, "the verdict on “the moon is made of cheese” does not follow"),
    (a_verdict_stands_among_the_measurements, "worker-0: a verdict_reached, which only the judge writes"),
    (one_verdict_is_by_an_older_rule, "the verdicts were reached by different rules: tuilab-3, tuilab-7"),
    (all_verdicts_are_by("tuilab-3"), "the run uses the rule tuilab-7, but has verdicts by tuilab-3"),
    (all_verdicts_are_by("mine"), "the run uses the rule tuilab-7, but has verdicts by mine"),
    (a_repeat_that_nobody_started_is_added, "worker-77: no worker of this name was started"),
    (a_worker_is_gone, "worker-3: the stream is missing; it had "),
    (a_worker_is_cut_at_the_end_of_a_line, "worker-5: the last 3 records are gone"),
    (a_worker_that_failed_is_cut, "worker-5: the last record is gone"),
    (the_sampler_is_gone, "sampler: the stream is missing; it had "),
    (the_sampler_is_cut_at_the_end_of_a_line, "sampler: the last record is gone"),
    (a_stream_of_another_name_is_added, "note: no process of a run writes a stream of this name"),
    (a_stream_goes_back_in_time, "worker-1: a record is older than the one before it"),
    (the_sampler_tells_a_block, "sampler: a block_timed, which only a worker writes"),
    (a_worker_starts_another, "worker-0: a worker_started, which only the supervisor writes"),
    (a_repeat_is_cut_out, "the workers are of the repeats 0, 1, 2, 3, 5"),
    (two_workers_are_the_same_repeat, "the workers are of the repeats 0, 1, 2, 3, 3, 5"),
    (fewer_repeats_were_planned, "there are 6 repeats, and 4 were planned"),
    (more_repeats_were_planned, "there are 6 repeats, and 20 were planned"),
    (a_worker_never_ended, "worker-1: the record of its end is missing"),
    (the_run_starts_twice, "its start is recorded 2 times"),
    (the_end_is_gone, "the record of its end is missing: the run is lost"),
    (there_are_two_ends, "its end is recorded 2 times"),
    (a_kind_is_another, "worker-2: round "),
    *((a_time_is(value), UNREADABLE) for value in (0, -5, "nan", "inf")),
    (loops_are_none, UNREADABLE),
    (loops_are_ten_times_as_many, "worker-2: two has blocks of other loops than the race announced"),
    (a_block_is_replaced_by_a_second_one, "worker-2: two has several blocks in round"),
    (a_block_is_replaced_by_a_false_rerun, "worker-2: two has several blocks in round"),
    (a_block_is_cut_out, "worker-2: round "),
    (a_block_of_the_last_round_is_cut_out, "worker-2: round "),
    (a_whole_round_is_cut_out, "worker-2: after round "),
    (a_block_becomes_another_arm, "worker-2: "),
    (a_block_is_of_an_arm_that_did_not_race, "worker-2: a block of ghost, which does not race then"),
    (a_slow_block_becomes_warm_up, "worker-2: some blocks of round "),
    (a_slow_round_becomes_warm_up, "worker-2: round "),
    (a_control_becomes_a_block, "worker-2: "),
    (the_race_never_started, "worker-2: a block of "),
    (the_arms_computed_something_else, f"the verdict on “{TWICE}” does not follow"),
    (a_later_repeat_declares_another_bound, f"worker-3: “{TWICE}” is declared otherwise than in another repeat"),
    (every_repeat_declares_another_bound, f"the verdict on “{TWICE}” does not follow"),
    (a_claim_is_declared_after_its_race, f"worker-0: “{TWICE}” is declared after its arms raced"),
    (a_measured_value_is_another, "the verdict on “the picture has a hole” does not follow"),
    (a_value_says_two_things, "worker-4: a record of the known kind claim_measured that cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(("tamper", "told"), TAMPERINGS, ids=lambda value: getattr(value, "__name__", ""))
def test_an_edit_is_found(tamper: Callable[[Streams], None], told: str, honest: Path, tmp_path: Path) -> None:
    run_dir = shutil.copytree(honest, tmp_path / "tour")
    streams = read(run_dir)
    tamper(streams)
    write(run_dir, streams)

    assert any(told in sentence for sentence in examine(run_dir).wrong), examine(run_dir).wrong


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (the_last_verdict_is_cut_off, "the verdict on “a product and a copy of it differ by at least 1.3 times” is missing"),
        (the_judge_is_gone, f"the verdict on “{TWICE}” is missing"),
        (a_worker_is_gone, "worker-3: the stream is missing"),
        (a_worker_is_cut_at_the_end_of_a_line, "worker-5: the last records are gone"),
        (a_repeat_that_nobody_started_is_added, "worker-77: no worker of this name was started"),
        (a_verdict_stands_twice, "2 verdicts on the same claim, “a product and a copy of it differ by at least 1.3 times”"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_of_a_record_of_an_older_version_the_same_is_found(
    tamper: Callable[[Streams], None], told: str, tmp_path: Path
) -> None:
    """It does not say how long its streams were, and its verdicts are not judged again."""
    run_dir = shutil.copytree(JOURNALS / "tour", tmp_path / "tour")
    streams = read(run_dir)
    tamper(streams)
    write(run_dir, streams)

    assert told in examine(run_dir).wrong


def test_without_an_edit_nothing_is_found(honest: Path, tmp_path: Path) -> None:
    run_dir = shutil.copytree(honest, tmp_path / "tour")
    write(run_dir, read(run_dir))

    found = examine(run_dir)
    assert (found.wrong, len(found.recorded), found.unchecked) == ([], 5, 0)


def test_another_version_may_say_the_same_in_other_words(honest: Path, tmp_path: Path) -> None:
    run_dir = shutil.copytree(honest, tmp_path / "tour")
    streams = read(run_dir)
    a_reason_is_another(streams)
    of_kind(streams["supervisor"], "run_started")[0]["tuilab"] = "0.0.9"
    write(run_dir, streams)
    assert examine(run_dir).wrong == []

    an_estimate_is_another(streams)
    write(run_dir, streams)

    assert examine(run_dir).wrong == [f"the verdict on “{TWICE}” does not follow from the measurements"]


@pytest.mark.parametrize("stream", ["supervisor", "worker-3", "sampler", "judge"])
def test_what_a_power_cut_leaves_of_a_stream_is_lost_and_nothing_else(stream: str, honest: Path, tmp_path: Path) -> None:
    """Without a record of its end a run is lost; which lines of which stream reached the disk before says nothing."""
    run_dir = shutil.copytree(honest, tmp_path / "tour")
    streams = read(run_dir)
    streams["supervisor"].pop()
    streams[stream] = streams[stream][: len(streams[stream]) // 2]
    write(run_dir, streams)

    assert examine(run_dir).wrong == ["the record of its end is missing: the run is lost"]


@pytest.mark.parametrize("lost", [["judge"], ["worker-4", "worker-5", "judge"], ["sampler"]])
def test_a_run_that_was_killed_before_it_was_judged_is_lost_and_nothing_else(
    lost: list[str], honest: Path, tmp_path: Path
) -> None:
    run_dir = shutil.copytree(honest, tmp_path / "tour")
    streams = read(run_dir)
    streams["supervisor"] = [one for one in streams["supervisor"][:-4] if one.get("writer") not in lost]
    write(run_dir, {name: records for name, records in streams.items() if name not in lost})

    assert examine(run_dir).wrong == ["the record of its end is missing: the run is lost"]


def drawn_race() -> list[events.RaceStarted | events.BlockTimed]:
    """Return what a race of two arms and two controls records, in the order that its seed gives."""
    slots: list[tuple[str, events.Control]] = [("one", ""), ("two", ""), ("one", "same"), ("one", "delayed")]
    started = events.RaceStarted(arms=["one", "two"], threads=1, device="cpu", loops={"one": 1, "two": 1}, base="one", seed=7)
    found: list[events.RaceStarted | events.BlockTimed] = [started]
    for turn in range(4):
        for place, number in enumerate(order_of_round(7, turn, 4)):
            arm, control = slots[number]
            block = events.BlockTimed(arm=arm, control=control, round=turn, slot=place, loops=1, wall_ns=90, cpu_ns=90)
            block.t = 100 * len(found)
            found.append(block)
    return found


def wrong_with(told: list[events.RaceStarted | events.BlockTimed]) -> list[str]:
    record = RaceRecord()
    for event in told:
        record.take(event)
    record.end(is_whole=True)
    return record.wrong


def test_a_race_that_was_run_as_it_was_drawn_is_whole() -> None:
    assert wrong_with(drawn_race()) == []


@pytest.mark.parametrize("edit", ["another seed", "arms change their names", "slots are another"])
def test_a_race_in_another_order_than_was_drawn_is_found(edit: str) -> None:
    started, *rest = drawn_race()
    assert isinstance(started, events.RaceStarted)
    blocks = [block for block in rest if isinstance(block, events.BlockTimed)]
    if edit == "another seed":
        started.seed = 8
    for block in blocks:
        if edit == "arms change their names" and not block.control:
            block.arm = {"one": "two", "two": "one"}[block.arm]
        elif edit == "slots are another":
            block.slot = 0

    assert wrong_with([started, *blocks]) == ["round 0 of the race of one, two is not in the order that was drawn"]


def test_times_that_are_longer_than_there_was_time_are_found() -> None:
    """They stand in every view, also of a run that is judged on CPU time."""
    told = drawn_race()
    for event in told:
        if isinstance(event, events.BlockTimed) and event.arm == "two":
            event.wall_ns *= 2

    assert wrong_with(told) == ["blocks of two take longer than there was time for them"]
