"""Run all checks of one GPU in two processes: one uses the GPU, the other asks NVML meanwhile.

Either may hang or crash: a check without an answer has the reason in one sentence.
"""

import contextlib
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tuilab.doctor import DoctorFinding, failed, gpu_speed, gpu_state, own_process, unknown
from tuilab.doctor.ask_all import PendingAnswers, answered, parse
from tuilab.doctor.facts import Fact
from tuilab.errors import BoxLacks

PATIENCE_S = 60.0  # for each check; the first one includes the start of torch and of the driver
# In the order in which they are shown.
IDS = {"gpu_speed": list(gpu_speed.CHECKS), "gpu_state": gpu_state.IDS}


@dataclass
class _Watcher:
    """Starts the process that asks NVML, as soon as it is known which GPU is used."""

    root: Path
    gpu: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def read_gpu(self, output: bytes) -> None:
        """Take the GPU from the output of the other process, and start the process for it."""
        if self.gpu:
            return
        self.gpu = _read_first_object(output)
        if "uuid" in self.gpu:
            arguments = [self.gpu["uuid"], str(self.root)]
            with contextlib.suppress(OSError):
                self.process = own_process.start(
                    "tuilab.doctor.gpu_state", arguments, subprocess.PIPE
                )

    def ask(self, patience_s: float) -> tuple[bytes, str]:
        """Let the process answer, as the GPU is idle again; return its output and how it ended."""
        if self.process is None:
            return b"", "cannot start a process that asks NVML"
        assert self.process.stdin is not None
        self.process.stdin.close()
        return own_process.to_its_end(self.process, patience_s)


def ask_about(
    device: str, root: Path = Path("/"), patience_s: float = PATIENCE_S
) -> PendingAnswers:
    """Return the findings about `cuda:1`, or for `cuda` about the GPU with the most free memory.

    Raises BoxLacks with the reason if there is no such GPU.
    """
    watcher = _Watcher(root)
    speed_output, speed_end = own_process.hear(
        "tuilab.doctor.gpu_speed", [device], patience_s, watcher.read_gpu
    )
    if "uuid" not in watcher.gpu:
        no_answer = f"a GPU that answers: torch was asked for a GPU, but {speed_end}"
        raise BoxLacks(watcher.gpu.get("lacks") or no_answer)
    state_output, state_end = watcher.ask(patience_s)
    groups = {
        "gpu_speed": answered(_complete("gpu_speed", speed_output, speed_end)),
        "gpu_state": answered(_complete("gpu_state", state_output, state_end)),
    }
    names = [*IDS["gpu_speed"], *IDS["gpu_state"]]
    return PendingAnswers(answered(_facts(watcher.gpu)), groups, names)


def _complete(group: str, output: bytes, reason: str) -> dict[str, DoctorFinding]:
    """Return a finding for every check; the first without an answer is the one that went wrong."""
    findings = parse(output)
    missing = [name for name in IDS[group] if name not in findings]
    for name in missing:
        findings[name] = unknown(f"not checked, because {missing[0]} failed to answer")
    if missing:
        step = (
            "look for the error with `nvidia-smi -q` and `sudo dmesg | grep -i xid`; ask the"
            " administrator of this machine"
        )
        if group == "gpu_speed":
            findings[missing[0]] = failed(reason, step)
        else:
            findings[missing[0]] = unknown(reason, step)
    return {name: findings[name] for name in IDS[group]}


def _read_first_object(output: bytes) -> dict[str, str]:
    """Return the first line of JSON that holds an object."""
    for line in output.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError):
            values = json.loads(line)
            if isinstance(values, dict):
                return {str(name): str(value) for name, value in values.items()}
    return {}


def _facts(gpu: Mapping[str, str]) -> list[Fact]:
    """Return the facts about the chosen GPU, with the reason of its choice as a note."""
    device = f"{gpu['device']} {gpu['name']}"
    return [
        Fact("GPU", "device", device, note=gpu["why"]),
        Fact("GPU", "UUID", gpu["uuid"], "this version of torch does not report it"),
    ]
