"""The memory of past runs: it holds what would be read, is made again where it is of no use, and several may keep it."""

import os
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.tui.made_up import finished, make_run, started
from tuilab.record.events import StateChanged, Sweep
from tuilab.record.verdicts import Verdict
from tuilab.runs import ledger, past_runs, store
from tuilab.runs.last_verdicts import Said, overall
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.listing.entry import Entry
from tuilab.runs.listing.ledger_file import FILE
from tuilab.runs.spokesmen import spokesmen

LISTING = """
import json, sys
from tuilab.runs.ledger_cache import LedgerCache
print(json.dumps(LedgerCache(sys.argv[1]).last_verdicts()), 'msgspec' in sys.modules)
"""


def look_at_all(root: Path) -> LedgerCache:
    """Look at every run of a folder, and keep what was learnt."""
    cache = LedgerCache(root)
    cache.look_around([run.name for run in store.list_runs(root)], 600)
    cache.keep()
    return cache


def learn_and_keep(root: str, run: str) -> None:
    """Do what one of several processes does: learn about one run, and keep that."""
    cache = LedgerCache(root)
    cache.look(Path(root, run))
    cache.keep()


def test_what_was_remembered_is_what_would_be_read(root: Path) -> None:
    run_dir = finished(root, {"a": "SUPPORTED", "b": "WEAKER THAN CLAIMED"}, params={"rows": 5}, changed=["rows"])
    first = look_at_all(root).entry(run_dir)

    again = LedgerCache(root)
    assert again.over() == {run_dir.name: first}
    assert again.entry(run_dir) == first == ledger.read(run_dir)
    assert again.size([run_dir.name]) == (first.bytes_total, True)
    assert again.last_verdicts() == {"softmax": "WEAKER THAN CLAIMED"}
    assert not again.has_news


def test_only_what_is_over_is_remembered(root: Path) -> None:
    over = finished(root, {}, at_s=1.6e9, end="aaaaaa")
    make_run(root, started(is_alive=True), StateChanged(state="running"), at_s=1.5e9, end="bbbbbb")
    make_run(root, started(), StateChanged(state="running"), at_s=1.4e9, end="cccccc")
    make_run(root, started(format=99), StateChanged(state="succeeded"), at_s=1.3e9, end="dddddd")

    states = {entry.run[-6:]: entry.state for entry in map(look_at_all(root).entry, store.list_runs(root))}
    assert states == {"aaaaaa": "succeeded", "bbbbbb": "running", "cccccc": "lost", "dddddd": "unreadable"}
    assert LedgerCache(root).over().keys() == {over.name}


def test_a_run_that_ends_is_seen_to_end_and_then_remembered(root: Path) -> None:
    run_dir = make_run(root, started(is_alive=True), StateChanged(state="running"))
    cache = LedgerCache(root)
    before = cache.entry(run_dir).state, cache.last_verdicts(), cache.keep()
    ended = make_run(root / "elsewhere", started(), StateChanged(state="failed"))
    (ended / "journal" / "supervisor.jsonl").replace(run_dir / "journal" / "supervisor.jsonl")

    assert before == ("running", {"softmax": "running"}, False)
    assert (cache.entry(run_dir).state, cache.last_verdicts(), cache.keep()) == ("failed", {"softmax": "FAILED"}, False)
    assert LedgerCache(root).over().keys() == {run_dir.name}


def test_a_run_that_was_stopped_is_not_one_that_failed(root: Path) -> None:
    make_run(root, started(), StateChanged(state="stopped", reason="stop requested"))

    assert look_at_all(root).last_verdicts() == {"softmax": ""}


@pytest.mark.parametrize("other", [{"state": "stopped"}, {"quick": True}, {"params": {"rows": 5}, "changed": ["rows"]}])
def test_what_ran_otherwise_does_not_wipe_the_verdict_of_the_defaults(root: Path, other: dict[str, Any]) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa")
    finished(root, {"a": "SUPPORTED"} if "state" not in other else {}, at_s=1.6e9, end="bbbbbb", **other)

    assert LedgerCache(root).last_said() == {"softmax": Said("REFUTED")}
    assert LedgerCache(root).last_said() == {"softmax": Said("REFUTED")}  # as it was kept


def test_where_nothing_ran_with_its_defaults_what_ran_says_what_was_otherwise(root: Path) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa", params={"rows": 5, "device": "cpu"}, changed=["rows", "device"])
    finished(root, {"a": "SUPPORTED"}, name="xyy", at_s=1.5e9, end="bbbbbb", quick=True, params={"n": 1}, changed=["n"])
    finished(root, {"a": "SUPPORTED"}, name="xent", at_s=1.5e9, end="cccccc", params={"device": "cpu"}, changed=["device"])
    finished(root, {}, at_s=1.6e9, end="dddddd", state="stopped")

    said = look_at_all(root).last_said()
    assert said == {"softmax": Said("REFUTED", "rows=5"), "xyy": Said("SUPPORTED", "quick"), "xent": Said("SUPPORTED")}


def test_a_point_of_a_sweep_with_other_values_says_nothing_of_the_lesson_however_many_there_are(root: Path) -> None:
    point: dict[str, Any] = {"sweep": Sweep(id="sweep-1", values={"rows": [5, 9]}, point={"rows": 5}), "params": {"rows": 5}}
    finished(root, {"a": "SUPPORTED"}, name="xyy", at_s=1.5e9, end="cccccc", **point)  # 5 is what the lesson has
    finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa")
    for number in range(120):
        finished(root, {"a": "SUPPORTED"}, at_s=1.6e9 + number, end=f"{number:06}", **point, changed=["rows"])
    finished(root, {}, name="xent", at_s=1.6e9, end="dddddd", state="failed", **point, changed=["rows"])

    said = {"softmax": "REFUTED", "xyy": "SUPPORTED", "xent": ""}
    assert (look_at_all(root).last_verdicts(), LedgerCache(root).last_verdicts()) == (said, said)  # as it was kept, too
    runs = [past_runs.look(run) for run in past_runs.telling("softmax", root, LedgerCache(root).named)]
    newest = past_runs.newest_verdicts(runs)
    assert newest and newest.run_dir.name.endswith("aaaaaa") and len(runs) == past_runs.NEWEST + 1


def test_a_run_in_which_nothing_could_be_tested_hides_no_verdict_wherever_it_is_told(root: Path) -> None:
    gone: dict[str, Any] = {"params": {"device": "cuda:9"}, "changed": ["device"]}
    good = finished(root, {"a": "SUPPORTED"}, at_s=1.5e9, end="aaaaaa")
    small = finished(root, {"a": "INCONCLUSIVE"}, name="xyy", at_s=1.5e9, end="bbbbbb", quick=True)
    finished(root, {"a": Verdict.NOT_TESTABLE}, name="xent", at_s=1.5e9, end="cccccc")
    for number, name in enumerate(("softmax", "xyy", "xent")):
        finished(root, {"a": Verdict.NOT_TESTABLE}, name=name, at_s=1.6e9 + number, end="dddddd", **gone)
        finished(root, {"a": Verdict.NOT_TESTABLE}, name=name, at_s=1.7e9 + number, end="eeeeee", quick=True)

    said = {"softmax": Said("SUPPORTED"), "xyy": Said("INCONCLUSIVE", "quick"), "xent": Said(Verdict.NOT_TESTABLE)}
    assert (look_at_all(root).last_said(), LedgerCache(root).last_said()) == (said, said)  # as it was kept, too
    assert spokesmen(root).items() >= {"softmax": good, "xyy": small}.items()
    for run in (good, small):
        newest = past_runs.newest_verdicts([past_runs.look(one) for one in past_runs.runs_of(run.name.split("-")[1], root)])
        assert newest and newest.run_dir == run


def test_what_a_list_says_of_a_scenario_a_report_on_the_box_says_on_whichever_device_it_was(root: Path) -> None:
    finished(root, {"a": "SUPPORTED"}, at_s=1.5e9, end="aaaaaa")
    newer = finished(root, {"a": "REFUTED"}, at_s=1.6e9, end="bbbbbb", params={"device": "cpu"}, changed=["device"])

    assert LedgerCache(root).last_said() == {"softmax": Said("REFUTED")}
    assert spokesmen(root) == {"softmax": newer}


def test_a_run_that_is_gone_is_forgotten_and_the_one_before_speaks(root: Path) -> None:
    older = finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa")
    newer = finished(root, {"a": "SUPPORTED"}, at_s=1.6e9, end="bbbbbb")
    before = look_at_all(root).last_verdicts()
    store.remove(newer)

    assert (before, LedgerCache(root).last_verdicts()) == ({"softmax": "SUPPORTED"}, {"softmax": "REFUTED"})
    assert LedgerCache(root).over().keys() == {older.name}
    assert newer.name not in (root / FILE).read_text()


def test_the_last_verdicts_load_nothing_slow(root: Path) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa")
    finished(root, {}, name="xyy", at_s=1.6e9, end="bbbbbb")

    said = [subprocess.check_output([sys.executable, "-c", LISTING, root], text=True) for _ in range(2)]
    assert said == [f'{{"xyy": "", "softmax": "REFUTED"}} {loaded}\n' for loaded in (True, False)]


def test_a_lost_run_is_remembered_as_failed_once_it_can_have_no_other_end(root: Path) -> None:
    run_dir = make_run(root, started(is_alive=False), StateChanged(state="running"), at_s=1.5e9)

    assert LedgerCache(root).last_verdicts() == {"softmax": "FAILED"}
    said = subprocess.check_output([sys.executable, "-c", LISTING, root], text=True)
    assert said == '{"softmax": "FAILED"} False\n'
    assert LedgerCache(root).over() == {} and run_dir.name in (root / FILE).read_text()


def test_a_claim_without_a_verdict_that_we_know_is_not_taken_for_one_that_cannot_be_tested() -> None:
    assert [overall([""]), overall(["MOSTLY TRUE"]), overall([])] == ["", "", ""]
    assert overall(["", Verdict.NOT_TESTABLE]) == Verdict.NOT_TESTABLE


def test_a_folder_whose_name_cannot_be_shown_is_no_run(root: Path) -> None:
    os.rename(finished(root, {"a": "SUPPORTED"}), os.fsencode(root) + b"/20261123T000000000Z-softmax-\xff")
    finished(root, {}, name="xyy")

    assert LedgerCache(root).last_verdicts() == {"xyy": ""}


def test_a_run_of_a_newer_tuilab_says_nothing_and_is_not_remembered(root: Path) -> None:
    newer = make_run(root, started(format=99, tuilab="9.1"), StateChanged(state="succeeded"))

    assert look_at_all(root).last_verdicts() == {"softmax": ""}
    assert not (root / FILE).exists()
    assert ledger.read(newer).reason == (
        "was recorded by a newer tuilab (9.1, in format 99); upgrade this one, which reads format 1"
    )
    assert past_runs.look(newer).state == "unreadable"


@pytest.mark.parametrize("state", ["succeeded", "hibernating"])
def test_what_a_run_of_a_newer_tuilab_says_is_not_taken_for_a_failure(root: Path, state: str) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.6e9)
    make_run(root, started(format=99 if state == "succeeded" else 1, is_alive=True), StateChanged(state=state))

    assert look_at_all(root).last_verdicts() == {"softmax": "REFUTED"}


def test_what_a_disk_changed_in_the_memory_is_not_believed(root: Path) -> None:
    run_dir = finished(root, {"a": "REFUTED"})
    look_at_all(root)
    (root / FILE).write_bytes((root / FILE).read_bytes().replace(b"REFUTED", b"INVALID"))

    again = LedgerCache(root)
    assert again.last_verdicts() == {"softmax": "REFUTED"}
    assert again.entry(run_dir).claims == [("a", "REFUTED")]


def test_each_form_of_the_memory_has_a_number_of_its_own() -> None:
    """Whoever changes an entry changes the number, too: else an older and a newer tuilab misread what the other wrote."""
    form = " ".join([*Entry._fields, *Said._fields])

    assert (FILE, crc32(form.encode())) == (".ledger-11.json", 3178095655)


def test_what_is_no_run_has_no_verdict(root: Path) -> None:
    finished(root, {"a": "SUPPORTED"})
    (root / "notes.txt").write_text("mine")
    (root / "2026").mkdir()

    assert LedgerCache(root).last_verdicts() == {"softmax": "SUPPORTED"}


@pytest.mark.parametrize("place", ["not there", "/proc"])
def test_where_nothing_can_be_kept_all_goes_on(root: Path, place: str) -> None:
    run_dir = finished(root, {})
    cache = LedgerCache(place)

    assert cache.entry(run_dir).state == "succeeded"
    assert cache.keep()
    assert not os.path.exists(f"{place}/{FILE}")


def test_several_that_keep_what_they_learnt_never_break_it(root: Path) -> None:
    runs = [finished(root, {"a": "REFUTED"}, name=f"s{n}", at_s=1.5e9 + n, end=f"{n:06}").name for n in range(12)]
    processes = [get_context("fork").Process(target=learn_and_keep, args=(str(root), run)) for run in runs]
    for process in processes:
        process.start()

    seen: list[set[str]] = []
    while any(process.is_alive() for process in processes):
        if (root / FILE).exists():
            seen.append(set(LedgerCache(root).over()))
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 12
    assert all(remembered and remembered <= set(runs) for remembered in seen)
    assert look_at_all(root).over() == {run: ledger.read(root / run) for run in runs}
    assert set(LedgerCache(root).over()) == set(runs)
    assert [name for name in os.listdir(root) if name.startswith(".")] == [FILE]
