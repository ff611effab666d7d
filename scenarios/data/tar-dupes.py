"""Share an IterableDataset out to its workers, or each worker delivers all items.

An IterableDataset has no index by which the main process could divide the work. Each worker gets a
copy of the dataset and starts at the beginning. With 4 workers an epoch has four times as many
steps, and nothing warns. Batches come from the workers in turn. So the copies of a batch follow
each other, and training takes the same step four times.

`get_worker_info()` gives the number of the worker and how many there are. With it a dataset can
share out its items in three ways. Each worker takes every n-th of several files. Or each worker
takes every n-th member of one file, and still reads all headers, which is slow over a network. Or
each worker takes a part of one file, by an index of where the items begin. The index is made once,
and nothing else is read. tfrecord works with an index. `worker_init_fn` is a fourth way: it is
called in each worker and can change the copy there. With 0 workers it is never called.

The source gives each worker a file of its own. Its listing fails as printed: it reads
`worker_info.worker_id`, and the attribute is `id`. It raises a ValueError unless there are as many
workers as files. So its dataset does not work with 0 workers either, where you would debug it.

In practice: store the data in several files, at least one for each worker. In `__iter__` call
`get_worker_info()` and read `files[worker.id :: worker.num_workers]`, or all files if it is None.
With several ranks, use `rank * num_workers + id` of `world_size * num_workers`.
## Predict
4 workers read one archive, and each takes every fourth item. How many times as many bytes of
headers do they read as a single reader?
## Look for
- [copies] with 0, 1, 2 and 4 workers, 64, 64, 128 and 256 of 64 items arrive
- [again] with 4 workers, each batch arrives four times in a row
- [once] shared out by file, by member or by index, each item arrives once with 0, 1, 2 and 4
  workers
- [init-fn] a worker_init_fn that sets the share of each copy delivers each item once with 0, 1, 2
  and 4 workers
- [headers] 4 workers that take every n-th member read at least 3.5 times as many bytes of headers
  as a single reader
- [bytes] 4 workers with an index read the bytes of the items once, and no other bytes
- [printed] as printed, with 4 files and 4 workers, the sharding of the source raises an
  AttributeError
- [mismatch] with the attribute id in its place, 4 files need 4 workers: 0 and 2 workers raise a
  ValueError, and 4 deliver each item once
## Try next
`--forget`: the reader of every n-th member does not use its number, and takes all members.
refutes: once
## Source
- EffectivePyTorch, chapter "Building efficient custom data loaders",
  https://github.com/vahidk/EffectivePyTorch: copies, and a file for each worker.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
  https://www.toymoban.com/news/detail-808122.html: copies, and worker_init_fn.
- Ours: the order, the ways to share out one file, the bytes and the errors.
"""

import io
import tarfile
import tempfile
import warnings
from pathlib import Path

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from tuilab import Lab

ITEMS = 64
ITEM_BYTES = 2048
BATCH = 8
WORKERS = (0, 1, 2, 4)


class CountingFile(io.FileIO):
    """A file that counts the bytes that are read."""

    read_bytes = 0

    def read(self, size=-1):
        content = super().read(size)
        self.read_bytes += len(content)
        return content


def pack(path, numbers):
    with tarfile.open(path, "w") as archive:
        for number in numbers:
            member = tarfile.TarInfo(str(number))
            member.size = ITEM_BYTES
            archive.addfile(member, io.BytesIO(bytes([number]) * ITEM_BYTES))
    return path


def unpack(path, first=0, step=1):
    """Yield every step-th item of an archive, and the bytes that are read by then."""
    with CountingFile(path) as file, tarfile.open(fileobj=file) as archive:
        for number, member in enumerate(archive):
            if number % step == first:
                content = archive.extractfile(member).read()
                yield content[0], file.read_bytes


def unpack_all(path, worker, workers):
    yield from unpack(path)


def unpack_files(paths, worker, workers):
    for path in paths[worker::workers]:
        yield from unpack(path)


def unpack_members(path, worker, workers):
    yield from unpack(path, worker, workers)


def unpack_part(path, index, worker, workers):
    begin = ITEMS * worker // workers
    end = ITEMS * (worker + 1) // workers
    with CountingFile(path) as file:
        for offset in index[begin:end]:
            file.seek(offset)
            yield file.read(ITEM_BYTES)[0], file.read_bytes


def make_index(path):
    with tarfile.open(path) as archive:
        return [member.offset_data for member in archive]


class Stream(IterableDataset):
    """Reads its share: items, the number of the worker, and the bytes that it has read."""

    def __init__(self, read, *sources):
        self.read = read
        self.sources = sources

    def __iter__(self):
        worker = get_worker_info()  # None in the main process
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        for item, read_bytes in self.read(*self.sources, number, workers):
            yield item, number, read_bytes


class StreamWithShare(IterableDataset):
    """Reads the share that somebody sets; all items if nobody does."""

    def __init__(self, path):
        self.path = path
        self.share = (0, 1)

    def __iter__(self):
        yield from unpack(self.path, *self.share)


def set_share(number):
    worker = get_worker_info()
    worker.dataset.share = (number, worker.num_workers)  # the copy of this worker


class FileForEachWorker(IterableDataset):
    """Gives each worker a file of its own, as the source does."""

    def __init__(self, paths, attribute):
        self.paths = paths
        self.attribute = attribute  # the number of the worker; the source has worker_id

    def __iter__(self):
        worker = get_worker_info()
        if worker is None or worker.num_workers != len(self.paths):
            raise ValueError("there have to be as many workers as files")
        yield from unpack(self.paths[getattr(worker, self.attribute)])


def make_loader(dataset, workers, worker_init_fn=None):
    context = "fork" if workers > 0 else None
    return DataLoader(
        dataset,
        BATCH,
        num_workers=workers,
        collate_fn=list,  # a batch is a list of tuples
        multiprocessing_context=context,
        worker_init_fn=worker_init_fn,
    )


def load(dataset, workers, worker_init_fn=None):
    rows = []
    for batch in make_loader(dataset, workers, worker_init_fn):
        rows += batch
    return rows


def items_of(rows):
    return [row[0] for row in rows]


def is_complete(rows):
    """Return whether each item arrived once."""
    return sorted(items_of(rows)) == list(range(ITEMS))


def comes_in_rows_of(count, items):
    """Return whether each batch is followed by its copies, `count` equal batches in all."""
    for begin in range(0, len(items), count * BATCH):
        batch = items[begin : begin + BATCH]
        if items[begin : begin + count * BATCH] != batch * count:
            return False
    return True


def sum_read_bytes(rows):
    """Return the bytes that all workers have read."""
    last_counts = {}
    for _, worker, read_bytes in rows:
        last_counts[worker] = read_bytes
    return sum(last_counts.values())


def draw_copies(lab, loaded):
    counts = []
    for workers in WORKERS:
        items = items_of(loaded["copies", workers])
        row = [items.count(item) for item in range(ITEMS)]
        counts += [row] * 4  # a band
    lab.image("copies: workers x items", counts)


def run(
    lab: Lab,
    forget: bool = False,  # every worker takes every member of the one file
) -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores
    lab.axes("arrived", x="workers", y="items that arrive in an epoch")
    loaded = {}
    by_init_fn = []
    with tempfile.TemporaryDirectory() as folder:
        whole = pack(Path(folder, "whole.tar"), range(ITEMS))
        parts = [pack(Path(folder, f"{k}.tar"), range(k, ITEMS, 4)) for k in range(4)]
        datasets = {
            "copies": Stream(unpack_all, whole),
            "by file": Stream(unpack_files, parts),
            "by member": Stream(unpack_all if forget else unpack_members, whole),
            "by index": Stream(unpack_part, whole, make_index(whole)),
        }
        for workers in lab.sweep(WORKERS, "workers"):
            for arm, dataset in datasets.items():
                loaded[arm, workers] = load(dataset, workers)
                lab.log(workers, arm=arm, arrived=len(loaded[arm, workers]))
            by_init_fn.append(load(StreamWithShare(whole), workers, set_share))

        lab.stage("a file for each worker")
        printed = lab.raises(load, FileForEachWorker(parts, "worker_id"), 4)
        repaired = FileForEachWorker(parts, "id")
        errors = [lab.raises(load, repaired, workers) for workers in (0, 2)]
        by_own_file = load(repaired, 4)

    draw_copies(lab, loaded)
    arrived = [len(loaded["copies", workers]) for workers in WORKERS]
    lab.claim("copies", arrived, equals=[64, 64, 128, 256])
    lab.claim("again", comes_in_rows_of(4, items_of(loaded["copies", 4])))
    shares = []
    for arm in ("by file", "by member", "by index"):
        shares.append(all(is_complete(loaded[arm, workers]) for workers in WORKERS))
    lab.claim("once", shares, equals=[True] * 3)
    lab.claim("init-fn", [is_complete(rows) for rows in by_init_fn], equals=[True] * 4)

    read_bytes = {arm: sum_read_bytes(loaded[arm, 4]) for arm in datasets}
    lab.bars("bytes that 4 workers read", read_bytes, unit="B")
    item_bytes = ITEMS * ITEM_BYTES
    headers_of_one = sum_read_bytes(loaded["copies", 1]) - item_bytes
    headers_of_four = read_bytes["by member"] - item_bytes
    lab.claim("headers", headers_of_four / headers_of_one, at_least=3.5, answers=True)
    lab.claim("bytes", read_bytes["by index"], equals=item_bytes, unit="B")

    lab.claim("printed", printed.partition(":")[0], equals="AttributeError")
    names = [error.partition(":")[0] for error in errors]
    expected = ["ValueError", "ValueError", True]
    lab.claim("mismatch", [*names, is_complete(by_own_file)], equals=expected)
