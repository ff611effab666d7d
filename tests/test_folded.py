"""What a long run amounts to is kept beside it, and used for nothing that has to be true."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import msgspec
import pytest

from tests.record_journals import JOURNALS
from tuilab.errors import ScenarioError
from tuilab.record.folding import saved_summary
from tuilab.record.journal.reader import Reader
from tuilab.record.live_run import Watch, read_run
from tuilab.record.summary import RunSummary
from tuilab.runs import read_entry
from tuilab.runs.archive.names import list_left_out, list_run_files
from tuilab.storage.files import sealed, unsealed

RUN = "20260101T000000000Z-tour-abcdef"


@pytest.fixture(autouse=True)
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_summary, "_LEAST_JOURNAL_BYTES", 1)


@pytest.fixture
def run_dir(root: Path) -> Path:
    """A run that was opened once."""
    shutil.copytree(JOURNALS / "tour", root / RUN)
    opened(root / RUN)
    return root / RUN


def opened(run_dir: Path) -> RunSummary:
    watch = Watch(run_dir, may_be_folded=True)
    watch.catch_up()
    watch.close()
    return watch.summary


def plain(summary: RunSummary) -> str:
    """Return all of a summary, sets in an order of their own; NaN is NaN."""
    return re.sub(
        r"\{('[^{}:]*')\}", lambda found: str(sorted(found[1].split(", "))), repr(summary)
    )


def reads_journal(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Say whether opening a run reads any stream."""
    seen: list[Reader] = []

    class Seen(Reader):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            seen.append(self)

    with monkeypatch.context() as patch:
        patch.setattr("tuilab.record.journal.follower.Reader", Seen)
        opened(run_dir)
    return bool(seen)


@pytest.mark.parametrize(
    "name", sorted(one.name for one in JOURNALS.iterdir() if (one / "journal").is_dir())
)
def test_it_opens_as_it_was_read(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(JOURNALS / name, root / name)
    first = opened(root / name)

    assert not reads_journal(root / name, monkeypatch)
    again = opened(root / name)
    assert plain(again) == plain(first) == plain(read_run(root / name))


def test_all_of_it_counts_as_read(run_dir: Path) -> None:
    watch = Watch(run_dir, may_be_folded=True)
    summary = watch.summary

    assert not watch.refresh() and summary is watch.summary and summary.is_over
    assert watch.bytes_read == (
        2 * (sum(one.stat().st_size for one in (run_dir / "journal").iterdir()),)
    )


def damage(run_dir: Path) -> None:
    kept = run_dir / saved_summary.FILE
    data = bytearray(kept.read_bytes())
    data[len(data) // 2] ^= 1
    kept.write_bytes(data)


def cut(run_dir: Path) -> None:
    (run_dir / saved_summary.FILE).write_bytes((run_dir / saved_summary.FILE).read_bytes()[:500])


def be_of_another_tuilab(run_dir: Path) -> None:
    data = unsealed((run_dir / saved_summary.FILE).read_bytes())
    found = msgspec.msgpack.decode(data, type=saved_summary.Folded)
    found.maker = "0.0.1"
    (run_dir / saved_summary.FILE).write_bytes(sealed(msgspec.msgpack.encode(found)))


def let_others_write(run_dir: Path) -> None:
    (run_dir / saved_summary.FILE).chmod(0o666)


def be_a_link(run_dir: Path) -> None:
    (run_dir / saved_summary.FILE).rename(run_dir.parent / "elsewhere")
    (run_dir / saved_summary.FILE).symlink_to(run_dir.parent / "elsewhere")


def rewrite_a_stream(run_dir: Path) -> None:
    stream = run_dir / "journal" / "worker-0.jsonl"
    stream.write_bytes(stream.read_bytes())


def add_a_stream(run_dir: Path) -> None:
    shutil.copy(run_dir / "journal" / "worker-0.jsonl", run_dir / "journal" / "worker-9.jsonl")


@pytest.mark.parametrize(
    "spoil",
    [
        damage,
        cut,
        be_of_another_tuilab,
        let_others_write,
        be_a_link,
        rewrite_a_stream,
        add_a_stream,
    ],
)
def test_what_is_of_no_use_is_made_again(
    spoil: Callable[[Path], None], run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(run_dir)

    assert reads_journal(run_dir, monkeypatch)
    assert not reads_journal(run_dir, monkeypatch)


def test_of_a_run_that_is_short_nothing_is_kept(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_summary, "_LEAST_JOURNAL_BYTES", 1 << 30)
    shutil.copytree(JOURNALS / "tour", root / RUN)
    opened(root / RUN)

    assert not (root / RUN / saved_summary.FILE).exists()


def test_nothing_is_kept_of_one_that_goes_on_or_is_damaged(root: Path) -> None:
    for name in ("on", "cut"):
        shutil.copytree(JOURNALS / "tour", root / name)
    supervisor = root / "on" / "journal" / "supervisor.jsonl"
    supervisor.write_bytes(b"".join(supervisor.read_bytes().splitlines(keepends=True)[:-1]))
    stream = root / "cut" / "journal" / "worker-0.jsonl"
    stream.write_bytes(stream.read_bytes()[:-5])
    opened(root / "on")
    opened(root / "cut")

    assert not [name for name in ("on", "cut") if (root / name / saved_summary.FILE).exists()]


def test_what_has_to_be_true_goes_by_the_journal(
    run_dir: Path, tuilab: Callable[..., CompletedProcess[str]]
) -> None:
    before = [
        tuilab(verb, RUN, *more).stdout for verb, *more in (("verify",), ("report", "-o", "-"))
    ]
    data = unsealed((run_dir / saved_summary.FILE).read_bytes())
    found = msgspec.msgpack.decode(data, type=saved_summary.Folded)
    found.summary.claims.clear()
    found.summary.state = "failed"
    (run_dir / saved_summary.FILE).write_bytes(sealed(msgspec.msgpack.encode(found)))

    assert opened(run_dir).state == "failed"  # it is what would be believed
    assert [
        tuilab(verb, RUN, *more).stdout for verb, *more in (("verify",), ("report", "-o", "-"))
    ] == before


def test_no_archive_has_it(run_dir: Path) -> None:
    assert saved_summary.FILE not in [*list_run_files(run_dir), *list_left_out(run_dir)]


def test_run_that_is_deleted_while_it_is_followed_is_lost(run_dir: Path) -> None:
    watch = Watch(run_dir, may_be_folded=True)
    watch.catch_up()
    shutil.rmtree(run_dir)

    with pytest.raises(ScenarioError, match="its folder was deleted or moved"):
        watch.refresh()


def test_a_run_is_as_large_before_it_was_opened_as_after(root: Path) -> None:
    shutil.copytree(JOURNALS / "tour", root / RUN)
    before = read_entry.read_entry(root / RUN).bytes_total
    opened(root / RUN)

    assert (root / RUN / saved_summary.FILE).exists()
    assert read_entry.read_entry(root / RUN).bytes_total == before
