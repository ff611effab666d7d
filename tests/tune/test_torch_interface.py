"""What the plan assumes about torch is true for the installed torch."""

import json
import subprocess
import sys

import pytest

from tuilab.commands.tune.planning import ddp, kernels, loader, optimizer

QUESTIONS = """
import inspect, json, torch
from torch.nn.attention import SDPBackend
from torch.nn.parallel import DistributedDataParallel
from torch.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
)
from torch.utils.data import DataLoader

def names(kind):
    return list(inspect.signature(kind).parameters)

answers = {
    "loader": names(DataLoader),
    "ddp": names(DistributedDataParallel),
    "optimizers": {
        name: names(kind)
        for name, kind in vars(torch.optim).items()
        if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer) and name != "Optimizer"
    },
    "fused": _get_fused_kernels_supported_devices(),
    "foreach": _get_foreach_kernels_supported_devices(),
    "backends": [name for name in vars(SDPBackend) if name.isupper()],
    "fp32_precision": hasattr(torch.backends.cuda.matmul, "fp32_precision"),
    "benchmark": hasattr(torch.backends.cudnn, "benchmark"),
}
print(json.dumps(answers))
"""


@pytest.mark.real_torch
def test_plan_knows_the_arguments_and_devices_of_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUESTIONS], capture_output=True, text=True, check=True
    )
    answers = json.loads(done.stdout)

    assert answers["loader"].index("num_workers") == loader.POSITIONAL
    later = {"num_workers", "pin_memory", "prefetch_factor", "persistent_workers"}
    assert later.isdisjoint(answers["loader"][: loader.POSITIONAL])
    assert answers["ddp"].index("bucket_cap_mb") == ddp.POSITIONAL
    assert answers["optimizers"]["AdamW"]
    for names in answers["optimizers"].values():
        assert {"fused", "foreach"}.isdisjoint(names[: optimizer.POSITIONAL])
    assert set(optimizer.FUSED_DEVICES) <= set(answers["fused"])
    assert set(optimizer.FOREACH_DEVICES) <= set(answers["foreach"])
    assert set(kernels.BACKENDS.values()) <= set(answers["backends"])
    assert answers["fp32_precision"]
    assert answers["benchmark"]
