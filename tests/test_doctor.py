"""The doctor: what it says about strange boxes, and that none of them makes it fail."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import TUILAB
from tests.engine import write_scenario
from tests.fakes.no_calls import PIDFDS
from tuilab.doctor import (
    Box,
    DoctorFinding,
    answer,
    gpus,
    lab,
    libraries,
    memory,
    processor,
    session,
    software,
    stopping,
    storage,
    terminal,
    torch_worker,
)
from tuilab.doctor.answer_text import exit_code, render
from tuilab.doctor.ask_all import GROUPS, PATIENCE_S, ask_group, checks_of
from tuilab.drawings.glyphs import Style
from tuilab.errors import UsageError
from tuilab.judging import calibration_file
from tuilab.judging.calibration_file import Trials
from tuilab.scrub import GONE, scrub

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.cuda", "tests.fakes.nvml"]
FORBIDS = [sys.executable, str(Path(__file__).with_name("fakes") / "no_calls.py")]
Tuilab = Callable[..., "CompletedProcess[str]"]

QUOTA = {
    "proc/self/cgroup": "0::/job\n",
    "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/job/cpu.stat": "nr_periods 200\nnr_throttled 50\n",
    "sys/fs/cgroup/job/memory.max": "1000000000\n",
}
KILLS = "[Login]\nKillUserProcesses=yes\nKillExcludeUsers=\n"
SELF = "proc/self/cgroup"
MANAGER = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/tmux.scope\n"
V1 = {
    "proc/self/cgroup": "4:cpu,cpuacct:/job\n",
    "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
    "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "100000\n",
    "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
}


def make(root: Path, files: dict[str, str], **environ: str) -> Box:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Box(root, environ)


def ask(tuilab: Tuilab, *words: str, **more: Any) -> dict[str, Any]:
    done = tuilab("doctor", "--json", *words, **more)
    assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.library
@pytest.mark.real_torch
def test_every_question_is_answered_and_its_id_is_its_groups_affair(tuilab: Tuilab) -> None:
    told = ask(tuilab)

    ids = [check["id"] for check in told["checks"]]
    assert ids == [name for group in GROUPS for name in checks_of(group)]
    assert {check["status"] for check in told["checks"]} <= {"pass", "warn", "fail", "n/a"}
    assert {fact["section"] for fact in told["facts"]} >= {
        "Machine",
        "Processor",
        "Memory",
        "GPUs",
        "torch",
        "Libraries",
    }
    assert all(check["found"] for check in told["checks"])
    assert all(
        check["next_step"] for check in told["checks"] if check["status"] in ("warn", "fail")
    )
    assert sum(told["counts"].values()) == len(ids) == len(set(ids))
    assert next(check for check in told["checks"] if check["id"] == "torch.load")["status"] in (
        "pass",
        "warn",
    )


@pytest.mark.slow
def test_a_torch_that_does_not_load_costs_its_own_answers_and_each_is_given_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In less than the patience of the doctor; here there is more, for a slow box to start a process."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    found = ask_group("torch_worker", patience_s=60)

    assert (found["torch.load"].status, found["torch.threads"].status) == ("warn", "n/a")
    assert found["torch.load"].found.startswith("torch is not loaded after 2 s") and PATIENCE_S > 2
    assert "torch is still being loaded" in {finding.found for finding in found.values()}
    assert not any(finding.found.startswith("no answer within") for finding in found.values())


@pytest.mark.library
def test_a_bare_environment_makes_it_say_less_and_not_fail(tmp_path: Path) -> None:
    """No HOME, no PATH, no locale, and descriptors that are no terminal."""
    done = subprocess.run(
        [TUILAB, "doctor", "--all"],
        capture_output=True,
        env={"LC_ALL": "C"},
        cwd=tmp_path,
        timeout=100,
    )

    assert done.returncode in (1, 2) and done.stderr == b""
    assert done.stdout.isascii() and b"terminal.symbols" in done.stdout


def test_a_box_without_proc_and_sys_is_not_known_and_nothing_breaks(tmp_path: Path) -> None:
    box = Box(tmp_path, {})

    for group in (processor, memory, libraries, storage, session, gpus, lab):
        for name, check in group.CHECKS.items():
            if name != "cpu.effective":
                assert answer(check, box).status in ("pass", "warn", "fail", "n/a"), name
    assert answer(processor.numa, box).status == "n/a"
    assert answer(processor.pressure, box).found.startswith("No such file or directory")


@pytest.mark.parametrize(("files", "cores"), [(QUOTA, "1.5"), (V1, "1")])
def test_a_quota_that_torch_does_not_see_is_told_with_the_variable_to_set(
    tmp_path: Path, files: dict[str, str], cores: str
) -> None:
    finding = answer(processor.quota, make(tmp_path, files))

    if len(os.sched_getaffinity(0)) > float(cores):
        assert (finding.status, finding.found.split(" cores")[0]) == ("warn", f"limited to {cores}")
        assert finding.next_step.startswith("export OMP_NUM_THREADS=1")


def test_a_quota_that_is_used_up_says_how_often(tmp_path: Path) -> None:
    assert (
        "used up in 25 % of all periods"
        in answer(processor.quota, make(tmp_path, QUOTA, OMP_NUM_THREADS="1")).found
    )


def test_a_small_memory_limit_is_a_warning(tmp_path: Path) -> None:
    finding = answer(memory.limit, make(tmp_path, QUOTA))

    assert (finding.status, finding.found) == (
        "warn",
        "limited to 953.7 MiB; the kernel kills a run that uses more",
    )


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({}, "pass"),
        ({"etc/systemd/logind.conf": "[Login]\n#KillUserProcesses=yes\n"}, "pass"),
        ({"etc/systemd/logind.conf": KILLS}, "warn"),
        ({"etc/systemd/logind.conf.d/50-site.conf": KILLS}, "warn"),
        ({"etc/systemd/logind.conf": KILLS, "var/lib/systemd/linger/root": ""}, "warn"),
        (
            {
                "etc/systemd/logind.conf": KILLS,
                SELF: "0::/user.slice/user-0.slice/session-3.scope\n",
            },
            "warn",
        ),
        ({"etc/systemd/logind.conf": KILLS, SELF: "0::/system.slice/cron.service\n"}, "pass"),
        (
            {"etc/systemd/logind.conf": "[Login]\nKillUserProcesses=yes\n"},
            "pass",
        ),  # root is spared, if none is named
        ({"etc/systemd/logind.conf": f"{KILLS}KillOnlyUsers=alice bob\n"}, "pass"),
        (
            {"etc/systemd/logind.conf": "[Login]\nKillOnlyUsers=root\nKillExcludeUsers=alice\n"},
            "warn",
        ),
        ({SELF: MANAGER}, "warn"),
        ({SELF: MANAGER, "var/lib/systemd/linger/root": ""}, "pass"),
        ({"usr/lib/systemd/logind.conf": KILLS, "etc/systemd/logind.conf": "[Login]\n"}, "pass"),
        ({"etc/systemd/logind.conf": "\x00garbage = = [\n"}, "pass"),
    ],
)
def test_logind_that_ends_runs_at_logout_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], status: str
) -> None:
    monkeypatch.setattr(session, "_name_user", lambda: "root")
    (tmp_path / "run/systemd/system").mkdir(parents=True)

    assert answer(session.logout, make(tmp_path, files)).status == status


def test_what_outlives_a_logout_is_told_with_the_words_to_type(tmp_path: Path) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    box = make(tmp_path, {"etc/systemd/logind.conf": KILLS})

    step = "loginctl enable-linger; then start runs with: systemd-run --user --scope tuilab run"
    assert answer(session.logout, box).next_step == step


def test_a_box_on_which_a_run_can_be_stopped_with_care_passes() -> None:
    assert {name: answer(check, Box()).status for name, check in stopping.CHECKS.items()} == {
        "stopping.proc": "pass",
        "stopping.pidfd": "pass",
        "stopping.children": "pass",
    }


def test_a_box_without_pidfds_is_told() -> None:
    asked = [sys.executable, "-m", "tuilab.doctor.ask_all", "stopping"]

    told = subprocess.run(
        [*FORBIDS, "ENOSYS", PIDFDS, *asked], capture_output=True, text=True
    ).stdout

    (found,) = (
        line
        for line in map(json.loads, filter(None, told.split("\n")))
        if line["id"] == "stopping.pidfd"
    )
    assert (found["status"], found["next_step"][:14]) == ("warn", "use Linux 5.3 ")
    assert found["found"].startswith("no pidfd (Function not implemented)")


@pytest.mark.parametrize(
    ("nodes", "allowed", "status", "found"),
    [
        (1, "0", "pass", "one NUMA node: every core is equally near to all memory"),
        (4, "0-1", "pass", "4 NUMA nodes, but processes may only use the memory of 2 of them here"),
        (
            2,
            "0-1",
            "warn",
            "2 NUMA nodes: a core reaches the memory of its own node faster than that of another "
            "node",
        ),
    ],
)
def test_answer_about_numa_says_what_nodes_mean(
    tmp_path: Path, nodes: int, allowed: str, status: str, found: str
) -> None:
    files = {f"sys/devices/system/node/node{number}/cpulist": "0\n" for number in range(nodes)}
    box = make(tmp_path, {**files, "proc/self/status": f"Mems_allowed_list:\t{allowed}\n"})

    finding = answer(processor.numa, box)

    assert (finding.status, finding.found) == (status, found)


@pytest.mark.parametrize(
    ("value", "status", "found"),
    [
        ("tmux-256color", "pass", "tmux sets TERM to tmux-256color, which describes tmux"),
        (
            "xterm",
            "warn",
            "tmux sets TERM to xterm, which describes another terminal: keys and colours may be "
            "wrong",
        ),
        ("", "n/a", "tmux does not report its option default-terminal"),
    ],
)
def test_answer_about_tmux_says_what_its_terminal_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, status: str, found: str
) -> None:
    put_tmux(tmp_path, monkeypatch, value)

    finding = answer(terminal.tmux, Box(tmp_path, {"TMUX": "/tmp/tmux"}))

    assert (finding.status, finding.found) == (status, found)


def test_options_of_tmux_that_cannot_be_read_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, {"TMUX": "/tmp/tmux"})
    put_tmux(tmp_path, monkeypatch, "")

    assert answer(terminal.clipboard, box).status == "n/a"
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert answer(terminal.clipboard, box) == DoctorFinding(
        "n/a", "the option set-clipboard of tmux cannot be read: tmux is not on the PATH"
    )


def put_tmux(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Put a program before all others that answers as tmux does about an option."""
    program = folder / "tmux"
    program.write_text(f"#!/bin/sh\necho {value}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_a_program_that_may_not_bind_memory_is_told(tmp_path: Path) -> None:
    """As in a container without a right of its own, on a box with several nodes."""
    if shutil.which("numactl") is None:
        pytest.skip("numactl is not installed")
    nodes = {f"sys/devices/system/node/node{at}/cpulist": "0\n" for at in (0, 1)}
    box = make(tmp_path, {**nodes, "proc/self/status": "Mems_allowed_list:\t0-1\n"}, **os.environ)
    ask = f"from tuilab.doctor import Box, libraries; print(libraries.numactl(Box(libraries.Path({str(tmp_path)!r}))))"

    told = subprocess.run(
        [*FORBIDS, "EPERM", "set_mempolicy", sys.executable, "-c", ask],
        capture_output=True,
        text=True,
    )

    assert (
        "status='warn'" in told.stdout
        and "cannot bind memory here: setting membind: Operation not permitted" in told.stdout
    )
    assert answer(libraries.numactl, box).status == "pass"


def test_a_kernel_that_lists_no_children_is_told(tmp_path: Path) -> None:
    finding = answer(stopping.children, make(tmp_path, {"proc/thread-self/stat": "1 (python) R 0"}))

    assert finding.status == "warn" and finding.found.startswith(
        "/proc lists no children (No such file or directory)"
    )
    assert (
        answer(stopping.children, make(tmp_path, {"proc/thread-self/children": "12 13 "})).status
        == "pass"
    )
    assert answer(stopping.children, Box(tmp_path / "bare")).status == "n/a"


@pytest.mark.parametrize(
    ("soft", "hard", "told"),
    [
        (20, 5000, "fail: ulimit -n 5000"),
        (1024, 5000, "warn: ulimit -n 5000"),
        (
            20,
            20,
            "fail: raise the hard limit: docker run --ulimit nofile=65536, LimitNOFILE= in systemd, or nofile in limits.conf",
        ),
    ],
)
def test_few_descriptors_are_told_with_what_raises_the_limit(
    soft: int, hard: int, told: str
) -> None:
    ask = "from tuilab.doctor import Box, memory; found = memory.files(Box()); print(f'{found.status}: {found.next_step}')"
    limit = f'ulimit -S -n {soft} && ulimit -H -n {hard} && exec "$@"'

    done = subprocess.run(
        ["bash", "-c", limit, "-", sys.executable, "-c", ask], capture_output=True, text=True
    )

    assert done.stdout == told + "\n"


def test_a_folder_of_runs_on_a_network_file_system_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    table = (
        f"30 23 0:26 / / rw - ext4 /dev/sda rw\n31 30 0:27 / {tmp_path} rw - nfs4 server:/home rw\n"
    )

    finding = answer(storage.runs_system, make(tmp_path, {"proc/self/mountinfo": table}))
    assert (finding.status, finding.found) == (
        "warn",
        f"{tmp_path}/runs is on a network file system (nfs4 at {tmp_path}): slow, and lost if the server fails",
    )


def test_a_folder_of_runs_that_others_may_write_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path))
    tmp_path.chmod(0o777)

    assert answer(storage.permissions, Box()).next_step == f"chmod 700 {tmp_path}"


@pytest.mark.library
@pytest.mark.real_torch
def test_variables_that_nobody_reads_are_told(tmp_path: Path) -> None:
    code = "import torch; from tuilab.doctor import Box, torch_worker as worker; print(worker.variables(Box()).found)"
    environment = {**os.environ, "KMP_AFFINITY": "compact", "MALLOC_CONF": "narenas:1"}

    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    ).stdout
    assert "MALLOC_CONF is set, but jemalloc is not loaded" in found
    assert (
        torch_worker.why_idle("KMP_AFFINITY", {"GNU OpenMP"})
        == "KMP_AFFINITY is set, but Intel OpenMP or LLVM OpenMP is not loaded"
    )


# ---- GPUs, through the fake driver


@pytest.fixture
def fake(nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch) -> "FakeNvml":
    for name in ("LD_LIBRARY_PATH", "TUILAB_FAKE_NVML"):
        monkeypatch.setenv(name, nvml.environment[name])
    return nvml


def test_a_healthy_gpu_passes_except_that_this_torch_cannot_use_it(fake: "FakeNvml") -> None:
    found = ask_group("gpus", 30)

    assert found["gpu.driver"].found == "driver 999.99, NVML 13.999.99"
    assert (
        found["gpu.calibration"].found
        == "GPU 0: never; how often verdicts about time are wrong there is unknown"
    )
    assert {
        name: one.status
        for name, one in found.items()
        if name not in ("gpu.cuda", "gpu.calibration")
    } == dict.fromkeys(
        [
            "gpu.driver",
            "gpu.devices",
            "gpu.mig",
            "gpu.others",
            "gpu.clocks",
            "gpu.memory_errors",
            "gpu.variables",
        ],
        "pass",
    )


@pytest.mark.parametrize(
    ("lines", "name", "status", "words"),
    [
        (["mode=version_mismatch"], "gpu.driver", "fail", "reboot"),
        (["mode=no_permission"], "gpu.driver", "fail", "no permission"),
        (["gpus=2", "mode.1=lost"], "gpu.devices", "fail", "GPU 1: GPU is lost"),
        (["mig=1"], "gpu.mig", "warn", "MIG is on for GPU 0"),
        (["missing=mig"], "gpu.mig", "pass", "off"),
        (
            ["pids=99999998,99999999", "pid_bytes=2000000000"],
            "gpu.others",
            "warn",
            "2 processes, 3.725 GiB",
        ),
        (["throttle=0x41"], "gpu.clocks", "warn", "hardware thermal slowdown"),
        (["throttle=1"], "gpu.clocks", "pass", "the clocks are not throttled"),
        (["ecc=3"], "gpu.memory_errors", "fail", "GPU 0: 3"),
        (["na=ecc"], "gpu.memory_errors", "n/a", "these GPUs do not count memory errors"),
    ],
)
@pytest.mark.first(4)
def test_what_a_driver_says_becomes_a_sentence(
    fake: "FakeNvml", lines: list[str], name: str, status: str, words: str
) -> None:
    fake.set(*lines)

    finding = ask_group("gpus", 30)[name]
    assert finding.status == status and words in finding.found


def test_gpus_that_were_calibrated_are_told_with_the_day(
    fake: "FakeNvml", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    monkeypatch.setenv("TZ", "UTC")
    fake.set("gpus=2")
    calibration_file.save({"over 6 processes": Trials(1, 0, 1, 1)}, uuid="fake-1", name="Fake GPU")
    kept = (tmp_path / "calibration.json").read_text()
    (tmp_path / "calibration.json").write_text(re.sub(r'"wall_s": [\d.]+', '"wall_s": 86400', kept))

    finding = ask_group("gpus", 30)["gpu.calibration"]
    assert (finding.status, finding.found) == ("pass", "GPU 0: never; GPU 1: 1970-01-02 00:00")


@pytest.mark.parametrize(
    ("denied", "name", "status", "words"),
    [
        (
            "processes",
            "gpu.others",
            "warn",
            "GPU 0: 1 process, 300 B; GPU 1: n/a (Insufficient Permissions)",
        ),
        ("mig", "gpu.mig", "pass", "off; GPU 1: n/a (Insufficient Permissions)"),
        (
            "throttle",
            "gpu.clocks",
            "warn",
            "GPU 0: software thermal slowdown; GPU 1: n/a (Insufficient Permissions)",
        ),
        (
            "ecc",
            "gpu.memory_errors",
            "pass",
            "no uncorrected errors; GPU 1: n/a (Insufficient Permissions)",
        ),
    ],
)
def test_a_gpu_that_may_not_be_asked_costs_its_own_answer_only(
    fake: "FakeNvml", denied: str, name: str, status: str, words: str
) -> None:
    fake.set("gpus=2", "pids.0=99999999", "throttle=0x20", f"denied.1={denied}")

    finding = ask_group("gpus", 30)[name]
    assert (finding.status, finding.found) == (status, words)


def test_slices_are_named_among_the_devices_and_asked_nothing_that_is_of_the_whole(
    fake: "FakeNvml",
) -> None:
    fake.set("mig=1", "slices=1", "pids=99999999")

    found = ask_group("gpus", 30)
    assert (
        found["gpu.devices"].found
        == "GPU 0 Fake GPU; GPU 0 MIG 1g.10gb Device 0 Fake GPU MIG 1g.10gb"
    )
    assert found["gpu.others"].found == "GPU 0: 1 process, 300 B"


def test_a_driver_that_hangs_or_crashes_costs_its_own_answers_only(fake: "FakeNvml") -> None:
    fake.set("mode=hang")
    hung = ask_group("gpus", 1.0)
    fake.set("mode=segfault")
    crashed = ask_group("gpus", 30)

    assert hung["gpu.driver"] == hung["gpu.driver"].__class__("n/a", "no answer within 1 s")
    assert hung["gpu.mig"].found == "not checked, because gpu.driver failed to answer"
    assert crashed["gpu.driver"].found == "the process that checks it crashed with signal 11"


@pytest.mark.parametrize(
    ("count", "version", "status", "words"),
    [
        (2, "13.0", "pass", "torch sees 2 GPUs"),
        (
            0,
            "13.0",
            "fail",
            "too old (found version 12020); `auto` uses the CPU, and the result says so",
        ),
        (0, None, "warn", "is a build without CUDA; `auto` uses the CPU, and the result says so"),
    ],
)
def test_torch_and_the_gpus_are_told_as_a_run_tells_them_and_none_is_touched(
    make_cuda: "Callable[..., FakeCuda]", monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    count: int, version: str | None, status: str, words: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("torch.version.cuda", version)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    cuda = make_cuda(count, initialised=False)
    cuda.why_not = "The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver."

    finding = answer(torch_worker.cuda, make(tmp_path, {"dev/nvidia0": ""}))

    assert finding.status == status and words in finding.found
    assert status == "pass" or finding.next_step.startswith(
        ("update the driver (CUDA 13.0 needs 580", "run `pip uninstall torch`")
    )
    assert cuda.initialised_by == ""


# ---- what is handed on


def test_the_exit_code_is_that_of_the_worst_answer() -> None:
    def code(*states: str) -> int:
        return exit_code(
            {str(at): answer(partial(_finding, state), Box()) for at, state in enumerate(states)}
        )

    assert [code("pass", "n/a"), code("pass", "warn"), code("warn", "fail")] == [0, 1, 2]


def _finding(status: Any, box: Box | None = None) -> Any:
    from tuilab.doctor import DoctorFinding

    return DoctorFinding(status, "found")


def test_what_a_box_says_cannot_steer_the_terminal() -> None:
    finding = answer(
        lambda box: _finding("pass").__class__("warn", "\x1b]0;evil\x07", "a\nb"), Box()
    )

    assert "\x1b" not in render({"a.b": finding}, Style(), 80, 10)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"HF_TOKEN": "abc", "rows": 5}, {"HF_TOKEN": GONE, "rows": 5}),
        ("pull https://user:pw@host/x", f"pull https://{GONE}@host/x"),
        ("export API_KEY=abc123 ROWS=5", f"export API_KEY={GONE} ROWS=5"),
        (["run", "--api-key", "abc123", "--rows", "5"], ["run", "--api-key", GONE, "--rows", "5"]),
        ("--password hunter2 --rows 5", f"--password {GONE} --rows 5"),
        ("it was s3cr3t-value here", f"it was {GONE} here"),
        ("/home/me/x and /home/meadow", "~/x and /home/meadow"),
        ("it sent Bearer abcdefghijk", f"it sent Bearer {GONE}"),
        ("ghp_0123456789abcdef0123", GONE),
        ("rows=5 https://host/a?b=c", "rows=5 https://host/a?b=c"),
    ],
)
def test_secrets_are_removed_and_nothing_else(given: Any, shown: Any) -> None:
    assert scrub(given, {"MY_SECRET": "s3cr3t-value", "HOME": "/home/me"}) == shown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bundle.json", "bundle.tar.gz"])
def test_a_bundle_has_the_last_failure_and_no_secret(
    tuilab: Tuilab, root: Path, tmp_path: Path, name: str
) -> None:
    body = 'print("token", os.environ["LAB_TOKEN"], file=sys.stderr)\nraise ValueError("no " + os.environ["LAB_TOKEN"])'
    broken = write_scenario(tmp_path, body)
    environment = {"LAB_TOKEN": "very-secret-1", "HOME": str(tmp_path)}
    tuilab("run", str(broken), "--headless", "--quiet", env=environment)

    done = tuilab("doctor", "--bundle", str(tmp_path / name), env=environment)
    data = (tmp_path / name).read_bytes()
    if name.endswith(".gz"):
        with tarfile.open(tmp_path / name) as archive:
            members = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
        assert (
            sorted(members)[0] == "tuilab-doctor/constraints.txt"
            and b"torch==" in members["tuilab-doctor/constraints.txt"]
        )
        data = b"".join(members.values())

    assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr
    assert (
        b"ValueError" in data
        and b"very-secret-1" not in data
        and str(tmp_path).encode() not in data
    )
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_bundle_that_cannot_be_written_is_one_sentence(tuilab: Tuilab) -> None:
    done = tuilab("doctor", "--bundle", "/proc/none/x.json")

    assert done.returncode == 5
    assert done.stderr.startswith("tuilab: cannot write /proc/none/x.json: ")


def test_a_file_in_the_way_of_the_runs_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "file" / "state" / "runs"))

    found = answer(storage.permissions, Box())

    assert found.status == "fail"
    assert (
        found.found
        == f"{tmp_path / 'file'} is not a folder, so no run can be written to {tmp_path / 'file/state/runs'}"
    )


def test_memory_that_a_cgroup_has_used_is_not_available(tmp_path: Path) -> None:
    group = {"memory.current": "700000000\n", "memory.stat": "anon 5\ninactive_file 100000000\n"}
    box = make(
        tmp_path, {**QUOTA, **{f"sys/fs/cgroup/job/{name}": text for name, text in group.items()}}
    )

    found = answer(memory.available, box)

    assert found.status == "fail" and found.found.startswith("381.5 MiB available of ")


def test_a_user_error_has_no_name_of_a_class() -> None:
    def check(box: Box) -> DoctorFinding:
        raise UsageError("cannot read it")

    assert answer(check, Box()).found == "cannot read it"


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_another_torch_in_the_active_environment_is_told(tmp_path: Path, variable: str) -> None:
    (tmp_path / "lib" / "python3.12" / "site-packages" / "torch-2.9.1+cu128.dist-info").mkdir(
        parents=True
    )

    found = answer(software.environment, Box(environ={variable: str(tmp_path)}))

    assert found.status == "warn"
    assert (
        found.found
        == f"runs measure the torch of {sys.prefix}, not torch 2.9.1+cu128 of the active {tmp_path}"
    )
    assert (
        found.next_step
        == f"to measure torch 2.9.1+cu128: {tmp_path}/bin/python -m pip install tuilab"
    )


@pytest.mark.parametrize("active", [sys.prefix, "/none", ""])
def test_the_same_environment_or_one_without_torch_is_fine(active: str) -> None:
    assert answer(software.environment, Box(environ={"VIRTUAL_ENV": active})).status == "pass"


def test_what_is_fine_is_counted_and_printed_only_when_it_is_asked_for(tuilab: Tuilab) -> None:
    brief, whole = tuilab("doctor"), tuilab("doctor", "--all")

    answers = [line for line in brief.stdout.splitlines() if re.match(r"[✓!✗–] [a-z]+\.", line)]
    assert {line[0] for line in answers} <= {"!", "✗"}
    assert brief.stdout.splitlines()[-1].endswith(" (details: tuilab doctor --all)")
    assert "✓ disk.permissions" in whole.stdout and "Machine" in whole.stdout
    assert "disk.permissions" not in brief.stdout and "Machine" not in brief.stdout


@pytest.mark.parametrize(
    ("kind", "told"),
    [("nfs4", "keep the venv on a local disk"), ("ext4", "run `tuilab doctor` again")],
)
def test_a_torch_that_loads_slowly_is_blamed_on_a_net_only_where_there_is_one(
    tmp_path: Path, kind: str, told: str
) -> None:
    box = make(tmp_path, {"proc/self/mountinfo": f"30 23 0:26 / / rw - {kind} x rw\n"})

    assert told in torch_worker._why_slow(box)  # noqa: SLF001


FORKS = """
import os, signal
from tuilab.doctor.own_process import ForkedProcess, may_fork, to_its_end

def say(): os.write(1, b"one\\n")
def crash(): say(), os.kill(os.getpid(), signal.SIGSEGV)
def hang(): say(), signal.pause()
def fail(): say(), 1 / 0

assert may_fork()
for work in say, crash, hang, fail: print(*to_its_end(ForkedProcess(work), 0.5), sep=": ")
"""


def test_a_fork_that_answers_may_crash_or_hang_as_any_process_that_is_asked() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True)

    assert (done.stderr, done.stdout.splitlines()) == ("", [
        r"b'one\n': the process that checks it ended early, with exit code 0",
        r"b'one\n': the process that checks it crashed with signal 11",
        r"b'one\n': no answer within 0.5 s",
        r"b'one\n': the process that checks it ended early, with exit code 1",
    ])  # fmt: skip


def test_a_process_with_threads_is_not_forked() -> None:
    code = (
        "import threading; from tuilab.doctor.own_process import may_fork; gate = threading.Event()\n"
        "threading.Thread(target=gate.wait).start(); print(may_fork()); gate.set()"
    )

    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
