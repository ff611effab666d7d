"""Treat settings of the whole process: TF32, cuDNN, attention, threads.

They are set once the training has made some steps, because a script may set them as well.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .places import user_place
from .reports import Reports

NAMES = ("tf32", "cudnn-benchmark", "attention", "threads")
_FIRST_WITH_TF32 = (8, 0)  # capability of a GPU
# The setters of torch.backends.cuda, by back end.
_BACK_ENDS = {
    "flash": "enable_flash_sdp",
    "efficient": "enable_mem_efficient_sdp",
    "math": "enable_math_sdp",
    "cudnn": "enable_cudnn_sdp",
}
_IS_ENABLED = {
    "flash": "flash_sdp_enabled",
    "efficient": "mem_efficient_sdp_enabled",
    "math": "math_sdp_enabled",
    "cudnn": "cudnn_sdp_enabled",
}
_ON_CPU = ("flash", "math")  # the back ends that exist there


def treat(
    torch: Any, wanted: dict[str, str], reports: Reports, watcher: Any
) -> list[tuple[str, Callable[[], None]]]:
    """Return what is to be done once the training has made some steps, and for which treatment."""
    late: list[tuple[str, Callable[[], None]]] = []
    if "tf32" in wanted:
        late.append(("tf32", lambda: _allow_tf32(torch, reports)))
    if "cudnn-benchmark" in wanted:
        late.append(("cudnn-benchmark", lambda: _choose_algorithms(torch, reports)))
    if "attention" in wanted:
        attention = _Attention(torch, wanted["attention"], reports)
        attention.begin(watcher.is_compiling)
        late.append(("attention", attention.choose))
    if "threads" in wanted:
        threads = _Threads(torch, int(wanted["threads"]), reports)
        threads.begin()
        late.append(("threads", threads.check))
    return late


def _used_gpu() -> Any:
    """Return torch.cuda if the training uses a GPU, else None."""
    cuda: Any = sys.modules.get("torch.cuda")
    if cuda is None or not cuda.is_available() or not cuda.is_initialized():
        return None
    return cuda


def _allow_tf32(torch: Any, reports: Reports) -> None:
    """Have products of float32 matrices use TF32."""
    cuda = _used_gpu()
    if cuda is None:
        reports.skipped("tf32", "the training uses no GPU")
        return
    if tuple(cuda.get_device_capability()) < _FIRST_WITH_TF32:
        reports.skipped("tf32", "this GPU has no TF32: its compute capability is below 8.0")
        return
    matmul = torch.backends.cuda.matmul
    # The older setting; torch refuses to read it once both were used.
    if hasattr(matmul, "fp32_precision"):
        if matmul.fp32_precision == "tf32":
            why = "torch.backends.cuda.matmul.fp32_precision is tf32"
            reports.skipped("tf32", why, is_already_set=True)
            return
        matmul.fp32_precision = "tf32"
        reports.did("tf32", "torch.backends.cuda.matmul.fp32_precision = 'tf32'")
        return
    if torch.get_float32_matmul_precision() != "highest":
        why = f"the matmul precision is {torch.get_float32_matmul_precision()}"
        reports.skipped("tf32", why, is_already_set=True)
        return
    torch.set_float32_matmul_precision("high")
    reports.did("tf32", "torch.set_float32_matmul_precision('high')")


def _choose_algorithms(torch: Any, reports: Reports) -> None:
    """Have cuDNN try its algorithms for each shape."""
    treatment = "cudnn-benchmark"
    cudnn = torch.backends.cudnn
    if _used_gpu() is None:
        reports.skipped(treatment, "the training uses no GPU")
    elif cudnn.benchmark:
        why = "torch.backends.cudnn.benchmark is True"
        reports.skipped(treatment, why, is_already_set=True)
    elif cudnn.deterministic or torch.are_deterministic_algorithms_enabled():
        reports.skipped(treatment, "the script asks for deterministic algorithms")
    else:
        cudnn.benchmark = True
        reports.did(treatment, "torch.backends.cudnn.benchmark = True")


class _Attention:
    """Allows one back end of scaled_dot_product_attention."""

    def __init__(self, torch: Any, value: str, reports: Reports) -> None:
        self._torch = torch
        self._value = value
        self._treatment = f"attention={value}"
        self._reports = reports
        self._place: Any = None  # of the first call
        self._calls = 0

    def begin(self, is_compiling: Callable[[], bool]) -> None:
        """Count the calls of attention."""
        functional = self._torch.nn.functional
        attend = functional.scaled_dot_product_attention

        @functools.wraps(attend)
        def counted_attention(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                self._calls += 1
                if self._place is None:
                    self._place = user_place()
            return attend(*args, **kwargs)

        functional.scaled_dot_product_attention = counted_attention

    def choose(self) -> None:
        """Allow the chosen back end only, if the training calls attention."""
        reports = self._reports
        treatment = self._treatment
        cuda = self._torch.backends.cuda
        value = self._value
        if value not in _BACK_ENDS or not hasattr(cuda, _BACK_ENDS[value]):
            reports.skipped(treatment, f"this torch has no back end {value!r}")
            return
        if not self._calls:
            why = "no call of scaled_dot_product_attention was seen outside compiled code"
            reports.skipped(treatment, why)
            return
        if _used_gpu() is None and value not in _ON_CPU:
            reports.skipped(treatment, "this back end needs a GPU", self._place)
            return
        enabled = [name for name in _BACK_ENDS if self._is_enabled(cuda, name)]
        if enabled == [value]:
            why = "no other back end is allowed"
            reports.skipped(treatment, why, self._place, is_already_set=True)
            return
        for name, setter in _BACK_ENDS.items():
            if hasattr(cuda, setter):
                getattr(cuda, setter)(name == value)
        words = f"scaled_dot_product_attention may use {value} only"
        reports.did(treatment, words, self._place)

    def _is_enabled(self, cuda: Any, name: str) -> bool:
        is_enabled = getattr(cuda, _IS_ENABLED[name], None)
        return bool(is_enabled and is_enabled())


class _Threads:
    """Keeps the number of torch's threads that a variable has set, if the script sets it again."""

    def __init__(self, torch: Any, count: int, reports: Reports) -> None:
        self._torch = torch
        self._count = count
        self._treatment = f"threads={count}"
        self._reports = reports
        self._set = torch.set_num_threads

    def begin(self) -> None:
        """Have the script set our number."""
        count = self._count
        plain = self._set

        @functools.wraps(plain)
        def set_threads(number: Any) -> None:
            if number == count:
                plain(number)
                return
            plain(count)
            words = f"torch.set_num_threads({count}) instead of {number}"
            self._reports.did(self._treatment, words, user_place())

        self._torch.set_num_threads = set_threads

    def check(self) -> None:
        """Report how many threads torch has, and set the number if the variable did not."""
        threads = self._torch.get_num_threads()
        if threads != self._count:
            self._set(self._count)
            words = f"torch.set_num_threads({self._count}): the variable gave {threads}"
            self._reports.did(self._treatment, words)
            return
        self._reports.did(self._treatment, f"torch computes with {threads} threads")
