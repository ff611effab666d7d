"""Pack many small files into tar files if each open is slow, as on a network.

On a network file system, each open asks a server. That takes a millisecond or more, whatever the
size of the file. A dataset of many small files pays this for each item, and a tar file pays it
once. On a local disk an open takes microseconds. There the tar file is slower, because Python reads
and checks a header of 512 bytes for each member.

A tar file has no index. To find a member by name, Python reads all headers, even for the first
member. If two members have the same name, the last one counts. So a random item is expensive.
`tarfile` keeps a TarInfo object for each member that it has read. `tar.members = []` after each
item frees them, and so does `stream=True` from Python 3.13 on.

The iterator of the source fails in three places. It gets `path` and opens `self.path`. It reads
`extractfile(member)` without a check, and that is None if the member is a folder. And it passes
bytes to `cv2.imdecode`, which needs an array.

The latency is simulated: a class sleeps at each open. All else is measured, on files that are in
the page cache of this machine.

In practice: if your data is on a network, write tar files of 100 MB or more, and read each from
begin to end. Skip members that are not files (`member.isfile()`), and pass
`numpy.frombuffer(content, numpy.uint8)` to `cv2.imdecode`. Shuffle the order of the tar files, and
the items in a buffer.
## Predict
10 files of 4000 bytes are in the cache of a local disk. How many times as long does it take to read
them from a tar file?
## Look for
- [opens] n files take n opens, and a tar file with the same items takes 1
- [same] both give the same bytes in the same order
- [bytes] for 400 items with 1,600,000 bytes the tar file has 1,853,440 bytes: headers, blocks of
  512 bytes, and an end
- [kept] after an epoch over n members tarfile keeps n TarInfo objects, and 0 with
  `tar.members = []` after each item
- [by-name] to find the first of n members by name, tarfile reads all n headers
- [name-error] the iterator of the source raises a NameError, as it opens self.path without a self
- [folder] for a folder extractfile returns None, and to read it is an AttributeError
- [imdecode] cv2.imdecode raises an error for bytes, and decodes an array of the same bytes
- [local] without latency, reading 10 items takes at least 1.2 times as long from a tar file as from
  files
- [remote] with a simulated latency of 2 ms for each open, 10 files take at least 3 times as long as
  their tar file
## Try next
`--latency-ms 0`: the files are as near as on a local disk. The claim about latency is REFUTED.
`--items 100`: the size of the tar file is another one. refutes: bytes
## Source
EffectivePyTorch, chapter "Building efficient custom data loaders",
https://github.com/vahidk/EffectivePyTorch: tar files for slow network file systems, and
`tar.members = []`. Its iterator has three errors, which the claims test. Ours: the counts and the
times.
"""

import io
import random
import tarfile
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy

from tuilab import Lab

try:
    import cv2
except ImportError:
    cv2 = None

ITEM_BYTES = 4000
FEW = 10  # items of a race
LATENCIES_MS = (0, 0.5, 1, 2, 5, 10)


class Disk:
    """Opens files, counts the opens, and sleeps at each, as if the files were far away."""

    def __init__(self, latency_ms=0.0):
        self.latency_s = latency_ms / 1e3
        self.opens = 0

    def open(self, path):
        self.opens += 1
        if self.latency_s > 0:  # to sleep for 0 s would give the core away
            time.sleep(self.latency_s)
        return open(path, "rb")


def read_files(disk, folder):
    items = []
    for path in sorted(folder.iterdir()):
        with disk.open(path) as file:
            items.append(file.read())
    return items


def read_tar(disk, path):
    items = []
    with disk.open(path) as file, tarfile.open(fileobj=file) as archive:
        for member in archive:
            items.append(archive.extractfile(member).read())
            archive.members = []
    return items


def iterate_as_printed(path):
    """Open self.path, as the source does in a function that has no self."""
    with tarfile.open(self.path) as archive:  # noqa: F821
        yield from archive


def iterate_with_folders(path):
    """Yield the contents of all members, without asking whether they are files."""
    with tarfile.open(path) as archive:
        for member in archive:
            yield archive.extractfile(member).read()


def walk(archive):
    for _ in archive:
        pass


def walk_and_free(archive):
    for _ in archive:
        archive.members = []


def find_first(archive):
    archive.getmember("000000")


def count_members_after(work, path):
    """Return how many TarInfo objects an archive keeps after some work."""
    with tarfile.open(path) as archive:
        work(archive)
        return len(archive.members)


def write_items(root, count):
    """Write the same items as files and as a tar file, and return where."""
    folder = Path(mkdtemp(dir=root))
    packed = Path(mkdtemp(dir=root)) / "items.tar"
    with tarfile.open(packed, "w") as archive:
        for number in range(count):
            content = random.randbytes(ITEM_BYTES)
            member = tarfile.TarInfo(f"{number:06}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
            (folder / member.name).write_bytes(content)
    return folder, packed


def write_folder(root):
    """Write a tar file that has a folder."""
    packed = Path(mkdtemp(dir=root)) / "folder.tar"
    with tarfile.open(packed, "w") as archive:
        folder = tarfile.TarInfo("train")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    return packed


def claim_counts(lab, root, count):
    folder, packed = write_items(root, count)
    file_disk, tar_disk = Disk(), Disk()
    by_file = read_files(file_disk, folder)
    by_tar = read_tar(tar_disk, packed)
    lab.claim("opens", [file_disk.opens, tar_disk.opens], equals=[count, 1])
    lab.claim("same", by_file == by_tar)
    item_bytes = sum(len(item) for item in by_file)
    lab.claim("bytes", [packed.stat().st_size, item_bytes], equals=[1_853_440, 1_600_000])
    kept = [count_members_after(work, packed) for work in (walk, walk_and_free)]
    lab.claim("kept", kept, equals=[count, 0])
    lab.claim("by-name", count_members_after(find_first, packed), equals=count)


def claim_errors(lab, root):
    """Claim where the iterator of the source fails."""
    packed = write_folder(root)
    error = lab.raises(list, iterate_as_printed(packed))
    lab.claim("name-error", error.partition(":")[0], equals="NameError")
    with tarfile.open(packed) as archive:
        is_none = archive.extractfile("train") is None
    error = lab.raises(list, iterate_with_folders(packed))
    lab.claim("folder", [is_none, error.partition(":")[0]], equals=[True, "AttributeError"])
    if cv2 is None:
        lab.claim("imdecode", lacks="cv2 (package opencv-python-headless)")
        return
    image = numpy.zeros((8, 8, 3), numpy.uint8)
    content = cv2.imencode(".png", image)[1].tobytes()
    has_error = lab.raises(cv2.imdecode, content, cv2.IMREAD_COLOR) != ""
    decoded = cv2.imdecode(numpy.frombuffer(content, numpy.uint8), cv2.IMREAD_COLOR)
    lab.claim("imdecode", [has_error, list(decoded.shape)], equals=[True, [8, 8, 3]])


def log_latencies(lab, folder, packed):
    lab.axes("epoch_ms", x="latency of an open, ms (simulated)", y="10 items take, ms", log="y")
    for latency_ms in lab.sweep(LATENCIES_MS, "simulated latencies"):
        readers = {
            "files": partial(read_files, Disk(latency_ms), folder),
            "tar file": partial(read_tar, Disk(latency_ms), packed),
        }
        for arm, read in readers.items():
            began = time.perf_counter()
            read()
            epoch_ms = 1e3 * (time.perf_counter() - began)
            lab.log(latency_ms, arm=arm, epoch_ms=epoch_ms)


def run(
    lab: Lab,
    items: int = 400,  # items of 4000 bytes, 1..10000
    latency_ms: float = 2.0,  # simulated latency of each open, 0..20
) -> None:
    with TemporaryDirectory() as root:
        folder, packed = write_items(root, FEW)

        @lab.once
        def exact():
            lab.stage("one epoch")
            claim_counts(lab, root, items)
            claim_errors(lab, root)
            log_latencies(lab, folder, packed)

        lab.stage("files against their tar file")
        lab.claim_ratio("local", "local_tar/local_files", at_least=1.2, answers=True)
        lab.claim_ratio("remote", "remote_files/remote_tar", at_least=3)
        near = Disk()
        far = Disk(latency_ms)
        lab.race(
            local_tar=partial(read_tar, near, packed),
            local_files=partial(read_files, near, folder),
            remote_tar=partial(read_tar, far, packed),
            remote_files=partial(read_files, far, folder),
            seconds=0.2,
        )
