"""The device that a call of the lab hands out, and what is recorded of it."""

import os
from pathlib import Path

import torch

from tuilab.catalogue.params import is_gpu
from tuilab.lab.choice.chosen import ANY, Chosen, choose
from tuilab.lab.device import devices, torch_gpus
from tuilab.lab.given import told, words
from tuilab.record.events import EnvironmentRecorded
from tuilab.record.gpus.gpu_of_run import gpu_of_run
from tuilab.record.journal.writer import Writer


def hand_out(wanted: str, run_dir: Path, journal: Writer, *, is_rank: bool) -> torch.device:
    """Return the device for what a scenario wants, after it is recorded which one that is and why; BoxLacks without one."""
    if words("wanted", wanted) not in ("cpu", *ANY) and not is_gpu(wanted):
        raise ValueError(f"wanted takes auto, cpu, cuda or cuda:N, not {told(wanted)}")
    rank = int(os.environ["LOCAL_RANK"]) if is_rank else None
    before = gpu_of_run(run_dir) if wanted in ANY and rank is None else ""
    chosen = choose(wanted, before, rank=rank)
    journal.append(EnvironmentRecorded(part="device", facts=_facts(wanted, chosen, rank)))
    if chosen.device.type == "cuda":
        facts = {**torch_gpus.facts(), "chosen": devices.door(chosen.device).uuid}
        journal.append(EnvironmentRecorded(part="cuda", facts=facts))
    return chosen.device


def _facts(wanted: str, chosen: Chosen, rank: int | None) -> dict[str, str]:
    found = {"wanted": wanted, "chosen": str(chosen.device), "why": chosen.why, "notice": chosen.notice}
    return found if rank is None else {**found, "rank": str(rank)}
