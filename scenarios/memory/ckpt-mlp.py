"""Checkpointing single layers saved nothing: the notebook still held the old output.

A checkpoint drops what a layer saves for its backward, all but the layer's input, and computes it again when backward comes.
The source wraps the middle Linears of an MLP one by one, reads a lower peak with checkpoints than without, and credits them.
But a Linear saves nothing besides its input; that is the output of the ReLU before it, and the ReLU saves its output anyway.
Both models save the same bytes.

The difference comes from the order of two notebook cells. While the second cell computes, the name `output` still holds the
result of the first; that holds its graph, and the graph holds old activations, old input and old weights. Swap the cells, and
it is checkpointing that "costs" memory. Compare peaks in a fresh process each, or in both orders.

Bytes are counted at the dispatcher, so a CPU shows what a GPU's allocator would hand out. On top of them comes the workspace
that cuBLAS takes with the first matmul: 8,519,680 bytes on the source's GPU, the default CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8
(2 buffers of 4096 KiB and 8 of 16), a constant here; Hopper and Blackwell take 32 MiB. A GPU's allocator says what was
requested of it, too; what it gave out would be no measure, as that depends on which blocks were free.
## Predict
The cell without checkpoints runs first and reads a peak of 19.67 MB. How many MB does the cell with checkpoints read after it?
## Look for
- [alone] alone, the model peaks at 19.67 MB with checkpoints and at 19.67 MB without
- [second-cell] whichever cell comes second in the notebook reads 30.34 MB
- [excess] the excess of the second cell is the 10,667,008 bytes that the first cell's names keep alive
- [saved-bytes] the model saves 7,864,320 bytes for backward, with checkpoints and without
- [gpu-peak] the GPU's own allocator is asked for the same peak with checkpoints and without
## Try next
`--tidy`: the first cell's names are deleted before the second, and both orders read 19.67.
refutes: second-cell, excess
`--wrap middle`: one checkpoint around both layers has a ReLU output between them to drop, and the saved bytes differ at last,
by 1 MiB. The peak of a forward alone is 19.67 MB still: it is reached inside the checkpoint, before anything is dropped. What
the second cell reads now depends on which came first: 29.29 MB after the one with checkpoints.
refutes: second-cell, excess, saved-bytes
## Source
"Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Activation checkpointing": layer
sizes, cells and readings. Its `hidden_sizes[-1]` is the width of a layer that is never built; the width 128 twice hides it.
Ours: the count of bytes, both orders and the explanation.
"""

from typing import Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tuilab import Lab

CUBLAS_WORKSPACE = 2 * 4096 * 1024 + 8 * 16 * 1024  # bytes, :4096:2:16:8
BATCH = 1024  # rows of the input, the source's
ORDERS = {"ckpt, plain": (True, False), "plain, ckpt": (False, True)}


class MLP(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        layers = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU())
        self.first, self.last = nn.Linear(1024, 512), nn.Linear(128, 10)
        self.middle = layers if wrap == "linear" else nn.Sequential(layers)

    def forward(self, x, has_checkpoints):
        x = torch.relu(self.first(x))  # (batch, 1024) -> (batch, 512)
        for layer in self.middle:
            is_wrapped = has_checkpoints and not isinstance(layer, nn.ReLU)
            x = checkpoint(layer, x, use_reentrant=False) if is_wrapped else layer(x)
        return self.last(x)  # (batch, 128) -> (batch, 10)


def run_cell(names, memory, has_checkpoints, wrap, device):
    """A cell of the notebook; `names` are its variables, and an old value lives until the new one takes the name."""
    with device:
        names["model"] = MLP(wrap)
        names["x"] = torch.randn(BATCH, 1024)
    memory.reset_peak()
    names["output"] = names["model"](names["x"], has_checkpoints)
    return memory.peak_bytes


def run(
    lab: Lab,
    wrap: Literal["linear", "middle"] = "linear",  # what a checkpoint goes around
    tidy: bool = False,  # delete the first cell's names before the second
) -> None:
    where = lab.device()

    nn.Linear(8, 8).to(where)(torch.zeros(8, 8, device=where))  # cuBLAS takes its workspace, and no arm has to
    alone, saved, requested = [], [], []
    for arm, has_checkpoints in (("ckpt", True), ("plain", False)):
        lab.stage(f"one cell, alone: {arm}")
        with lab.memory("alone", arm=arm, timeline=True) as memory:
            alone.append(run_cell({}, memory, has_checkpoints, wrap, where))
        saved.append(memory.saved_bytes)
        requested.append(memory.cuda_requested_bytes)

    second, kept = [], []
    for arm, cells in ORDERS.items():
        lab.stage(f"two cells: {arm}")
        names = {}
        with lab.memory("notebook", arm=arm, timeline=True) as memory:
            for number, has_checkpoints in enumerate(cells, 1):
                kept.append(memory.live_bytes)
                peak = run_cell(names, memory, has_checkpoints, wrap, where)
                lab.log(number, arm=arm, reading_mb=in_mb(peak))
                if tidy:
                    names.clear()
        second.append(peak)

    excess = [peak - alone[0] for peak in second]
    alone, second = [*map(in_mb, alone)], [*map(in_mb, second)]
    lab.claim("alone", alone, equals=[19.67] * 2)
    lab.claim("second-cell", second, equals=[30.34] * 2, answers=second[1])  # the cell with checkpoints
    lab.claim("excess", excess + kept[1::2], equals=[10_667_008] * 4)
    lab.claim("saved-bytes", saved, equals=[7_864_320] * 2)
    ckpt, plain = requested
    lacks = "a CUDA device" if where.type == "cpu" else "" if plain else "torch's own allocator on the GPU"
    lab.claim("gpu-peak", ckpt, equals=plain, lacks=lacks)


def in_mb(peak):
    return round((peak + CUBLAS_WORKSPACE) / 1e6, 2)
