"""The tests of this project leave the GPUs of a box alone, but for those that are for one."""

import os
import re
import subprocess
import sys

from tests.conftest import CHECKOUT


def test_no_test_sees_a_gpu_that_is_not_for_one() -> None:
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_where_cuda_does_not_work_each_file_for_a_gpu_is_skipped_once_with_the_reason() -> None:
    files = sorted(path.name for path in (CHECKOUT / "tests" / "gpu").glob("test_*.py"))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "gpu", "-rs", "-p", "no:cacheprovider", "tests/gpu"],
        cwd=CHECKOUT, capture_output=True, text=True,
    )  # fmt: skip

    skipped = re.findall(
        r"SKIPPED \[1\] \S*?(\w+\.py)\S* (CUDA does not work here: .+)", done.stdout
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(files)} skipped" in done.stdout
    assert sorted(name for name, _ in skipped) == files
