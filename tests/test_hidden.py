"""Records of a run hold no secret of its environment, and no token, whatever a script raises, shows or names."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine import newest, read_stream, write_scenario
from tests.test_scrub import TOKENS
from tuilab.engine.capture import Capture
from tuilab.record import events
from tuilab.record.events import BlockTimed, Event, Logged, Progressed, TextShown
from tuilab.record.journal.writer import Writer
from tuilab.record.secrets import Hiding
from tuilab.text.display import GONE

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

VALUE = "quiet-Harbour-42-lamp"  # of a variable; it has the form of no token
TOKEN = TOKENS["Hugging Face"]
ENVIRONMENT = {"MY_API_KEY": VALUE}
COMMAND = f"""
import os, tuilab
value, token = os.environ["MY_API_KEY"], {TOKEN!r}
tuilab.log(0, **{{f"loss {{value}}": 1.0, f"loss {{token}}": 2.0}})
raise RuntimeError(f"refused: {{value}} and {{token}}")
"""
SCENARIO = f"""
value, token = os.environ["MY_API_KEY"], {TOKEN!r}
lab.stage(f"log in with {{value}}"[:60])
lab.text(f"logged in with {{value}} and {{token}}", title=value)
lab.log(0, **{{f"loss {{value}}": 1.0, f"loss {{token}}": 2.0}})
raise RuntimeError(f"refused: {{value}} and {{token}}")
"""


def records_of(run_dir: Path) -> str:
    return "".join(path.read_text() for path in sorted((run_dir / "journal").iterdir()))


@pytest.fixture(params=["exec", "run"])
def failed(request: pytest.FixtureRequest, tuilab: Tuilab, root: Path, tmp_path: Path) -> Path:
    """A run that failed with secrets in its words."""
    if request.param == "exec":
        (tmp_path / "train.py").write_text(COMMAND)
        tuilab(
            "exec",
            "--headless",
            "--quiet",
            "--",
            sys.executable,
            str(tmp_path / "train.py"),
            env=ENVIRONMENT,
        )
    else:
        path = write_scenario(tmp_path, SCENARIO)
        tuilab("run", str(path), "--headless", "--quick", "--quiet", env=ENVIRONMENT)
    run_dir = newest(root)
    assert run_dir
    return run_dir


def test_failed_run_keeps_secrets_out_of_its_record(failed: Path) -> None:
    text = records_of(failed)

    assert f"refused: {GONE} and {GONE}" in text  # it failed as it was meant to
    assert len(set(re.findall(r'"(loss [^"]*)":[12]\.0', text))) == 2  # two curves, as they were
    assert VALUE not in text and TOKEN not in text


@pytest.mark.parametrize("how", ["--json", "--jsonl", "--headless"])
def test_attach_prints_no_secret_of_a_failed_run(tuilab: Tuilab, failed: Path, how: str) -> None:
    done = tuilab("attach", "last", how)

    said = done.stdout + done.stderr
    assert f"refused: {GONE} and {GONE}" in said
    assert VALUE not in said and TOKEN not in said


def test_every_kind_of_record_loses_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", VALUE)
    journal = Writer(tmp_path / "worker-0.jsonl", Hiding())
    block = BlockTimed(arm=VALUE, round=0, slot=0, loops=1, wall_ns=1, cpu_ns=1)
    records: list[Event] = [
        TextShown(text=f"{VALUE} {TOKEN}", title=VALUE),
        events.StageEntered(name=VALUE),
        events.TableShown(title=TOKEN, rows=[[VALUE, 1]], head=[VALUE, "n"]),
        events.ArtifactSaved(name=TOKEN, bytes_total=1, sha256=""),
        events.MemoryMeasured(name=VALUE, values={TOKEN: 1.0}, arm=VALUE),
        events.WorkerExited(writer="worker-0", code=1, reason=f"RuntimeError: {VALUE}"),
        events.StateChanged(state="failed", reason=TOKEN),
        events.Unavailable(what=TOKEN, reason=VALUE),
        block,
        Progressed(done=1, total=2, unit=f"{VALUE} files"),
        Logged(s=0, v={VALUE: 1.0, TOKEN: 2.0, "loss": 3.0}, a=VALUE),
    ]

    for record in records:
        assert journal.append(record)

    text = (tmp_path / "worker-0.jsonl").read_text()
    kinds = [json.loads(line[9:])["k"] for line in text.splitlines()]
    assert kinds == [events.tag_of(type(record)) for record in records]  # none was left out
    assert VALUE not in text and TOKEN not in text
    assert read_stream(tmp_path / "worker-0.jsonl")[-1] == Logged(
        n=len(records) - 1,
        t=records[-1].t,
        s=0,
        v={GONE: 1.0, f"{GONE} 2": 2.0, "loss": 3.0},
        a=GONE,
    )


def test_plain_names_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that logs the same names again costs no search for secrets."""
    monkeypatch.setenv("MY_API_KEY", VALUE)
    searched: list[str] = []

    def search(plain: str) -> str:
        searched.append(plain)
        return plain

    hide = Hiding(search)
    steps = [Logged(s=step, v={"loss": 1.0, "accuracy": 2.0}, a="base") for step in range(3)]

    hidden = [hide(step) for step in steps]

    assert all(after is before for after, before in zip(hidden, steps, strict=True))
    assert sorted(searched) == ["accuracy", "base", "loss"]


def test_failure_hides_a_variable_that_the_scenario_set_itself(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = f"os.environ['MY_API_KEY'] = {VALUE!r}\nraise RuntimeError('refused: ' + os.environ['MY_API_KEY'])"
    tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quick", "--quiet")
    run_dir = newest(root)
    assert run_dir

    text = (run_dir / "journal" / "worker-0.jsonl").read_text()

    assert f"refused: {GONE}" in text
    assert VALUE not in text


@pytest.mark.parametrize("cut", [1, 6, 12])
@pytest.mark.parametrize("line", [b"x" * 70_000, b"many lines\n" * 7_000], ids=["one", "many"])
def test_secret_in_two_reads_of_long_output_is_removed(
    tmp_path: Path, line: bytes, cut: int
) -> None:
    secret = b"hunter2-token"
    file = tmp_path / "stdout.log"
    capture = Capture(file, lambda text: text.replace(secret.decode(), "(removed)"))

    capture.take(line + secret[:cut])
    capture.take(secret[cut:] + b"\n")
    record = capture.finish()

    assert file.read_bytes() == line + b"(removed)\n"
    assert record.bytes_total == file.stat().st_size
