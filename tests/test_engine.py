"""Whole runs: real processes, real signals, the real command line."""

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.engine import look, newest, processes_of, start, until, wait_for_stage, write_scenario
from tuilab.engine import launch, processes
from tuilab.engine.attendants import has_claims, has_races
from tuilab.judging.integrity import examine
from tuilab.lab.failures.failure import describe
from tuilab.record import presence
from tuilab.record.events import RaceStarted, TextShown
from tuilab.record.journal.writer import Writer
from tuilab.runs import store

Tuilab = Callable[..., "CompletedProcess[str]"]
SLEEP = 'lab.log(1, x=1.0)\nlab.stage("asleep")\ntime.sleep(600)'


def test_a_run_that_succeeds_says_so_everywhere(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    path = write_scenario(
        tmp_path,
        'print("hello")\nlab.log(0, loss=1.5)\nlab.claim("one-is-one", 1, equals=1)\nlab.claim("two-is-two", lacks="a GPU")\n'
        'lab.artifact("a.txt", "kept")',
    )

    done = tuilab("run", str(path), "--headless")

    run_dir = newest(root)
    assert run_dir is not None
    assert done.returncode == 0, done.stderr
    assert "✓ SUPPORTED" in done.stdout or "+ SUPPORTED" in done.stdout
    assert "one is one" in done.stderr
    assert (run_dir / "stdout.log").read_bytes() == b"hello\n"
    assert examine(run_dir).wrong == []
    streams = {
        path.stem: len(path.read_bytes().splitlines()) for path in (run_dir / "journal").iterdir()
    }
    assert {"supervisor": streams["supervisor"], **look(run_dir).summary.counted} == streams
    assert processes_of(run_dir) == []
    assert_is_the_owners_alone(run_dir)


def assert_is_the_owners_alone(run_dir: Path) -> None:
    modes = {entry.stat().st_mode & 0o777 for entry in run_dir.rglob("*") if entry.is_file()}
    assert modes == {0o600}
    assert {
        entry.stat().st_mode & 0o777 for entry in [run_dir, *run_dir.iterdir()] if entry.is_dir()
    } == {0o700}


@pytest.mark.parametrize(
    ("body", "state", "reason", "place"),
    [
        ('raise ValueError("no good")', "failed", "ValueError: no good", "probe.py:8 in run\n"),
        ("ctypes.string_at(0)", "killed", "ended by SIGSEGV", "Segmentation fault"),
        ("sys.exit(7)", "failed", "the scenario called sys.exit(7)", ""),
        ("os._exit(0)", "failed", "the worker ended with exit code 0 before run() returned", ""),
        ("os._exit(9)", "failed", "the worker ended with exit code 9 before run() returned", ""),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "killed",
            "ended by SIGKILL; nobody asked for that: out of memory?",
            "",
        ),
        ("os.abort()", "killed", "ended by SIGABRT", "Aborted"),
    ],
)
@pytest.mark.first(2)
def test_a_run_that_fails_says_how(
    tuilab: Tuilab, root: Path, tmp_path: Path, body: str, state: str, reason: str, place: str
) -> None:
    path = write_scenario(tmp_path, f"lab.log(0, loss=1.5)\n{body}")

    done = tuilab("run", str(path), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    summary = look(run_dir).summary
    assert (done.returncode, summary.state, summary.reason) == (4, state, reason)
    assert ("loss", "", "worker-0") in summary.series
    assert "Traceback" not in done.stderr
    assert place in done.stdout
    assert (
        state == "killed" or "tuilab/" not in done.stdout.partition("\nrun ")[0]
    )  # what C prints has frames of ours, too


def test_a_refused_argument_is_told_once_at_the_line_of_its_author(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    lesson = '"""A lesson.\n\n## Look for\n- [sum] it sums\n"""'
    helper = 'def helper(lab):\n    lab.claim("sum", 1, equals=1, tolerance=-1)\n'
    path = tmp_path / "probe.py"
    path.write_text(f"{lesson}\n{helper}\ndef run(lab):\n    helper(lab)\n")

    done = tuilab("run", str(path), "--headless", "--quiet")

    frames = re.findall(r'File "(.*)", line (\d+), in (\S+)', done.stdout)
    assert frames == [("probe.py", "10", "run"), ("probe.py", "7", "helper")]
    assert done.stdout.count("tolerance takes a number of 0 or more, not -1") == 1
    run_dir = newest(root)
    assert run_dir is not None
    assert (failure := look(run_dir).summary.failure) is not None
    assert failure.traceback.endswith(
        "\nValueError: tolerance takes a number of 0 or more, not -1\n"
    )
    assert "tuilab/" not in failure.traceback


def test_a_fault_of_ours_keeps_our_frames(tmp_path: Path) -> None:
    source = tmp_path / "scenario.py"
    source.write_text("def run(wrong):\n    return store.short_id(wrong)\n")
    scope: dict[str, Any] = {"store": store}
    exec(compile(source.read_text(), str(source), "exec"), scope)

    with pytest.raises(AttributeError) as caught:
        scope["run"](None)
    assert "in short_id" in describe(caught.value, source).traceback


def test_ctrl_c_stops_in_order_and_exits_130(root: Path, tmp_path: Path) -> None:
    front = start(root, "run", str(write_scenario(tmp_path, SLEEP)), "--headless")
    run_dir = wait_for_stage(root, "asleep")
    front.send_signal(signal.SIGINT)

    _, err = front.communicate(timeout=60)

    assert front.returncode == 130
    assert "stopping" in err and "Traceback" not in err
    assert look(run_dir).state == "stopped"
    assert processes_of(run_dir) == []


def test_a_second_ctrl_c_does_not_wait_for_a_stubborn_scenario(root: Path, tmp_path: Path) -> None:
    body = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        + SLEEP
    )
    front = start(root, "run", str(write_scenario(tmp_path, body)), "--headless")
    run_dir = wait_for_stage(root, "asleep")
    front.send_signal(signal.SIGINT)
    until(lambda: look(run_dir).summary.state == "stopping")
    front.send_signal(signal.SIGINT)

    _, err = front.communicate(timeout=60)

    assert front.returncode == 130
    assert "at once" in err
    assert look(run_dir).state == "stopped"


def test_a_run_outlives_its_front(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    front = start(root, "run", str(write_scenario(tmp_path, SLEEP)), "--headless")
    run_dir = wait_for_stage(root, "asleep")
    front.kill()
    front.communicate()

    assert look(run_dir).state == "running"
    assert tuilab("stop", "last").stdout.startswith("asked ")
    until(lambda: look(run_dir).summary.is_over)
    until(lambda: processes_of(run_dir) == [])


def test_a_detached_run_can_be_attached_to_its_end(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, 'lab.claim("one-is-one", True)')

    run_id = tuilab("run", str(path), "--detach").stdout.strip()
    done = tuilab("attach", run_id)

    assert done.returncode == 0
    assert "one is one" in done.stdout


def test_ctrl_c_leaves_an_attached_run_running(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    tuilab("run", str(write_scenario(tmp_path, SLEEP)), "--detach")
    run_dir = wait_for_stage(root, "asleep")
    front = start(root, "attach", "last")
    assert front.stderr is not None
    front.stderr.readline()
    front.send_signal(signal.SIGINT)

    _, err = front.communicate(timeout=60)

    assert front.returncode == 130
    assert "continues in the background" in err
    assert look(run_dir).state == "running"
    tuilab("stop", "last", "--now")
    until(lambda: processes_of(run_dir) == [])


def test_when_the_supervisor_is_killed_its_worker_ends_and_the_run_is_lost(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    tuilab("run", str(write_scenario(tmp_path, SLEEP)), "--detach")
    run_dir = wait_for_stage(root, "asleep")
    run = look(run_dir).summary.run
    assert run is not None
    processes.send(run.supervisor.pid, run.supervisor.start, signal.SIGKILL)

    until(lambda: processes_of(run_dir) == [])

    done = tuilab("attach", "last")
    assert done.returncode == 4
    assert "lost" in done.stdout
    assert "lost" in tuilab("runs").stdout
    assert "the record of its end is missing" in tuilab("verify", "last").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_follower_that_a_signal_ends_says_that_the_run_continues(
    root: Path, tmp_path: Path, number: int
) -> None:
    front = start(root, "run", str(write_scenario(tmp_path, SLEEP)), "--headless")
    run_dir = wait_for_stage(root, "asleep")
    assert front.stderr is not None
    stderr = front.stderr
    until(lambda: "asleep" in stderr.readline())

    front.send_signal(number)
    out, err = front.communicate(timeout=60)

    id = store.short_id(run_dir.name)
    assert (front.returncode, out) == (-number, "")
    assert f"tuilab: probe continues; show it again: tuilab attach {id}" in err
    assert look(run_dir).state == "running"
    launch.stop(run_dir, at_once=True)
    until(lambda: processes_of(run_dir) == [])


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "a worker that ignores SIGTERM"),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "a worker that is stopped"),
        (
            "for _ in range(30):\n"
            "    if os.fork() == 0:\n"
            "        os.setsid()\n"
            "        if os.fork(): os._exit(0)\n"
            "        time.sleep(600)",
            "thirty daemons in sessions of their own",
        ),
        (
            "subprocess.Popen(['setsid', 'sleep', '600'], env={}, start_new_session=True, close_fds=True)",
            "a child with a cleaned environment",
        ),
    ],
    ids=lambda value: value if " " in value and "(" not in value else None,
)
@pytest.mark.first(2)
def test_a_stop_reaches_every_process(
    tuilab: Tuilab, root: Path, tmp_path: Path, body: str, what: str
) -> None:
    path = write_scenario(tmp_path, f'lab.stage("asleep")\n{body}\ntime.sleep(600)')
    tuilab("run", str(path), "--detach")
    run_dir = wait_for_stage(root, "asleep")
    supervisor = until(lambda: look(run_dir).summary.run).supervisor
    before = presence.descendants(supervisor.pid)

    tuilab("stop", "last")

    until(lambda: look(run_dir).summary.is_over)
    until(lambda: presence.presence(supervisor) == "dead")
    assert look(run_dir).summary.state == "stopped"
    assert [pid for pid in before if presence.start_time(pid) is not None] == []


def test_a_run_that_takes_too_long_is_stopped(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    done = tuilab(
        "run", str(write_scenario(tmp_path, SLEEP)), "--headless", "--quiet", "--timeout", "0.5"
    )

    assert done.returncode == 4
    assert "timed out after 0.5 s" in done.stdout


def test_each_repeat_is_a_fresh_process(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    path = write_scenario(tmp_path, "lab.log(lab.repeat, pid=os.getpid())")

    tuilab("run", str(path), "--headless", "--quiet", "--repeat", "2")

    run_dir = newest(root)
    assert run_dir is not None
    summary = look(run_dir).summary
    assert summary.state == "succeeded"
    assert [worker.started.repeat for worker in summary.workers.values() if worker.started] == [
        0,
        1,
    ]
    assert len({series.last for series in summary.series.values()}) == 2


ARMS = """
def body(lab, factor):
    lab.log(0, inside=1.0)
    return {"omp": os.environ.get("OMP_NUM_THREADS"), "twice": 2 * factor}

def dies(lab):
    os.kill(os.getpid(), signal.SIGKILL)

def hangs(lab):
    time.sleep(600)
"""


def test_an_arm_runs_in_a_process_of_its_own_with_its_environment(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = """
got = lab.arm("one", body, 21, env={"OMP_NUM_THREADS": "1"}, prefix=["nice", "-n", "5"])()
lab.claim("it-has-the-environment", got["omp"], equals="1")
lab.claim("it-returns-a-value", got["twice"], equals=42)
"""
    done = tuilab("run", str(write_scenario(tmp_path, body, ARMS)), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    summary = look(run_dir).summary
    assert done.returncode == 0, done.stdout
    assert ("inside", "one", "worker-1") in summary.series
    assert summary.workers["worker-1"].started is not None
    assert summary.workers["worker-1"].started.prefix == ["nice", "-n", "5"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "error"),
    [
        ('lab.arm("dies", dies)()', "ended by SIGKILL"),
        ('lab.arm("hangs", hangs, timeout=3)()', "timed out after 3 s"),
        (
            'lab.arm("lost", body, 1, prefix=["no-such-command"])()',
            "cannot start no-such-command: No such file or directory",
        ),
        ('lab.arm("odd", body, "x", prefix=["false"])()', "ended with exit code 1"),
    ],
)
def test_an_arm_that_fails_is_an_exception_for_the_scenario(
    tuilab: Tuilab, tmp_path: Path, call: str, error: str
) -> None:
    done = tuilab("run", str(write_scenario(tmp_path, call, ARMS)), "--headless", "--quiet")

    assert done.returncode == 4
    name = call.split('"')[1]
    assert re.search(rf"ArmFailed: {name}: .*{error}", done.stdout)


def test_output_is_kept_up_to_a_bound_and_what_is_left_behind_is_ended_and_named(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """The first and the last half MiB of sixteen, without a line break, and the count of the rest."""
    body = "for i in range(16): os.write(1, bytes([65 + i]) * 1048576)\nos.write(2, b'\\xff\\x00\\x1b[2J')\n"
    body += "subprocess.Popen(['sleep', '600'], start_new_session=True)"

    done = tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    kept = (run_dir / "stdout.log").read_bytes()
    assert kept == b"A" * 524288 + b"P" * 524288
    assert (run_dir / "stderr.log").read_bytes() == b"\xff\x00\x1b[2J"
    assert "stdout: 15728640 of 16777216 bytes in the middle were dropped" in done.stdout
    assert done.returncode == 0
    assert "ended 1 process that the run left behind" in done.stdout and "sleep 600" in done.stdout
    assert processes_of(run_dir) == []


def test_a_scenario_with_a_syntax_error_is_one_sentence(tuilab: Tuilab, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text('"""Broken."""\ndef run(lab\n')

    done = tuilab("run", str(path), "--headless")

    assert done.returncode == 2
    assert done.stdout == ""
    assert (
        done.stderr.startswith("tuilab: broken cannot be run: line 2: ")
        and done.stderr.count("\n") == 1
    )


def test_a_scenario_can_import_its_neighbours_and_none_of_them_is_taken_for_ours(
    root: Path, tmp_path: Path
) -> None:
    """A psutil.py or torch.py beside the user must not run in the front, the supervisor, the sampler or the worker."""
    (tmp_path / "helper.py").write_text("ANSWER = 42\n")
    for name in ("psutil", "torch", "msgspec", "click", "sitecustomize", "tuilab"):
        (tmp_path / f"{name}.py").write_text(
            "import pathlib; pathlib.Path(__file__).with_suffix('.hit').touch()\n"
        )
    path = write_scenario(
        tmp_path, 'import helper\nlab.claim("it-is-42", helper.ANSWER, equals=42)'
    )

    front = start(root, "run", str(path), "--headless", "--quiet", cwd=tmp_path)

    assert front.communicate(timeout=60)[1] == "" and front.returncode == 0
    assert list(tmp_path.glob("*.hit")) == []


@pytest.mark.parametrize("kind", ["claim_measured", "box_lacked"])
@pytest.mark.parametrize(
    "before", [0, 1_048_570, 3_000_000], ids=["at once", "over the end of a portion", "late"]
)
def test_a_run_has_something_to_judge_wherever_a_claim_stands_or_a_lack(
    tmp_path: Path, before: int, kind: str
) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "supervisor.jsonl").write_text('"claim_')
    (tmp_path / "journal" / "worker-0.jsonl").write_bytes(b"x" * before)
    without = has_claims(tmp_path)
    (tmp_path / "journal" / "worker-1-rank-2.jsonl").write_bytes(
        b"x" * before + b'{"k":"%s"}' % kind.encode()
    )

    assert (without, has_claims(tmp_path)) == (False, True)


def test_what_a_worker_says_of_races_is_no_race_and_its_record_is_one(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    journal = Writer(tmp_path / "journal" / "worker-0.jsonl")
    journal.append(TextShown(text='"race_started"'))
    without = has_races(tmp_path)
    journal.append(RaceStarted(arms=["a", "b"], threads=1, device="cpu", loops={}))
    journal.close()

    assert (without, has_races(tmp_path)) == (False, True)
    assert has_races(tmp_path / "gone")


def test_where_claims_cannot_be_looked_for_the_judge_is_asked(tmp_path: Path) -> None:
    assert has_claims(tmp_path / "gone")


@pytest.mark.slow
def test_two_runs_at_once_do_not_meet(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    path = str(write_scenario(tmp_path, 'lab.claim("one-is-one", True)'))
    fronts = [start(root, "run", path, "--headless", "--quiet") for _ in range(2)]

    codes = [front.communicate(timeout=90) and front.returncode for front in fronts]

    assert codes == [0, 0]
    runs = [run_dir for run_dir in root.iterdir() if examine(run_dir).wrong == []]
    assert len(runs) == 2


def test_an_interrupted_topic_ends_the_line(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("first", "second"):
        write_scenario(folder, SLEEP, name=name)
    front = start(root, "run", "mine", "--scenarios", str(tmp_path), "--headless")
    wait_for_stage(root, "asleep")
    front.send_signal(signal.SIGINT)

    front.communicate(timeout=60)

    assert front.returncode == 130
    assert len(list(root.iterdir())) == 1


def test_python_is_the_one_that_runs_the_tests() -> None:
    """The command line of the tests is the installed one of this very environment."""
    assert Path(sys.executable).with_name("tuilab").exists()


def test_a_race_that_is_skipped_makes_its_claims_not_testable_and_ends_the_run(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = 'lab.claim_ratio("x-is-slower", "x/y", at_least=2)\nlab.race(x=len, y=len, lacks="a second core")'

    done = tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quiet")
    verified = tuilab("verify")

    summary = look(newest(root) or root).summary
    verdict = summary.claims["x-is-slower"].verdict
    assert done.returncode == 0
    assert verdict is not None and (verdict.verdict, verdict.why) == (
        "NOT TESTABLE HERE",
        "a second core",
    )
    assert len([worker for worker in summary.workers.values() if worker.started]) == 1
    assert verified.stdout.splitlines()[-1] == "complete and unchanged"
