"""Define the facts about a training that the watching process of a tuning reports.

The process sends them as JSON. A fact that it could not find out keeps its default, which claims
nothing. The script may have put anything into a text, so a text must be shown with `show`.
"""

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class ScriptPlace(msgspec.Struct, kw_only=True, frozen=True):
    """The line of the user's own code that made something; empty if there is none."""

    file: str = ""
    line: Count = 0


class LoaderFacts(ScriptPlace, kw_only=True, frozen=True):
    """A DataLoader whose data the training used."""

    kind: str = ""  # the class of its dataset
    workers: Count = 0
    batch_size: Count | None = None
    pins: bool = False
    keeps_workers: bool = False  # persistent_workers
    prefetch: Count | None = None
    is_iterable: bool = False  # an IterableDataset: each worker would yield all items
    is_in_memory: bool = False  # a TensorDataset or subsets of one
    loops: Count = 0  # how often it was iterated
    batches: Count = 0  # that the training took from it


class OptimizerFacts(ScriptPlace, kw_only=True, frozen=True):
    """An optimizer that made a step."""

    kind: str = ""  # its class
    tensors: Count = 0  # parameters
    numbers: Count = 0  # of all parameters
    device: str = ""  # the type of device, such as "cuda"
    is_fused: bool = False
    is_foreach: bool = False  # whether foreach=True was given
    takes_fused: bool = False
    takes_foreach: bool = False
    # calls of zero_grad with set_to_none=False: memory is filled with zeros instead of given back
    fills_with_zeros: bool = False


class RootFacts(msgspec.Struct, kw_only=True, frozen=True):
    """An outermost module that the training called with gradients."""

    kind: str = ""  # its class
    numbers: Count = 0  # of its parameters
    dtype: str = ""  # of its parameters, such as "float32"
    device: str = ""
    is_compiled: bool = False
    is_autocast: bool = False  # autocast was on while it ran
    autocast_dtype: str = ""
    convolutions: Count = 0  # Conv2d and ConvTranspose2d
    are_channels_last: bool = False
    attentions: Count = 0  # calls of scaled_dot_product_attention in one step


class DdpFacts(ScriptPlace, kw_only=True, frozen=True):
    """A module in DistributedDataParallel."""

    has_bucket_view: bool = False
    is_static: bool = False
    bucket_mb: float = 0.0
    finds_unused: bool = False


class SettingFacts(msgspec.Struct, kw_only=True, frozen=True):
    """Settings of the whole process."""

    torch: str = ""  # its version
    has_cuda: bool = False  # whether a GPU is used
    capability: str = ""  # of that GPU, such as "9.0"
    threads: Count = 0  # of torch
    cores: Count = 0  # that the process may use
    matmul_precision: str = ""  # torch.get_float32_matmul_precision()
    cudnn_benchmark: bool = False
    is_deterministic: bool = False
    world: Count = 1  # ranks
    collections: Count = 0  # of garbage, between the first and the last step
    collecting_ns: Count = 0


class ScriptFacts(msgspec.Struct, kw_only=True, frozen=True):
    """All facts about the training in one process."""

    loaders: list[LoaderFacts] = []
    optimizers: list[OptimizerFacts] = []
    roots: list[RootFacts] = []
    ddp: list[DdpFacts] = []
    settings: SettingFacts = SettingFacts()
