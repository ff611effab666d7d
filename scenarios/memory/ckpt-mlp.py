"""Put checkpoints around blocks, not single layers, and compare in fresh processes.

A checkpoint drops the tensors that its layers save for backward. It keeps its input, and computes
the rest again in backward. The source wraps each middle Linear of an MLP in a checkpoint. One cell
of its notebook runs the model with checkpoints, and the next cell runs it without. The second cell
reads a higher peak. The source concludes that the checkpoints save memory.

But these checkpoints have nothing to drop. A Linear saves only its input, and here the input is the
output of a ReLU, which the ReLU saves anyway. The model saves the same bytes with and without
checkpoints.

The difference comes from the order of the cells. While the second cell computes, the name `output`
still refers to the result of the first cell. The result keeps its graph alive, and the graph keeps
the old activations, the old input and the old weights. If the cells change places, the cell with
checkpoints reads the higher peak.

The lesson counts the bytes of each operator, so even a CPU shows the requests that the allocator of
a GPU would get. It adds the workspace that cuBLAS gets with the first matrix product: 8,519,680
bytes on the GPU of the source. The default of torch there was CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8,
which is 2 buffers of 4096 KiB and 8 of 16 KiB. On Hopper and Blackwell the workspace has 32 MiB.

In practice: wrap a whole block, such as a transformer layer, so that the checkpoint has activations
inside to drop. Measure each variant in a fresh process. In a notebook, `del` the model, the input
and the output of the last measurement, then call `torch.cuda.reset_peak_memory_stats()`.
## Predict
The cell with checkpoints reads a peak of 19.67 MB if it runs first. How many MB does it read if it
runs second?
## Look for
- [alone] alone, the MLP of the source peaks at 19.67 MB with checkpoints around its middle Linears
  and at 19.67 MB without
- [second-cell] if both variants of the MLP run in one notebook, the second cell reads a peak of
  30.34 MB, with checkpoints or without
- [excess] the variables of the first cell keep 10,667,008 bytes alive, and the peak of the second
  cell is higher by as many bytes
- [saved-bytes] the MLP of the source saves 7,864,320 bytes for backward, with checkpoints around
  its middle Linears and without
- [gpu-peak] on a GPU the requests of the MLP have the same peak with checkpoints around its middle
  Linears and without
## Try next
`--tidy`: the variables of the first cell are deleted before the second, and both orders read 19.67
MB. refutes: second-cell, excess
`--wrap middle`: a checkpoint around both Linears can drop the output of the ReLU between them, and
the model saves 1 MiB less. The peak of a forward is still 19.67 MB, because it is reached inside
the checkpoint. After a cell with checkpoints, the second cell reads 29.29 MB. refutes: second-cell,
excess, saved-bytes
## Source
"Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Activation
checkpointing": the sizes, the cells and the readings. Its `hidden_sizes[-1]` is the width of a
layer that is never built; this does not show because two widths are 128. Ours: the bytes, both
orders and the explanation.
"""

from typing import Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tuilab import Lab

BATCH = 1024  # rows of the input, as in the source
CUBLAS_WORKSPACE = 2 * 4096 * 1024 + 8 * 16 * 1024  # bytes of :4096:2:16:8
ARMS = {"ckpt": True, "plain": False}  # has checkpoints
ORDERS = {"ckpt, plain": (True, False), "plain, ckpt": (False, True)}


class MLP(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.wrap = wrap
        self.first = nn.Linear(1024, 512)
        self.middle = nn.Sequential(
            nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU()
        )
        self.last = nn.Linear(128, 10)

    def forward(self, x, has_checkpoints):  # (batch, 1024) -> (batch, 10)
        x = torch.relu(self.first(x))  # (batch, 512)
        if not has_checkpoints:
            x = self.middle(x)  # (batch, 128)
        elif self.wrap == "middle":
            x = checkpoint(self.middle, x, use_reentrant=False)
        else:
            x = self.wrap_each_linear(x)
        return self.last(x)

    def wrap_each_linear(self, x):  # (batch, 512) -> (batch, 128)
        for layer in self.middle:
            if isinstance(layer, nn.Linear):
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        return x


def in_mb(peak_bytes):
    """Return the peak as the source reads it on its GPU."""
    return round((peak_bytes + CUBLAS_WORKSPACE) / 1e6, 2)


def run_cell(names, memory, has_checkpoints, wrap, device):
    """Run a cell of the notebook, and return its peak.

    `names` are the variables of the notebook. An old value is alive until a new value is assigned.
    """
    with device:
        names["model"] = MLP(wrap)
        names["x"] = torch.randn(BATCH, 1024)
    memory.reset_peak()
    names["output"] = names["model"](names["x"], has_checkpoints)
    return memory.peak_bytes


def take_cublas_workspace(device):
    """Run one product, so that no arm takes the workspace."""
    layer = nn.Linear(8, 8).to(device)
    layer(torch.zeros(8, 8, device=device))


def measure_alone(lab, wrap, device):
    """Return the peak of each arm in an empty notebook."""
    peaks = []
    saved = []
    requested = []
    for arm, has_checkpoints in ARMS.items():
        lab.stage(f"one cell, alone: {arm}")
        with lab.memory("alone", arm=arm, timeline=True) as memory:
            peaks.append(run_cell({}, memory, has_checkpoints, wrap, device))
        saved.append(memory.saved_bytes)
        requested.append(memory.cuda_requested_bytes)
    lab.claim("alone", [in_mb(peaks[0]), in_mb(peaks[1])], equals=[19.67, 19.67])
    lab.claim("saved-bytes", saved, equals=[7_864_320, 7_864_320])
    claim_gpu_peak(lab, requested, device)
    return peaks


def claim_gpu_peak(lab, requested, device):
    """Claim the peak of requests: given out bytes depend on the free blocks."""
    with_checkpoints, without = requested
    lacks = ""
    if device.type == "cpu":
        lacks = "a CUDA device"
    elif not without:
        lacks = "torch's own allocator on the GPU"
    lab.claim("gpu-peak", with_checkpoints, equals=without, lacks=lacks)


def measure_notebook(lab, wrap, tidy, device):
    """Return the peak of the second cell in each order, and the bytes alive before it."""
    peaks = []
    alive = []
    for arm, cells in ORDERS.items():
        lab.stage(f"two cells: {arm}")
        names = {}
        with lab.memory("notebook", arm=arm, timeline=True) as memory:
            peak = run_cell(names, memory, cells[0], wrap, device)
            lab.log(1, arm=arm, reading_mb=in_mb(peak))
            if tidy:
                names.clear()
            alive.append(memory.live_bytes)
            peak = run_cell(names, memory, cells[1], wrap, device)
            lab.log(2, arm=arm, reading_mb=in_mb(peak))
        peaks.append(peak)
    return peaks, alive


def run(
    lab: Lab,
    wrap: Literal["linear", "middle"] = "linear",  # each Linear, or both with their ReLUs
    tidy: bool = False,  # delete the names of the first cell before the second
) -> None:
    device = lab.device()
    lab.axes("live_bytes", x="tensors created and freed", y="memory in use")
    lab.axes("reading_mb", x="cell", y="peak, MB")
    take_cublas_workspace(device)
    alone = measure_alone(lab, wrap, device)
    peaks, alive = measure_notebook(lab, wrap, tidy, device)
    readings = [in_mb(peaks[0]), in_mb(peaks[1])]
    with_checkpoints = readings[1]  # in the order "plain, ckpt"
    lab.claim("second-cell", readings, equals=[30.34, 30.34], answers=with_checkpoints)
    excess = [peaks[0] - alone[0], peaks[1] - alone[0]]
    lab.claim("excess", excess + alive, equals=[10_667_008] * 4)
