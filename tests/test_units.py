"""What a device lacks to multiply matrices of a dtype in units of its own."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch

from tests.test_lab import lab  # noqa: F401
from tuilab import Lab
from tuilab.lab.device import matrix_units

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]

CPU, GPU = torch.device("cpu"), torch.device("cuda:1")
FNUZ = "float8_e4m3fnuz"


def is_gpu(
    monkeypatch: pytest.MonkeyPatch,
    cuda: "FakeCuda",
    capability: str,
    name: str = "a GPU",
    arch: str = "",
) -> None:
    """Let the GPU be of that capability, or of ROCm where it has an architecture."""
    major, minor = map(int, capability.split("."))
    found = SimpleNamespace(name=name, major=major, minor=minor, gcnArchName=arch)
    monkeypatch.setattr(cuda, "get_device_properties", lambda device: found)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    monkeypatch.setattr(torch.version, "hip", "7.0" if arch else None)


def is_cpu(
    monkeypatch: pytest.MonkeyPatch, newer: Iterable[str] | None, older: Iterable[str] = ()
) -> None:
    """Let the CPU have the instructions of which torch tells in the newer way, where it has that, and in the older one."""
    if newer is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        monkeypatch.setattr(
            torch.cpu, "get_capabilities", lambda: dict.fromkeys(newer, True), raising=False
        )
    for name in ("avx512_bf16", "amx_tile", "amx_fp16"):
        monkeypatch.delattr(torch.cpu, f"_is_{name}_supported", raising=False)
    for name in older:
        monkeypatch.setattr(torch.cpu, f"_is_{name}_supported", lambda: True, raising=False)


def dtypes_with_units(device: torch.device) -> set[str]:
    """Return the dtypes for which the device has units."""
    return {
        str(dtype).removeprefix("torch.")
        for dtype in matrix_units.DTYPES
        if not matrix_units.lacking_units(device, dtype)
    }


@pytest.mark.parametrize(
    ("capability", "name", "found"),
    [
        ("6.1", "GTX 1080", ""),
        ("7.0", "V100", "float16"),
        ("7.5", "T4", "float16"),
        *(
            ("7.5", name, "")
            for name in (
                "NVIDIA GeForce GTX 1660 Ti",
                "NVIDIA T1000",
                "T600 Laptop GPU",
                "GeForce MX450",
            )
        ),
        ("8.0", "A100", "float16 bfloat16 float32"),
        ("8.9", "L4", "float16 bfloat16 float32 float8_e4m3fn float8_e5m2"),
        ("12.0", "RTX PRO 6000", "float16 bfloat16 float32 float8_e4m3fn float8_e5m2"),
    ],
)
def test_tensor_cores_come_with_the_generation_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, cuda: "FakeCuda", capability: str, name: str, found: str
) -> None:
    is_gpu(monkeypatch, cuda, capability, name)

    assert dtypes_with_units(GPU) == set(found.split())


@pytest.mark.parametrize(
    ("arch", "found"),
    [
        ("gfx906:sramecc+:xnack-", ""),
        ("gfx908:sramecc+:xnack-", "float16 bfloat16"),
        ("gfx90a:sramecc+:xnack-", "float16 bfloat16"),
        ("gfx942", f"float16 bfloat16 float32 {FNUZ} float8_e5m2fnuz"),
        ("gfx950", "float16 bfloat16 float8_e4m3fn float8_e5m2"),
        ("gfx1030", ""),
    ],
)
def test_of_amd_the_name_of_the_architecture_counts_and_not_the_capability(
    monkeypatch: pytest.MonkeyPatch, cuda: "FakeCuda", arch: str, found: str
) -> None:
    is_gpu(monkeypatch, cuda, "9.0", arch=arch)

    assert dtypes_with_units(GPU) == set(found.split())


@pytest.mark.parametrize(
    ("newer", "older", "found"),
    [
        ([], [], ""),
        (["avx512_f", "avx2"], [], ""),
        (["avx512_bf16"], [], "bfloat16"),
        (["amx_tile", "amx_fp16"], [], "bfloat16 float16"),
        (["avx512_fp16"], [], "float16"),
        (["neon", "bf16"], [], "bfloat16"),
        (None, [], ""),
        (None, ["avx512_bf16"], "bfloat16"),
        (None, ["amx_tile", "amx_fp16"], "bfloat16 float16"),
    ],
)
def test_of_a_cpu_its_instructions_count_as_far_as_this_torch_knows_them(
    monkeypatch: pytest.MonkeyPatch, newer: list[str] | None, older: list[str], found: str
) -> None:
    is_cpu(monkeypatch, newer, older)

    assert dtypes_with_units(CPU) == set(found.split())


def test_what_is_missing_is_told_in_words(
    monkeypatch: pytest.MonkeyPatch, cuda: "FakeCuda"
) -> None:
    is_cpu(monkeypatch, [])
    assert matrix_units.lacking_units(CPU, torch.bfloat16) == "AVX512-BF16 or AMX"
    assert matrix_units.lacking_units(CPU, torch.float16) == "AVX512-FP16 or AMX-FP16"
    assert matrix_units.lacking_units(CPU, torch.float32) == "a GPU with units for TF32"

    is_gpu(monkeypatch, cuda, "7.5", "Tesla T4")
    lacks = matrix_units.lacking_units(GPU, torch.bfloat16)
    assert lacks == "Tensor Cores for bfloat16, which Tesla T4 of capability 7.5 does not have"
    is_gpu(monkeypatch, cuda, "10.3", arch="gfx1030")
    assert (
        matrix_units.lacking_units(GPU, torch.float32)
        == "Matrix Cores for TF32, which gfx1030 does not have"
    )


def test_the_lab_asks_the_device_that_it_handed_out(
    lab: Lab,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    cuda: "FakeCuda",
) -> None:
    is_cpu(monkeypatch, [])

    before = lab.lacks_units(torch.float16)
    lab.device("cuda:1")

    assert (before, lab.lacks_units(torch.float16)) == ("AVX512-FP16 or AMX-FP16", "")


def test_a_dtype_without_such_units_is_refused(lab: Lab) -> None:  # noqa: F811
    with pytest.raises(ValueError, match="dtype takes float16, bfloat16, float32"):
        lab.lacks_units(torch.int64)
    with pytest.raises(TypeError, match="dtype takes a dtype of torch"):
        lab.lacks_units("float16")  # type: ignore[arg-type]
