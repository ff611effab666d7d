"""Count the FLOPs of operators by the formulas of torch, and name the operators that have none.

The formulas are those of `torch.utils.flop_counter`: matrix products, convolutions and attention.
Work on single elements has no formula, and is no part of the FLOPs.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import Any

from .mode import BUILT_IN

_MOST_NAMES = 8
_LONGEST_NAME = 60
_PLAIN_NAMESPACES = (*BUILT_IN, "fsdp")  # without products, except those of _WITHOUT_FORMULA
# Operators of aten that compute products, but have no formula.
_WITHOUT_FORMULA = frozenset(
    (
        "mkldnn_rnn_layer",
        "mkldnn_rnn_layer_backward",
        "_cudnn_rnn",
        "_cudnn_rnn_backward",
        "miopen_rnn",
        "miopen_rnn_backward",
        "mv",
        "dot",
        "vdot",
        "addmv",
        "addr",
        "_int_mm",
        "_grouped_mm",
        "_scaled_grouped_mm",
        "_weight_int4pack_mm",
        "_weight_int8pack_mm",
        "_cslt_sparse_mm",
        "_fft_r2c",
        "_fft_c2c",
        "_fft_c2r",
        "_cdist_forward",
        "_cdist_backward",
        "_trilinear",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_fused_attention_overrideable_backward",
        "_native_multi_head_attention",
        "_transformer_encoder_layer_fwd",
        "linalg_inv_ex",
        "linalg_cholesky_ex",
        "linalg_solve_triangular",
        "_linalg_svd",
        "_linalg_eigh",
        "_linalg_solve_ex",
        "linalg_qr",
        "linalg_lu_factor_ex",
        # In inference mode, these arrive whole.
        "linear",
        "matmul",
        "conv1d",
        "conv2d",
        "conv3d",
        "scaled_dot_product_attention",
    )
)


class FlopCount:
    """The FLOPs of one step, by the dtype that they are computed in."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._formulas = _formulas(torch)
        self._tf32 = _tf32_of(torch)
        self._by_type: dict[tuple[str, str], int] = {}  # by type of device, and kind of numbers
        self._devices: dict[str, Any] = {}  # by type of device: the first device
        self.uncounted: dict[str, None] = {}  # names of operators and kernels without a formula
        self._lock = threading.Lock()  # a backward on several GPUs has a thread for each

    @property
    def total(self) -> int:
        return sum(self._by_type.values())

    def add(self, operator: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Add the FLOPs of one operator that has run."""
        packet = getattr(operator, "overloadpacket", operator)
        formula = self._formulas.get(packet)
        if formula is None:
            self._note_uncounted(operator, args)
            return
        tensor = self._first_tensor(args)
        if tensor is None or tensor.layout is not self._torch.strided:
            self.name_uncounted(f"{_name_of(operator)} of sparse tensors")
            return
        flops = formula(*args, **kwargs, out_val=result)
        if type(flops) is not int:  # a formula of the script may return anything
            self.name_uncounted(_name_of(operator))
            return
        key = tensor.device.type, self._kind_of(packet, tensor)
        with self._lock:
            self._devices.setdefault(tensor.device.type, tensor.device)
            self._by_type[key] = self._by_type.get(key, 0) + flops

    def name_uncounted(self, name: str) -> None:
        """Name an operator or a kernel whose work is not counted."""
        if len(self.uncounted) < _MOST_NAMES:
            self.uncounted[name[:_LONGEST_NAME]] = None

    def busiest_device(self) -> Any:
        """Return the device with the most FLOPs; None if there are no FLOPs."""
        if not self._by_type:
            return None
        device_type, _ = max(self._by_type, key=lambda key: self._by_type[key])
        return self._devices[device_type]

    def by_kind(self) -> dict[str, int]:
        """Return the FLOPs by the dtype in which they were computed, or by "tf32"."""
        kinds: dict[str, int] = {}
        for (_, kind), flops in self._by_type.items():
            kinds[kind] = kinds.get(kind, 0) + flops
        return kinds

    def _note_uncounted(self, operator: Any, args: Any) -> None:
        """Name an operator without a formula, if it may compute products."""
        if operator.namespace in _PLAIN_NAMESPACES:
            is_notable = _short_name(operator) in _WITHOUT_FORMULA
        else:
            is_notable = self._first_tensor(args) is not None
        if is_notable:
            self.name_uncounted(_name_of(operator))

    def _first_tensor(self, args: Any) -> Any:
        for arg in args:
            if isinstance(arg, self._torch.Tensor) and arg.is_floating_point():
                return arg
        return None

    def _kind_of(self, packet: Any, tensor: Any) -> str:
        """Return the dtype of a tensor; "tf32" if the GPU rounds its float32 to that."""
        dtype = str(tensor.dtype).rpartition(".")[2]
        if dtype == "float32" and tensor.is_cuda:
            is_convolution = "convolution" in str(packet)
            if self._tf32["convolutions" if is_convolution else "products"]:
                return "tf32"
        return dtype


def _formulas(torch: Any) -> dict[Any, Any]:
    """Return the formulas of torch, and those for the attention of a CPU, which torch lacks."""
    flop_counter: Any = import_module("torch.utils.flop_counter")
    formulas = dict(flop_counter.flop_registry)
    aten = torch.ops.aten
    same_work = (
        (
            "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_flash_attention",
        ),
        (
            "_scaled_dot_product_flash_attention_for_cpu_backward",
            "_scaled_dot_product_flash_attention_backward",
        ),
    )
    for name, like in same_work:
        packet = getattr(aten, name, None)
        formula = formulas.get(getattr(aten, like, None))
        if packet is not None and formula is not None:
            formulas.setdefault(packet, formula)
    return formulas


def _tf32_of(torch: Any) -> dict[str, bool]:
    """Return whether products and convolutions in float32 use TF32 on a GPU."""
    backends = torch.backends
    return {
        "products": _is_tf32(backends.cuda.matmul, torch._C, "_get_cublas_allow_tf32"),
        "convolutions": _is_tf32(
            getattr(backends.cudnn, "conv", None), torch._C, "_get_cudnn_allow_tf32"
        ),
    }


def _is_tf32(newer_switch: Any, library: Any, older_switch: str) -> bool:
    """Return the state of a switch; torch refuses the older one if the newer one was used."""
    try:
        return bool(getattr(library, older_switch)())
    except (AttributeError, RuntimeError):
        return getattr(newer_switch, "fp32_precision", "") == "tf32"


def _short_name(operator: Any) -> str:
    """Return the name of an operator without its namespace and its overload."""
    packet = getattr(operator, "overloadpacket", operator)
    return getattr(packet, "__name__", "") or str(operator)


def _name_of(operator: Any) -> str:
    namespace = getattr(operator, "namespace", "")
    name = _short_name(operator)
    return f"{namespace}::{name}" if namespace else name


def triton_kernels() -> Any:
    """Return the class of the kernels of Triton, if the script has loaded it; else None."""
    module: Any = sys.modules.get("triton.runtime.jit")
    return getattr(module, "JITFunction", None)
