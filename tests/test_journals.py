"""Recorded runs: each is read as every view reads it, judged again, and found whole. record_journals.py makes them."""

import json
import math
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from tests.record_journals import JOURNALS, RECIPES
from tuilab.judging.integrity import examine
from tuilab.judging.interim_results import compute_interim_results
from tuilab.judging.is_judgeable import find_flaw
from tuilab.judging.judge_run import judge
from tuilab.judging.significance import make_ratio_test
from tuilab.record.live_run import read_run
from tuilab.record.verdicts import RULE

VERDICTS = {
    "tour": [
        ("thirty steps at a learning rate of 3 end in nan", "SUPPORTED", "measured nan"),
        ("the picture has a hole", "SUPPORTED", "measured 1"),
        ("four GPUs are faster than one", "NOT TESTABLE HERE", "four GPUs"),
        ("two products take at least 1.5 times as long as one", "SUPPORTED",
         "6 repeats; interval wider by 0.82 %, as the A/A control was off; interval of 97.5 %"),
        ("a product and a copy of it differ by at least 1.3 times", "NO MEANINGFUL DIFFERENCE", "6 repeats"),
    ],
    "identical-arms-under-load": [
        ("an arm is slower than itself", "INCONCLUSIVE",
         "the machine is too noisy: 66 % of the blocks were disturbed; 6 repeats; "
         "interval wider by 6.9 %, as the A/A control was off; "
         "smallest effect it could have seen: about 34 %; repeats needed: n/a"),
    ],
    "drift-in-the-second-half": [
        ("slow takes at least 1.5 times as long as fast", "SUPPORTED", "8 repeats; interval of 96.41 %"),
    ],
    "outliers": [
        ("slow takes at least 1.5 times as long as fast", "INCONCLUSIVE",
         "8 repeats; interval of 96.41 %; smallest effect it could have seen: about 39 %; "
         "repeats needed: about 266 (258 more)"),
    ],
    "bimodal-processes": [
        ("slow takes at least 1.5 times as long as fast", "INCONCLUSIVE",
         "8 repeats; interval of 96.41 %; smallest effect it could have seen: about 25 %; "
         "repeats needed: about 115 (107 more)"),
    ],
    "computes-something-else": [
        ("the trick is twice as fast", "INVALID", "trick does not compute what product does; 8 rounds within one process"),
    ],
    "crash-in-the-third-repeat": [
        ("two is slower than one", "INCONCLUSIVE",
         "2 repeats are too few, 6 are needed; 1 repeat failed; stopped after 2 of 6 repeats, before the first look; "
         "no control: an arm against itself was not measured; smallest effect it could have seen: n/a; "
         "repeats needed: at least 6 (4 more)"),
    ],
    "not-a-number": [
        ("inf minus inf is nan", "SUPPORTED", "measured nan"),
        ("the loss ends below one", "REFUTED", "measured nan, claimed at most 1"),
        ("every loss is a number", "REFUTED", "measured [nan, 2], claimed -1e+308 to 1e+308"),
    ],
    "two-repeats": [
        ("an arm is slower than itself", "INCONCLUSIVE",
         "2 repeats are too few, 6 are needed; no control: an arm against itself was measured in only 2 repeats; "
         "smallest effect it could have seen: n/a; repeats needed: at least 6 (4 more)"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_a_recorded_run_gets_its_verdicts(name: str) -> None:
    reached = judge(read_run(JOURNALS / name))

    assert [(one.text, one.verdict, one.why) for one in reached] == VERDICTS[name]


def test_a_claim_about_a_ratio_is_looked_over_once_and_asked_once() -> None:
    summary = read_run(JOURNALS / "tour")
    called: Counter[object] = Counter()
    sys.setprofile(lambda frame, event, _: called.update([frame.f_code] if event == "call" else []))
    try:
        judge(summary)
    finally:
        sys.setprofile(None)

    ratios = [claim for claim in summary.claims.values() if claim.declared]
    assert len(ratios) == 2
    assert (called[find_flaw.__code__], called[make_ratio_test.__code__]) == (2, 2)


@pytest.mark.parametrize("name", VERDICTS)
def test_a_recorded_run_is_whole_and_its_verdicts_by_an_older_rule_stand(name: str) -> None:
    found = examine(JOURNALS / name)

    assert (found.wrong, len(found.recorded), found.rules) == (
        [],
        len(VERDICTS[name]),
        ["tuilab-3"],
    )


def with_a_record(name: str, fields: str, under: Path) -> Path:
    """Return a copy of a recorded run in which the first worker wrote one more record."""
    run_dir = shutil.copytree(JOURNALS / name, under / name)
    stream = run_dir / "journal" / "worker-0.jsonl"
    *_, last = stream.read_bytes().splitlines()
    number = json.loads(last[9:])["n"] + 1
    body = f'{{"n":{number},"t":{json.loads(last[9:])["t"]},{fields}}}'.encode()
    with stream.open("ab") as file:
        file.write(b"%08x %b\n" % (crc32(body), body))
    return run_dir


@pytest.mark.parametrize(
    "fields",
    [
        '"k":"progressed","done":1.5,"total":3',
        '"k":"logged","s":9223372036854775808,"v":{}',
        '"k":"stage_entered","name":null',
    ],
)
def test_a_known_kind_that_cannot_be_read_is_told_by_verify_and_by_every_view(
    fields: str, tmp_path: Path
) -> None:
    run_dir = with_a_record("two-repeats", fields, tmp_path)

    found, summary = examine(run_dir), read_run(run_dir)

    kind = json.loads(f"{{{fields}}}")["k"]
    (wrong,) = found.wrong
    assert wrong.startswith(
        f"worker-0: a record of the known kind {kind} that cannot be read at byte "
    )
    assert summary.damage.is_any and (
        summary.damage.corrupt_count,
        summary.damage.missing_count,
    ) == (1, 0)


def test_a_kind_from_the_future_is_told_by_verify_and_is_not_wrong(
    tmp_path: Path, tuilab: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    run_dir = with_a_record("two-repeats", '"k":"tea_brewed","cups":2', tmp_path)

    found = examine(run_dir)
    told = tuilab("verify", run_dir.name, "--root", str(tmp_path))

    assert (found.wrong, found.unknown) == ([], 1)
    assert (
        "not checked: 1 record of a kind that this version of tuilab does not know" in told.stdout
    )
    assert told.stdout.splitlines()[-1] == "complete and unchanged" and told.returncode == 0


def test_every_recipe_is_recorded_and_every_record_is_small() -> None:
    folders = {path.parent.name for path in JOURNALS.glob("*/journal")}
    bytes_total = sum(path.stat().st_size for path in JOURNALS.glob("*/journal/*.jsonl"))

    assert folders == set(RECIPES) == set(VERDICTS)
    assert bytes_total < 700_000


def test_a_record_says_nothing_of_the_box_that_it_was_made_on() -> None:
    text = "".join(path.read_text() for path in JOURNALS.rglob("*.jsonl"))

    assert [word for word in ("/home/", "/root/", "/tmp/", "site-packages") if word in text] == []


def test_drift_in_both_arms_leaves_their_ratio_alone() -> None:
    (standing,) = compute_interim_results(read_run(JOURNALS / "drift-in-the-second-half"))

    found = standing.judgement
    assert found.estimate == pytest.approx(1.6, rel=0.003)
    assert found.low is not None and found.high is not None
    assert 1.59 < found.low < found.high < 1.61


def test_the_tour_has_everything_that_a_view_may_meet() -> None:
    summary = read_run(JOURNALS / "tour")

    bold = summary.series["loss", "bold", "worker-0"]
    assert [(bad.step, repr(bad.value)) for bad in bold.bad[:2]] == [(2, "inf"), (3, "inf")]
    assert (bold.bad_count, summary.series["loss", "careful", "worker-5"].count) == (28, 30)
    assert {arm for _, arm in summary.images} == {"", "holed"}
    assert {memory.arm for memory in summary.memory} == {"small batch", "large batch"}
    assert len(summary.finished_repeats()) == len({writer for writer, *_ in summary.controls}) == 6
    assert summary.resources["GPU-fake-0 memory_used_bytes"].high == 3e9
    assert {state.throttle_mask for state in summary.gpu_states} == {4}
    assert not math.isnan(summary.elapsed_s) and not summary.damage.is_any


def test_on_a_busy_box_the_sensors_mark_what_left_its_core() -> None:
    """Two processes spun beside the race; the arms were busy all the time when nothing interfered."""
    summary = read_run(JOURNALS / "identical-arms-under-load")

    blocks = [block for blocks in summary.blocks.values() for block in blocks if not block.is_rerun]
    assert 0.3 < sum(block.is_disturbed for block in blocks) / len(blocks) < 1.0


def test_a_verdict_by_an_older_rule_is_not_judged_again_and_one_that_was_changed_is_found(
    tmp_path: Path,
) -> None:
    for folder, rule in (("older", "tuilab-3"), ("ours", RULE)):
        run_dir = shutil.copytree(JOURNALS / "drift-in-the-second-half", tmp_path / folder)
        stream = run_dir / "journal" / "judge.jsonl"
        body = (
            stream.read_bytes()[9:-1]
            .replace(b'"SUPPORTED"', b'"REFUTED"')
            .replace(b"tuilab-3", rule.encode())
        )
        stream.write_bytes(b"%08x %b\n" % (crc32(body), body))
        assert json.loads(body)["rule"] == rule

    older, ours = (examine(tmp_path / folder) for folder in ("older", "ours"))
    assert (older.wrong, older.rules) == ([], ["tuilab-3"])
    assert ours.wrong == [
        "the verdict on “slow takes at least 1.5 times as long as fast” does not follow from the measurements"
    ]
