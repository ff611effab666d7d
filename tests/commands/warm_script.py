"""A script that is watched, in a fork of a process that has loaded torch: see `tests/warm_process.py`."""

import atexit
import os
import runpy
import sys
import threading
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

VARIABLE = "TUILAB_WATCH"
WATCHER = str(Path(__file__).parents[2] / "tuilab" / "commands" / "watcher")


def load() -> None:
    import_module("torch")
    import_module(
        "torch._dynamo"
    )  # which the first optimizer of a process loads: a second of a core


def main() -> None:
    """Do what the end of `import torch` does if the script is watched, and run the script and end as Python would."""
    if VARIABLE in os.environ:
        sys.path.insert(0, WATCHER)
        import_module("_tuilab_watch").begin()
    code = 0
    try:
        runpy.run_path(sys.argv[1], run_name="__main__")
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    wait_for_threads: Any = getattr(threading, "_shutdown", None)
    wait_for_threads()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
