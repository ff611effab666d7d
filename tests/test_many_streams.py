"""Runs of many streams, as many repeats make them: few descriptors are held, nothing is missed, nothing is misread."""

import os
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import newest, write_scenario
from tests.made_runs import finished, started
from tests.made_runs import make_run as make_up
from tests.test_archive import make_run
from tests.tui.screens import opened
from tuilab.cli.headless import NoProgress, follow
from tuilab.errors import UsageError
from tuilab.record.events import StageEntered
from tuilab.record.journal.follower import Follower, Portion
from tuilab.record.journal.lines import Corrupt, Item
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import Watch, read_run
from tuilab.record.presence import Presence
from tuilab.tui.screens.compare import ComparePage

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]
MANY = 300


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def add_streams(run_dir: Path, count: int) -> list[Path]:
    """Add streams with a stage each; nothing is left open."""
    (run_dir / "journal").mkdir(parents=True, exist_ok=True)
    paths = [run_dir / "journal" / f"worker-{number}.jsonl" for number in range(100, 100 + count)]
    for path in paths:
        writer = Writer(path)
        writer.append(StageEntered(name=path.stem))
        writer.close()
    return paths


def append(path: Path, *names: str) -> None:
    """Append to a stream what its writer might: it goes on counting where the stream ends."""
    count = path.read_bytes().count(b"\n")
    other = path.with_suffix(".new")
    writer = Writer(other)
    for name in [*map(str, range(count)), *names]:
        writer.append(StageEntered(name=name))
    writer.close()
    with path.open("ab") as stream:
        stream.write(b"".join(other.read_bytes().splitlines(keepends=True)[count:]))
    other.unlink()


def read(follower: Follower) -> list[tuple[str, Item]]:
    found = []
    while portion := follower.read():
        found += list(portion)
    return found


def stages(items: list[tuple[str, Item]]) -> list[str]:
    return sorted(item.name for _, item in items if isinstance(item, StageEntered))


@pytest.mark.parametrize(
    "words",
    [
        ("attach", "last", "--headless"),
        ("verify", "last"),
        ("report", "last", "-o", "-"),
        ("compare", "last", "last"),
        ("runs",),
    ],
)
@pytest.mark.first(2)
def test_a_run_of_more_streams_than_descriptors_is_shown_by_every_view(
    root: Path, words: tuple[str, ...]
) -> None:
    add_streams(make_run(root), MANY)
    done = subprocess.run(
        ["bash", "-c", 'ulimit -n 64; exec "$@"', "-", TUILAB, *words], capture_output=True, text=True,
        env={**os.environ, "TUILAB_ROOT": str(root)},
    )  # fmt: skip

    assert "open files" not in done.stdout + done.stderr and "Traceback" not in done.stderr
    if words[0] == "verify":
        assert f"{len(list((next(root.glob('2*')) / 'journal').iterdir()))} streams" in done.stdout


def test_of_many_streams_few_are_held_and_whichever_grows_is_read(tmp_path: Path) -> None:
    paths = add_streams(tmp_path, MANY)
    before = descriptors()
    follower = Follower(tmp_path)
    first = read(follower)
    held = descriptors() - before
    for path in paths[::50]:
        append(path, f"{path.stem} again")
    (late,) = set(add_streams(tmp_path / "late", 1))
    late.rename(tmp_path / "journal" / "worker-late.jsonl")
    second = read(follower)

    assert stages(first) == sorted(path.stem for path in paths)
    assert stages(second) == sorted(["worker-100", *(f"{path.stem} again" for path in paths[::50])])
    assert held < MANY / 10 and descriptors() - before < MANY / 10
    follower.close()
    assert descriptors() == before
    append(paths[7], "after the close")
    assert stages(read(follower)) == ["after the close"]
    follower.close()


def test_a_stream_that_is_not_held_keeps_no_half_record_and_reads_it_when_it_is_whole(
    tmp_path: Path,
) -> None:
    paths = add_streams(tmp_path, 40)
    lines = {path: path.read_bytes() for path in paths}
    for path in paths:
        append(path, "half" * 10_000)
        lines[path] = path.read_bytes()
        path.write_bytes(lines[path][:-5])
    tracemalloc.start()
    follower = Follower(tmp_path)
    first = read(follower)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    before = follower.pending_bytes
    again = read(follower)
    for path in paths:
        path.write_bytes(lines[path])

    assert (len(stages(first)), again) == (40, [])
    assert held < 25 * 40_000 and before == sum(
        len(data.splitlines()[-1]) - 4 for data in lines.values()
    )
    assert stages(read(follower)) == ["half" * 10_000] * 40
    assert follower.pending_bytes == 0
    follower.close()


def test_a_portion_is_of_some_streams_and_none_waits_for_ever(tmp_path: Path) -> None:
    paths = add_streams(tmp_path, MANY)
    follower = Follower(tmp_path)
    sizes = []
    while portion := follower.read():
        sizes.append(len(portion.streams))
        for path in paths[:100]:  # the first ones go on while the others wait
            if len(sizes) < 5:
                append(path, "more")
    follower.close()

    assert max(sizes) < MANY / 2
    assert sum(sizes[:9]) >= MANY


def replace(path: Path) -> None:
    """Put another stream in the place, one that would go on exactly where the old one was read to."""
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    append(other, "of another file")
    other.replace(path)


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize(
    "spoil", [replace, lambda path: os.truncate(path, 10), lambda path: os.truncate(path, 0)]
)
def test_a_stream_that_was_replaced_or_cut_short_is_told_once_and_not_read_on(
    tmp_path: Path, spoil: Callable[[Path], None], is_held: bool
) -> None:
    paths = add_streams(tmp_path, 3)
    follower = Follower(tmp_path)
    read(follower)
    if not is_held:
        follower.close()
    spoil(paths[1])
    told = read(follower)
    append(paths[0], "of the others")

    ((stream, item),) = told
    assert stream == paths[1].stem
    assert isinstance(item, Corrupt) and item.reason.startswith(
        "the file was replaced or cut short"
    )
    assert stages(read(follower)) == ["of the others"]
    follower.close()


def test_a_run_that_cannot_be_read_leaves_nothing_open(root: Path) -> None:
    run_dir = make_up(root, started(format=99))
    before = descriptors()

    with pytest.raises(UsageError, match="newer tuilab"):
        read_run(run_dir)
    assert descriptors() == before


def test_a_run_that_logs_faster_than_it_is_read_is_read_to_where_it_was(root: Path) -> None:
    """As a scenario that logs in a tight loop is: for each record that is read there is another one."""
    run_dir = make_up(root, started())
    writer = Writer(run_dir / "journal" / "worker-0.jsonl")
    for number in range(10):
        writer.append(StageEntered(name=str(number)))

    def log_on(item: Item) -> Item:
        writer.append(StageEntered(name="meanwhile"))
        assert writer.written < 1000, "it is followed for ever"
        return item

    watch = Watch(run_dir, log_on)
    watch.catch_up()
    assert [stage.name for stage in watch.summary.stages][:10] == [*map(str, range(10))]
    watch.close()
    writer.close()


def test_what_a_supervisor_writes_just_before_it_goes_is_passed_on(root: Path) -> None:
    run_dir = make_up(root, started())
    passed_on: list[str] = []

    class Late(Watch):
        @property
        def supervisor_presence(self) -> Presence:
            append(run_dir / "journal" / "supervisor.jsonl", "last words")
            return "dead"

    def note(items: Portion) -> None:
        passed_on.extend(item.name for _, item in items if isinstance(item, StageEntered))

    assert follow(Late(run_dir), NoProgress(), note, is_ours=False) == "lost"
    assert passed_on == ["last words"]


def test_a_watch_that_was_closed_goes_on_when_there_is_more(root: Path) -> None:
    run_dir = make_up(root, started())
    watch = Watch(run_dir)
    watch.catch_up()
    watch.close()
    append(run_dir / "journal" / "supervisor.jsonl", "later")

    assert watch.refresh()
    assert [stage.name for stage in watch.summary.stages] == ["later"]
    watch.close()


async def test_many_runs_side_by_side_hold_no_descriptors(root: Path) -> None:
    runs = [finished(root, {"same": "SUPPORTED"}, at_s=1.8e9 + number) for number in range(40)]
    async with opened(root) as pilot:
        before = descriptors()
        pilot.app.open_compare(runs)  # type: ignore[attr-defined]
        while getattr(pilot.app.screen, "is_reading", True):
            await pilot.pause()

        assert isinstance(pilot.app.screen, ComparePage)
        assert descriptors() - before < 10


@pytest.mark.slow
def test_a_supervisor_holds_no_more_after_many_processes_than_after_one(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """Each worker and each arm sees how many descriptors its parent has while it runs."""
    arm = "def held(lab):\n    return len(os.listdir(f'/proc/{os.getppid()}/fd'))\n\n"
    body = "lab.log(0, mine=held(lab))\nlab.log(0, first=lab.arm('one', held)())\nlab.log(0, second=lab.arm('two', held)())"
    done = tuilab(
        "run", str(write_scenario(tmp_path, body, arm)), "--headless", "--quiet", "--repeat", "3"
    )

    run_dir = newest(root)
    assert done.returncode == 0 and run_dir is not None
    seen = read_run(run_dir).series
    counts = {
        name: [line.last for (kind, _, _), line in seen.items() if kind == name]
        for name in ("mine", "first", "second")
    }
    assert {name: (len(found), len(set(found))) for name, found in counts.items()} == dict.fromkeys(
        counts, (3, 1)
    )
    assert counts["first"] == counts["second"]
