"""What tuilab says about a box, its GPUs (through the real ctypes layer and a fake driver) and its software."""

import json
import math
import os
import shutil
import subprocess
import sys
from ctypes import CDLL
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import until
from tuilab.probes.cpu import cpu_facts, parse_cpu_list
from tuilab.probes.env import environment_facts, torch_facts
from tuilab.probes.gpu.nvml import throttle_names
from tuilab.probes.numa import numa_facts

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]

ASK_GPUS = """
import json, os
from pathlib import Path
from tuilab.probes.gpu.nvml import PROCESSES, SHARE, GpuLost, open_gpus
from tuilab.probes.gpu.meters import METERS
gpus = open_gpus(Path(os.environ.get("BOX", "/")))
if isinstance(gpus, str):
    print(json.dumps(gpus))
else:
    said = {"found": {gpu.uuid: [gpu.index, gpu.name, gpu.bytes_total] for gpu in gpus.available}, "unusable": gpus.unusable}
    said["labels"] = {gpu.uuid: gpu.label for gpu in gpus.available}
    said["xids"] = {gpu.uuid: gpus.errors.next(gpu.uuid) for gpu in gpus.available}
    said["deaf"] = gpus.errors.deaf
    said["facts"], said["lost"] = gpus.facts(), {}
    for gpu in list(gpus.available):
        try:
            gpus.read(gpu, [SHARE])  # what was before that is not told
            said[gpu.uuid], said["missing"] = gpus.read(gpu, (*METERS, PROCESSES, SHARE), {os.getpid()})
            said.setdefault("why", {})[gpu.uuid] = said["missing"]
        except GpuLost as lost:
            said["lost"][gpu.uuid] = str(lost)
    said["left"] = [gpu.uuid for gpu in gpus.available]
    print(json.dumps(said))
"""
OWN_PID = """
import os
from pathlib import Path
switches = Path(os.environ["TUILAB_FAKE_NVML"])
switches.write_text(switches.read_text().replace("OURS", str(os.getpid())))
"""
WELL = {
    "memory_used_bytes": 1000.0,
    "busy_percent": 42,
    "power_w": 250.0,
    "temperature_c": 61,
    "sm_mhz": 1980,
    "memory_mhz": 2619,
    "throttle_mask": 0.0,
    "ecc_uncorrected": 0,
    "foreign_processes": 0,
    "foreign_percent": 0.0,
}
HOST_PIDS = "the driver names processes by pids of the host"
ABOUT_PROCESSES = {"foreign_processes", "memory_tree_bytes", "foreign_percent"}


def python(code: str, *options: str, **more: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=60, **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(nvml: "FakeNvml", *lines: str) -> Any:
    """Return what a fresh process learns about the GPUs of a fake driver."""
    nvml.set(*lines)
    return json.loads(python(ASK_GPUS, env=nvml.environment))


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# ---- GPUs


def test_a_healthy_gpu_tells_everything(nvml: "FakeNvml") -> None:
    said = ask(nvml, "gpus=1")

    assert said["found"] == {"GPU-fake-0": [0, "Fake GPU", 80000]}
    assert said["facts"] == {"driver": "999.99", "nvml": "13.999.99", "cuda": "13.1"}
    assert (said["GPU-fake-0"], said["missing"]) == (WELL, {})


def test_a_box_without_a_driver_says_so() -> None:
    try:
        CDLL("libnvidia-ml.so.1")
    except OSError:
        assert json.loads(python(ASK_GPUS)) == "no NVIDIA driver (libnvidia-ml.so.1 not found)"
    else:
        pytest.skip("this box has an NVIDIA driver")


def test_a_driver_without_gpus_says_so(nvml: "FakeNvml") -> None:
    assert ask(nvml, "gpus=0") == "the NVIDIA driver sees no GPU"


@pytest.mark.parametrize("fault", ["missing", "na"])
@pytest.mark.parametrize(
    ("call", "field"),
    [
        ("used", "memory_used_bytes"),
        ("busy", "busy_percent"),
        ("power", "power_w"),
        ("temperature", "temperature_c"),
        ("sm_clock", "sm_mhz"),
        ("memory_clock", "memory_mhz"),
        ("throttle", "throttle_mask"),
        ("ecc", "ecc_uncorrected"),
    ],
)
@pytest.mark.first(4)
def test_a_field_that_is_not_told_is_left_out_with_the_reason(
    nvml: "FakeNvml", fault: str, call: str, field: str
) -> None:
    said = ask(nvml, f"{fault}={call}")

    assert said["GPU-fake-0"] == {name: value for name, value in WELL.items() if name != field}
    assert said["missing"] == {
        field: {"missing": "Function Not Found", "na": "Not Supported"}[fault]
    }


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("used=90000", "memory_used_bytes"),
        ("used=0xffffffffffffffff", "memory_used_bytes"),
        ("total=0xffffffffffffffff", "memory_used_bytes"),
        ("busy=101", "busy_percent"),
        ("power=0xffffffff", "power_w"),
        ("temperature=0xffffffff", "temperature_c"),
        ("sm_clock=0xffffffff", "sm_mhz"),
        ("throttle=0xffffffffffffffff", "throttle_mask"),
        ("ecc=0xffffffffffffffff", "ecc_uncorrected"),
    ],
)
@pytest.mark.first(3)
def test_a_number_that_cannot_be_is_left_out(nvml: "FakeNvml", line: str, field: str) -> None:
    said = ask(nvml, line)

    assert said["GPU-fake-0"].keys() == WELL.keys() - {field}
    assert "which cannot be" in said["missing"][field]


def test_an_older_driver_is_asked_in_the_older_way(nvml: "FakeNvml") -> None:
    said = ask(nvml, "missing=memory_v2,event_reasons", "throttle=4")

    assert said["GPU-fake-0"] == {**WELL, "throttle_mask": 4.0}


def test_an_absurd_size_and_an_unreadable_name_are_not_passed_on(nvml: "FakeNvml") -> None:
    nvml.switches.write_bytes(b"total=0\nname=\xff\xfe\n")

    said = json.loads(python(ASK_GPUS, env=nvml.environment))
    assert said["found"] == {"GPU-fake-0": [0, "a GPU without a known name", None]}


def test_a_gpu_name_cannot_steer_a_terminal(nvml: "FakeNvml") -> None:
    said = ask(nvml, "name=\x1b]0;evil\x07")

    assert said["found"]["GPU-fake-0"][1] == "\ufffd]0;evil\ufffd"


def test_a_gpu_that_is_lost_at_the_start_is_never_touched_and_the_others_are_used(
    nvml: "FakeNvml",
) -> None:
    said = ask(nvml, "gpus=2", "mode.0=lost")

    assert said["unusable"] == {"0": "GPU is lost"}
    assert said["left"] == ["GPU-fake-1"]
    assert said["GPU-fake-1"] == WELL


def test_a_gpu_that_answers_nothing_is_lost(nvml: "FakeNvml") -> None:
    calls = "used,total,busy,power,temperature,sm_clock,memory_clock,throttle,ecc,processes,util"

    said = ask(nvml, f"na={calls}")
    assert said["lost"] == {"GPU-fake-0": "answers nothing: Not Supported"}
    assert said["left"] == []


def test_gpus_are_known_by_uuid_and_mig_only_costs_what_it_hides(nvml: "FakeNvml") -> None:
    said = ask(nvml, "gpus=2", "uuid.0=GPU-b", "uuid.1=GPU-a", "na.0=busy", "used.0=7")

    assert {uuid: index for uuid, (index, *_) in said["found"].items()} == {"GPU-b": 0, "GPU-a": 1}
    assert said["GPU-b"] == {
        name: value
        for name, value in {**WELL, "memory_used_bytes": 7.0}.items()
        if name != "busy_percent"
    }
    assert said["GPU-a"] == WELL


def test_pids_of_the_host_are_said_to_be_not_visible(nvml: "FakeNvml") -> None:
    said = ask(nvml, "pids=4194305,4194306")

    assert said["missing"] == {"processes": f"not visible: {HOST_PIDS}"}
    assert not ABOUT_PROCESSES & said["GPU-fake-0"].keys()


def test_processes_of_others_are_counted_and_how_busy_they_keep_a_gpu(nvml: "FakeNvml") -> None:
    said = ask(
        nvml,
        f"pids={os.getpid()},{os.getppid()}",
        f"util={os.getpid()}:30,{os.getppid()}:8,{os.getpid()}:50",
    )

    assert (said["GPU-fake-0"], said["missing"]) == (
        {**WELL, "foreign_processes": 2, "foreign_percent": 58.0},
        {},
    )


def test_a_share_that_cannot_be_is_left_out(nvml: "FakeNvml") -> None:
    said = ask(nvml, "util=1:4294967295")

    assert "foreign_percent" not in said["GPU-fake-0"]
    assert said["missing"] == {"foreign_percent": "the driver said 4294967295 %, which cannot be"}


def test_in_a_container_no_pid_is_believed_even_if_it_is_one_of_ours(nvml: "FakeNvml") -> None:
    """The driver names pids of the host; that one of them is ours, too, is an accident."""
    nvml.set_namespace("pid:[4026532999]")
    code = OWN_PID + ASK_GPUS
    nvml.set("pids=1,OURS", "util=OURS:90")

    said = json.loads(python(code, env=nvml.environment))
    assert not ABOUT_PROCESSES & said["GPU-fake-0"].keys()
    assert said["missing"] == {"processes": f"not visible in a container: {HOST_PIDS}"}


def test_where_the_namespace_is_not_told_no_pid_is_believed(nvml: "FakeNvml") -> None:
    (nvml.box / "proc/self/ns/pid").unlink()

    said = ask(nvml, "pids=1")
    assert said["missing"]["processes"].startswith(
        "unknown whether the pids of the driver are valid here: "
    )


def test_a_process_that_races_must_be_on_the_list_else_its_pids_are_not_believed(
    nvml: "FakeNvml",
) -> None:
    code = ASK_GPUS.replace("{os.getpid()})", "{os.getpid()}, is_timed_here=True)")
    nvml.set(f"pids={os.getpid()}", "util=1:90")

    said = json.loads(python(code, env=nvml.environment))
    assert not ABOUT_PROCESSES & said["GPU-fake-0"].keys()
    assert said["missing"] == {
        "processes": "not visible: the driver does not list the process that is timed there"
    }


def test_slices_are_found_by_the_names_that_nvidia_smi_gives_them(nvml: "FakeNvml") -> None:
    said = ask(
        nvml,
        "gpus=2",
        "mig.1=1",
        "slices.1=2",
        "total.1:0=10000",
        "used.1:1=7",
        "denied.1=memory_v2",
        "name.1:1=No Word",
    )

    assert said["labels"] == {
        "GPU-fake-0": "GPU 0",
        "GPU-fake-1": "GPU 1",
        "MIG-fake-1-0": "GPU 1 MIG 1g.10gb Device 0",
        "MIG-fake-1-1": "GPU 1 MIG Device 1",
    }
    assert said["found"]["MIG-fake-1-0"] == [1, "Fake GPU MIG 1g.10gb", 10000]
    assert said["found"]["GPU-fake-1"] == [1, "Fake GPU", None]
    assert said["why"]["GPU-fake-1"]["memory_used_bytes"] == "Insufficient Permissions"


def test_a_slice_tells_its_own_memory_and_processes_and_the_clocks_of_the_whole(
    nvml: "FakeNvml",
) -> None:
    said = ask(
        nvml, "mig=1", "slices=1", "used.0:0=7", "pids.0:0=1", "sm_clock.0=1410", "throttle.0=0x20"
    )

    assert said["MIG-fake-0-0"] == {
        "memory_used_bytes": 7.0,
        "sm_mhz": 1410,
        "throttle_mask": 0x20,
        "foreign_processes": 1,
    }
    assert said["why"]["MIG-fake-0-0"] == {
        "foreign_percent": "the driver does not report it for a slice (MIG)"
    }


def test_the_memory_of_our_own_is_told_apart_and_they_are_no_strangers(nvml: "FakeNvml") -> None:
    nvml.set("pids=1,OURS", "pid_bytes=70", "util=1:5,OURS:90")

    said = json.loads(python(OWN_PID + ASK_GPUS, env=nvml.environment))
    assert said["GPU-fake-0"] == {
        **WELL,
        "memory_tree_bytes": 70.0,
        "foreign_processes": 1,
        "foreign_percent": 5.0,
    }


def test_memory_that_the_driver_does_not_attribute_is_unknown(nvml: "FakeNvml") -> None:
    nvml.set("pids=OURS", "pid_bytes=0xffffffffffffffff")

    said = json.loads(python(OWN_PID + ASK_GPUS, env=nvml.environment))
    assert said["missing"] == {
        "memory_tree_bytes": "the driver does not report the memory of a process"
    }


def test_errors_that_the_gpu_reports_are_read(nvml: "FakeNvml") -> None:
    said = ask(nvml, "events=1", "xid=31", "ecc=2", "throttle=0x48")

    assert said["GPU-fake-0"] == {**WELL, "ecc_uncorrected": 2, "throttle_mask": 0x48}
    assert said["xids"] == {"GPU-fake-0": [31]}


def test_a_gpu_that_reports_no_errors_says_why(nvml: "FakeNvml") -> None:
    said = ask(nvml, "na=events")

    assert (said["GPU-fake-0"], said["missing"]) == (WELL, {})
    assert (said["xids"], said["deaf"]) == ({"GPU-fake-0": []}, {"GPU-fake-0": "Not Supported"})


def test_throttle_reasons_have_names() -> None:
    assert throttle_names(0) == []
    assert throttle_names(0x1 | 0x4 | 0x40) == ["idle", "power cap", "hardware thermal slowdown"]
    assert throttle_names(1 << 12) == ["bit 0x1000"]


def test_the_wrong_pynvml_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"pynvml/__init__.py": "def nvmlInit(): pass"})

    said = json.loads(python(ASK_GPUS, env={**os.environ, "PYTHONPATH": str(tmp_path)}))
    assert (
        said
        == "the module pynvml is not from NVIDIA: pip uninstall -y pynvml; pip install --force-reinstall nvidia-ml-py"
    )


def test_the_deprecated_pynvml_without_nvidias_is_no_pynvml() -> None:
    said = json.loads(python("import sys; sys.modules['pynvml'] = None\n" + ASK_GPUS))

    assert said == "the package nvidia-ml-py is not installed: pip install nvidia-ml-py"


def test_the_warning_of_the_deprecated_pynvml_beside_nvidias_is_no_error(nvml: "FakeNvml") -> None:
    warn = (
        "import sys, warnings\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pynvml': warnings.warn('The pynvml package is deprecated.', FutureWarning)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )

    assert (
        json.loads(python(warn + ASK_GPUS, "-W", "error", env=nvml.environment))["GPU-fake-0"]
        == WELL
    )


def test_nothing_heavy_is_loaded_before_the_gpus_are_asked() -> None:
    code = "import sys, tuilab.engine.sampler, tuilab.probes.env; print("
    code += "{'torch', 'textual', 'pynvml', 'psutil'} & sys.modules.keys())"

    assert python(code) == "set()\n"


# ---- processor, memory, nodes


def test_this_box_tells_what_it_has() -> None:
    facts = cpu_facts()

    assert facts["usable_cores"] == len(os.sched_getaffinity(0))
    assert 1 <= facts["physical_cores"] <= facts["logical_cores"]
    assert 0 < facts["memory_available_bytes"] < facts["memory_total_bytes"]


def test_what_a_box_does_not_tell_is_left_out_with_the_reason(tmp_path: Path) -> None:
    facts = cpu_facts(tmp_path)

    asked_of_psutil = {"physical_cores", "memory_total_bytes", "memory_available_bytes"}
    assert facts.keys() - asked_of_psutil == {"usable_cores", "load_average", "missing"}
    assert facts["missing"]["model"] == f"No such file or directory: {tmp_path}/proc/cpuinfo"
    assert (
        facts["missing"]["governor"]
        == "no frequency control is visible (usual in virtual machines)"
    )
    assert set(numa_facts(tmp_path)) == {"missing"}


def test_cgroup_v1_limits_are_read(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n",
            "proc/self/mountinfo": "30 25 0:26 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"
            "31 25 0:27 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "4096\n",
        },
    )

    facts = cpu_facts(root)
    assert (facts["quota_cores"], facts["memory_limit_bytes"]) == (1.5, 4096)


def test_the_tightest_cgroup_v2_limit_on_the_way_up_binds(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/job/step\n",
            "proc/self/mountinfo": "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/user.slice/job/step/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user.slice/job/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/user.slice/cpu.max": "400000 100000\n",
            "sys/fs/cgroup/user.slice/memory.max": "max\n",
        },
    )

    facts = cpu_facts(root)
    assert facts["quota_cores"] == 0.5
    assert facts["missing"]["memory_limit_bytes"] == "no limit is set"


def test_a_cgroup_above_the_mount_is_looked_for_at_the_mount(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/../../other\n",
            "proc/self/mountinfo": "30 25 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/memory.max": "123\n",
        },
    )

    assert cpu_facts(root)["memory_limit_bytes"] == 123


def test_cgroup_with_the_same_first_letters_is_not_ours(tmp_path: Path) -> None:
    """The mounted cgroup is /job, and ours is /job2: it is not below the mount."""
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job2\n",
            "proc/self/mountinfo": "30 25 0:26 /job /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/memory.max": "123\n",
            "sys/fs/cgroup/2/memory.max": "7\n",
        },
    )

    assert cpu_facts(root)["memory_limit_bytes"] == 123


def test_nodes_tell_their_cores_and_memory(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "sys/devices/system/node/node10/cpulist": "4-7\n",
            "sys/devices/system/node/node2/cpulist": "0-3\n",
            "sys/devices/system/node/node2/meminfo": "Node 2 MemTotal: 8 kB\nNode 2 MemFree: 2 kB\n",
            "proc/self/status": "Name:\tpython\nMems_allowed_list:\t2,10\n",
        },
    )

    facts = numa_facts(root)
    assert list(facts["nodes"]) == ["2", "10"]
    assert facts["nodes"]["2"] == {
        "cpus": "0-3",
        "memory_total_bytes": 8192,
        "memory_free_bytes": 2048,
    }
    assert facts["nodes"]["10"].keys() == {"cpus", "missing"}
    assert facts["allowed_nodes"] == [2, 10]


def test_a_kernels_list_of_numbers_is_read() -> None:
    assert parse_cpu_list("0-2,8,10-11\n") == [0, 1, 2, 8, 10, 11]
    assert parse_cpu_list("\n") == []


# ---- processes


class Reader:
    """Reads a tree from a process that is no part of it."""

    def __init__(self, top: int) -> None:
        loop = "for _ in sys.stdin: print(json.dumps(tree.read()._asdict()), flush=True)"
        code = f"import json, sys; from tuilab.probes.tree import Tree; tree = Tree({top})\n{loop}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def test_the_time_of_a_child_that_ended_between_two_readings_is_counted() -> None:
    script = 'read start; "$0" -c "sum(range(10**7))"; echo done; read end'
    top = subprocess.Popen(
        ["sh", "-c", f"({script}); true", sys.executable],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert top.stdin is not None and top.stdout is not None
    tree = Reader(top.pid)
    before = until(lambda: usage if (usage := tree.read())["pids"] else None)
    top.stdin.write(b"\n")
    top.stdin.flush()
    top.stdout.readline()

    after = tree.read()
    top.communicate(b"\n")
    tree.process.communicate()
    assert len(before["pids"]) == len(after["pids"]) == 1
    assert after["cpu_percent"] > 0


def test_the_use_of_a_tree_that_is_gone_is_unknown_and_not_zero() -> None:
    top = subprocess.Popen(["sleep", "600"])
    tree = Reader(top.pid)
    tree.read()
    top.kill()
    top.wait()

    usage = tree.read()
    tree.process.communicate()
    assert usage["pids"] == []
    assert math.isnan(usage["cpu_percent"])


# ---- software


def test_only_named_variables_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("OMP_SECRET_TOKEN", "hunter2")
    monkeypatch.setenv("TORCH_API_KEY", "hunter2")

    facts = environment_facts()
    assert facts["variables"]["OMP_NUM_THREADS"] == "2"
    assert "hunter2" not in json.dumps(facts)
    assert "torch" in facts["packages"]


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with one commit."""
    if shutil.which("git") is None:
        pytest.skip("no git")
    folder = write(tmp_path / "checkout", {"train.py": "print(1)\n"})
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")
    return folder


def test_a_checkout_tells_its_commit_and_whether_it_was_changed(checkout: Path) -> None:
    clean = environment_facts(checkout)["checkout"]
    (checkout / "train.py").write_text("print(2)\n")
    dirty = environment_facts(checkout)["checkout"]

    assert len(clean["commit"]) == 40
    assert (clean["is_dirty"], dirty["is_dirty"]) == (False, True)


def test_a_hostile_checkout_runs_nothing(checkout: Path, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    write(
        checkout,
        {
            ".gitattributes": "* filter=evil\n",
            ".git/hooks/post-index-change": f"#!/bin/sh\ntouch {trap}\n",
        },
    )
    (checkout / ".git/hooks/post-index-change").chmod(0o755)
    for key in ("filter.evil.clean", "core.fsmonitor", "core.pager", "diff.external"):
        git(checkout, "config", key, f"touch {trap}; cat")
    os.utime(checkout / "train.py", (1, 1))

    facts = environment_facts(checkout)["checkout"]
    assert not trap.exists()
    assert "would run them" in facts["missing"]["is_dirty"]


def test_a_folder_without_a_commit_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not a git repository" in environment_facts(tmp_path)["missing"]["checkout"]

    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment_facts(tmp_path)["missing"]["checkout"] == "git is not installed"


@pytest.mark.faults
def test_a_git_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"git": "#!/bin/sh\nexec sleep 60\n"})
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    assert environment_facts(tmp_path)["missing"]["checkout"] == "git did not answer in 2 s"


def test_torch_tells_what_it_is() -> None:
    import torch

    facts = torch_facts(torch)
    assert facts["version"] == str(torch.__version__)
    assert facts["threads"] == torch.get_num_threads()
    assert facts["parallel_info"][0] == "ATen/Parallel:"
    assert isinstance(facts["has_amx_tile"], bool)


def test_a_torch_without_the_expected_functions_costs_only_those_facts() -> None:
    class Torch:
        __version__ = "9.9"

    facts = torch_facts(Torch())
    assert facts["version"] == "9.9"
    assert facts.keys() == {"version", "missing"}


def test_the_version_of_cudnn_is_told_without_a_context_on_a_gpu() -> None:
    """`torch.backends.cudnn.version` of newer torches compares it with each GPU, which takes 600 MiB of every one."""

    def version() -> int:
        raise AssertionError("a context was made")

    torch = SimpleNamespace(
        backends=SimpleNamespace(cudnn=SimpleNamespace(version=version)),
        _C=SimpleNamespace(_cudnn=SimpleNamespace(getVersionInt=lambda: 91900)),
    )

    assert torch_facts(torch)["cudnn"] == 91900
    assert (
        torch_facts(SimpleNamespace(_C=SimpleNamespace()))["missing"]["cudnn"]
        == "not in this build of torch"
    )
