"""Find out which hardware units for matrix products of a dtype a device lacks.

They are Tensor Cores, Matrix Cores of AMD, AVX-512 or AMX. No device reports them, so a GPU is
known by its generation, and a CPU by its instructions.
"""

import re

import torch

from tuilab.text.display import show

_OLD_FLOAT8 = (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)  # one generation of AMD only
_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
DTYPES = (torch.float16, torch.bfloat16, torch.float32, *_FLOAT8, *_OLD_FLOAT8)

# The lowest capability with units for a dtype.
_NVIDIA = {torch.float16: (7, 0), torch.bfloat16: (8, 0), torch.float32: (8, 0)}
_NVIDIA |= dict.fromkeys(_FLOAT8, (8, 9))
# GPUs of capability 7.5 without Tensor Cores, which other GPUs of this capability have.
_NVIDIA_WITHOUT = r"GTX 16|\bMX[45]50|\bT(400|500|550|600|1000|1200)\b"
# The names of the architectures with units for a dtype, as a pattern.
_AMD = {
    torch.float16: "gfx9(08|0a|4.|5.)",
    torch.bfloat16: "gfx9(08|0a|4.|5.)",
    torch.float32: "gfx94.",
}
_AMD |= dict.fromkeys(_FLOAT8, "gfx95.") | dict.fromkeys(_OLD_FLOAT8, "gfx94.")
_CPU = {
    torch.float16: (("avx512_fp16", "amx_fp16"), "AVX512-FP16 or AMX-FP16"),
    # The third instruction is that of ARM.
    torch.bfloat16: (("avx512_bf16", "amx_tile", "bf16"), "AVX512-BF16 or AMX"),
}


def lacking_units(device: torch.device, dtype: torch.dtype) -> str:
    """Return a description of the missing units; empty if none is missing. float32 means TF32."""
    if device.type != "cuda":
        return _lacking_on_cpu(dtype)
    gpu = torch.cuda.get_device_properties(device)
    if torch.version.hip is not None:
        name = show(gpu.gcnArchName, 200).partition(":")[0]
        if re.fullmatch(_AMD[dtype], name):
            return ""
        return f"Matrix Cores for {_name_of(dtype)}, which {name} does not have"
    is_new_enough = dtype in _NVIDIA and (gpu.major, gpu.minor) >= _NVIDIA[dtype]
    if is_new_enough and not re.search(_NVIDIA_WITHOUT, gpu.name):
        return ""
    return (
        f"Tensor Cores for {_name_of(dtype)}, which {show(gpu.name, 200)} of capability"
        f" {gpu.major}.{gpu.minor} does not have"
    )


def _lacking_on_cpu(dtype: torch.dtype) -> str:
    """Return the instructions that the CPU lacks, or that a GPU is needed; empty if it has them."""
    if dtype not in _CPU:
        return f"a GPU with units for {_name_of(dtype)}"
    instructions, words = _CPU[dtype]
    if any(_has_instruction(instruction) for instruction in instructions):
        return ""
    return words


def _has_instruction(instruction: str) -> bool:
    """Ask torch whether the CPU has an instruction, through its newer and its older functions."""
    get_capabilities = getattr(torch.cpu, "get_capabilities", None)
    if get_capabilities is not None and get_capabilities().get(instruction):
        return True
    is_supported = getattr(torch.cpu, f"_is_{instruction}_supported", None)
    return is_supported is not None and bool(is_supported())


def _name_of(dtype: torch.dtype) -> str:
    if dtype == torch.float32:
        return "TF32"
    return str(dtype).removeprefix("torch.")
