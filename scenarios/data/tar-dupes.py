"""Every worker reads the whole stream: with 4 workers each item comes four times, until they share it out.

An IterableDataset has no index by which the main process could divide the work. Each worker gets a copy and starts at the
beginning; `get_worker_info()` tells it its number. Nothing complains: an epoch only takes four times as many steps. As batches
come from the workers in turn, the copies of a batch come one after another, and training takes the same step four times.
There are three ways to share out: of several files every n-th for each worker; of one file every n-th member, where each worker
still goes through all headers, which is slow over a network; of one file a part, by an index of where items begin that is made
once, so that nothing else is read. tfrecord does the last. The sharding of the source does not work as printed: it asks for
`worker_id`, which is called `id`, and without workers, where there is no worker info, it raises as well.
## Predict
One archive, 4 workers, each takes every fourth item: how many times as many bytes of headers do they read as one reader?
## Look for
- [copies] with 0, 1, 2 and 4 workers 64, 64, 128 and 256 items arrive
- [again] with 4 workers each batch comes four times in a row
- [once] shared out in any of the three ways, each item arrives once, with every number of workers
- [headers] 4 workers that take every n-th member read at least 3.5 times as many bytes of headers as one reader
- [bytes] 4 workers with an index read the bytes of the items once, and no others
- [printed] as printed, with a file for each of 4 workers, the sharding of the source raises an AttributeError
## Try next
`--forget`: who takes every n-th member does not ask for its number, and takes all. refutes: once
## Source
EffectivePyTorch, chapter "Building efficient custom data loaders", https://github.com/vahidk/EffectivePyTorch: copies, and a
file for each worker. Ours: order, one file, bytes.
"""

import io
import tarfile
import tempfile
import warnings
from functools import partial
from itertools import chain, islice
from pathlib import Path

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from tuilab import Lab

ITEMS, SIZE, WORKERS = 64, 2048, (0, 1, 2, 4)


class Stream(IterableDataset):
    def __init__(self, read):
        self.read = read

    def __iter__(self):
        worker = get_worker_info()  # None in the main process
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        yield from ((item, number, count) for item, count in self.read(number, workers))


class Counting(io.FileIO):
    count = 0  # bytes read

    def read(self, size=-1):
        content = super().read(size)
        self.count += len(content)
        return content


def pack(path, numbers):
    with tarfile.open(path, "w") as archive:
        for number in numbers:
            member = tarfile.TarInfo(str(number))
            member.size = SIZE
            archive.addfile(member, io.BytesIO(bytes([number]) * SIZE))
    return path


def unpack(path, first=0, step=1):
    with Counting(path) as file, tarfile.open(fileobj=file) as archive:
        yield from ((archive.extractfile(member).read()[0], file.count) for member in islice(archive, first, None, step))


def unpack_part(path, index, number, workers):  # index: where each item begins
    with Counting(path) as file:
        for place in index[ITEMS * number // workers : ITEMS * (number + 1) // workers]:
            file.seek(place)
            yield file.read(SIZE)[0], file.count


def make_loader(read, workers):
    context = "fork" if workers else None
    return DataLoader(Stream(read), 8, num_workers=workers, collate_fn=list, multiprocessing_context=context)


def run(
    lab: Lab,
    forget: bool = False,  # of one file, take every member
) -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores, on purpose
    lab.axes("arrived", x="workers", y="items that arrive in an epoch")
    found = {}  # for each number of workers, items with the number of the worker, and the bytes that it has read
    with tempfile.TemporaryDirectory() as folder:
        whole = pack(Path(folder, "whole.tar"), range(ITEMS))
        parts = [pack(Path(folder, f"{k}.tar"), range(k, ITEMS, 4)) for k in range(4)]
        with tarfile.open(whole) as archive:
            index = [member.offset_data for member in archive]
        arms = {
            "copies": lambda first, step: unpack(whole),
            "by file": lambda first, step: chain.from_iterable(map(unpack, parts[first::step])),
            "by member": lambda first, step: unpack(whole) if forget else unpack(whole, first, step),
            "by index": partial(unpack_part, whole, index),
        }
        for workers in lab.sweep(WORKERS, "workers"):
            for arm, read in arms.items():
                found[arm, workers] = [*chain.from_iterable(make_loader(read, workers))]
                lab.log(workers, arm=arm, arrived=len(found[arm, workers]))
        raised = lab.raises(list, make_loader(lambda first, step: unpack(parts[get_worker_info().worker_id]), 4))
    items = {way: [item for item, *_ in arrived] for way, arrived in found.items()}
    seen = [[items["copies", workers].count(item) for item in range(ITEMS)] for workers in WORKERS for _ in range(4)]
    lab.image("copies: workers x items", seen)
    lab.claim("copies", [len(items["copies", workers]) for workers in WORKERS], equals=[64, 64, 128, 256])
    lab.claim("again", all(items["copies", 4][k : k + 32] == items["copies", 4][k : k + 8] * 4 for k in range(0, 256, 32)))
    shared = [arm for arm in arms if arm != "copies"]
    once = [all(sorted(items[arm, workers]) == [*range(ITEMS)] for workers in WORKERS) for arm in shared]
    lab.claim("once", once, equals=[True] * 3)
    read = {way: sum({worker: count for _, worker, count in arrived}.values()) for way, arrived in found.items()}
    lab.bars("what 4 workers read", {arm: read[arm, 4] for arm in arms}, unit="B")
    lab.claim("headers", (read["by member", 4] - ITEMS * SIZE) / (read["copies", 1] - ITEMS * SIZE), at_least=3.5, answers=True)
    lab.claim("bytes", read["by index", 4], equals=ITEMS * SIZE, unit="B")
    lab.claim("printed", raised.split(":")[0], equals="AttributeError")
