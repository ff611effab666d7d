"""What scripts tell their loggers: stand-ins with the shapes of the real ones, as far as they are taken over."""

from typing import Any

import pytest

from tests.commands.watched_script import LoggedValue, Watch
from tuilab.commands.watcher._tuilab_watch import layout

pytestmark = pytest.mark.real_torch

LOADED = """
import types
def module(name, **what):
    found = sys.modules[name] = types.ModuleType(name)
    for one, value in what.items():
        if isinstance(value, type): value.__module__ = name
        setattr(found, one, value)
    return found
o = sgd()
def train(): loss().backward(); o.step()
"""
WRITER = """
class SummaryWriter:
    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None): print(tag)
    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None):
        for tag, value in tag_scalar_dict.items(): self.add_scalar(f"{main_tag}/{tag}", value, global_step)
"""
CASES: dict[str, tuple[str, list[Any]]] = {
    "tensorboard": (
        WRITER + """
module("torch.utils.tensorboard.writer", SummaryWriter=SummaryWriter); train()
w = SummaryWriter(); w.add_scalar("loss", torch.tensor(0.5), 7); w.add_scalar(tag="acc", scalar_value=0.25)
w.add_scalars("lr", {"a": 1, "b": 2.0}, 8)
""",
        [(7, "loss", 0.5), (1, "acc", 0.25), (8, "lr/a", 1.0), (8, "lr/b", 2.0)],
    ),
    "tensorboardX": (
        WRITER + "module('tensorboardX.writer', SummaryWriter=SummaryWriter); train(); SummaryWriter().add_scalar('a', 1.5, 3)",
        [(3, "a", 1.5)],
    ),
    "lightning": (
        WRITER + """
class Logger:
    def log_metrics(self, metrics, step=None): raise NotImplementedError
class Own(Logger):
    def log_metrics(self, metrics, step=None):
        for name, value in metrics.items(): SummaryWriter().add_scalar(name, value, step)
class _LoggerConnector:
    def __init__(self, loggers): self.loggers, self.trainer = loggers, types.SimpleNamespace(
        fit_loop=types.SimpleNamespace(epoch_loop=types.SimpleNamespace(_batches_that_stepped=41)))
    def log_metrics(self, metrics, step=None): [one.log_metrics(metrics, step) for one in self.loggers]
module("torch.utils.tensorboard.writer", SummaryWriter=SummaryWriter)
module("lightning.pytorch.loggers.logger", Logger=Logger)
module("lightning.pytorch.trainer.connectors.logger_connector.logger_connector", _LoggerConnector=_LoggerConnector); train()
_LoggerConnector([Own(), Own()]).log_metrics({"loss": torch.tensor(0.5)})
_LoggerConnector([]).log_metrics({"loss": 0.25, "step": 50.0})
Own().log_metrics({"acc": 1.0}, step=60); SummaryWriter().add_scalar("plain", 2.0, 61)
""",
        [(41, "loss", 0.5), (50, "loss", 0.25), (60, "acc", 1.0), (61, "plain", 2.0, "tensorboard")],
    ),
    "transformers": (
        """
class Trainer:
    state = types.SimpleNamespace(global_step=20)
    def log(self, logs, start_time=None): print(logs)
class Own(Trainer):
    def log(self, logs, start_time=None): super().log(logs)
module("transformers.trainer", Trainer=Trainer); train(); Own().log({"loss": "3.901", "name": "x", "eval": {"acc": 0.5}})
""",
        [(20, "loss", 3.901), (20, "eval.acc", 0.5)],
    ),
    "accelerate": (
        """
class Accelerator:
    def log(self, values, step=None, log_kwargs=None): pass
module("accelerate.accelerator", Accelerator=Accelerator); train()
Accelerator().log({"loss": 0.5}, step=3); Accelerator().log(values={"loss": 0.25})
""",
        [(3, "loss", 0.5), (1, "loss", 0.25)],
    ),
    "tqdm": (
        """
class tqdm:
    def set_postfix(self, ordered_dict=None, refresh=True, **kwargs): pass
class Bar(tqdm): pass
module("tqdm.std", tqdm=tqdm); module("lightning.pytorch.callbacks.progress.tqdm_progress", Bar=Bar); train()
tqdm().set_postfix(loss="0.50", acc=0.25, epoch="one of two"); tqdm().set_postfix({"loss": 0.125}); Bar().set_postfix(loss=9)
""",
        [(1, "loss", 0.5), (1, "acc", 0.25), (1, "loss", 0.125)],
    ),
    "wandb": (
        """
class Run:
    def _log(self, data, step=None, commit=None): pass
    def log(self, data, step=None, commit=None): self._log(data, step, commit)
run = Run(); wandb = module("wandb", run=run, log=run.log); module("wandb.sdk.wandb_run", Run=Run); train()
wandb.log({"loss": 0.5}); run.log({"train": {"loss": 0.25}}, step=4)
""",
        [(1, "loss", 0.5), (4, "train.loss", 0.25)],
    ),
    "mlflow": (
        """
mlflow = module("mlflow", log_metric=lambda key, value, step=None: print(key), log_metrics=lambda metrics, step=None: None)
train(); mlflow.log_metric("loss", 0.5, step=2); mlflow.log_metrics({"a": 1, "b": 2}, step=3)
""",
        [(2, "loss", 0.5), (3, "a", 1.0), (3, "b", 2.0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", CASES)
def test_what_a_logger_is_told_is_seen_once_with_its_step(watch: Watch, source: str) -> None:
    script, expected = CASES[source]

    seen = watch(LOADED + script)
    assert seen.told == [LoggedValue(*[*one, source][:4]) for one in expected]


def test_a_logger_that_is_loaded_late_is_found_a_few_steps_later(watch: Watch) -> None:
    load = "module('torch.utils.tensorboard.writer', SummaryWriter=SummaryWriter); w = SummaryWriter()\n"

    seen = watch(
        LOADED
        + WRITER
        + "train(); train(); train()\n"
        + load
        + "for at in range(20): w.add_scalar('a', at, at); train()"
    )
    assert [told.value for told in seen.told] == list(range(7, 20))


def test_a_logger_goes_on_as_it_did_whatever_it_is_given(watch: Watch) -> None:
    """What it does not take it refuses itself, and it is patched over as before."""
    seen = watch(
        LOADED + WRITER + """
module("torch.utils.tensorboard.writer", SummaryWriter=SummaryWriter); train(); w = SummaryWriter()
try: w.add_scalar()
except TypeError as problem: print(problem)
w.add_scalar("words", "none"); w.add_scalar("many", torch.ones(3)); w.add_scalar("odd", float("inf"), 1.5)
""",
        fails=True,
    )  # fmt: skip

    assert seen.told == [LoggedValue(1.5, "odd", float("inf"), "tensorboard")]
    assert "missing 2 required positional arguments: 'tag' and 'scalar_value'" in seen.done.stdout
    assert seen.done.stdout.splitlines()[-3:] == ["words", "many", "odd"]


def test_call_of_a_logger_is_timed_once_in_a_thread_that_trains(watch: Watch) -> None:
    """A logger that another thread calls takes no time of a step."""
    seen = watch(
        LOADED
        + WRITER
        + """
import threading
module("torch.utils.tensorboard.writer", SummaryWriter=SummaryWriter); train()
w = SummaryWriter()
w.add_scalars("lr", {"a": 1, "b": 2.0}, 8); train()
beside = threading.Thread(target=w.add_scalar, args=("beside", 0.5, 9))
beside.start(); beside.join()
train()
"""
    )

    timed = [mark for mark in seen.marks if mark.kind == layout.LOGGER_CALL]
    assert len(timed) == 1
    assert [step.logging_ns for step in seen.steps] == [0, timed[0].ended - timed[0].began, 0]
    assert [one.name for one in seen.told] == ["lr/a", "lr/b", "beside"]
