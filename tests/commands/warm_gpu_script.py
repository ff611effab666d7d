"""A script that is watched, on the GPU of `tests/fakes/cuda_values.py`: as `warm_script.py` otherwise."""

import os
from pathlib import Path

from tests.commands import warm_script
from tests.fakes import cuda_values

LIBRARY = "TUILAB_TEST_GPU"  # the variable with the path of the compiled model
main = warm_script.main


def load() -> None:
    cuda_values.load(Path(os.environ[LIBRARY]))
    warm_script.load()
