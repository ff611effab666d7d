"""Runs of lessons on the GPU of `tests/fakes/cuda_values.py`, in forks as in `tests/scenarios/lessons.py`.

Races take next to no time. Arms in processes of their own are functions of the same fork, and
constants of a lesson that are sizes for a GPU can be replaced by smaller ones.
"""

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from tests.fakes import cuda_values

LIBRARY = "TUILAB_TEST_GPU"  # the variable with the path of the compiled model
CONSTANTS = "TUILAB_TEST_CONSTANTS"  # the variable with the smaller constants, as JSON


def load() -> None:
    """Load torch with the model."""
    cuda_values.load(Path(os.environ[LIBRARY]))
    # imported here: it loads torch
    from tests.scenarios import lessons

    lessons.load()


def main() -> None:
    """Do what `tuilab run NAME --headless --json --quiet` does."""
    from tests.scenarios import lessons
    from tuilab.lab import worker
    from tuilab.lab.lab import Lab

    load_scenario = worker.load_scenario

    def load_smaller(path: Path, source_dir: str) -> ModuleType:
        module = load_scenario(path, source_dir)
        for name, value in json.loads(os.environ[CONSTANTS]).items():
            if isinstance(value, dict):
                value = getattr(module, name) | value
            assert hasattr(module, name), name
            setattr(module, name, value)
        return module

    with (
        patch.dict("tuilab.lab.races.timing._BLOCK_S", cuda=1e-5),
        patch.dict("tuilab.lab.races.rounds._LEAST_WARM", cuda=0),
        patch("tuilab.lab.races.race.gpu_ns", return_value=None),  # calls each arm twenty times
        patch("tuilab.lab.races.race._waited_ns", return_value=0),  # a share of next to no time
        patch.object(worker, "load_scenario", load_smaller),
        patch.object(Lab, "_arm_of", _arm_here),
    ):
        lessons.main()


def _arm_here(lab: Any, order: Any) -> Any:
    """Return an arm that is called in this process."""
    from tuilab.lab.arms import Arm

    class ArmHere(Arm):
        def __call__(self) -> Any:
            body = getattr(sys.modules["scenario"], order.function)
            with patch.dict(os.environ, order.env):
                return body(lab, *order.args)

    return ArmHere(order, lab._line, lab._journal)
