"""What people are told to do about a failure: by what its exception says."""

from types import ModuleType

import pytest

from tuilab.lab.failures.hints import hint_for
from tuilab.lab.lab import Lab

MORE = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."
    "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
    "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
FULL = "the GPU has no memory left: use a smaller size, or another GPU; nvidia-smi shows who else uses it"
TIGHT = "CUDA out of memory. Tried to allocate 7.49 GiB. GPU 0 has a total capacity of 15.47 GiB of which 6.71 GiB is free. "


class AcceleratorError(RuntimeError):
    """What torch raises for an error of CUDA since 2.8."""


@pytest.mark.parametrize(
    ("problem", "advice"),
    [
        (AcceleratorError("CUDA error: out of memory" + MORE), FULL),
        (
            RuntimeError(
                "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
            ),
            FULL,
        ),
        (
            RuntimeError(
                "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"
            ),
            FULL,
        ),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), FULL),
        (RuntimeError("Unable to find a valid cuDNN algorithm to run convolution"), FULL),
        (RuntimeError("GET was unable to find an engine to execute this computation"), FULL),
        (
            AcceleratorError("CUDA error: device-side assert triggered" + MORE),
            "an index or label is out of range",
        ),
        (
            AcceleratorError("CUDA error: an illegal memory access was encountered" + MORE),
            "memory that is not its own",
        ),
        (AcceleratorError("CUDA error: misaligned address" + MORE), "memory that is not its own"),
        (
            AcceleratorError("CUDA error: unspecified launch failure" + MORE),
            "CUDA_LAUNCH_BLOCKING=1",
        ),
        (
            AcceleratorError(
                "CUDA error: no kernel image is available for execution on the device"
            ),
            "has no kernels for this GPU",
        ),
        (
            RuntimeError("CUDA driver version is insufficient for CUDA runtime version"),
            "driver is too old for this torch",
        ),
        (
            RuntimeError("The NVIDIA driver on your system is too old (found version 12080)."),
            "driver is too old for this torch",
        ),
        (
            AcceleratorError(
                "CUDA error: the provided PTX was compiled with an unsupported toolchain."
            ),
            "too old for this torch",
        ),
        (
            RuntimeError("Error 804: forward compatibility was attempted on non supported HW"),
            "different versions: reboot",
        ),
        (
            RuntimeError("Found no NVIDIA driver on your system."),
            "this machine has no NVIDIA driver",
        ),
        (AssertionError("Torch not compiled with CUDA enabled"), "this build of torch has no CUDA"),
        (
            AcceleratorError("CUDA error: all CUDA-capable devices are busy or unavailable"),
            "another process uses this GPU exclusively",
        ),
        (
            AcceleratorError("CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
            "another process uses this GPU exclusively",
        ),
        (AcceleratorError("CUDA error: invalid device ordinal"), "no GPU has this number"),
        (RuntimeError("No CUDA GPUs are available"), "torch sees no GPU"),
        (AcceleratorError("CUDA error: no CUDA-capable device is detected"), "torch sees no GPU"),
        (RuntimeError("Error 802: system not yet initialized"), "nvidia-fabricmanager"),
        (
            RuntimeError("Cannot re-initialize CUDA in forked subprocess."),
            'multiprocessing_context="spawn"',
        ),
        (
            AcceleratorError("CUDA error: operation not permitted when stream is capturing"),
            "a CUDA graph is being captured",
        ),
        (
            AcceleratorError("CUDA error: uncorrectable ECC error encountered"),
            "the GPU or its driver failed",
        ),
        (
            RuntimeError(
                "CUDA unknown error - this may be due to an incorrectly set up environment"
            ),
            "driver failed",
        ),
        (
            RuntimeError("NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error"),
            "NCCL_DEBUG=WARN",
        ),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory"
            ),
            "the machine has no memory",
        ),
        (
            ModuleNotFoundError("No module named 'einops'"),
            "install the module into the environment that tuilab runs in",
        ),
        (
            RuntimeError(
                "unable to write to file </torch_1> No space left on device: shared memory"
            ),
            "/dev/shm is too small",
        ),
        (OSError("[Errno 24] Too many open files"), "ulimit -n"),
        (
            TypeError("Lab.claim() got an unexpected keyword argument 'ratio'"),
            "use lab.claim_ratio(key, ratio, ...)",
        ),
        (
            TypeError("Lab.claim_ratio() got an unexpected keyword argument 'advises'"),
            "use lab.advise(name, values, ...)",
        ),
        (ValueError("device-side assert"), ""),
        (ValueError("no good"), ""),
    ],
)
def test_a_failure_comes_with_what_to_do(problem: Exception, advice: str) -> None:
    hint = hint_for(problem, str(problem))

    assert (advice in hint) if advice else (hint == "")


@pytest.mark.parametrize(
    ("told", "others"),
    [
        (
            "Process 28800 has 15.53 MiB memory in use. Process 54776 has 7.75 GiB memory in use. "
            "Including non-PyTorch memory, this process has 222.00 MiB memory in use.",
            "other processes use part of it: process 28800 (15.53 MiB), process 54776 (7.75 GiB)",
        ),
        (
            "Including non-PyTorch memory, this process has 15.00 GiB memory in use.",
            "nvidia-smi shows who else uses it",
        ),
        (
            "Process 414660 has 13.09 GiB memory in use. Of the allocated memory",
            "nvidia-smi shows who else uses it",
        ),
    ],
    ids=["torch names them", "there are none", "in a container torch does not know itself"],
)
def test_who_else_has_memory_of_a_full_gpu_is_named_where_torch_knows(
    told: str, others: str
) -> None:
    hint = hint_for(RuntimeError("x"), TIGHT + told)

    assert hint == f"the GPU has no memory left: use a smaller size, or another GPU; {others}"


class Mine(Lab):
    def __dir__(self) -> list[str]:
        raise AssertionError("code of a scenario")


LAB = Lab.__new__(Lab)


@pytest.mark.parametrize(
    ("owner", "name", "advice"),
    [
        (LAB, "clam", "did you mean claim?"),
        (LAB, "x", ""),
        (pytest, "rises", "did you mean raises?"),
        (Mine.__new__(Mine), "clam", ""),
    ],
)
def test_a_misspelt_call_of_the_lab_or_a_module_is_told_what_it_is_meant_for(
    owner: object, name: str, advice: str
) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)

    assert hint_for(caught.value, str(caught.value)) == advice


def test_whatever_an_error_says_of_a_name_is_no_error_of_ours() -> None:
    odd = ModuleType("odd")
    vars(odd).update({"\ud800claim": 1, 5: 1})  # type: ignore[dict-item]

    for name in (5, "clam", "x" * 1_000_000):
        assert hint_for(AttributeError("odd", name=name, obj=odd), "odd") == ""  # type: ignore[arg-type]
