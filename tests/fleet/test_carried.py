"""What a user sees of runs on other boxes: placed, followed, stopped, lost, tried again, and whole when they are over."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from glob import glob
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import look, start, until, write_scenario
from tests.fleet.conftest import NAMES, Cluster, cluster_of
from tuilab.fleet import folders
from tuilab.record.origin import carried
from tuilab.runs import store

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]
Afar = Callable[..., "subprocess.CompletedProcess[str]"]

LOGS = """
for step in range(50):
    lab.log(step, loss=1 / (step + 1))
print("printed " * 100_000)
lab.artifact("kept.txt", "kept")
lab.claim("it-is-so", True)
"""
WAITS = """
lab.stage("on")
while not os.path.exists("{gate}"): time.sleep(0.05)
lab.claim("it-is-so", True)
"""


def node_of(run_dir: Path) -> str:
    carrier = carried.read(run_dir)
    assert carrier is not None
    return carrier.node


def left_on_nodes() -> list[str]:
    """Return the folders of carried runs, and the processes that keep such runs."""
    place = f"{tempfile.gettempdir()}/{folders.PREFIX}"  # others have theirs elsewhere
    left = glob(f"{place}*")
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return left + [line for line in listed if f"_process {place}" in line]


def test_a_run_is_whole_here_when_it_is_over(
    afar: Afar, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'from beside'\n")
    path = write_scenario(tmp_path, LOGS + 'import beside\nlab.text(beside.WORD, title="said")')

    done = afar("run", str(path), "--json", "--quiet")

    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)["runs"]
    (run_dir,) = store.list_runs(root)
    assert told["node"] in NAMES and told["retry_of"] == ""
    assert re.search(
        rf"^node +{told['node']}", tuilab("attach", "last", "--headless").stdout, re.MULTILINE
    )
    assert (told["path"], told["state"], told["texts"]) == (
        str(run_dir),
        "succeeded",
        [{"title": "said", "text": "from beside"}],
    )
    assert [series["count"] for series in told["series"] if series["name"] == "loss"] == [50]
    assert (run_dir / "artifacts" / "kept.txt").read_text() == "kept"
    assert (run_dir / "stdout.log").read_text().count("printed") == 100_000
    verified = tuilab("verify", "last")
    assert verified.returncode == 0, verified.stdout
    until(lambda: left_on_nodes() == [] or None)


def test_every_node_runs_it_once_and_is_told(afar: Afar, root: Path, tmp_path: Path) -> None:
    done = afar("run", str(write_scenario(tmp_path, 'lab.claim("it-is-so", True)')), "--per-node")

    assert done.returncode == 0, done.stderr
    assert sorted(map(node_of, store.list_runs(root))) == sorted(NAMES)
    assert "3 runs, 3 of 3 claims supported" in done.stdout
    table = [line.split() for line in done.stdout.splitlines()]
    assert [*NAMES] in [sorted(words, key=NAMES.index) for words in table if {*words} == {*NAMES}]
    assert ["it-is-so", *["✓", "True"] * 3] in table and "environment node" in done.stdout
    assert all(f"{name}: " in done.stderr for name in NAMES)


def test_a_run_has_the_cores_and_threads_of_its_node(afar: Afar, tmp_path: Path) -> None:
    """Ray sets OMP_NUM_THREADS for what it starts, and gives it another malloc, which would be measured."""
    body = """
set_by_ray = [name for name in os.environ if name.startswith("RAY_")]
found = os.environ.get("OMP_NUM_THREADS"), os.environ.get("CUDA_VISIBLE_DEVICES"), set_by_ray
lab.text(repr((*found, "jemalloc" in open("/proc/self/maps").read())), title="said")
"""
    done = afar("run", str(write_scenario(tmp_path, body)), "--json", "--quiet", "--gpus", "1")

    assert json.loads(done.stdout)["runs"][0]["texts"][0]["text"] == repr((None, "0", [], False)), (
        done.stderr
    )


def test_a_secret_is_not_told_to_the_cluster(cluster: Cluster, afar: Afar, tmp_path: Path) -> None:
    path = write_scenario(tmp_path, "pass")
    path.write_text(path.read_text().replace("(lab: Lab)", "(lab: Lab, api_key: str = '')"))
    done = afar("run", str(path), "--api-key", "sk-abcdefghijklmnop", "--quick")
    assert done.returncode == 0, done.stderr

    asked = (
        f"import json, logging, ray; ray.init({cluster.address!r}, log_to_driver=False, logging_level=logging.ERROR); "
        "import ray._private.state as state; print(json.dumps([job['Entrypoint'] for job in state.jobs()]))"
    )
    jobs = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    told = json.loads(jobs.stdout.splitlines()[-1])
    assert "tuilab" in told and not [words for words in told if "sk-abc" in words]


def test_a_run_whose_keeper_is_killed_is_ended_there(
    cluster: Cluster, afar: Afar, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, WAITS.format(gate=tmp_path / "gate"))
    front = start(root, "run", str(path), "--engine", "ray", "--address", cluster.address)
    (run_dir,) = until(
        lambda: [one for one in store.list_runs(root) if look(one).summary.stages] or None
    )
    keepers = until(
        lambda: (
            found
            if len(found := [one for one in left_on_nodes() if "run_process" in one]) == 1
            else None
        )
    )
    (keeper,) = keepers  # those of runs before have gone

    subprocess.run(["pkill", "-KILL", "-f", keeper.split()[-1] + "$"], check=True)
    out, said = front.communicate(timeout=100)

    assert front.returncode == 4 and "stop at once requested" in out, said
    assert look(run_dir).state == "stopped"
    assert [
        one for one in left_on_nodes() if "run_process" not in one
    ]  # its folder, which nobody keeps
    assert (
        afar(
            "run", str(write_scenario(tmp_path, "pass", name="next")), "--per-node", "--quick"
        ).returncode
        == 0
    )
    until(lambda: left_on_nodes() == [] or None)


def test_a_run_that_goes_on_is_followed_and_stopped_from_here(
    cluster: Cluster, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, WAITS.format(gate=tmp_path / "gate"))
    front = start(root, "run", str(path), "--engine", "ray", "--address", cluster.address)
    (run_dir,) = until(
        lambda: [one for one in store.list_runs(root) if look(one).summary.stages] or None
    )
    assert look(run_dir).state == "running"

    stopped = tuilab("stop", "last")
    out, said = front.communicate(timeout=100)

    assert stopped.stdout.startswith("asked ") and front.returncode == 4
    assert "stopped: stop requested" in out, said
    assert look(run_dir).state == "stopped"


def test_ctrl_c_stops_what_runs_and_begins_no_more(
    cluster: Cluster, root: Path, tmp_path: Path
) -> None:
    for name in ("first", "second", "third", "fourth"):
        write_scenario(tmp_path, WAITS.format(gate=tmp_path / "gate"), name=name)
    names = [str(tmp_path / f"{name}.py") for name in ("first", "second", "third", "fourth")]
    front = start(root, "run", *names, "--engine", "ray", "--address", cluster.address)
    until(lambda: sum(bool(look(one).summary.stages) for one in store.list_runs(root)) == 3 or None)

    front.send_signal(signal.SIGINT)
    _, said = front.communicate(timeout=100)

    assert front.returncode == 130 and "Ctrl-C again stops at once" in said
    assert [look(one).state for one in store.list_runs(root)] == ["stopped"] * 3


def test_where_who_carries_is_killed_the_run_is_lost_here_and_ended_there(
    cluster: Cluster, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, WAITS.format(gate=tmp_path / "gate"))
    front = start(root, "run", str(path), "--engine", "ray", "--address", cluster.address)
    (run_dir,) = until(
        lambda: [one for one in store.list_runs(root) if look(one).summary.stages] or None
    )

    front.kill()
    front.communicate()

    assert look(run_dir).state == "lost"
    until(lambda: left_on_nodes() == [] or None)


def test_the_points_of_a_sweep_go_to_the_nodes(afar: Afar, root: Path, tmp_path: Path) -> None:
    path = write_scenario(tmp_path, 'lab.claim("it-is-small", rows, at_most=10)')
    path.write_text(path.read_text().replace("lab: Lab", "lab: Lab, rows: int = 1"))

    done = afar("sweep", str(path), "--set", "rows=1,5,10,20")

    assert done.returncode == 1 and "holds up to rows=10, not at rows=20" in done.stdout, (
        done.stderr
    )
    assert len({node_of(run_dir) for run_dir in store.list_runs(root)}) > 1


def test_a_sweep_goes_on_where_it_was_begun(
    afar: Afar, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, 'lab.claim("it-is-small", rows, at_most=10)')
    path.write_text(path.read_text().replace("lab: Lab", "lab: Lab, rows: int = 1"))
    afar("sweep", str(path), "--set", "rows=1,5")
    tuilab("rm", "last", "--yes")

    done = tuilab("sweep", "--resume", "last")

    assert (
        done.returncode == 0
        and "continuing with --engine ray, as the sweep was started" in done.stderr
    ), done.stderr
    assert [bool(node_of(run_dir)) for run_dir in store.list_runs(root)] == [True, True]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--count", "4"], "--count 4 is too many: 3 nodes"),
        (["--gpus", "2"], "more than the 1 GPU that Ray has there"),
        (["--detach"], "--detach works only on this machine"),
        (["--jsonl"], "--jsonl works only on this machine"),
        (["--per-node", "--count", "1"], "use only one of them"),
    ],
)
def test_what_cannot_be_had_is_told_and_nothing_begins(
    afar: Afar, root: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    done = afar("run", str(write_scenario(tmp_path, "pass")), *words)

    assert done.returncode in (2, 3) and said in done.stderr and "Traceback" not in done.stderr, (
        done.stderr
    )
    assert store.list_runs(root) == []


def test_a_node_that_dies_loses_its_run_which_is_tried_again_on_another(
    root: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    path = write_scenario(tmp_path, WAITS.format(gate=gate))
    with cluster_of(("head", "other")) as cluster:
        write_scenario(tmp_path, WAITS.format(gate=gate), name="beside")
        names = [str(path), str(tmp_path / "beside.py")]
        front = start(root, "run", *names, "--engine", "ray", "--address", cluster.address)
        until(
            lambda: (
                sum(bool(look(one).summary.stages) for one in store.list_runs(root)) == 2 or None
            )
        )
        (lost,) = [one for one in store.list_runs(root) if node_of(one) == "other"]

        cluster.boxes[1].kill()
        until(lambda: look(lost).state == "lost" or None)
        gate.touch()
        out, said = front.communicate(timeout=170)

    assert ": lost with" in said and "is restarted on another node" in said, said
    (again,) = [
        one
        for one in store.list_runs(root)
        if (run := look(one).summary.run) and run.retry_of == lost.name
    ]
    assert (node_of(again), look(again).state) == ("head", "succeeded")
    assert (
        front.returncode == 0 and "2 runs, 2 of 2 claims supported" in out
    )  # by what came of it in the end
    report = subprocess.run(
        [TUILAB, "report", again.name, "-o", "-", "--as", "md"],
        capture_output=True,
        text=True,
        env={**os.environ, "TUILAB_ROOT": str(root)},
    )
    assert f"This is a second attempt: {lost.name} was lost" in report.stdout.replace("\\", "")


def test_nothing_answers_at_the_address(root: Path, tuilab: Tuilab) -> None:
    for address, said in (
        ("127.0.0.1:1", "nothing answers at 127.0.0.1:1"),
        ("nonsense", "--address takes HOST:PORT"),
    ):
        done = tuilab("run", "xyy", "--engine", "ray", "--address", address)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, (
            done.stderr
        )
    assert store.list_runs(root) == []


def test_ray_is_loaded_by_nothing_else(tmp_path: Path) -> None:
    code = "import tuilab.cli.verbs.run, tuilab.cli.verbs.sweep, tuilab.tui.app, sys; print('ray' in sys.modules)"

    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "False\n"
    )
