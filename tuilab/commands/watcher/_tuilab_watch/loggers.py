"""Mark the values that the script gives to its loggers, and how long the loggers take.

If a logger calls another logger, only the outer call is marked.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import layout

_now = time.monotonic_ns
_LIGHTNING = (("lightning.pytorch", "lightning"), ("pytorch_lightning", "lightning"))


class LoggerNesting(threading.local):
    """Says if this thread is in a logger whose values are marked, and in a logger that is timed."""

    is_in_marked = False
    is_in_timed = False


class Loggers:
    """The loggers that are loaded: each of their functions is wrapped once, and works as before."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._nesting = LoggerNesting()
        self._wrapped: set[tuple[int, str]] = set()  # ids of owners, and names of functions

    def wrap_loaded(self) -> None:
        """Wrap the functions of loggers that were loaded since the last call."""
        functions = [
            *functions_of_writers(),
            *functions_of_lightning(),
            *functions_of_modules(),
            *functions_of_others(),
        ]
        for owner, name, source, read in functions:
            if owner is None or name not in vars(owner):
                continue
            key = (id(owner), name)
            if key in self._wrapped:
                continue
            self._wrapped.add(key)
            wrapper = self._make_wrapper(vars(owner)[name], source, read)
            setattr(owner, name, wrapper)

    def _make_wrapper(
        self, function: Callable[..., Any], source: str, read: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        """Return a wrapper that marks the values and the time of a function.

        Without `read`, the wrapper marks only the time: another function marks the values.
        """
        nesting = self._nesting
        is_compiling = self._watcher.is_compiling

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            is_outermost_marked = read is not None and not nesting.is_in_marked
            is_outermost_timed = not nesting.is_in_timed
            if is_compiling() or not (is_outermost_marked or is_outermost_timed):
                return function(*args, **kwargs)
            called = _now()
            began = called
            try:
                nesting.is_in_timed = True
                if is_outermost_marked and read is not None:
                    nesting.is_in_marked = True
                    self._mark_values(source, read, args, kwargs)
                    began = _now()
                return function(*args, **kwargs)
            finally:
                if is_outermost_marked:
                    nesting.is_in_marked = False
                if is_outermost_timed:
                    nesting.is_in_timed = False
                    self._mark_time(called, began)

        return wrapper

    def _mark_time(self, called: int, began: int) -> None:
        """Mark how long a logger took, if this thread trains.

        Other threads log while the step continues.
        """
        ended = _now()
        watcher = self._watcher
        if threading.get_ident() in watcher.threads:
            spent_ns = min(watcher.spent_ns + began - called, layout.MOST)
            watcher.mark(layout.LOGGER_CALL, began, ended, 0.0, spent_ns)
            watcher.spent_ns = _now() - ended

    def _mark_values(self, source: str, read: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Mark the values that a logger was given."""
        try:
            step, values = read(*args, **kwargs)
            self._watcher.log(step, values, source)
        except Exception as problem:  # the logger may reject these arguments as well
            self._watcher.fail(problem)


# ---- the functions to wrap: owner, name of the function, source, reader of its arguments


def functions_of_writers() -> Iterator[tuple[Any, str, str, Callable[..., Any]]]:
    """Yield the functions of the two SummaryWriters, those of torch and of tensorboardX."""
    modules = (
        ("torch.utils.tensorboard.writer", "tensorboard"),
        ("tensorboardX.writer", "tensorboardX"),
    )
    for module, source in modules:
        writer = _find(module, "SummaryWriter")
        yield writer, "add_scalar", source, read_scalar
        yield writer, "add_scalars", source, read_scalars


def functions_of_lightning() -> Iterator[tuple[Any, str, str, Callable[..., Any]]]:
    """Yield the functions of Lightning that receive values.

    All values of `self.log` pass the connector, even if there is no logger. The script may also
    call a logger directly.
    """
    for package, source in _LIGHTNING:
        connector_module = f"{package}.trainer.connectors.logger_connector.logger_connector"
        connector = _find(connector_module, "_LoggerConnector")
        yield connector, "log_metrics", source, read_connector
        base = _find(f"{package}.loggers.logger", "Logger")
        if base is None:
            continue
        classes = [base]
        for logger_class in classes:
            classes.extend(logger_class.__subclasses__())  # the loop comes to these as well
            yield logger_class, "log_metrics", source, read_metrics


def functions_of_modules() -> Iterator[tuple[Any, str, str, None]]:
    """Yield the methods by which a module of Lightning logs.

    The values pass the connector later, and are marked there.
    """
    for package, source in _LIGHTNING:
        module = _find(f"{package}.core.module", "LightningModule")
        yield module, "log", source, None
        yield module, "log_dict", source, None


def functions_of_others() -> Iterator[tuple[Any, str, str, Callable[..., Any]]]:
    """Yield the functions of the other libraries that log values."""
    yield _find("transformers.trainer", "Trainer"), "log", "transformers", read_trainer
    yield _find("accelerate.accelerator", "Accelerator"), "log", "accelerate", read_metrics
    yield _find("tqdm.std", "tqdm"), "set_postfix", "tqdm", read_bar
    # `wandb.log` is bound to a run, so it reaches this method.
    run = _find("wandb.sdk.wandb_run", "Run")
    method = "_log" if hasattr(run, "_log") else "log"
    yield run, method, "wandb", read_metrics
    yield sys.modules.get("mlflow"), "log_metric", "mlflow", read_metric
    yield sys.modules.get("mlflow"), "log_metrics", "mlflow", read_mlflow


def _find(module: str, name: str) -> Any:
    """Return a name of a module; None if the module is not loaded, or has no such name."""
    return getattr(sys.modules.get(module), name, None)


# ---- the readers: each takes the arguments of a function, and returns the step and the values
#
# `this` is the object whose method is called. The name stays, because a script may pass values by
# keyword under almost any other name.


def read_scalar(
    this: Any, tag: str, scalar_value: Any, global_step: Any = None, *args: Any, **kwargs: Any
) -> Any:
    return global_step, {tag: scalar_value}


def read_scalars(
    this: Any,
    main_tag: str,
    tag_scalar_dict: Any,
    global_step: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return the step and the values of `SummaryWriter.add_scalars`, named after its main tag."""
    return global_step, {f"{main_tag}/{tag}": value for tag, value in tag_scalar_dict.items()}


def read_metrics(this: Any, values: Any = None, step: Any = None, *args: Any, **kwargs: Any) -> Any:
    for name in ("metrics", "data"):
        if name in kwargs:
            return step, kwargs[name]
    return step, values


def read_connector(this: Any, metrics: Any, step: Any = None) -> Any:
    if step is None:
        step = metrics.get("step")
    if step is None:
        step = this.trainer.fit_loop.epoch_loop._batches_that_stepped
    return int(step), {name: value for name, value in metrics.items() if name != "step"}


def read_trainer(this: Any, logs: Any, *args: Any, **kwargs: Any) -> Any:
    return this.state.global_step, logs


def read_bar(this: Any, ordered_dict: Any = None, refresh: bool = True, **values: Any) -> Any:
    # The values of Lightning's own bars are marked when Lightning logs them.
    if type(this).__module__.startswith(("lightning.", "pytorch_lightning.")):
        return None, {}
    ordered_values = dict(ordered_dict or {})
    return None, {**ordered_values, **values}


def read_metric(key: str, value: Any, step: Any = None, *args: Any, **kwargs: Any) -> Any:
    return step, {key: value}


def read_mlflow(metrics: Any, step: Any = None, *args: Any, **kwargs: Any) -> Any:
    return step, metrics
