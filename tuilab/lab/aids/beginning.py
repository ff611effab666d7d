"""What every process of a scenario begins with: one thread of torch, and random numbers that are the same every time."""

import os
import random
import sys

import torch

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # in which the user, or an arm, says how many
_SEED = 0


def begin(*, is_placed: bool) -> None:
    """Let torch use one thread, as with more a busy box waits for itself, and seed every generator that is loaded.

    Of a process that was placed on cores by its prefix (numactl, taskset) the threads stay those that torch finds for it.
    """
    if not is_placed and not any(os.environ.get(name) for name in _THREADS):
        torch.set_num_threads(1)
    torch.manual_seed(_SEED)
    random.seed(_SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(_SEED)
