"""Which GPU is tried first, and why that one."""

from collections.abc import Iterator

from tuilab.errors import BoxLacks
from tuilab.lab.device import devices, torch_gpus
from tuilab.lab.device.cuda import Cuda
from tuilab.probes import NotKnown
from tuilab.probes.gpu.free_memory import free_bytes
from tuilab.record.gpus.raced_gpu import nvml_uuid
from tuilab.text import plural
from tuilab.words import size


def asked_for(wanted: str) -> Iterator[tuple[Cuda, str]]:
    """Yield the GPU that was named, as `cuda:3`; BoxLacks where none has that number."""
    number, count = int(wanted.removeprefix("cuda:")), torch_gpus.count()
    if number >= count:
        last = f", cuda:0 to cuda:{count - 1}" if count > 1 else ", cuda:0"
        raise BoxLacks(f"{wanted}: torch sees {plural(count, 'GPU')}{last}")
    yield devices.gpu(number), "asked for"


def of_rank(rank: int) -> Cuda:
    """Return the GPU of a rank, which has its number; BoxLacks where there are more ranks than GPUs."""
    if rank >= (count := torch_gpus.count()):
        seen = plural(count, "GPU")
        raise BoxLacks(f"a GPU for local rank {rank}: torch sees {seen}; start one rank per GPU (--nproc-per-node {count})")
    return devices.gpu(rank)


def in_order(before: str) -> Iterator[tuple[Cuda, str]]:
    """Yield each GPU and why it comes next: the one that the run has used, then that with the most free memory."""
    gpus = [devices.gpu(number) for number in range(torch_gpus.count())]
    if len(gpus) == 1:
        yield gpus[0], "the only GPU that torch sees"
        return
    used = [gpu for gpu in gpus if before and gpu.uuid == before]
    yield from ((gpu, "the GPU that this run used before") for gpu in used)
    rest = [gpu for gpu in gpus if gpu not in used]
    try:
        free = free_bytes()
    except NotKnown as problem:
        yield from ((gpu, f"the first of {len(gpus)} GPUs; free memory unknown: {problem}") for gpu in rest)
        return
    known = {gpu: free.get(nvml_uuid(gpu.uuid, free), -1) for gpu in rest}
    for gpu in sorted(rest, key=lambda gpu: (-known[gpu], gpu.index)):
        amount = f"{size(known[gpu])} free" if known[gpu] >= 0 else "free memory unknown"
        yield gpu, f"the GPU with the most free memory of {len(gpus)}: {amount}"
