"""What `verify` says: the digest that results and reports have, too, and verdicts of older rules beside those of this one."""

import json
import shutil
from pathlib import Path
from zlib import crc32

import pytest
from click.testing import CliRunner

from tests.transcripts import FORMAT_1
from tuilab.cli.subcommands import tuilab
from tuilab.record.digest import digest_of
from tuilab.record.verdicts import RULE
from tuilab.reports.reported_run import read_subject
from tuilab.reports.write_report import write
from tuilab.runs import notes
from tuilab.runs.archive.pack import pack
from tuilab.runs.archive.unpack import unpack

RUN = "20261121T223335184Z-row-reduce-abbc91"
DIGEST = "53407dda7c6458ef"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return shutil.copytree(FORMAT_1, tmp_path / "runs")


def say(root: Path, *words: str) -> tuple[int, str]:
    """Run a verb in this process and return its exit code and what it printed."""
    done = CliRunner().invoke(tuilab, [*words, "--root", str(root)], standalone_mode=False)
    assert done.exception is None, done.exception
    return int(done.return_value or 0), done.output


def edit(stream: Path, old: bytes, new: bytes) -> None:
    """Replace a word in the lines of a stream, and set their checksums right."""
    bodies = [line[9:].replace(old, new) for line in stream.read_bytes().splitlines()]
    stream.write_bytes(b"".join(b"%08x %b\n" % (crc32(body), body) for body in bodies))


def test_the_result_the_check_and_every_report_have_one_digest(root: Path, tmp_path: Path) -> None:
    reports = [tmp_path / f"report.{ending}" for ending in ("md", "html", "json")]
    for report in reports:
        write([read_subject(root / RUN)], str(report), report.suffix[1:])

    said = [say(root, "verify", "abbc91")[1], say(root, "attach", "abbc91", "--headless")[1]]
    said += [report.read_text() for report in reports[:2]]
    assert all(f"digest {DIGEST}" in text for text in said)
    assert json.loads(reports[2].read_text())["runs"][0]["record"]["digest"] == DIGEST
    assert (
        json.loads(say(root, "attach", "abbc91", "--json")[1])["runs"][0]["record"]["digest"]
        == DIGEST
    )


def test_a_note_and_a_journey_leave_the_digest_and_an_edit_does_not(
    root: Path, tmp_path: Path
) -> None:
    notes.add(root / RUN, "looks good", tags=["baseline"])
    pack(root / RUN, tmp_path / "run.tgz")
    moved = unpack(tmp_path / "run.tgz", tmp_path / "other").run_dir
    assert digest_of(moved, "succeeded") == digest_of(root / RUN, "succeeded") == DIGEST

    edit(moved / "journal" / "worker-3.jsonl", b'"round":7', b'"round": 7')
    edited = digest_of(moved, "succeeded")
    (moved / "journal" / "worker-9.jsonl").touch()
    assert len({DIGEST, edited, digest_of(moved, "succeeded")}) == 3


def test_a_record_that_goes_on_or_cannot_be_read_has_no_digest(root: Path) -> None:
    assert digest_of(root / RUN, "running") == "n/a, the run has not ended"
    (root / RUN / "journal" / "judge.jsonl").unlink()
    (root / RUN / "journal" / "judge.jsonl").symlink_to("/etc/hostname")
    assert digest_of(root / RUN, "succeeded").startswith("n/a, it cannot be read: ")


def test_verdicts_by_an_older_rule_are_not_judged_again(root: Path) -> None:
    code, text = say(root, "verify", "abbc91")

    assert code == 0
    assert (
        f"verdicts by the older rule tuilab-3: not checked; --rejudge shows the verdicts by {RULE}"
        in text.splitlines()
    )
    assert text.endswith("\ncomplete and unchanged\n")


def test_judged_again_both_verdicts_stand_side_by_side_and_nothing_is_written(root: Path) -> None:
    edit(
        root / RUN / "journal" / "worker-2.jsonl",
        b'"got":{"numbers":[1001.0]}',
        b'"got":{"numbers":[7.0]}',
    )
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    code, text = say(root, "verify", "abbc91", "--rejudge")

    lines = text.splitlines()
    place = lines.index("the loop calls at least 100 times as many operators as sum")
    assert lines[place + 1 : place + 3] == [
        "    recorded  SUPPORTED  measured 1001",
        f"    {RULE}  REFUTED  measured 7, claimed at least 100; it failed in 1 of 6 repeats",
    ]
    first = lines.index("autograd records as many nodes, and for sum two")
    assert lines[first + 1 : first + 3] == [
        "    recorded  SUPPORTED  measured [1001, 502, 2]",
        f"    {RULE}  the same",
    ]
    assert code == 0 and lines[-1] == "complete and unchanged"
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_record_without_its_end_is_whole_so_far(root: Path) -> None:
    stream = root / RUN / "journal" / "supervisor.jsonl"
    stream.write_bytes(b"".join(stream.read_bytes().splitlines(keepends=True)[:-1]))

    code, text = say(root, "verify", "abbc91")

    assert code == 0 and text.endswith("\ncomplete so far: the run has no recorded end\n")
    assert "digest n/a, the run has not ended" in text.splitlines()
