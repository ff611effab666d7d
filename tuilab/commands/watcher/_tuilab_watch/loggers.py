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


class Here(threading.local):
    """Whether this thread is in a logger whose values are marked, and in a logger that is timed."""

    is_heard = False
    is_timed = False


class Loggers:
    """The loggers that are loaded: each of their functions is wrapped once, and works as before."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._here = Here()
        self._taken: set[tuple[int, str]] = set()  # ids of owners, and names of functions

    def look(self) -> None:
        """Wrap the functions of loggers that were loaded since the last call."""
        for owner, name, source, read in (
            *of_writers(),
            *of_lightning(),
            *of_modules(),
            *of_others(),
        ):
            if owner is not None and name in vars(owner) and (id(owner), name) not in self._taken:
                self._taken.add((id(owner), name))
                setattr(owner, name, self._heard(vars(owner)[name], source, read))

    def _heard(
        self, plain: Callable[..., Any], source: str, read: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        """Return a wrapper that marks the values and the time of a function.

        Without `read`, the wrapper marks only the time: another function marks the values.
        """
        here, is_compiling = self._here, self._watcher.is_compiling

        @functools.wraps(plain)
        def heard(*args: Any, **kwargs: Any) -> Any:
            is_first_heard = read is not None and not here.is_heard
            is_first_timed = not here.is_timed
            if is_compiling() or not (is_first_heard or is_first_timed):
                return plain(*args, **kwargs)
            called = began = _now()
            try:
                here.is_timed = True
                if is_first_heard and read is not None:
                    here.is_heard = True
                    self._tell(source, read, args, kwargs)
                    began = _now()
                return plain(*args, **kwargs)
            finally:
                if is_first_heard:
                    here.is_heard = False
                if is_first_timed:
                    here.is_timed = False
                    self._time(called, began)

        return heard

    def _time(self, called: int, began: int) -> None:
        """Mark how long a logger took, if this thread trains.

        Other threads log while the step continues.
        """
        ended, watcher = _now(), self._watcher
        if threading.get_ident() in watcher.threads:
            spent_ns = min(watcher.spent_ns + began - called, layout.MOST)
            watcher.mark(layout.LOGGER_CALL, began, ended, 0.0, spent_ns)
            watcher.spent_ns = _now() - ended

    def _tell(self, source: str, read: Callable[..., Any], args: Any, kwargs: Any) -> None:
        try:
            step, values = read(*args, **kwargs)
            self._watcher.log(step, values, source)
        except Exception as problem:  # the logger may reject these arguments as well
            self._watcher.fail(problem)


# ---- the functions to wrap: owner, name of the function, source, reader of its arguments


def of_writers() -> Iterator[tuple[Any, str, str, Callable[..., Any]]]:
    for module, source in (
        ("torch.utils.tensorboard.writer", "tensorboard"),
        ("tensorboardX.writer", "tensorboardX"),
    ):
        writer = _find(module, "SummaryWriter")
        yield writer, "add_scalar", source, read_scalar
        yield writer, "add_scalars", source, read_scalars


def of_lightning() -> Iterator[tuple[Any, str, str, Callable[..., Any]]]:
    """Yield the functions of Lightning that receive values.

    All values of `self.log` pass the connector, even if there is no logger. The script may also
    call a logger directly.
    """
    for package, source in _LIGHTNING:
        inner = "trainer.connectors.logger_connector.logger_connector"
        yield _find(f"{package}.{inner}", "_LoggerConnector"), "log_metrics", source, read_connector
        kinds = [_find(f"{package}.loggers.logger", "Logger")]
        for kind in kinds:
            if kind is not None:
                kinds.extend(kind.__subclasses__())
                yield kind, "log_metrics", source, read_metrics


def of_modules() -> Iterator[tuple[Any, str, str, None]]:
    """Yield the methods by which a module of Lightning logs.

    The values pass the connector later, and are marked there.
    """
    for package, source in _LIGHTNING:
        module = _find(f"{package}.core.module", "LightningModule")
        yield module, "log", source, None
        yield module, "log_dict", source, None


def of_others() -> Iterator[tuple[Any, str, str, Callable[..., Any]]]:
    yield _find("transformers.trainer", "Trainer"), "log", "transformers", read_trainer
    yield _find("accelerate.accelerator", "Accelerator"), "log", "accelerate", read_metrics
    yield _find("tqdm.std", "tqdm"), "set_postfix", "tqdm", read_bar
    # `wandb.log` is bound to a run, so it reaches this method.
    run = _find("wandb.sdk.wandb_run", "Run")
    yield (
        run,
        "_log" if hasattr(run, "_log") else "log",
        "wandb",
        read_metrics,
    )
    yield sys.modules.get("mlflow"), "log_metric", "mlflow", read_metric
    yield sys.modules.get("mlflow"), "log_metrics", "mlflow", read_mlflow


def _find(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)


# ---- the readers: each takes the arguments of a function, and returns the step and the values


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
    return global_step, {f"{main_tag}/{tag}": value for tag, value in tag_scalar_dict.items()}


def read_metrics(this: Any, values: Any = None, step: Any = None, *args: Any, **kwargs: Any) -> Any:
    values = next((kwargs[name] for name in ("metrics", "data") if name in kwargs), values)
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
    is_lightnings = type(this).__module__.startswith(("lightning.", "pytorch_lightning."))
    return None, {} if is_lightnings else {**dict(ordered_dict or {}), **values}


def read_metric(key: str, value: Any, step: Any = None, *args: Any, **kwargs: Any) -> Any:
    return step, {key: value}


def read_mlflow(metrics: Any, step: Any = None, *args: Any, **kwargs: Any) -> Any:
    return step, metrics
