"""List the treatments that a tuning knows: the catalogue.

The process of the script applies a treatment (`tuilab/commands/watcher/_tuilab_treat/`). Some
treatments are variables or words before the command; the process then reports whether they worked.
"""

from typing import NamedTuple

from tuilab.record.events import Learning

IDEAL_LOADER = "ideal-loader"


class Treatment(NamedTuple):
    """A change to a training that a tuning can try."""

    title: str  # a noun; a treatment with a value has a title of its own for each value
    learns: Learning  # how it may change what the script learns
    lesson: str  # the id of the scenario that explains it
    memory: str  # what it costs in memory
    group: str = ""  # only one treatment of a group can win


# In the order in which a combination names its parts: first what changes the data, then the model,
# the optimizer and the process, and last what surrounds the process.
CATALOGUE: dict[str, Treatment] = {
    IDEAL_LOADER: Treatment("ideal loader", "bound", "loader-workers", "the batches it keeps"),
    "workers": Treatment(
        "DataLoader with more workers",
        "same",
        "loader-workers",
        "each worker has memory of its own, and up to 2 batches ahead",
        "loader",
    ),
    "persistent": Treatment(
        "DataLoader with persistent workers",
        "same",
        "loader-persist",
        "the workers keep their memory between epochs",
    ),
    "prefetch": Treatment(
        "DataLoader that prefetches more batches",
        "same",
        "loader-persist",
        "more batches wait in memory",
    ),
    "pin": Treatment(
        "DataLoader with pinned memory",
        "same",
        "pin-memory",
        "the batches that wait cannot be swapped out",
    ),
    "channels-last": Treatment("channels_last format", "rounding", "channels-last", "none"),
    "tf32": Treatment("TF32 for matrix products", "other rounding", "tf32", "none"),
    "bf16": Treatment(
        "bfloat16 autocast",
        "other rounding",
        "linear-amp",
        "usually less: many activations take half",
    ),
    "cudnn-benchmark": Treatment(
        "cudnn.benchmark", "rounding", "conv-algos", "workspaces of the fastest algorithms"
    ),
    "attention": Treatment(
        "other back end of attention",
        "rounding",
        "sdpa-backends",
        "depends on the back end",
        "attention",
    ),
    "set-to-none": Treatment(
        "zero_grad with set_to_none=True", "same", "zero-grad", "less: gradients are given back"
    ),
    "fused": Treatment("fused optimizer", "rounding", "fuse-optimizer", "none", "optimizer"),
    "foreach": Treatment(
        "foreach optimizer",
        "rounding",
        "fuse-optimizer",
        "about as much as all parameters, during a step of the optimizer",
        "optimizer",
    ),
    "compile": Treatment(
        "torch.compile",
        "rounding",
        "compile-start",
        "usually less: fused operators keep fewer activations",
        "compile",
    ),
    "ddp-view": Treatment(
        "DDP with gradients as views of its buckets",
        "same",
        "bucket-order",
        "less: one copy of the gradients",
    ),
    "ddp-static": Treatment("DDP with a static graph", "same", "bucket-order", "none"),
    "ddp-bucket": Treatment(
        "DDP with another bucket size", "rounding", "bucket-order", "larger or smaller buckets"
    ),
    "gc-freeze": Treatment(
        "frozen garbage collector",
        "same",
        "gc-pause",
        "objects in cycles are never freed, so memory may grow",
    ),
    "threads": Treatment(
        "computing with another number of threads", "rounding", "omp-threads", "none", "threads"
    ),
    "numa": Treatment(
        "binding to one memory node", "same", "numa", "only the memory of that node can be used"
    ),
    "expandable-segments": Treatment(
        "allocator with expandable segments", "same", "prealloc", "usually less: less fragmentation"
    ),
    "jemalloc": Treatment(
        "jemalloc", "same", "malloc", "depends on how it keeps freed memory", "allocator"
    ),
    "tcmalloc": Treatment("tcmalloc", "same", "malloc", "it keeps freed memory", "allocator"),
}
