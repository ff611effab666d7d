"""A disk or a share that fails at reading a run is one sentence, and no finding about the run."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import do_first
from tests.transcripts import FORMAT_1
from tuilab.drawings.text_chart import line_chart
from tuilab.errors import ExitCode, UsageError
from tuilab.record.series import Series
from tuilab.runs.archive import pack

RUN = "20261121T223335184Z-row-reduce-abbc91"

FAILS = """
import errno, os
def failing(act):
    def instead(path=".", *rest, **more):
        if not isinstance(path, int) and os.path.basename(os.fspath(path)) == os.environ.get("BROKEN"):
            number = getattr(errno, os.environ["WITH"])
            raise OSError(number, os.strerror(number), path)
        return act(path, *rest, **more)
    return instead
for name in ("scandir", "listdir", "open"):
    setattr(os, name, failing(getattr(os, name)))
"""


@pytest.mark.parametrize("error", ["EIO", "ESTALE"])
@pytest.mark.parametrize("broken", ["journal", "worker-0.jsonl", "supervisor.jsonl", RUN])
def test_a_run_whose_disk_fails_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, error: str
) -> None:
    root = shutil.copytree(FORMAT_1, tmp_path / "runs")
    do_first(tmp_path, monkeypatch, FAILS)
    monkeypatch.setenv("BROKEN", broken)
    monkeypatch.setenv("WITH", error)

    for words in (
        ["verify"],
        ["export", "-o", str(tmp_path / "run.tar.gz")],
        ["attach", "--json"],
        ["report", "-o", "-"],
    ):
        done = subprocess.run(
            [TUILAB, words[0], RUN, *words[1:], "--root", str(root)], capture_output=True, text=True
        )

        assert "Traceback" not in done.stderr, words
        is_finding = words == ["verify"] and broken.endswith(".jsonl")
        assert is_finding or done.returncode != ExitCode.REFUTED, words
        if (broken, words) == ("journal", ["verify"]):
            problem = os.strerror(getattr(errno, error))
            assert done.returncode == ExitCode.USAGE
            assert (
                done.stderr
                == f"tuilab: cannot use {root}/{RUN}/journal: {problem}; check that disk and try again\n"
            )


def test_a_file_that_fails_while_it_is_packed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shutil.copytree(FORMAT_1, tmp_path / "runs")

    def open_broken(path: Path) -> int:
        return os.open(
            "/proc/self/mem", os.O_RDONLY
        )  # a regular file that is read with EIO at its begin

    monkeypatch.setattr(pack, "open_regular", open_broken)
    with pytest.raises(UsageError, match=r"cannot read .* of the run: Input/output error"):
        pack.pack(root / RUN, tmp_path / "run.tar.gz")
    assert not (tmp_path / "run.tar.gz").exists()


@pytest.mark.parametrize("height", range(5))
@pytest.mark.parametrize("width", [1, 5, 80])
def test_a_chart_without_room_has_no_rows_or_fits(width: int, height: int) -> None:
    line = Series("loss", "", "w")
    for step in range(10):
        line.add(step, step, float(step))

    assert isinstance(line_chart([line], width, height), str)
