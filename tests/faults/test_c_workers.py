"""A worker with closed streams, a fork of it, nonsense on its line, arms: it harms itself alone."""

import pytest

from tests.engine import write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest

pytestmark = pytest.mark.faults


def test_56_a_worker_without_its_standard_streams_runs_to_its_end(site: Site) -> None:
    done = site.run(
        "run",
        str(write_scenario(site.folder, "for fd in (0, 1, 2): os.close(fd)\nlab.log(0, half=0.0)")),
        "--headless",
        "--quiet",
    )

    assert done.returncode == 0
    check(site, latest(site), "succeeded")


@pytest.mark.parametrize(("beyond", "state"), [(256, "succeeded"), (4096, "failed")])
def test_55_56_nothing_of_ours_is_written_into_the_files_of_a_worker_that_closed_every_descriptor(
    site: Site, beyond: int, state: str
) -> None:
    """Its own files get the numbers that ours had; without a line to its supervisor it fails and says why."""
    mine = site.folder / "mine"
    mine.mkdir()
    body = f"""
lab.log(0, half=0.0)
os.closerange(3, {beyond})
files = [open(f"{mine}/{{number}}", "w") for number in range(40)]
for step in range(1, 100): lab.log(step, half=step / 2)
"""
    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    summary = check(site, latest(site), state, is_whole=True).summary
    assert summary.series["half", "", "worker-0"].count == 100
    assert [file.read_bytes() for file in mine.iterdir()] == [b""] * 40
    assert ("the scenario closed the line to its supervisor" in done.stdout) == (state == "failed")


def test_55_what_a_crashed_worker_says_last_is_not_written_into_its_own_files(site: Site) -> None:
    mine = site.folder / "mine"
    mine.mkdir()
    body = f"""
os.closerange(3, 4096)
files = [open(f"{mine}/{{number}}", "w") for number in range(40)]
os.kill(os.getpid(), signal.SIGSEGV)
"""
    site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    assert check(site, latest(site), "killed").summary.reason == "ended by SIGSEGV"
    assert [file.read_bytes() for file in mine.iterdir()] == [b""] * 40


def test_55_the_child_of_a_fork_starts_no_arm(site: Site) -> None:
    """It shares the line of the worker, which would get the answer, or lose its own."""
    body = """
child = os.fork()
if child == 0:
    try: lab.arm("a", quick)()
    except RuntimeError: os._exit(7)
    os._exit(0)
lab.claim("the-child-is-refused", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), equals=7)
"""
    done = site.run(
        "run",
        str(write_scenario(site.folder, body, "def quick(lab): pass")),
        "--headless",
        "--quiet",
    )

    assert done.returncode == 0, done.stdout
    assert check(site, latest(site), "succeeded").summary.arms == []


LINE = """
import json, socket
line = socket.socket(fileno=os.dup(int(sys.argv[1])))
def say(type, **fields): line.send(json.dumps({"type": type, **fields}).encode())
def order(**fields):
    say("ArmOrder", arm="x", function="run", **fields)
    line.recv(9999)
"""


@pytest.mark.parametrize(
    ("nonsense", "state"),
    [
        ("line.send(os.urandom(4096))", "failed"),
        ("line.send(b'')", "failed"),
        ("line.send(b'[' * 100_000)", "failed"),
        (
            "line.send(b'{\"type\":\"Farewell\",\"value\":' + b'[' * 90_000 + b']' * 90_000 + b'}')",
            "failed",
        ),
        ("line.send(b'{\"type\":\"Farewell\",\"value\":' + b'9' * 90_000 + b'}')", "failed"),
        ("say('Unheard')", "failed"),
        ("say('ArmReply', writer='', elapsed_s=0)", "failed"),
        ("say('Farewell', error=5)", "failed"),
        ("order(prefix=['a\\0b'])", "succeeded"),
        ("order(env={'a=b': ''})", "succeeded"),
        ("order(prefix=['x' * 150_000])", "succeeded"),
        ("order(timeout_s=-1.0)", "succeeded"),
        ("say('Farewell', error='\\x01' * 30_000); os._exit(1)", "failed"),
        ("line.shutdown(socket.SHUT_RDWR)", "failed"),
        ("os.close(int(sys.argv[1]))", "failed"),
    ],
)
def test_55_nonsense_on_its_line_harms_the_worker_alone(
    site: Site, nonsense: str, state: str
) -> None:
    path = write_scenario(site.folder, f"lab.log(0, half=0.0)\n{LINE}{nonsense}")

    done = site.run("run", str(path), "--headless", "--quiet")

    run_dir = latest(site)
    assert is_well(done), done.stdout + done.stderr
    assert "supervisor failed" not in check(site, run_dir, state).summary.reason
    assert (run_dir / "supervisor.log").read_bytes() == b""


def test_an_arm_may_return_as_much_as_it_may_be_given(site: Site) -> None:
    """Whatever fits into the arm's farewell fits into the answer to the one who asked."""
    more = "def give(lab, size): return 'x' * size"
    body = """
for size in (198_800, 198_950, 198_965, 198_970, 199_100):
    try: got = len(lab.arm("big", give, size)())
    except Exception as problem: got = str(problem)
    lab.text(str(got), title=str(size))
"""
    done = site.run("run", str(write_scenario(site.folder, body, more)), "--headless", "--quiet")

    texts = {text.title: text.text for text in check(site, latest(site), "succeeded").summary.texts}
    assert done.returncode == 0
    assert texts["198800"] == "198800"
    assert "too much for a message" in texts["199100"]


def test_numbers_that_are_not_finite_come_back_from_an_arm(site: Site) -> None:
    more = 'def give(lab, value): return [value, float("-inf")]'
    body = 'a, b = lab.arm("odd", give, float("nan"))()\nlab.claim("both-came", [a, b], equals=[float("nan"), float("-inf")])'

    done = site.run("run", str(write_scenario(site.folder, body, more)), "--headless", "--quiet")

    assert done.returncode == 0, done.stdout
    check(site, latest(site), "succeeded")


def test_55_a_record_that_cannot_be_written_leaves_no_gap(site: Site) -> None:
    body = """
lab.log(0, half=0.0)
try: lab.text(object())
except Exception as problem: lab.text(type(problem).__name__)
try: lab.stage(object())
except Exception as problem: lab.text(type(problem).__name__)
"""
    site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    check(site, latest(site), "succeeded", is_whole=True)
