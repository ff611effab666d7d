"""The index of runs: it holds what the journals say, is rebuilt if it is damaged, and several clients may write it."""

import os
import resource
import signal
from multiprocessing import get_context
from pathlib import Path
from zlib import crc32

import pytest

from tests.made_runs import finished, make_run, started
from tuilab.record.events import StateChanged
from tuilab.runs import past_runs, read_entry, store
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import FILE, Index
from tuilab.storage.files import sealed


def complete_index(root: Path) -> Index:
    """Read every run of a folder, and save the index."""
    index = Index(root)
    index.read_missing([run.name for run in store.list_runs(root)], 600)
    index.save()
    return index


def read_one_and_save(root: str, run: str) -> None:
    index = Index(root)
    index.read(run)
    index.save()


def fill_disk_and_save(root: str, run: str) -> None:
    """Save the index where no file may grow beyond a few bytes, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
    read_one_and_save(root, run)


def states(root: Path) -> dict[str, str]:
    """Return the state of each run, by the end of its name."""
    index = Index(root)
    return {run.name[-6:]: index.entry(run.name).state for run in store.list_runs(root)}


def test_saved_entries_equal_those_that_are_read(root: Path) -> None:
    run_dir = finished(
        root, {"a": "SUPPORTED", "b": "WEAKER THAN CLAIMED"}, params={"rows": 5}, changed=["rows"]
    )
    first = complete_index(root).entry(run_dir.name)

    again = Index(root)
    assert again.finished() == {run_dir.name: first}
    assert again.entry(run_dir.name) == first == read_entry.read_entry(run_dir)
    assert again.bytes_of([run_dir.name]) == (first.bytes_total, True)
    assert not again.has_news


def test_only_finished_runs_are_saved(root: Path) -> None:
    over = finished(root, {}, at_s=1.6e9, end="aaaaaa")
    make_run(root, started(is_alive=True), StateChanged(state="running"), at_s=1.5e9, end="bbbbbb")
    make_run(root, started(), StateChanged(state="running"), at_s=1.4e9, end="cccccc")
    make_run(root, started(format=99), StateChanged(state="succeeded"), at_s=1.3e9, end="dddddd")

    complete_index(root)
    assert states(root) == {
        "aaaaaa": "succeeded",
        "bbbbbb": "running",
        "cccccc": "lost",
        "dddddd": "unreadable",
    }
    assert Index(root).finished().keys() == {over.name}


def test_running_run_is_read_until_it_ends(root: Path) -> None:
    run_dir = make_run(root, started(is_alive=True), StateChanged(state="running"))
    index = Index(root)
    before = index.entry(run_dir.name).state, [entry.run for entry in index.running()], index.save()
    ended = make_run(root / "elsewhere", started(), StateChanged(state="failed"))
    (ended / "journal" / "supervisor.jsonl").replace(run_dir / "journal" / "supervisor.jsonl")

    assert before == ("running", [run_dir.name], False)
    assert (index.entry(run_dir.name).state, index.running(), index.save()) == ("failed", [], True)
    assert Index(root).finished().keys() == {run_dir.name}


def test_deleted_run_leaves_the_index(root: Path) -> None:
    older = finished(root, {}, at_s=1.5e9, end="aaaaaa")
    newer = finished(root, {}, at_s=1.6e9, end="bbbbbb")
    complete_index(root)
    store.remove(newer)
    finished(root, {}, at_s=1.7e9, end="cccccc")
    complete_index(root)

    assert older.name in (root / FILE).read_text()
    assert newer.name not in (root / FILE).read_text()


def test_run_of_a_newer_tuilab_is_not_saved(root: Path) -> None:
    newer = make_run(root, started(format=99, tuilab="9.1"), StateChanged(state="succeeded"))
    complete_index(root)

    assert not (root / FILE).exists()
    reason = (
        "was recorded by a newer tuilab (9.1, in format 99); upgrade this one, which reads format 1"
    )
    assert read_entry.read_entry(newer).reason == reason
    assert past_runs.read_past_run(newer).state == "unreadable"


GARBAGE = {
    "nothing": b"",
    "noise": bytes(range(256)) * 40,
    "another seal": b"00000000 a\t1\t[]",
    "no tabs": sealed(b"a b c"),
    "another entry": sealed(b'RUN\t5\t["another"]'),
    "nested": sealed(b"RUN\t5\t" + b"[" * 100_000),
    "a newer form": b'{"form": 99}',
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_damaged_index_is_rebuilt_and_loses_no_run(root: Path, data: bytes) -> None:
    run_dir = finished(root, {"a": "REFUTED"})
    (root / FILE).write_bytes(data.replace(b"RUN", run_dir.name.encode()))

    index = Index(root)
    assert index.entry(run_dir.name).claims == [("a", "REFUTED")]
    assert index.save()
    assert Index(root).finished().keys() == {run_dir.name}


def test_changed_byte_in_the_index_is_noticed(root: Path) -> None:
    run_dir = finished(root, {"a": "REFUTED"})
    complete_index(root)
    (root / FILE).write_bytes((root / FILE).read_bytes().replace(b"REFUTED", b"INVALID"))

    assert Index(root).entry(run_dir.name).claims == [("a", "REFUTED")]


@pytest.mark.parametrize("place", ["folder", "link", "fifo"])
def test_anything_in_place_of_the_index_is_survived(root: Path, place: str) -> None:
    run_dir = finished(root, {})
    match place:
        case "folder":
            (root / FILE).mkdir()
        case "link":
            (root / FILE).symlink_to("/dev/zero")
        case "fifo":
            os.mkfifo(root / FILE)

    assert complete_index(root).entry(run_dir.name).state == "succeeded"
    assert states(root) == {run_dir.name[-6:]: "succeeded"}


def test_index_can_be_deleted_while_it_is_in_use(root: Path) -> None:
    runs = [finished(root, {}, at_s=1.5e9 + number, end=f"{number:06}").name for number in range(3)]
    complete_index(root)
    index = Index(root)
    first = index.entry(runs[0])
    (root / FILE).unlink()
    (root / FILE).with_name("other").write_text("mine")

    assert [index.entry(run).state for run in runs] == ["succeeded"] * 3
    assert first == Index(root).entry(runs[0])


def test_form_of_the_index_has_its_own_number() -> None:
    """Whoever changes an entry changes the number as well, or an older and a newer tuilab misread each other's file."""
    assert (FILE, crc32(" ".join(RunEntry._fields).encode())) == (".index-1", 4155570370)


@pytest.mark.parametrize("place", ["not there", "/proc"])
def test_folder_that_cannot_be_written_costs_only_time(place: str) -> None:
    index = Index(place)
    index.has_news = True

    assert index.running() == []
    assert index.save()
    assert not os.path.exists(f"{place}/{FILE}")


def test_full_disk_keeps_the_index_that_is_there(root: Path) -> None:
    runs = [finished(root, {}, at_s=1.5e9 + number, end=f"{number:06}").name for number in range(2)]
    read_one_and_save(str(root), runs[0])
    before = (root / FILE).read_bytes()
    process = get_context("fork").Process(target=fill_disk_and_save, args=(str(root), runs[1]))
    process.start()
    process.join()

    assert process.exitcode == 0
    assert (root / FILE).read_bytes() == before
    assert [name for name in os.listdir(root) if name.startswith(".")] == [FILE]


def test_read_only_screens_never_write_the_index(root: Path) -> None:
    run_dir = finished(root, {})
    index = Index(root, is_kept=False)
    index.read(run_dir.name)

    assert (index.save(), (root / FILE).exists()) == (False, False)


def test_several_clients_never_break_the_index(root: Path) -> None:
    runs = [
        finished(root, {"a": "REFUTED"}, name=f"s{n}", at_s=1.5e9 + n, end=f"{n:06}").name
        for n in range(12)
    ]
    processes = [
        get_context("fork").Process(target=read_one_and_save, args=(str(root), run)) for run in runs
    ]
    for process in processes:
        process.start()

    seen: list[set[str]] = []
    while any(process.is_alive() for process in processes):
        if (root / FILE).exists():
            seen.append(set(Index(root).finished()))
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 12
    assert all(entries and entries <= set(runs) for entries in seen)
    assert complete_index(root).finished() == {
        run: read_entry.read_entry(root / run) for run in runs
    }
    assert set(Index(root).finished()) == set(runs)
    assert [name for name in os.listdir(root) if name.startswith(".")] == [FILE]
