"""Whole runs of `tuilab exec`: a command's words, input, output and exit code stay its own."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TUILAB
from tests.engine import look, newest, processes_of, read_stream, start, until
from tests.report_aids import checked_document
from tuilab.commands.run_command import Turns, run_watched
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.engine.messages import CommandOrder
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.runs import store

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def python(folder: Path, *lines: str) -> list[str]:
    """Return the command of a script that has these lines."""
    path = folder / "script.py"
    path.write_text("import os, signal, subprocess, sys, time\n" + "\n".join(lines) + "\n")
    return [sys.executable, str(path)]


def shell(root: Path, line: str, **more: Any) -> "subprocess.CompletedProcess[bytes]":
    """Do what a user types; TUILAB stands for the program."""
    environment = {**os.environ, "TUILAB_ROOT": str(root), "TUILAB": TUILAB}
    return subprocess.run(
        ["bash", "-c", line], env=environment, capture_output=True, timeout=100, **more
    )


def test_what_is_printed_is_passed_on_to_its_stream_and_the_result_is_on_stderr(
    tuilab: Tuilab, root: Path
) -> None:
    done = tuilab("exec", "--headless", "--", "sh", "-c", "echo one; echo two >&2; printf three")

    assert (done.returncode, done.stdout) == (0, "one\nthree")
    assert done.stderr.startswith("two\n") and "exec/sh  succeeded" in done.stderr
    run_dir = store.find("last", root)
    assert [(run_dir / name).read_text() for name in ("stdout.log", "stderr.log")] == [
        "one\nthree",
        "two\n",
    ]


@pytest.mark.parametrize(
    "command",
    [
        "seq 1 300000",
        "head -c 3000000 /dev/zero",
        "printf 'no end'",
        "printf 'a\\0b\\377\\r\\n'",
        "true",
    ],
)
def test_bytes_are_the_commands_own_whatever_they_are_and_however_many(
    root: Path, command: str
) -> None:
    done = shell(root, f'"$TUILAB" exec --quiet -- {command} | cmp - <({command}) && echo same')

    assert (done.stdout, done.stderr) == (b"same\n", b"")


def test_what_is_appended_to_a_file_stands_behind_what_was_there(root: Path) -> None:
    shell(root, 'echo before > out; "$TUILAB" exec --quiet -- echo behind >> out; echo last >> out')

    assert Path("out").read_text() == "before\nbehind\nlast\n"


def test_both_streams_in_one_file_keep_their_order(root: Path) -> None:
    done = shell(
        root,
        """"$TUILAB" exec --quiet -- sh -c 'for i in 1 2 3 4 5 6; do echo $i; echo $i- >&2; done' 2>&1""",
    )

    assert done.stdout.split() == [
        word.encode() for at in range(1, 7) for word in (f"{at}", f"{at}-")
    ]


def test_a_reader_that_goes_away_ends_the_command_as_without_tuilab(root: Path) -> None:
    done = shell(root, '"$TUILAB" exec --quiet -- yes | head -2; echo ${PIPESTATUS[0]}')

    assert done.stdout == b"y\ny\n141\n"


def test_a_stdout_that_takes_nothing_is_told_and_the_command_goes_on(root: Path) -> None:
    done = shell(
        root, '"$TUILAB" exec --headless -- sh -c "echo a; echo b >&2; exit 7" >/dev/full; echo $?'
    )

    assert done.stdout == b"7\n"
    assert done.stderr.startswith(b"b\n") and b"No space left on device" in b" ".join(
        done.stderr.split()
    )


def test_closed_streams_do_no_harm(root: Path) -> None:
    done = shell(root, '"$TUILAB" exec --headless -- sh -c "echo a; exit 3" >&- 2>&- <&-; echo $?')

    assert done.stdout == b"3\n"


def test_a_pipe_that_does_not_wait_loses_nothing(root: Path) -> None:
    """Whoever shares a pipe may have set it so that it takes nothing at once."""
    unset = "python3 -c 'import os; os.set_blocking(1, False)'"

    assert (
        shell(root, f'{{ {unset}; "$TUILAB" exec --quiet -- seq 1 300000; }} | tail -1').stdout
        == b"300000\n"
    )


def test_a_reader_that_is_slow_gets_all_of_it_after_the_command_has_ended(root: Path) -> None:
    process = start(root, "exec", "--quiet", "--", "seq", "1", "20000")
    until(lambda: (run := newest(root)) and (run / "stdout.log").stat().st_size > 65536)

    assert (process.communicate(timeout=60)[0].split()[-1], process.returncode) == ("20000", 0)


def test_it_reads_what_tuilab_reads(root: Path) -> None:
    assert shell(root, 'seq 3 | "$TUILAB" exec --quiet -- cat').stdout == b"1\n2\n3\n"
    assert (
        shell(root, 'echo "print(6 * 7)" | "$TUILAB" exec --quiet -- python3 -').stdout == b"42\n"
    )
    assert shell(root, '"$TUILAB" exec --quiet -- wc -c </dev/null').stdout == b"0\n"


def test_files_that_it_makes_are_for_those_whom_the_shell_says(root: Path) -> None:
    shell(
        root,
        'umask 027; "$TUILAB" exec --quiet -- touch made; umask 002; "$TUILAB" exec --quiet -- mkdir folder',
    )

    assert [oct(Path(name).stat().st_mode & 0o777) for name in ("made", "folder")] == [
        "0o640",
        "0o775",
    ]
    assert store.find("last", root).stat().st_mode & 0o777 == 0o700


def test_what_the_shell_opens_for_it_beside_its_streams_is_there(root: Path) -> None:
    done = shell(root, '"$TUILAB" exec --quiet -- cat <(echo in) /dev/fd/7 7<<<here | cat')

    assert (done.stdout, done.stderr) == (b"in\nhere\n", b"")


def test_who_reads_what_the_shell_opened_for_it_sees_when_it_closes_that(root: Path) -> None:
    reader = "mkfifo pipe end; (cat pipe; echo closed >end) &"
    line = '"$TUILAB" exec --quiet -- sh -c "echo out >&7; exec 7>&-; read end <end; echo \\$end" 7>pipe'

    assert shell(root, f"{reader} {line}").stdout == b"out\nclosed\n"


def test_who_writes_to_a_command_that_reads_no_more_is_not_held_up(root: Path) -> None:
    done = shell(
        root,
        'yes | { "$TUILAB" exec --quiet -- sh -c "head -1; exec <&-; echo done"; echo $?; }; echo ${PIPESTATUS[0]}',
    )

    assert done.stdout == b"y\ndone\n0\n141\n"


@pytest.mark.parametrize(
    ("command", "code", "state"),
    [
        ("exit 0", 0, "succeeded"), ("exit 3", 3, "failed"), ("exit 255", 255, "failed"), ("kill -9 $$", 137, "killed"),
        ("kill -SEGV $$", 139, "killed"), ("kill -INT $$", 130, "killed"), ("exit 130", 130, "failed"),
    ],
)  # fmt: skip
def test_it_ends_as_the_command_does(
    tuilab: Tuilab, root: Path, command: str, code: int, state: str
) -> None:
    assert tuilab("exec", "--quiet", "--", "sh", "-c", command).returncode == code

    seen = look(store.find("last", root))
    assert seen.state == state and (seen.summary.reason != "") == (code != 0)
    assert not list(store.find("last", root).glob("marks*"))


def test_a_result_for_programs_is_all_that_is_on_stdout(tuilab: Tuilab) -> None:
    done = tuilab("exec", "--json", "--", "sh", "-c", "echo one; echo two >&2; exit 4")

    told = checked_document(json.loads(done.stdout))
    assert done.returncode == 4 and sorted(done.stderr.split()) == ["one", "two"]
    assert (told["runs"][0]["topic"], told["runs"][0]["state"]) == ("exec", "failed")


def test_every_record_is_a_line_on_stdout(tuilab: Tuilab) -> None:
    done = tuilab("exec", "--jsonl", "--", "echo", "one")

    kinds = [json.loads(line)["k"] for line in done.stdout.splitlines()]
    assert kinds[0] == "run_started" and "worker_exited" in kinds and done.stderr == "one\n"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "missing argument"),
        (["--", ""], 2, "the command is empty; write for example"),
        (["--", "no-such-command"], 127, "no command no-such-command on PATH; check the name"),
        (["--", "./nothing"], 127, "no command ./nothing; check the name"),
        (["--", "/tmp"], 126, "/tmp is a folder, not a command"),
        (["--", "./plain"], 126, "chmod +x ./plain"),
        (["--", "./plain.py"], 126, "try: python ./plain.py"),
        (["--name", "///", "--", "true"], 2, "--name /// has no letters or digits"),
        (["--metric", "acc", "--", "true"], 2, "NAME=PATTERN"),
        (["--metric", "a=(x)", "--metric", "a=(y)", "--", "true"], 2, "is given twice"),
        (["--json", "--jsonl", "--", "true"], 2, "use only one of them"),
        (["--detach", "--jsonl", "--", "true"], 2, "tuilab attach last --jsonl"),
        (
            ["--headless", "--", "true", "x" * 160_000],
            2,
            "at most 150000 are possible; move a part into a file",
        ),
    ],
    ids=str,
)
def test_a_mistake_is_one_sentence_and_leaves_no_run(
    tuilab: Tuilab, root: Path, words: list[str], code: int, told: str
) -> None:
    for name in ("plain", "plain.py"):
        Path(name).write_text("print(1)\n")

    done = tuilab("exec", *words)

    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
    assert told in done.stderr and "Traceback" not in done.stderr
    assert newest(root) is None


def test_what_turns_out_when_it_is_started_is_told_likewise(tuilab: Tuilab, tmp_path: Path) -> None:
    for name, line in (("gone.sh", "#!/no/such/interpreter"), ("odd", "no program at all")):
        (tmp_path / name).write_text(f"{line}\n")
        (tmp_path / name).chmod(0o755)

    gone, odd = (tuilab("exec", "--headless", "--", f"./{name}") for name in ("gone.sh", "odd"))

    assert (
        gone.returncode == 127
        and "the interpreter that ./gone.sh names does not exist" in gone.stderr
    )
    assert odd.returncode == 126 and "neither a program nor a script with a #! line" in odd.stderr


def test_what_others_print_at_the_start_of_python_is_not_taken_for_our_own(
    root: Path, tmp_path: Path
) -> None:
    """Whatever a sitecustomize, or a .pth file, says when tuilab's own processes begin."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif 'exec' not in sys.argv: print('early', flush=True)\n"
    )
    done = shell(
        root, f'PYTHONPATH={tmp_path} "$TUILAB" exec --quiet -- sh -c "echo theirs; exit 3"'
    )

    assert (done.returncode, done.stdout, done.stderr) == (3, b"theirs\n", b"")


def test_a_long_command_line_and_odd_words_come_through(tuilab: Tuilab, root: Path) -> None:
    words = ["x" * 50_000, "", " ", "$HOME", "--json", "\udcff", "é\n", *map(str, range(5000))]
    done = tuilab(
        "exec",
        "--headless",
        "--",
        sys.executable,
        "-c",
        "import sys; print(ascii(sys.argv[1:]))",
        *words,
    )

    assert done.stdout == ascii(words) + "\n"
    assert len(look(store.find("last", root)).summary.run.command) == len(words) + 3  # type: ignore[union-attr]


def test_a_folder_that_was_removed_is_no_harm_to_a_command_that_needs_none(root: Path) -> None:
    done = shell(
        root, 'mkdir gone; cd gone; rmdir ../gone; "$TUILAB" exec --quiet -- echo fine; echo $?'
    )

    assert done.stdout == b"fine\n0\n", done.stderr


def test_odd_variables_come_through(tuilab: Tuilab) -> None:
    env = {"A B": "c", "BASH_FUNC_x%%": "() { :; }", "LONG": "y" * 100_000, "EMPTY": ""}
    code = "import os; print([len(os.environ[name]) for name in ('A B', 'BASH_FUNC_x%%', 'LONG', 'EMPTY')])"

    assert (
        tuilab("exec", "--quiet", "--", sys.executable, "-c", code, env=env).stdout
        == "[1, 9, 100000, 0]\n"
    )


def test_secrets_on_the_command_line_are_not_recorded(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    secret = "sk-proj-Zx81mQp20Lw93Kd74Tb65Rn56"
    assert (
        tuilab(
            "exec", "--headless", "--", "echo", f"--api-key={secret}", "--token", secret
        ).returncode
        == 0
    )
    run_dir = store.find("last", root)

    records = b"".join(path.read_bytes() for path in run_dir.rglob("*.jsonl"))
    assert b"--api-key=" in records and secret.encode() not in records
    tuilab("report", "last", "-o", f"{tmp_path}/r.md")
    tuilab("export", "last", "-o", f"{tmp_path}/r.tgz")
    assert secret not in (tmp_path / "r.md").read_text()
    unpacked = subprocess.run(["tar", "-xzOf", f"{tmp_path}/r.tgz"], capture_output=True).stdout
    assert b"api-key" in unpacked and secret.encode() not in unpacked


def test_a_secret_among_the_words_is_neither_in_the_queue_nor_where_the_command_prints_it(
    root: Path, tmp_path: Path
) -> None:
    lines = [f"print(open({str(root)!r} + '/.queue/' + os.environ['TUILAB_RUN'] + '.json').read())"]
    lines += ["print('it is', sys.argv[2])", "raise ValueError(sys.argv[2])"]
    command = " ".join(python(tmp_path, *lines))
    done = shell(
        root,
        f'"$TUILAB" exec --quiet -- {command} --password hunter2222 5 https://bob:pazzw0rd99@host/x',
    )

    ticket, printed, _ = done.stdout.decode().split("\n")
    assert (
        json.loads(ticket)["order"] is None
        and "hunter2222" not in ticket
        and "pazzw0rd99" not in ticket
    )
    assert printed == "it is hunter2222"  # what the user sees is the command's own
    kept = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    assert b"it is (removed)" in kept and b"hunter2222" not in kept and b"pazzw0rd99" not in kept


def test_numbers_that_are_printed_are_drawn_and_progress_is_told(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    lines = [
        "for at in range(1, 6): print(f'step {at}/5 acc 0.{at}', flush=True)",
        "print('acc 0.9', end='')",
    ]
    tuilab(
        "exec",
        "--quiet",
        "--metric",
        "acc=acc ([0-9.]+)",
        "--metric",
        "no=nowhere ([0-9])",
        "--",
        *python(tmp_path, *lines),
    )

    summary = look(store.find("last", root)).summary
    (acc,) = [one for one in summary.series.values() if one.name == "acc (printed)"]
    assert (acc.count, acc.last) == (6, 0.9)
    assert summary.progress and (summary.progress.done, summary.progress.total) == (5, 5)
    assert summary.unavailable["no (printed)"] == "its pattern did not match any line"


@pytest.mark.slow
def test_a_pattern_that_takes_for_ever_holds_up_neither_the_command_nor_its_end(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    line = "for _ in range(9): print('a' * 2000 + 'c', flush=True)"
    done = tuilab(
        "exec",
        "--quiet",
        "--metric",
        "bad=(a+)+b",
        "--metric",
        "worse=(a|aa)+$",
        "--",
        *python(tmp_path, line),
    )

    assert (done.returncode, len(done.stdout)) == (0, 9 * 2002)
    assert "took too long" in look(store.find("last", root)).summary.unavailable["worse (printed)"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("exec >&- 2>&-; sleep 0.2; exit 5", 5),
        ("setsid sleep 1000 & echo left; exit 6", 6),
        ("(sleep 1000; echo never) & exit 0", 0),
        ("yes & exit 0", 0),
        ("(while :; do echo still; sleep 0.2; done) & exit 3", 3),
        ("kill 0", 143),
        ("setsid sh -c 'echo elsewhere; exit 0'; exit 8", 8),
    ],
    ids=[
        "closes its stdout",
        "a daemon",
        "one that holds its pipes",
        "one that prints for ever",
        "one that prints now and then for ever",
        "kills its group",
        "elsewhere",
    ],
)
def test_what_a_command_does_to_its_processes_is_not_what_ends_the_run(
    tuilab: Tuilab, root: Path, body: str, code: int
) -> None:
    assert tuilab("exec", "--quiet", "--", "sh", "-c", body).returncode == code

    seen = look(store.find("last", root))
    assert seen.state in ("succeeded", "failed", "killed")
    assert processes_of(store.find("last", root)) == []


@pytest.mark.slow
def test_a_command_that_nothing_was_seen_of_says_why(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    def why(*command: str, env: dict[str, str] | None = None) -> str:
        tuilab("exec", "--quiet", "--", *command, env=env)
        return look(store.find("last", root)).summary.unavailable["steps"]

    sleepy = python(tmp_path, "time.sleep(0.6)")
    assert "none of 1 Python process loaded torch" in why(*sleepy)
    assert "-E ignores PYTHONPATH" in why(sleepy[0], "-uE", sleepy[1])
    assert "was cleared, for example by env -i" in why("env", "-i", *sleepy)
    assert "PYTHONPATH was replaced before" in why("env", "PYTHONPATH=/x", *sleepy)
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0 switches off" in why(
        *sleepy, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    )
    assert "none of its processes is Python: sleep" in why("sleep", "0.6")


def test_interrupted_once_it_stops_in_order_and_twice_at_once(root: Path, tmp_path: Path) -> None:
    lines = [
        r"signal.signal(signal.SIGINT, lambda *_: os.write(1, b'asked\n'))",  # it may come while `begun` is being printed
        "print('begun', flush=True)",
        "time.sleep(1000)",
    ]
    process = start(root, "exec", "--headless", "--", *python(tmp_path, *lines))
    assert process.stdout and process.stdout.readline() == "begun\n"

    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)

    assert process.returncode == 130 and "stop" in told
    assert look(store.find("last", root)).state == "stopped"


@pytest.mark.parametrize(
    ("ending", "code"),
    [("sys.exit(0)", 143), ("sys.exit(9)", 9), ("os.kill(os.getpid(), signal.SIGUSR1)", 138)],
)
def test_stopped_from_elsewhere_it_ends_as_the_command_did_but_never_well(
    tuilab: Tuilab, root: Path, tmp_path: Path, ending: str, code: int
) -> None:
    lines = [
        f"signal.signal(signal.SIGINT, lambda *_: {ending})",
        "print('begun', flush=True)",
        "time.sleep(1000)",
    ]
    process = start(root, "exec", "--headless", "--", *python(tmp_path, *lines))
    assert process.stdout and process.stdout.readline() == "begun\n"

    assert tuilab("stop", "last").returncode == 0
    process.communicate(timeout=60)

    seen = look(store.find("last", root))
    assert (process.returncode, seen.state, seen.summary.reason) == (
        code,
        "stopped",
        "stop requested",
    )


def test_ctrl_c_is_an_interrupt_as_without_tuilab_so_that_a_training_saves_with_the_help_of_others(
    root: Path, tmp_path: Path
) -> None:
    lines = [
        "try: print('begun', flush=True); time.sleep(1000)",
        "except KeyboardInterrupt: subprocess.run(['sh', '-c', 'sleep 0.3; echo saved'], check=True)",
    ]
    process = start(root, "exec", "--headless", "--", *python(tmp_path, *lines))
    assert process.stdout and process.stdout.readline() == "begun\n"

    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)

    assert (process.returncode, told) == (130, "saved\n")
    assert look(store.find("last", root)).state == "stopped"


def test_what_ignores_ctrl_c_is_asked_otherwise(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    lines = [
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))",
        "print('begun', flush=True)",
        "time.sleep(1000)",
    ]
    process = start(root, "exec", "--headless", "--", *python(tmp_path, *lines))
    assert process.stdout and process.stdout.readline() == "begun\n"

    assert tuilab("stop", "last").returncode == 0
    process.communicate(timeout=60)

    assert process.returncode == 9


def test_output_through_a_process_substitution_is_passed_on_to_its_end(
    tuilab: Tuilab, root: Path
) -> None:
    line = "exec > >(while read -r line; do echo $line; done; echo end); seq 20000"

    done = tuilab("exec", "--quiet", "--", "bash", "-c", line)

    assert done.stdout.split() == [*map(str, range(1, 20001)), "end"]


def test_an_executable_fifo_among_the_words_is_left_alone(root: Path) -> None:
    done = shell(
        root, 'mkfifo -m 755 pipe; (echo kept >pipe) & "$TUILAB" exec --quiet -- cat ./pipe'
    )

    assert done.stdout == b"kept\n"


def test_out_of_time_it_is_stopped_and_failed(tuilab: Tuilab, root: Path) -> None:
    done = tuilab("exec", "--headless", "--timeout", "0.5", "--", "sleep", "1000")

    assert done.returncode == 143 and "timed out after 0.5 s" in done.stderr
    assert look(store.find("last", root)).state == "failed"


def test_a_reader_that_takes_nothing_does_not_hold_up_a_stop(tuilab: Tuilab, root: Path) -> None:
    process = start(root, "exec", "--quiet", "--", "yes")
    until(lambda: (run := newest(root)) and (run / "stdout.log").stat().st_size > 65536)

    tuilab("stop", "last")
    until(lambda: look(store.find("last", root)).state == "stopped")
    assert process.wait(60) == 130
    process.communicate()


def test_detached_it_goes_on_without_the_front_and_its_prints_are_in_the_record(
    tuilab: Tuilab, root: Path
) -> None:
    done = tuilab("exec", "--detach", "--", "sh", "-c", "cat; echo fine")

    assert done.returncode == 0 and done.stdout
    until(lambda: look(store.find("last", root)).summary.is_over)
    assert (store.find("last", root) / "stdout.log").read_text() == "fine\n"


# A process that marks as torch's would, without one.
MARKS = [
    f"sys.path.insert(0, {str(Path(layout.__file__).parents[1])!r})",
    "from _tuilab_watch import layout",
    "from _tuilab_watch.ring import Ring",
    "ring = Ring(os.environ['TUILAB_WATCH'])",
    "ring.text(layout.NAME, 'AdamW\\noptimizer 1', 1)",
    "def step(root):",
    "    now = time.monotonic_ns()",
    "    ring.mark(layout.WENT_BACK, now, now + 10, root, 0, 0, layout.HAS_VALUE)",
    "    ring.mark(layout.STEPPED, now + 10, now + 20, 0.0, 0, 1)",
]


def test_a_loss_that_is_no_number_is_told_while_the_command_goes_on_and_by_every_view(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    roots = "for root in (1.0, 0.5, float('nan'), 0.4, 0.3): step(root)"
    process = start(
        root,
        "exec",
        "--headless",
        "--",
        *python(tmp_path, *MARKS, roots, "sys.stdin.read()"),
        stdin=subprocess.PIPE,
    )
    assert (
        process.stderr
        and process.stderr.readline()
        == "tuilab: backward root is NaN for the first time, in step 2\n"
    )

    _, told = process.communicate(timeout=60)
    assert (
        process.returncode == 0
        and "notice: backward root is NaN for the first time, in step 2" in told
    )
    for ending in ("md", "html", "json"):
        tuilab("report", "last", "-o", f"{tmp_path}/r.{ending}")
        assert "root is NaN for the first time, in step 2" in (tmp_path / f"r.{ending}").read_text()


@pytest.mark.slow
def test_a_command_that_steps_no_more_is_told_of_and_that_it_goes_on(
    root: Path, tmp_path: Path
) -> None:
    lines = [
        *MARKS,
        "for at in range(50): step(1.0); time.sleep(0.01)",
        "sys.stdin.readline()",
        "step(1.0); time.sleep(0.5)",
    ]
    process = start(
        root, "exec", "--headless", "--", *python(tmp_path, *lines), stdin=subprocess.PIPE
    )
    assert process.stderr and process.stderr.readline().endswith("; its processes are waiting\n")

    _, told = process.communicate("go on\n", timeout=60)
    assert told.startswith("tuilab: steps continue, after ") and process.returncode == 0


def test_an_optimizer_that_is_not_there_is_told_with_those_that_are(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    steps = python(tmp_path, *MARKS, "for at in range(5): step(1.0)")
    tuilab("exec", "--quiet", "--step-of", "Adam", "--", *steps)
    wrong = look(store.find("last", root)).summary.unavailable["--step-of"]
    tuilab("exec", "--quiet", "--step-of", "adamw", "--", *steps)

    assert wrong == "no optimizer that stepped is named Adam; optimizers: AdamW 1"
    assert "--step-of" not in look(store.find("last", root)).summary.unavailable


def test_marks_that_are_removed_leave_the_command_alone_and_are_told_of(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    lines = [
        *MARKS,
        "import shutil",
        "shutil.rmtree(os.environ['TUILAB_WATCH'])",
        "time.sleep(0.3)",
        "print('fine')",
        "sys.exit(3)",
    ]
    done = tuilab("exec", "--quiet", "--", *python(tmp_path, *lines))

    assert (done.returncode, done.stdout) == (3, "fine\n")
    told = look(store.find("last", root)).summary.unavailable
    assert told["the command, from some point on"] == "the folder with its marks was removed"


def test_what_fails_at_watching_is_told_once_and_the_command_goes_on(tmp_path: Path) -> None:
    def fail() -> None:
        calls.append(1)
        raise ValueError("odd")

    calls: list[int] = []
    journal = Writer(tmp_path / "worker-0.jsonl")
    turns = Turns(fail, journal)
    turns.take()
    turns.take()

    assert (len(calls), journal.written) == (1, 1)
    assert (
        b"tuilab failed to watch it: ValueError: odd" in (tmp_path / "worker-0.jsonl").read_bytes()
    )


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # a worker ends with its pipes open
def test_command_without_a_folder_for_marks_runs_unwatched(tmp_path: Path) -> None:
    stream = tmp_path / "worker-0.jsonl"
    journal = Writer(stream)

    ended = run_watched(
        CommandOrder(words=["sh", "-c", "exit 7"]), tmp_path / "absent" / "marks", journal
    )

    assert ended.code == 7
    (told,) = read_stream(stream)
    assert isinstance(told, events.Unavailable)
    assert told.what == "steps"
    why = "cannot create the folder for marks (No such file or directory)"
    assert told.reason == f"{why}; the command ran without being watched"


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # a worker ends with its pipes open
def test_account_that_a_full_disk_refuses_is_named_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marks are on the same disk, so their removal makes room."""
    stream, marks = tmp_path / "worker-0.jsonl", tmp_path / "marks"
    journal = Writer(stream)
    write_bytes = os.write

    def write_if_there_is_room(fd: int, data: bytes) -> int:
        if b'"text_shown"' in data and marks.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_bytes(fd, data)

    monkeypatch.setattr(os, "write", write_if_there_is_room)
    steps = "for _ in range(20): step(0.5)"
    run_watched(CommandOrder(words=python(tmp_path, *MARKS, steps)), marks, journal)

    (missing,) = [
        record
        for record in read_stream(stream)
        if isinstance(record, events.Unavailable) and record.what == "steps"
    ]
    assert missing.reason == "their account could not be written: No space left on device"


def test_process_that_ends_when_nobody_reads_it_is_named_with_the_others(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"], root: Path
) -> None:
    tuilab("exec", "--quiet", "--", "sh", "-c", "yes tick & sleep 600 & sleep 0.2")

    summary = look(newest(root) or root).summary
    assert summary.leftover_count == 2
    assert sorted(name.partition(" ")[2] for name in summary.leftovers) == ["sleep 600", "yes tick"]
