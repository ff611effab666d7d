"""Keep freed memory in the process: set malloc's two variables together, or none.

A CPU tensor is a block of memory from malloc. If malloc returns each freed block to the kernel, the
next tensor pays for new memory. The source advises tcmalloc or jemalloc against this. The malloc of
glibc can also keep memory, and a well-meant variable can stop it.

New memory costs page faults. glibc takes a large block from the kernel by mmap, and returns it when
it is freed. At the first write to each page of the next block, the kernel stops the program, finds
a page and fills it with zeros. So glibc learns from a block of mmap that is freed. From then on,
blocks up to its size come from the heap, where freed memory stays and is used again.

Learning ends at 32 MiB, and it depends on four variables: MALLOC_MMAP_THRESHOLD_,
MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_ and MALLOC_MMAP_MAX_. MALLOC_MMAP_MAX_=0 with a huge
MALLOC_TRIM_THRESHOLD_ uses all memory again. The price is that the process keeps its largest size.

tcmalloc keeps freed blocks. jemalloc by itself returns blocks of 8 MiB or more at once. For such
blocks, the advice of the source needs `dirty_decay_ms:-1`. The counts leave out the first 10 of 20
tensors, and huge pages are off, so that each page has its own fault.

In practice: if tensors above 32 MiB are made in each step on a CPU, start Python with
`MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1099511627776`. Or preload tcmalloc, or jemalloc with
`MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1`. Otherwise set no variable of malloc.
## Predict
MALLOC_TOP_PAD_ is set to its own default. How many faults do the last 10 of 20 tensors of 8 MiB
cost for each page of a tensor?
## Look for
- [fixed] with a fixed mmap threshold, the last 10 of 20 tensors of 8 MiB cost 10 faults for each
  page of a tensor
- [learned] with no variable set, the last 10 of 20 tensors of 8 MiB cost 0 faults for each page
- [own-default] with MALLOC_TOP_PAD_ set to its own default, the last 10 of 20 tensors of 8 MiB cost
  10 faults for each page
- [limit] with no variable set, the last 10 of 20 tensors of 40 MiB cost 10 faults for each page
- [heap] with no mmap and no trim, the last 10 of 20 tensors of 40 MiB cost 0 faults for each page
- [kept] the share of a freed tensor of 40 MiB that returns to the kernel is 0 with no trim, and 1
  with no variable set
- [tcmalloc] with tcmalloc, the last 10 of 20 tensors of 40 MiB cost 0 faults for each page
- [jemalloc] with jemalloc and no setting, the last 10 of 20 tensors of 40 MiB cost 10 faults for
  each page
- [decay] with jemalloc and dirty_decay_ms:-1, the last 10 of 20 tensors of 40 MiB cost 0 faults for
  each page
- [time] a new tensor of 40 MiB takes at least 1.5 times as long to fill as a tensor that is filled
  again
- [tcmalloc-time] new tensors of 40 MiB take at least 1.5 times as long with glibc's malloc as with
  tcmalloc
- [jemalloc-time] new tensors of 40 MiB take at least 1.5 times as long with glibc's malloc as with
  jemalloc and dirty_decay_ms:-1
## Try next
`--mib 24`: glibc learns this size, and keeps freed memory. refutes: limit, kept
`--setting MALLOC_ARENA_MAX=1`: this variable is none of the four, so glibc still learns.
refutes: own-default
`--setting MALLOC_TRIM_THRESHOLD_=1073741824`: this is half of the good setting. Alone it only stops
the learning, so all claims hold.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 17,
https://www.toymoban.com/news/detail-808122.html: jemalloc or tcmalloc by LD_PRELOAD is faster than
malloc, without numbers. Ours: the settings of malloc itself, what stops it from learning, the count
of page faults and the races.
"""

import ctypes
import platform
import resource
import sys
import time
from mmap import PAGESIZE
from pathlib import Path

import torch

from tuilab import Lab

VARIABLES = (
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_MAX_",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "MALLOC_CONF",
)
HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
NO_DECAY = "dirty_decay_ms:-1,muzzy_decay_ms:-1"
PR_SET_THP_DISABLE = 41


def make_tensor(mib):
    return torch.ones(mib << 18)  # float32, 4 bytes each


def count_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def resident_bytes():
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * PAGESIZE


def make_and_free(lab, mib):
    """Make 20 tensors of a size. Return the faults of the last 10 for each page of a tensor."""
    pages = (mib << 20) / PAGESIZE
    costs = []
    for number in range(20):
        before = count_faults()
        make_tensor(mib)
        costs.append((count_faults() - before) / pages)
        lab.log(number, **{f"faults_{mib}_mib": costs[-1]})
    return sum(costs[10:])


def share_given_back(mib):
    """Return the share of a tensor's memory that the process returns when the tensor is freed."""
    tensor = make_tensor(mib)
    nbytes = tensor.nbytes
    before = resident_bytes()
    del tensor
    return (before - resident_bytes()) / nbytes


def measure_faults(lab, small, large):
    """Return the faults of small and of large tensors, and the share that is given back."""
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    small_faults = make_and_free(lab, small)
    large_faults = make_and_free(lab, large)
    return small_faults, large_faults, share_given_back(large)


def seconds_per_tensor(lab, mib, seconds=0.3):
    for _ in range(10):
        make_tensor(mib)  # the allocator learns what it can
    count = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        make_tensor(mib)
        count += 1
    return (time.perf_counter() - start) / count


def find_library(name):
    folders = (
        f"{sys.prefix}/lib",
        "/usr/local/lib",
        f"/usr/lib/{platform.machine()}-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    )
    for folder in folders:
        for path in sorted(Path(folder).glob(f"lib{name}.so*")):
            return str(path)
    return ""


def start_arm(lab, name, body, *sizes, env):
    """Return an arm without the variables of the user's shell that malloc would read."""
    words = ["env"]
    for variable in VARIABLES:
        if variable not in env:
            words.append(f"--unset={variable}")
    return lab.arm(name, body, *sizes, env=env, prefix=words)


def settings_of(setting, tcmalloc, jemalloc):
    """Return the variables of each arm; a library that is missing has no arm."""
    name, _, value = setting.partition("=")
    settings = {
        "glibc learns": {},
        "fixed threshold": {"MALLOC_MMAP_THRESHOLD_": "131072"},
        setting: {name: value},
        "no mmap, no trim": HEAP,
    }
    if tcmalloc:
        settings["tcmalloc"] = {"LD_PRELOAD": tcmalloc}
    if jemalloc:
        settings["jemalloc"] = {"LD_PRELOAD": jemalloc}
        settings["jemalloc, no decay"] = {"LD_PRELOAD": jemalloc, "MALLOC_CONF": NO_DECAY}
    return settings


def run(
    lab: Lab,
    mib: int = 40,  # size of the large tensors in MiB, 9..1024
    setting: str = "MALLOC_TOP_PAD_=131072",  # of the third arm
) -> None:
    lab.needs(platform.libc_ver()[0] == "glibc", "glibc, the malloc of most Linux systems")
    tcmalloc = find_library("tcmalloc_minimal") or find_library("tcmalloc")
    jemalloc = find_library("jemalloc")
    no_tcmalloc = "" if tcmalloc else "tcmalloc (Debian: libtcmalloc-minimal4)"
    no_jemalloc = "" if jemalloc else "jemalloc (Debian: libjemalloc2)"
    settings = settings_of(setting, tcmalloc, jemalloc)

    @lab.once
    def exact():
        for size in (8, mib):
            lab.axes(f"faults_{size}_mib", x="tensor", y=f"faults a page, {size} MiB")
        small = {}
        large = {}
        given_back = {}
        for name, env in settings.items():
            lab.stage(name)
            arm = start_arm(lab, name, measure_faults, 8, mib, env=env)
            small[name], large[name], given_back[name] = arm()
        lab.bars(f"faults for each page, 10 tensors of {mib} MiB", large)

        each_page = {"equals": 10, "tolerance": 0.5}
        none = {"equals": 0, "tolerance": 0.5}
        lab.claim("fixed", small["fixed threshold"], **each_page)
        lab.claim("learned", small["glibc learns"], **none)
        lab.claim("own-default", small[setting], **each_page, answers=True)
        lab.claim("limit", large["glibc learns"], **each_page)
        lab.claim("heap", large["no mmap, no trim"], **none)
        shares = [given_back["no mmap, no trim"], given_back["glibc learns"]]
        lab.claim("kept", shares, equals=[0, 1], tolerance=0.1)
        lab.claim("tcmalloc", large.get("tcmalloc"), **none, lacks=no_tcmalloc)
        lab.claim("jemalloc", large.get("jemalloc"), **each_page, lacks=no_jemalloc)
        lab.claim("decay", large.get("jemalloc, no decay"), **none, lacks=no_jemalloc)

    lab.stage("a new tensor against one that is filled again")
    lab.claim_ratio("time", "new/again", at_least=1.5)
    tensor = make_tensor(mib)
    arms = {"new": lambda: make_tensor(mib), "again": lambda: tensor.fill_(1)}
    lab.race(**arms, same=0.0, seconds=0.3)

    lab.stage("malloc against other allocators")
    lab.claim_ratio("tcmalloc-time", "malloc/tcmalloc", at_least=1.5, lacks=no_tcmalloc)
    lab.claim_ratio("jemalloc-time", "malloc/jemalloc, no decay", at_least=1.5, lacks=no_jemalloc)
    allocators = {"malloc": {}}
    for name in ("tcmalloc", "jemalloc, no decay"):
        if name in settings:
            allocators[name] = settings[name]
    if len(allocators) > 1:
        arms = {}
        for name, env in allocators.items():
            arms[name] = start_arm(lab, name, seconds_per_tensor, mib, env=env)
        lab.race(**arms)
