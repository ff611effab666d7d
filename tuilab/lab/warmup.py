"""What a worker does that was started ahead of its order: the slow beginning of every run."""

import contextlib
import gc
import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tuilab.probes.tree import WAITING

_NAME = Path("/proc/self/comm")


def warm_up(modules: Iterable[str], *, is_timed: bool = True) -> None:
    """Load the lab and what the scenario will import; it cannot tell, because its own imports would do the same."""
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # the collector would look through all that is being loaded, again and again, and find nothing
    for module in ["tuilab.lab.lab", *modules]:
        importlib.import_module(module)
    if is_timed:
        gc.collect()  # else it does so once more in the middle of what is then measured
    else:  # that takes a tenth of the whole: all is taken for old without a look
        gc.freeze()
        gc.unfreeze()
    gc.set_threshold(*thresholds)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Bear a name meanwhile that tells other users of the box, and our sampler, that this process only waits."""
    name = _call_yourself(WAITING.encode())
    yield
    _call_yourself(name)


def _call_yourself(name: bytes) -> bytes:
    """Change the name of this process, where the system lets it, and return the one before."""
    with contextlib.suppress(OSError):
        before = _NAME.read_bytes().removesuffix(b"\n")
        _NAME.write_bytes(name)
        return before
    return name
