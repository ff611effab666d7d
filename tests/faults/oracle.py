"""The one check that follows every fault.

O1 every record written is read back       O6  no bystander was signalled
O2 nothing is read that was not written    O9  descriptors and memory stay bounded
O3 a loss is counted and visible           O10 folders 0700, files 0600, nothing written elsewhere
O4 one final state, or derived `lost`      O11 views wrote nothing
O5 no process of the run is left           O12 a documented exit code and no traceback
"""

import contextlib
import io
import json
import os
import re
import stat
import subprocess
import zlib
from pathlib import Path
from typing import Any

from tests.engine import Seen, look, read_stream, until
from tests.faults.sites import Site
from tuilab.cli.subcommands import tuilab
from tuilab.errors import ExitCode
from tuilab.record import events
from tuilab.record.folding import saved_summary
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.states import FINAL_STATES

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
# A result of a damaged record has one of these texts.
DAMAGE = ("corrupt and left out", "missing from the journal", "not written: the disk")


def settle(site: Site, run_dir: Path, patience_s: float = 60.0) -> Seen:
    """Wait until a run is over or lost and none of its processes is left."""
    until(lambda: look(run_dir).state in {*FINAL_STATES, "lost"}, patience_s)
    until(lambda: not site.living(), patience_s)
    return look(run_dir)


def check(
    site: Site, run_dir: Path, *states: str, is_whole: bool | None = True, is_forged: bool = False
) -> Seen:
    """Wait for the end of a run and check the oracles; `is_whole` None: the record may or may not have lost something.

    A record `is_forged` when the scenario wrote what only others write.
    """
    seen = settle(site, run_dir)
    items = _check_records(run_dir)
    _check_state(seen)
    assert not states or seen.state in states, (seen.state, seen.summary.reason)
    damaged = any(isinstance(item, Corrupt | Gap) for item in items) or seen.summary.damage.is_any
    assert is_whole is None or is_whole is not damaged, seen.summary.damage
    _check_innocence(site)
    _check_modes(site, run_dir)
    _check_views(run_dir, seen.state, damaged, is_forged)
    if len(os.listdir(run_dir.parent)) < 10:
        check_list(run_dir.parent, {run_dir.name: seen.state})
    return seen


def check_list(root: Path, states: dict[str, str]) -> None:
    """Check that the list of runs shows the states of these runs."""

    def has_states() -> bool:
        _, text = view("runs", "--limit", "1000", "--root", str(root))
        line_of_id = {line.split()[0]: line for line in text.splitlines()}
        for name, state in states.items():
            run_id = name.rpartition("-")[2]
            if f" {state} " not in line_of_id[run_id]:
                return False
        return True

    # For some seconds, a folder without a first record counts as a run that begins.
    until(has_states)


def raw_records(stream: Path) -> list[dict[str, Any]]:
    """Return the records of a stream, read without any code of tuilab."""
    records = []
    for line in stream.read_bytes().split(b"\n")[:-1]:
        with contextlib.suppress(ValueError):
            if line[8:9] == b" " and int(line[:8], 16) == zlib.crc32(line[9:]):
                records.append(json.loads(line[9:]))
    return records


def view(*words: str) -> tuple[int, str]:
    """Run a subcommand in this process. Return its exit code and what it printed.

    An exception that is not a `TuilabError` would be a traceback for the user, and fails the test.
    """
    from tuilab.errors import TuilabError

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = tuilab.main(list(words), prog_name="tuilab", standalone_mode=False)
        except TuilabError as problem:
            print(f"tuilab: {problem}")
            code = problem.exit_code
    text = out.getvalue()
    # click keeps every object that was stdout. The soak would keep all that it ever printed.
    out.seek(0)
    out.truncate()
    assert UNSAFE.findall(text) == [], (words, UNSAFE.findall(text))
    return ExitCode(int(code or 0)), text


def snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return size, time and inode of each file of a folder, to compare two moments.

    The summary of a long run may be saved in between, and does not count.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.name != saved_summary.FILE:
            info = path.lstat()
            files[str(path)] = (info.st_size, info.st_mtime_ns, info.st_ino)
    return files


def is_well(front: "subprocess.CompletedProcess[str]") -> bool:
    """O12: whether a client ended with a documented code, without traceback and control characters.

    The traceback of a scenario is indented.
    """
    text = front.stdout + front.stderr
    has_traceback = re.search("^Traceback", text, re.MULTILINE)
    return front.returncode in set(ExitCode) and not has_traceback and not UNSAFE.search(text)


def items_of(run_dir: Path) -> dict[str, dict[int, Any]]:
    """Return every readable record of a run, by stream and number."""
    streams = {}
    for stream in (run_dir / "journal").iterdir():
        streams[stream.name] = {item.n: item for item in _read_records(stream)}
    return streams


def _read_records(stream: Path) -> list[Any]:
    """Return the items of a stream that are neither damaged lines nor gaps."""
    return [item for item in read_stream(stream) if not isinstance(item, Corrupt | Gap)]


def _check_records(run_dir: Path) -> list[Item]:
    """O1, O2: check that we read exactly the records of the files. Return all items."""
    every: list[Item] = []
    for stream in sorted((run_dir / "journal").iterdir()):
        items = read_stream(stream)
        read = [item for item in items if not isinstance(item, Corrupt | Gap)]
        written = raw_records(stream)
        assert [item.n for item in read] == [record["n"] for record in written], stream
        assert [item.t for item in read] == [record["t"] for record in written], stream
        logged_read = [(item.s, item.v) for item in read if isinstance(item, events.Logged)]
        logged_written = []
        for record in written:
            if record["k"] == "logged":
                values = {name: float(value) for name, value in record["v"].items()}
                logged_written.append((record["s"], values))
        # As text, because NaN is not equal to itself.
        assert repr(logged_read) == repr(logged_written), stream
        every += items
    return every


def _check_state(seen: Seen) -> None:
    """O4: check that there is one final state at the end; or none, and the run is lost."""
    ends = [entered.state for entered in seen.summary.states if entered.state in FINAL_STATES]
    if seen.state == "lost":
        assert (ends, seen.supervisor_presence) == ([], "dead")
    else:
        assert ends == [seen.state] == [seen.summary.states[-1].state]


def _check_innocence(site: Site) -> None:
    """O6: the bystander lives and heard nothing."""
    assert site.bystander.poll() is None
    assert site.bystander_says.read_text() == "ready\n"


def _check_modes(site: Site, run_dir: Path) -> None:
    """O10: check that only the owner may use a run, and that the folder of runs has only runs."""
    for path in [run_dir, *run_dir.rglob("*")]:
        if path.is_symlink():
            continue
        mode = path.stat().st_mode
        expected = 0o700 if stat.S_ISDIR(mode) else 0o600
        assert stat.S_IMODE(mode) == expected, path
    if run_dir.parent == site.root:
        for entry in site.root.iterdir():
            assert (entry / "journal").is_dir() or entry.name.startswith("."), entry


def _check_views(run_dir: Path, state: str, is_damaged: bool, is_forged: bool) -> None:
    """O3, O11, O12: check that all views agree, show what is lost, and write nothing.

    `view` checks that they print nothing that steers a terminal.
    """
    before = snapshot(run_dir)
    root = ("--root", str(run_dir.parent))
    code, text = view("attach", run_dir.name, "--plot", *root)
    json_code, document = view("attach", run_dir.name, "--json", "--quiet", *root)
    jsonl_code, _ = view("attach", run_dir.name, "--jsonl", "--quiet", *root)
    verify_code, verified = view("verify", run_dir.name, *root)
    (run,) = json.loads(document)["runs"]
    is_lost = state == "lost"
    is_refuted = is_damaged or is_forged or is_lost

    assert code == json_code == jsonl_code
    assert (code == ExitCode.FAILED) == (state != "succeeded")
    assert run["state"] == state
    assert any(words in text for words in DAMAGE) == is_damaged
    assert (verify_code == ExitCode.REFUTED) == is_refuted, verified
    assert ("the run is lost" in verified) == is_lost, verified
    assert snapshot(run_dir) == before
