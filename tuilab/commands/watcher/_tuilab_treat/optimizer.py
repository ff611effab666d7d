"""Treat how optimizers step, and how gradients are cleared."""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import Any

from .places import user_place
from .reports import Reports

NAMES = ("fused", "foreach", "set-to-none")


class OptimizerTreatments:
    """Changes the arguments of optimizers, and of their `zero_grad`."""

    def __init__(self, torch: Any, wanted: dict[str, str], reports: Reports, watcher: Any) -> None:
        self._torch = torch
        self._wanted = wanted
        self._reports = reports
        self._is_compiling = watcher.is_compiling
        self._seen: Any = weakref.WeakSet()  # the optimizers that have a report
        # The id and the treatment of optimizers whose __init__ runs.
        self._beginning: set[tuple[int, str]] = set()

    def begin(self) -> None:
        """Treat all optimizers that the script makes from now on."""
        optim = self._torch.optim
        names = [name for name in ("fused", "foreach") if name in self._wanted]
        for kind in _optimizer_classes(optim):
            for name in names:
                if _takes(kind, name):
                    self._wrap_init(kind, name)
        if "set-to-none" in self._wanted:
            self._wrap_zero_grad(optim.Optimizer)
            self._wrap_zero_grad(self._torch.nn.Module)

    def see(self, optimizer: Any) -> None:
        """Report an optimizer that steps although it was not treated."""
        if optimizer in self._seen:
            return
        kind = type(optimizer).__name__
        for name in ("fused", "foreach"):
            if name in self._wanted:
                self._reports.skipped(name, f"{kind} does not take {name}=True")

    def _wrap_init(self, kind: Any, name: str) -> None:
        init = kind.__init__

        @functools.wraps(init)
        def treated_init(this: Any, *args: Any, **kwargs: Any) -> None:
            # The __init__ of a class may call that of its parent: AdamW calls Adam's.
            key = id(this), name
            if key in self._beginning:
                init(this, *args, **kwargs)
                return
            self._beginning.add(key)
            try:
                self._init_treated(init, name, this, args, kwargs)
            finally:
                self._beginning.discard(key)

        kind.__init__ = treated_init

    def _init_treated(
        self, init: Any, name: str, this: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Begin an optimizer with the treated argument, or as the script has it."""
        if args and _is_iterator(args[0]):
            args = (list(args[0]), *args[1:])
        elif _is_iterator(kwargs.get("params")):
            kwargs = {**kwargs, "params": list(kwargs["params"])}
        kind = type(this).__name__
        place = user_place()
        try:
            parameters = _parameters(args[0] if args else kwargs.get("params"))
            why, is_already_set = _why_left(name, kwargs, parameters)
        except Exception as problem:  # whatever the script gives, torch looks at it next
            why, is_already_set = f"its arguments are unusual: {problem!r}", False
        if name == "foreach" and "fused" in self._wanted:
            why = "fused=True is wanted as well, and torch takes only one of them"
        if why:
            init(this, *args, **kwargs)
            self._reports.skipped(name, f"{kind}: {why}", place, is_already_set=is_already_set)
            self._seen.add(this)
            return
        other = "foreach" if name == "fused" else "fused"
        changed = {**kwargs, name: True}
        if kwargs.get(other):
            changed[other] = None  # torch refuses both
        refusal = ""
        try:
            init(this, *args, **changed)
        except Exception as problem:
            refusal = f"torch refused {kind}({name}=True): {problem}"
        if refusal:
            # The other arguments do not allow it, or the script is wrong and raises here as well.
            init(this, *args, **kwargs)
            self._reports.skipped(name, refusal, place)
        else:
            self._reports.did(name, f"{kind}({name}=True)", place)
        self._seen.add(this)

    def _wrap_zero_grad(self, owner: Any) -> None:
        """Have `zero_grad` give the memory of gradients back where the script fills it."""
        zero_grad = owner.zero_grad
        default = inspect.signature(zero_grad).parameters["set_to_none"].default
        reports = self._reports
        is_compiling = self._is_compiling
        treatment = "set-to-none"
        keys: dict[Any, str] = {}  # of the reports, by class

        @functools.wraps(zero_grad)
        def treated_zero_grad(this: Any, set_to_none: Any = default) -> None:
            if is_compiling():
                zero_grad(this, set_to_none)
                return
            if set_to_none:
                if not reports.has_heard_of(treatment):
                    why = "zero_grad sets gradients to None already"
                    reports.skipped(treatment, why, user_place(), is_already_set=True)
            elif type(this) in keys:
                reports.again(keys[type(this)])
            else:
                words = f"{type(this).__name__}.zero_grad(set_to_none=True)"
                keys[type(this)] = reports.did(treatment, words, user_place())
            zero_grad(this, True)

        owner.zero_grad = treated_zero_grad


def _optimizer_classes(optim: Any) -> list[Any]:
    """Return the classes of torch.optim that have an `__init__` of their own."""
    kinds = []
    for kind in vars(optim).values():
        is_optimizer = isinstance(kind, type) and issubclass(kind, optim.Optimizer)
        if is_optimizer and "__init__" in vars(kind) and kind not in kinds:
            kinds.append(kind)
    return kinds


def _takes(kind: Any, name: str) -> bool:
    return name in inspect.signature(kind.__init__).parameters


def _is_iterator(parameters: Any) -> bool:
    """Return whether parameters can be read only once, as those of `model.parameters()`."""
    return hasattr(parameters, "__next__")


def _parameters(given: Any) -> list[Any]:
    """Return the tensors that an optimizer is given: alone, with names, or in groups."""
    tensors: list[Any] = []
    if not isinstance(given, (list, tuple)):
        return tensors
    for item in given:
        if isinstance(item, dict):
            group = item.get("params")
            if group is not None and _is_iterator(group):
                group = list(group)
                item["params"] = group
            if isinstance(group, (list, tuple)):
                tensors += [_tensor(member) for member in group]
            elif group is not None:
                tensors.append(group)
        else:
            tensors.append(_tensor(item))
    return tensors


def _tensor(member: Any) -> Any:
    """Return a parameter, which may come with its name."""
    if isinstance(member, tuple) and len(member) == 2:
        return member[1]
    return member


def _why_left(name: str, kwargs: dict[str, Any], parameters: list[Any]) -> tuple[str, bool]:
    """Return why an optimizer is left as it is, and whether it has the treatment already."""
    if kwargs.get(name):
        return f"the script has {name}=True", True
    if kwargs.get("differentiable"):
        return "differentiable=True does not allow it", False
    if name == "fused" and not all(_is_floating(tensor) for tensor in parameters):
        return "some of its parameters are no real floating-point numbers", False
    if name == "foreach":
        if kwargs.get("fused"):
            return "the script has fused=True, which is faster", False
        is_default = kwargs.get("foreach") is None
        if is_default and parameters and all(_is_on_gpu(tensor) for tensor in parameters):
            return "on a GPU, torch chooses foreach by itself", True
    return "", False


def _is_floating(tensor: Any) -> bool:
    # Torch itself checks this only when the optimizer steps.
    is_floating_point = getattr(tensor, "is_floating_point", None)
    return is_floating_point is None or bool(is_floating_point())


def _is_on_gpu(tensor: Any) -> bool:
    return bool(getattr(tensor, "is_cuda", False))
