"""Find the root modules of a training, and treat them.

A root is an outermost module that the training calls with gradients. Roots are found during the
first steps, which are untreated. So nothing of ours is in the way while torch.compile traces, and a
GAN shows all its roots.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

from .compiling import CompileTreatment
from .reports import Reports

_MOST = 100  # roots
_NOBODY = -1
_CONVOLUTIONS = ("Conv2d", "ConvTranspose2d")
# Modules of Dynamo that keep the function that every module is called with.
_DYNAMO = ("torch._dynamo.utils", "torch._dynamo.variables.nn_module")
_KEPT_CALL = "unpatched_nn_module_call_impl"


class Root:
    """A root, and what was seen while it ran."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.is_autocast = False
        self.autocast_dtype = ""
        self.attentions = 0  # calls so far


class RootFinder:
    """Finds the roots of a process, between `begin` and `end`."""

    def __init__(self, torch: Any, is_compiling: Callable[[], bool]) -> None:
        self._torch = torch
        self._is_compiling = is_compiling
        self._call: Any = None
        self._wrapper: Any = None
        self._found: dict[int, Root] = {}
        self._local = threading.local()
        self._running_backward = getattr(torch._C, "_current_graph_task_id", lambda: _NOBODY)

    def begin(self) -> None:
        """Look at each call of a module."""
        module_class = self._torch.nn.Module
        call = module_class._call_impl
        local = self._local
        is_compiling = self._is_compiling

        @functools.wraps(call)
        def noticed_call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return call(this, *args, **kwargs)
            depth = getattr(local, "depth", 0)
            self._notice(this, depth)
            local.depth = depth + 1
            try:
                return call(this, *args, **kwargs)
            finally:
                local.depth = depth
                if not depth:
                    local.root = None

        self._call = call
        self._wrapper = noticed_call
        module_class._call_impl = noticed_call
        _show_dynamo(call, noticed_call)

    def end(self) -> None:
        """Look no more."""
        module_class = self._torch.nn.Module
        if module_class._call_impl is self._wrapper:
            module_class._call_impl = self._call
        _show_dynamo(self._wrapper, self._call)

    @property
    def roots(self) -> list[Root]:
        """The roots that were found; a module within another root is none."""
        inner: set[int] = set()
        for root in self._found.values():
            for module in root.module.modules():
                if module is not root.module:
                    inner.add(id(module))
        return [root for key, root in self._found.items() if key not in inner]

    def count_attention(self) -> None:
        """Count a call of attention for the root that runs now."""
        root = getattr(self._local, "root", None)
        if root is not None:
            root.attentions += 1

    def _notice(self, module: Any, depth: int) -> None:
        """Note a root, and whether autocast is on within it."""
        try:
            if not depth:
                self._local.root = self._root_of(module)
            root = self._local.root
            if root is not None and not root.is_autocast:
                self._look_for_autocast(root)
        except Exception:
            self._local.root = None

    def _root_of(self, module: Any) -> Root | None:
        root = self._found.get(id(module))
        if root is not None:
            return root
        # Checkpointing calls inner modules once more during a backward.
        is_in_backward = self._running_backward() != _NOBODY
        if is_in_backward or not self._torch.is_grad_enabled() or len(self._found) >= _MOST:
            return None
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return None
        root = Root(module)
        self._found[id(module)] = root
        return root

    def _look_for_autocast(self, root: Root) -> None:
        device = device_of(root.module)
        if is_autocast(self._torch, device):
            root.is_autocast = True
            root.autocast_dtype = autocast_dtype(self._torch, device)


def _show_dynamo(before: Any, after: Any) -> None:
    """Let Dynamo know what every module is called with now, so that it traces as usual.

    If it finds another function, it takes that for a change by the script, and compiles again.
    """
    for name in _DYNAMO:
        module: Any = sys.modules.get(name)
        if getattr(module, _KEPT_CALL, None) is before:
            setattr(module, _KEPT_CALL, after)


def device_of(module: Any) -> str:
    """Return the type of the device of a module's parameters."""
    for parameter in module.parameters():
        return str(parameter.device.type)
    return "cpu"


def is_autocast(torch: Any, device: str) -> bool:
    """Return whether autocast is on for a type of device."""
    try:
        return bool(torch.is_autocast_enabled(device))
    except TypeError:  # before torch 2.4
        if device == "cpu":
            return bool(torch.is_autocast_cpu_enabled())
        return bool(torch.is_autocast_enabled())


def autocast_dtype(torch: Any, device: str) -> str:
    """Return the dtype of autocast, such as "bfloat16"; empty if torch does not say it."""
    get_dtype = getattr(torch, "get_autocast_dtype", None)
    if get_dtype is None:
        return ""
    return str(get_dtype(device)).rpartition(".")[2]


def convolutions_of(module: Any) -> list[Any]:
    """Return the modules whose input a memory format may make faster."""
    convolutions = []
    for inner in module.modules():
        if any(parent.__name__ in _CONVOLUTIONS for parent in type(inner).__mro__):
            convolutions.append(inner)
    return convolutions


def are_channels_last(torch: Any, convolutions: list[Any]) -> bool:
    """Return whether the weights of convolutions are in the format channels_last."""
    weights = []
    for convolution in convolutions:
        weight = convolution.weight
        # Weights with one channel or of one pixel are in both formats.
        if not weight.is_contiguous():
            weights.append(weight)
    if not weights:
        return False
    return all(weight.is_contiguous(memory_format=torch.channels_last) for weight in weights)


def is_compiled(module: Any) -> bool:
    """Return whether a module, or a module within it, was compiled."""
    for inner in module.modules():
        if type(inner).__name__ == "OptimizedModule":
            return True
        if getattr(inner, "_compiled_call_impl", None) is not None:
            return True
        if hasattr(inner.__dict__.get("forward"), "_torchdynamo_orig_callable"):
            return True
    return False


class RootTreatments:
    """Treats the roots of a process."""

    NAMES = ("bf16", "channels-last", "compile")

    def __init__(
        self, torch: Any, wanted: dict[str, str], reports: Reports, finder: RootFinder
    ) -> None:
        self._torch = torch
        self._wanted = wanted
        self._reports = reports
        self._finder = finder

    @staticmethod
    def is_wanted(wanted: dict[str, str]) -> bool:
        """Return whether any of these treatments is for roots."""
        return any(name in wanted for name in RootTreatments.NAMES)

    def apply(self, optimizers: Any, compiling: CompileTreatment | None) -> None:
        """Treat all roots. `optimizers` are those that have made a step."""
        roots = self._finder.roots
        if not roots:
            for name in self._wanted:
                why = "no module was called with gradients in the first steps"
                self._reports.skipped(self._full(name), why)
            return
        for root in roots:
            forward = TreatedForward(self._torch, _target_of(root.module))
            # A root is compiled last: what is around its forward stays outside the graphs.
            if "channels-last" in self._wanted:
                self._guarded("channels-last", self._arrange, root, forward, list(optimizers))
            if "bf16" in self._wanted:
                self._guarded("bf16", self._autocast, root, forward)
            if compiling is not None:
                self._guarded("compile", self._compile, root, forward, compiling)
            if forward.is_treated:
                forward.target.forward = forward

    def _guarded(self, name: str, treat: Callable[..., None], *args: Any) -> None:
        """Apply one treatment; report a failure instead of raising it."""
        try:
            treat(*args)
        except Exception as problem:
            self._reports.failed(self._full(name), problem)

    def _full(self, name: str) -> str:
        value = self._wanted[name]
        return f"{name}={value}" if value else name

    def _arrange(self, root: Root, forward: TreatedForward, optimizers: list[Any]) -> None:
        """Put the weights of a root into the format channels_last, and later its inputs."""
        treatment = "channels-last"
        kind = _kind_of(root)
        target = forward.target
        convolutions = convolutions_of(target)
        if not convolutions:
            why = f"{kind} has no Conv2d and no ConvTranspose2d"
            self._reports.skipped(treatment, why)
            return
        if are_channels_last(self._torch, convolutions):
            why = f"{kind} is in channels_last"
            self._reports.skipped(treatment, why, is_already_set=True)
            return
        target.to(memory_format=self._torch.channels_last)
        own = {id(parameter) for parameter in target.parameters()}
        for optimizer in optimizers:
            self._arrange_states(optimizer, own)
        forward.arranges = True
        words = f"{kind}.to(memory_format=torch.channels_last): {len(convolutions)} convolutions"
        self._reports.did(treatment, words)

    def _arrange_states(self, optimizer: Any, own: set[int]) -> None:
        """Put the states of an optimizer into the format of their parameters.

        They would be in that format if the script had chosen it at the beginning.
        """
        for parameter, states in optimizer.state.items():
            if id(parameter) not in own or parameter.dim() != 4:
                continue
            for state in states.values():
                if isinstance(state, self._torch.Tensor) and state.shape == parameter.shape:
                    state.data = state.data.contiguous(memory_format=self._torch.channels_last)

    def _autocast(self, root: Root, forward: TreatedForward) -> None:
        """Have a root compute in bfloat16."""
        treatment = "bf16"
        kind = _kind_of(root)
        if root.is_autocast:
            why = f"autocast is on in {kind}, with {root.autocast_dtype or 'a dtype'}"
            self._reports.skipped(treatment, why, is_already_set=True)
            return
        dtypes = {str(parameter.dtype) for parameter in root.module.parameters()}
        if "torch.float32" not in dtypes:
            why = f"{kind} computes in {', '.join(sorted(dtypes))}"
            is_coarse = bool(dtypes & {"torch.bfloat16", "torch.float16"})
            self._reports.skipped(treatment, why, is_already_set=is_coarse)
            return
        device = device_of(root.module)
        if device == "cuda" and not _has_bf16():
            self._reports.skipped(treatment, "this GPU does not compute in bfloat16")
            return
        forward.autocast_device = device
        words = f"torch.autocast({device!r}, torch.bfloat16) around {kind}.forward"
        self._reports.did(treatment, words)

    def _compile(self, root: Root, forward: TreatedForward, compiling: CompileTreatment) -> None:
        """Compile the forward of a root."""
        treatment = self._full("compile")
        kind = _kind_of(root)
        why = compiling.why_not()
        if why:
            self._reports.skipped(treatment, why)
        elif is_compiled(root.module) or compiling.script_compiles():
            # With a value, the calls of torch.compile were changed when the script made them.
            if not self._reports.has_heard_of(treatment):
                why = "the script compiles already"
                self._reports.skipped(treatment, why, is_already_set=True)
        else:
            forward.compile(compiling)
            arguments = "".join(
                f", {name}={option!r}" for name, option in compiling.options.items()
            )
            words = f"torch.compile({kind}.forward{arguments})"
            self._reports.did(treatment, words)


def _has_bf16() -> bool:
    cuda: Any = sys.modules.get("torch.cuda")
    is_supported = getattr(cuda, "is_bf16_supported", None)
    return is_supported is None or bool(is_supported())


def _kind_of(root: Root) -> str:
    return type(root.module).__name__


def _target_of(module: Any) -> Any:
    """Return the module whose forward is replaced: of DistributedDataParallel, the inner one."""
    while type(module).__name__ == "DistributedDataParallel":
        module = module.module
    return module


class TreatedForward:
    """The forward of a module, treated. It takes the place of the method in one instance.

    A copy of the module gets its plain forward, and so does a module that is loaded from a file.
    """

    def __init__(self, torch: Any, target: Any) -> None:
        self._torch = torch
        self.target = target
        self._call = target.forward
        self._is_compiled = False
        self.autocast_device = ""  # empty: no autocast
        self.arranges = False  # whether inputs are put into channels_last
        functools.update_wrapper(self, target.forward)

    @property
    def is_treated(self) -> bool:
        """Whether the forward differs from the plain one."""
        return bool(self.autocast_device or self.arranges or self._is_compiled)

    def compile(self, compiling: CompileTreatment) -> None:
        """Compile the plain forward. What is around it stays outside its graphs."""
        # Module.compile in place makes no graph of torch's own modules, such as Sequential.
        self._call = compiling.of(self._call)
        self._is_compiled = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.arranges:
            args = tuple(self._arranged(value) for value in args)
            kwargs = {name: self._arranged(value) for name, value in kwargs.items()}
        if not self.autocast_device:
            return self._call(*args, **kwargs)
        with self._torch.autocast(self.autocast_device, dtype=self._torch.bfloat16):
            result = self._call(*args, **kwargs)
        return self._in_float32(result)

    def _arranged(self, value: Any) -> Any:
        if isinstance(value, self._torch.Tensor) and value.dim() == 4:
            return value.contiguous(memory_format=self._torch.channels_last)
        return value

    def _in_float32(self, value: Any) -> Any:
        """Return an output with its tensors in float32, as the rest of the script expects them."""
        if isinstance(value, self._torch.Tensor):
            return value.float() if value.dtype == self._torch.bfloat16 else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self._in_float32(member) for member in value])
        if type(value) in (list, tuple):
            return type(value)(self._in_float32(member) for member in value)
        if isinstance(value, dict):
            members = {name: self._in_float32(member) for name, member in value.items()}
            if type(value) is dict:
                return members
            try:
                return type(value)(members)
            except Exception:  # a dict with another constructor stays as it is
                return value
        return value

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        twin = memo.get(id(self.target))
        if twin is None:
            return self
        return type(twin).forward.__get__(twin)

    def __reduce__(self) -> Any:
        return getattr, (self.target, "forward")
