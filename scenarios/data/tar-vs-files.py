"""A tar file is opened once, not for each item: that pays where to open a file takes long, and on a local disk it costs.

On a network file system each open asks a server, and takes a millisecond or more, whatever the size of the file. A dataset of
many small files pays that for each item, one from a tar file once. Locally an open takes microseconds, and the tar file is the
slower one: Python reads and checks a header of 512 bytes for each member.

What it takes away is choice. To find one member by name Python reads all headers, even for the first: the last of that name
counts. So shuffle in a buffer, or among several tar files. `tarfile` keeps a TarInfo for each member that it has seen;
`tar.members = []` after each item lets go of them, as does `stream=True` from Python 3.13 on. The latency is simulated: the
disk is a class that sleeps in each open. All else is measured, on files in the cache of this box.
## Predict
10 files of 4000 bytes are in the cache of a local disk. How many times as long does it take to read them from a tar file?
## Look for
- [opens] 400 files take 400 opens, the tar file of them takes 1
- [same] both give the same bytes in the same order
- [bytes] the tar file has 1,853,440 bytes for 1,600,000 bytes of items: a header each, blocks of 512, and an end
- [kept] after an epoch it keeps 400 TarInfo objects; with `tar.members = []` after each item 0
- [by-name] to find its first member by name, all 400 headers are read
- [local] without latency the tar file takes at least 1.2 times as long
- [remote] with 2 ms for each open, simulated, 10 files take at least 3 times as long as their tar file
## Try next
`--latency-ms 0`: the claim about the simulated latency is REFUTED.
`--items 100`: what is counted goes with the number of items. refutes: opens, bytes, kept, by-name
## Source
EffectivePyTorch, chapter "Building efficient custom data loaders", https://github.com/vahidk/EffectivePyTorch: tar files for
slow network file systems, and `tar.members = []`. Ours: the rest.
"""

import io
import random
import tarfile
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from tuilab import Lab


class Disk:
    """Opens files, counts how often, and sleeps each time: a simulated file system that is far away."""

    def __init__(self, latency_ms=0.0):
        self.latency_s, self.opens = latency_ms / 1e3, 0

    def open(self, path):
        self.opens += 1
        _ = self.latency_s and time.sleep(self.latency_s)  # to sleep for 0 s would give the core away
        return open(path, "rb")


def from_files(disk, folder):
    items = []
    for path in sorted(folder.iterdir()):
        with disk.open(path) as file:
            items.append(file.read())
    return items


def from_tar(disk, path):
    items = []
    with disk.open(path) as file, tarfile.open(fileobj=file) as tar:
        for member in tar:
            items.append(tar.extractfile(member).read())
            tar.members = []
    return items


def members_after(work, path):
    with tarfile.open(path) as tar:
        work(tar)
        return len(tar.members)


def walk(tar):
    for _ in tar:
        tar.members = []


def write(name, items):
    files, packed = Path(mkdtemp(dir=name)), Path(mkdtemp(dir=name)) / "items.tar"
    with tarfile.open(packed, "w") as tar:
        for number in range(items):
            data, info = random.randbytes(4000), tarfile.TarInfo(f"{number:06}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            (files / info.name).write_bytes(data)
    return files, packed


def run(
    lab: Lab,
    items: int = 400,  # of 4000 bytes each, 1..10000
    latency_ms: float = 2.0,  # simulated, of each open, 0..20
) -> None:
    with TemporaryDirectory() as name:
        few, few_packed = write(name, 10)

        @lab.once
        def exact():
            lab.stage("one epoch")
            (files, packed), near, far = write(name, items), Disk(), Disk()
            by_file, by_tar = from_files(near, files), from_tar(far, packed)
            lab.claim("opens", [near.opens, far.opens], equals=[400, 1])
            lab.claim("same", by_file == by_tar)
            lab.claim("bytes", [packed.stat().st_size, sum(map(len, by_file))], equals=[1_853_440, 1_600_000])
            lab.claim("kept", [members_after(list, packed), members_after(walk, packed)], equals=[400, 0])
            lab.claim("by-name", members_after(lambda tar: tar.getmember("000000"), packed), equals=400)
            lab.axes("epoch_ms", x="latency of an open, ms (simulated)", y="10 items take, ms", log="y")
            for latency in lab.sweep([0, 0.5, 1, 2, 5, 10], "simulated latencies"):
                for arm, read, path in ("files", from_files, few), ("tar file", from_tar, few_packed):
                    began = time.perf_counter()
                    read(Disk(latency), path)
                    lab.log(latency, arm=arm, epoch_ms=1e3 * (time.perf_counter() - began))

        lab.claim_ratio("local", "local_tar/local_files", at_least=1.2, answers=True)
        lab.claim_ratio("remote", "remote_files/remote_tar", at_least=3)
        arms = {}
        for where, disk in ("local", Disk()), ("remote", Disk(latency_ms)):
            arms |= {f"{where}_tar": partial(from_tar, disk, few_packed), f"{where}_files": partial(from_files, disk, few)}
        lab.race(**arms, seconds=0.2)
