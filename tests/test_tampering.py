"""What somebody edits in a record is found: each of these makes one edit in a real run, with every checksum set right again."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from tests.record_journals import JOURNALS
from tuilab.engine.worker_records import stream_counts
from tuilab.judging.integrity import examine
from tuilab.judging.judge_run import judge
from tuilab.record.encoding import spell_out
from tuilab.record.live_run import read_run
from tuilab.record.origin.imported import mark_imported
from tuilab.record.verdicts import RULE
from tuilab.reports.notices import damage_of

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
        bodies = [
            json.dumps({**fields, "n": number}).encode() for number, fields in enumerate(records)
        ]
        lines = [b"%08x %b\n" % (crc32(body), body) for body in bodies]
        (run_dir / "journal" / f"{name}.jsonl").write_bytes(b"".join(lines))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of six repeats, judged by this version and ended as this version ends one."""
    run_dir = shutil.copytree(JOURNALS / "tour", tmp_path_factory.mktemp("honest") / "tour")
    streams = read(run_dir)
    reached = [spell_out(msgspec.to_builtins(one)) for one in judge(read_run(run_dir))]
    streams["judge"] = [
        {**fields, "t": old["t"]} for fields, old in zip(reached, streams["judge"], strict=True)
    ]
    streams["supervisor"][0]["rule"] = RULE
    write(run_dir, streams)
    *before, end = streams["supervisor"]
    counts = [
        spell_out({**msgspec.to_builtins(one), "t": end["t"]})
        for one in stream_counts(run_dir / "journal")
    ]
    write(run_dir, {**streams, "supervisor": [*before, *counts, end]})
    mark_imported(run_dir)  # nobody of another box still writes to it
    return run_dir


def of_kind(records: list[Fields], kind: str, **fields: Any) -> list[Fields]:
    found = [
        one
        for one in records
        if one["k"] == kind and all(one.get(name) == value for name, value in fields.items())
    ]
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


def a_verdict_is_another(streams: Streams) -> None:
    streams["judge"][-1]["verdict"] = "SUPPORTED"


def an_estimate_is_another(streams: Streams) -> None:
    streams["judge"][-2]["estimate"] *= 2


def an_interval_is_narrower(streams: Streams) -> None:
    streams["judge"][-2]["low"] = streams["judge"][-2]["estimate"]


def a_count_is_another(streams: Streams) -> None:
    streams["judge"][-2]["units"] = 60


def a_verdict_is_on_a_claim_that_nobody_made(streams: Streams) -> None:
    streams["judge"].append({**streams["judge"][0], "text": "the moon is made of cheese"})


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


# ---- repeats


def a_repeat_is_cut_out(streams: Streams) -> None:
    streams["supervisor"] = [
        one for one in streams["supervisor"] if one.get("writer") != "worker-4"
    ]
    del streams["worker-4"]
    (counts,) = of_kind(streams["supervisor"], "streams_counted")
    del counts["records"]["worker-4"]


def more_repeats_were_planned(streams: Streams) -> None:
    streams["supervisor"][0]["repeats"] = 20


def the_end_is_gone(streams: Streams) -> None:
    streams["supervisor"].pop()


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
    of_kind(streams["worker-2"], "race_finished")[0] |= {
        "is_same": False,
        "difference": "two is not one",
    }


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


FOLLOWS = f"the verdict on “{TWICE}” does not follow"
COPY = "a product and a copy of it differ by at least 1.3 times"
TAMPERINGS = [
    (the_last_verdict_is_cut_off, f"the verdict on “{COPY}” is missing"),
    (the_judge_is_gone, "judge: the stream is missing; it had 5 records"),
    (a_verdict_is_another, f"the verdict on “{COPY}” does not follow"),
    (an_estimate_is_another, FOLLOWS),
    (an_interval_is_narrower, FOLLOWS),
    (a_count_is_another, FOLLOWS),
    (
        a_verdict_is_on_a_claim_that_nobody_made,
        "the verdict on “the moon is made of cheese” does not follow",
    ),
    (
        one_verdict_is_by_an_older_rule,
        f"the run uses the rule {RULE}, but has verdicts by tuilab-3",
    ),
    (
        all_verdicts_are_by("tuilab-3"),
        f"the run uses the rule {RULE}, but has verdicts by tuilab-3",
    ),
    (all_verdicts_are_by("mine"), f"the run uses the rule {RULE}, but has verdicts by mine"),
    (
        a_repeat_that_nobody_started_is_added,
        "worker-77: the stream did not exist when the run ended",
    ),
    (a_stream_of_another_name_is_added, "note: the stream did not exist when the run ended"),
    (a_worker_is_gone, "worker-3: the stream is missing; it had "),
    (a_worker_is_cut_at_the_end_of_a_line, "worker-5: the last 3 records of "),
    (a_worker_that_failed_is_cut, "worker-5: the last 1 record of "),
    (the_sampler_is_gone, "sampler: the stream is missing; it had "),
    (the_sampler_is_cut_at_the_end_of_a_line, "sampler: the last 1 record of "),
    (a_repeat_is_cut_out, FOLLOWS),
    (more_repeats_were_planned, FOLLOWS),
    (the_end_is_gone, "the record of its end is missing: the run is lost"),
    (a_kind_is_another, FOLLOWS),
    *((a_time_is(value), UNREADABLE) for value in (0, -5, "nan", "inf")),
    (loops_are_none, UNREADABLE),
    (loops_are_ten_times_as_many, FOLLOWS),
    (a_block_is_cut_out, "worker-2: the last 1 record of "),
    (a_block_is_cut_out, f"the verdict on “{COPY}” does not follow"),
    (a_block_of_the_last_round_is_cut_out, f"the verdict on “{COPY}” does not follow"),
    (a_whole_round_is_cut_out, FOLLOWS),
    (a_block_becomes_another_arm, FOLLOWS),
    (a_block_is_of_an_arm_that_did_not_race, FOLLOWS),
    (a_slow_block_becomes_warm_up, FOLLOWS),
    (a_slow_round_becomes_warm_up, FOLLOWS),
    (a_control_becomes_a_block, FOLLOWS),
    (the_race_never_started, FOLLOWS),
    (the_arms_computed_something_else, FOLLOWS),
    (a_later_repeat_declares_another_bound, FOLLOWS),
    (every_repeat_declares_another_bound, FOLLOWS),
    (a_claim_is_declared_after_its_race, FOLLOWS),
    (a_measured_value_is_another, "the verdict on “the picture has a hole” does not follow"),
    (
        a_value_says_two_things,
        "worker-4: a record of the known kind claim_measured that cannot be read",
    ),
]


@pytest.mark.parametrize(
    ("tamper", "told"), TAMPERINGS, ids=lambda value: getattr(value, "__name__", "")
)
def test_an_edit_is_found(
    tamper: Callable[[Streams], None], told: str, honest: Path, tmp_path: Path
) -> None:
    run_dir = shutil.copytree(honest, tmp_path / "tour")
    streams = read(run_dir)
    tamper(streams)
    write(run_dir, streams)

    assert any(told in sentence for sentence in examine(run_dir).wrong), examine(run_dir).wrong


def test_without_an_edit_nothing_is_found(honest: Path, tmp_path: Path) -> None:
    run_dir = shutil.copytree(honest, tmp_path / "tour")
    write(run_dir, read(run_dir))

    found = examine(run_dir)
    assert (found.wrong, len(found.recorded)) == ([], 5)


def test_changed_sentence_of_a_verdict_is_no_problem_and_a_changed_number_is(
    honest: Path, tmp_path: Path
) -> None:
    """A later version words the same verdict differently."""
    run_dir = shutil.copytree(honest, tmp_path / "tour")
    streams = read(run_dir)
    for verdict in streams["judge"]:
        verdict["why"] = "in other words"
    write(run_dir, streams)
    assert examine(run_dir).wrong == []

    an_estimate_is_another(streams)
    write(run_dir, streams)

    assert examine(run_dir).wrong == [
        f"the verdict on “{TWICE}” does not follow from the measurements"
    ]


def cut_lines(run_dir: Path, writer: str, indexes: list[int]) -> None:
    """Cut lines of a stream in the middle, as a full disk does."""
    stream = run_dir / "journal" / f"{writer}.jsonl"
    lines = stream.read_bytes().splitlines()
    for index in indexes:
        lines[index] = lines[index][: len(lines[index]) // 2]
    stream.write_bytes(b"\n".join([*lines, b""]))


def with_reported_loss(honest: Path, folder: Path, lost: int) -> Path:
    """Return a copy of a run whose third worker reports how many records it could not write."""
    run_dir = shutil.copytree(honest, folder / "tour")
    streams = read(run_dir)
    of_kind(streams["supervisor"], "worker_exited", writer="worker-2")[0]["lost"] = lost
    write(run_dir, streams)
    return run_dir


def losses_of(run_dir: Path) -> list[str]:
    return [wrong for wrong in examine(run_dir).wrong if "does not follow" not in wrong]


@pytest.mark.parametrize("indexes", [[20], [20, 21], [20, 40]])
def test_records_that_a_full_disk_cut_are_reported_once(
    indexes: list[int], honest: Path, tmp_path: Path
) -> None:
    run_dir = with_reported_loss(honest, tmp_path, len(indexes))

    cut_lines(run_dir, "worker-2", indexes)

    records = "1 record" if len(indexes) == 1 else f"{len(indexes)} records"
    assert losses_of(run_dir) == [f"{records} could not be written"]
    (notice,) = damage_of(read_run(run_dir))
    assert notice.startswith(f"{len(indexes)} measured record") and "not written" in notice


def test_stream_that_ends_in_a_cut_record_is_reported_once(honest: Path, tmp_path: Path) -> None:
    run_dir = with_reported_loss(honest, tmp_path, 1)
    streams = read(run_dir)
    of_kind(streams["supervisor"], "streams_counted")[0]["records"]["worker-2"] -= 1
    write(run_dir, streams)

    stream = run_dir / "journal" / "worker-2.jsonl"
    os.truncate(stream, stream.stat().st_size - 10)

    assert losses_of(run_dir) == ["1 record could not be written"]


@pytest.mark.parametrize(
    ("writer", "lost", "indexes"),
    [
        ("worker-2", 0, [20]),
        ("worker-2", 1, [20, 40]),
        ("worker-3", 1, [20]),
        ("judge", 1, [2]),
        ("supervisor", 1, [2]),
    ],
)
def test_record_that_somebody_cut_is_found_as_missing(
    writer: str, lost: int, indexes: list[int], honest: Path, tmp_path: Path
) -> None:
    """No more records are explained than the worker of this stream reported."""
    run_dir = with_reported_loss(honest, tmp_path, lost)

    cut_lines(run_dir, writer, indexes)

    assert f"{writer}: 1 record missing" in losses_of(run_dir)


def test_edit_of_a_whole_line_is_no_loss(honest: Path, tmp_path: Path) -> None:
    run_dir = with_reported_loss(honest, tmp_path, 5)
    stream = run_dir / "journal" / "worker-2.jsonl"
    lines = stream.read_bytes().splitlines(keepends=True)
    lines[20] = lines[20].replace(b'"n":', b'"n": ').replace(b'"n": ', b'"m": ')
    stream.write_bytes(b"".join(lines))

    assert any("worker-2: checksum does not match at byte" in wrong for wrong in losses_of(run_dir))


@pytest.mark.parametrize("stream", ["supervisor", "worker-3", "sampler", "judge"])
def test_what_a_power_cut_leaves_of_a_stream_is_lost_and_nothing_else(
    stream: str, honest: Path, tmp_path: Path
) -> None:
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
    streams["supervisor"] = [
        one for one in streams["supervisor"][:-4] if one.get("writer") not in lost
    ]
    write(run_dir, {name: records for name, records in streams.items() if name not in lost})

    assert examine(run_dir).wrong == ["the record of its end is missing: the run is lost"]
