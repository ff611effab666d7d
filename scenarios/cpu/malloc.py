"""One variable of malloc, and each new tensor costs a page fault per page; so does one of 32 MiB or more if you set none.

A CPU tensor is a block of malloc. glibc takes a large block from the kernel by mmap, and gives it back when it is freed. The
next one is new memory again: at the first write to each page the kernel stops the program, finds a page and fills it with
zeros. That is a page fault. So glibc learns: once a block of mmap is freed, blocks up to its size come from the heap, where
they stay and are used again. It learns up to 32 MiB, and not at all once one of four variables is set: MALLOC_MMAP_THRESHOLD_,
MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_, MALLOC_MMAP_MAX_. The value does not matter; its own default does it, too. With no mmap
and no trim (MALLOC_MMAP_MAX_=0, a huge MALLOC_TRIM_THRESHOLD_) all memory is used again. The price: it stays taken.

tcmalloc keeps what is freed. jemalloc as it comes gives back blocks of 8 MiB and more at once, which is mmap again;
`dirty_decay_ms:-1` ends that. Only the last 10 of 20 tensors count here, and huge pages are off: each page has its own fault.
## Predict
With MALLOC_TOP_PAD_ set to its own default, how many faults do the last 10 of 20 tensors of 8 MiB cost for each page of one?
## Look for
- [fixed] a fixed threshold: the last 10 of 20 tensors of 8 MiB cost 10 faults for each page of one
- [learned] glibc that learns: they cost none
- [own-default] MALLOC_TOP_PAD_ set to its own default: 10 again
- [limit] glibc that learns, and 40 MiB in place of 8: 10 again
- [heap] no mmap, no trim, and 40 MiB: none
- [kept] with no trim a freed tensor stays in memory, and with glibc that learns nothing of its 40 MiB
- [tcmalloc] tcmalloc and 40 MiB: none
- [jemalloc] jemalloc as it comes and 40 MiB: 10
- [decay] jemalloc with dirty_decay_ms:-1 and 40 MiB: none
- [time] to fill a new tensor of 40 MiB takes at least 1.5 times as long as to fill one again
## Try next
`--mib 24`: glibc learns this size, and keeps what is freed. refutes: limit, kept
`--setting MALLOC_ARENA_MAX=1`: a variable that is none of the four. refutes: own-default
`--setting MALLOC_TRIM_THRESHOLD_=1073741824`: one of the four, and a good value; it does not help alone.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 17,
https://www.toymoban.com/news/detail-808122.html: jemalloc or tcmalloc by LD_PRELOAD. Ours: that malloc itself can use memory
again, what stops it, and the count of page faults.
"""

import ctypes
import platform
import resource
import sys
from mmap import PAGESIZE
from pathlib import Path

import torch

from tuilab import Lab

VARIABLES = [f"MALLOC_{name}_" for name in ("MMAP_THRESHOLD", "TRIM_THRESHOLD", "TOP_PAD", "MMAP_MAX")]
VARIABLES += ["GLIBC_TUNABLES", "LD_PRELOAD", "MALLOC_CONF"]
HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


def make(lab, sizes):
    """Return how many faults each page of the last ten tensors costs, by their size, and the share that is given back."""
    ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
    costs = []
    for mib in sizes:
        faults = [resource.getrusage(resource.RUSAGE_SELF).ru_minflt]
        for made in range(20):
            torch.ones(mib << 18)  # of 4 bytes each
            faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
            lab.log(made, **{f"faults_{mib}_mib": (faults[-1] - faults[-2]) * PAGESIZE / (mib << 20)})
        costs.append((faults[-1] - faults[-11]) * PAGESIZE / (mib << 20))
    last = torch.ones(sizes[-1] << 18)
    nbytes, taken = last.nbytes, resident_bytes()
    del last
    return *costs, (taken - resident_bytes()) / nbytes


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE


def library(name):
    folders = f"{sys.prefix}/lib", "/usr/local/lib", f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64", "/usr/lib"
    return next((str(path) for folder in folders for path in sorted(Path(folder).glob(f"lib{name}.so*"))), "")


def run(
    lab: Lab,
    mib: int = 40,  # size of the large tensors in MiB, 9..1024
    setting: str = "MALLOC_TOP_PAD_=131072",  # of the third arm
) -> None:
    lab.needs(platform.libc_ver()[0] == "glibc", "glibc, the malloc of most Linux systems")

    @lab.once
    def exact():
        for size in (8, mib):
            lab.axes(f"faults_{size}_mib", x="tensor", y=f"faults a page, {size} MiB")
        tcmalloc, jemalloc = library("tcmalloc_minimal") or library("tcmalloc"), library("jemalloc")
        arms = {
            "glibc learns": {},
            "fixed threshold": {"MALLOC_MMAP_THRESHOLD_": "131072"},
            setting: dict([setting.split("=")]),
            "no mmap, no trim": HEAP,
            "tcmalloc": {"LD_PRELOAD": tcmalloc},
            "jemalloc": {"LD_PRELOAD": jemalloc},
            "jemalloc, no decay": {"LD_PRELOAD": jemalloc, "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"},
        }
        small, large, back = {}, {}, {}
        for arm, env in arms.items():
            if env.get("LD_PRELOAD") == "":
                continue  # it is not on this box
            lab.stage(arm)
            clean = [f"--unset={name}" for name in VARIABLES if name not in env]  # what you set does not count here
            small[arm], large[arm], back[arm] = lab.arm(arm, make, [8, mib], env=env, prefix=["env", *clean])()
        lab.bars(f"faults for each page, 10 tensors of {mib} MiB", large)
        every, none = ({"equals": faults, "tolerance": 0.5} for faults in (10, 0))
        lab.claim("fixed", small["fixed threshold"], **every)
        lab.claim("learned", small["glibc learns"], **none)
        lab.claim("own-default", small[setting], **every, answers=True)
        lab.claim("limit", large["glibc learns"], **every)
        lab.claim("heap", large["no mmap, no trim"], **none)
        lab.claim("kept", [back["no mmap, no trim"], back["glibc learns"]], equals=[0, 1], tolerance=0.1)
        lacks = "" if tcmalloc else "tcmalloc (Debian: libtcmalloc-minimal4)"
        lab.claim("tcmalloc", large.get("tcmalloc"), **none, lacks=lacks)
        lacks = "" if jemalloc else "jemalloc (Debian: libjemalloc2)"
        lab.claim("jemalloc", large.get("jemalloc"), **every, lacks=lacks)
        lab.claim("decay", large.get("jemalloc, no decay"), **none, lacks=lacks)

    there = torch.ones(mib << 18)
    lab.claim_ratio("time", "new/again", at_least=1.5)
    lab.race(new=lambda: torch.ones(mib << 18), again=lambda: there.fill_(1), same=0.0, seconds=0.3)
