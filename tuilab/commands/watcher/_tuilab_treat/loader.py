"""Treat how DataLoaders load: workers, pinned memory, and the bound of an ideal loader."""

from __future__ import annotations

import functools
import importlib
import inspect
import multiprocessing
import sys
from typing import Any

from .places import arguments_by_name, user_place
from .reports import Reports

NAMES = ("ideal-loader", "workers", "persistent", "prefetch", "pin")
_KEPT = 8  # batches that an ideal loader keeps
_KEPT_NAME = "_tuilab_kept"  # the attribute of a DataLoader that has them
_MADE_PERSISTENT = "_tuilab_persistent"


def treat(torch: Any, wanted: dict[str, str], reports: Reports, watcher: Any) -> None:
    """Treat all DataLoaders that the script makes from now on."""
    module = importlib.import_module("torch.utils.data.dataloader")
    treatment = _LoaderTreatments(torch, wanted, reports)
    treatment.wrap_init(module.DataLoader)
    if "workers" in wanted or "persistent" in wanted:
        _draw_as_before(torch, module.DataLoader)
    if "ideal-loader" in wanted:
        _repeat_batches(module, wanted["ideal-loader"], reports)
    if "pin" in wanted:
        _copy_without_waiting(torch, reports, watcher.is_compiling)


class _LoaderTreatments:
    """Changes the arguments of DataLoaders."""

    def __init__(self, torch: Any, wanted: dict[str, str], reports: Reports) -> None:
        self._torch = torch
        self._wanted = wanted
        self._reports = reports

    def wrap_init(self, loader_class: Any) -> None:
        """Have each DataLoader begin with treated arguments."""
        init = loader_class.__init__
        parameters = list(inspect.signature(init).parameters.values())[1:]
        names = [parameter.name for parameter in parameters]

        @functools.wraps(init)
        def treated_init(this: Any, *args: Any, **kwargs: Any) -> None:
            given = arguments_by_name(names, args, kwargs)
            changed: dict[str, Any] = {}
            done: list[tuple[str, str]] = []  # treatment and what it does
            try:
                if len(args) <= len(names):
                    self._choose(given, changed, done)
            except Exception as problem:
                self._reports.failed(self._full(next(iter(self._wanted))), problem)
                changed = {}
            if not changed:
                init(this, *args, **kwargs)
                return
            refusal = ""
            try:
                init(this, **{**given, **changed})
            except Exception as problem:
                refusal = str(problem) or type(problem).__name__
            if refusal:
                # The other arguments do not allow it, or the script is wrong and raises here too.
                init(this, *args, **kwargs)
                self._refused(done, refusal)
                return
            if changed.get("persistent_workers"):
                this.__dict__[_MADE_PERSISTENT] = True
            for treatment, words in done:
                self._reports.did(treatment, words, user_place())

        loader_class.__init__ = treated_init

    def _choose(
        self, given: dict[str, Any], changed: dict[str, Any], done: list[tuple[str, str]]
    ) -> None:
        """Choose the arguments that the treatments change; report what they leave."""
        workers = given.get("num_workers") or 0
        if "workers" in self._wanted:
            workers = self._choose_workers(given, workers, changed, done)
        if "persistent" in self._wanted:
            self._choose_persistent(given, workers, changed, done)
        if "prefetch" in self._wanted:
            self._choose_prefetch(given, workers, changed, done)
        if "pin" in self._wanted:
            self._choose_pin(given, changed, done)

    def _choose_workers(
        self,
        given: dict[str, Any],
        before: int,
        changed: dict[str, Any],
        done: list[tuple[str, str]],
    ) -> int:
        """Set the number of workers, and keep them; return the number that the loader will have."""
        treatment = self._full("workers")
        count = int(self._wanted["workers"] or 2)
        data = sys.modules["torch.utils.data"]
        if isinstance(given.get("dataset"), data.IterableDataset):
            why = "an IterableDataset: each worker would yield all of its items"
            self._reports.skipped(treatment, why, user_place())
            return before
        if multiprocessing.current_process().daemon:
            why = "the process that makes this DataLoader may not start processes"
            self._reports.skipped(treatment, why, user_place())
            return before
        is_kept = bool(given.get("persistent_workers"))
        if before == count and (is_kept or not count):
            why = f"the script has num_workers={count}"
            self._reports.skipped(treatment, why, user_place(), is_already_set=True)
            return before
        words = []
        if before != count:
            changed["num_workers"] = count
            words.append(f"num_workers={count}")
        if count and not is_kept:
            changed["persistent_workers"] = True
            words.append("persistent_workers=True")
        if not count:  # without workers, torch refuses these two
            for name in ("persistent_workers", "prefetch_factor"):
                if given.get(name):
                    changed[name] = None if name == "prefetch_factor" else False
        done.append((treatment, f"DataLoader({', '.join(words)}) instead of {before} workers"))
        return count

    def _choose_persistent(
        self,
        given: dict[str, Any],
        workers: int,
        changed: dict[str, Any],
        done: list[tuple[str, str]],
    ) -> None:
        treatment = self._full("persistent")
        if not workers:
            self._reports.skipped(treatment, "the DataLoader has no workers", user_place())
        elif given.get("persistent_workers"):
            why = "the script has persistent_workers=True"
            self._reports.skipped(treatment, why, user_place(), is_already_set=True)
        else:
            changed["persistent_workers"] = True
            done.append((treatment, "DataLoader(persistent_workers=True)"))

    def _choose_prefetch(
        self,
        given: dict[str, Any],
        workers: int,
        changed: dict[str, Any],
        done: list[tuple[str, str]],
    ) -> None:
        treatment = self._full("prefetch")
        factor = int(self._wanted["prefetch"] or 4)
        if not workers:
            self._reports.skipped(treatment, "the DataLoader has no workers", user_place())
        elif given.get("prefetch_factor") == factor:
            why = f"the script has prefetch_factor={factor}"
            self._reports.skipped(treatment, why, user_place(), is_already_set=True)
        else:
            changed["prefetch_factor"] = factor
            done.append((treatment, f"DataLoader(prefetch_factor={factor})"))

    def _choose_pin(
        self, given: dict[str, Any], changed: dict[str, Any], done: list[tuple[str, str]]
    ) -> None:
        treatment = self._full("pin")
        if not _has_gpu():
            self._reports.skipped(treatment, "torch sees no GPU here", user_place())
        elif given.get("pin_memory"):
            why = "the script has pin_memory=True"
            self._reports.skipped(treatment, why, user_place(), is_already_set=True)
        else:
            changed["pin_memory"] = True
            done.append((treatment, "DataLoader(pin_memory=True)"))

    def _refused(self, done: list[tuple[str, str]], refusal: str) -> None:
        """Report that torch refused the treated arguments, so that the script's own were used."""
        for treatment, words in done:
            self._reports.skipped(treatment, f"torch refused {words}: {refusal}", user_place())

    def _full(self, name: str) -> str:
        value = self._wanted.get(name, "")
        return f"{name}={value}" if value else name


def _has_gpu() -> bool:
    cuda: Any = sys.modules.get("torch.cuda")
    return cuda is not None and bool(cuda.is_available())


def _draw_as_before(torch: Any, loader_class: Any) -> None:
    """Draw as many random numbers for a loop over kept workers as for one over new workers.

    Torch draws a seed whenever workers start. If they are kept, it draws only one. Without the
    missing draw, all later random numbers of the script would be others, and nobody could compare
    what the treated and the untreated script learn.
    """
    begin_loop = loader_class.__iter__

    @functools.wraps(begin_loop)
    def drawing_iter(this: Any) -> Any:
        state = this.__dict__
        if state.get(_MADE_PERSISTENT) and state.get("_iterator") is not None:
            torch.empty((), dtype=torch.int64).random_(generator=this.generator)
        return begin_loop(this)

    loader_class.__iter__ = drawing_iter


def _repeat_batches(module: Any, value: str, reports: Reports) -> None:
    """Have each DataLoader keep its first batches, and bring them again and again.

    This is the bound of all treatments of data: a training cannot wait less for its data.
    """
    count = int(value or _KEPT)
    treatment = f"ideal-loader={value}" if value else "ideal-loader"
    loader_class = module.DataLoader
    base = module._BaseDataLoaderIter
    begin_loop = loader_class.__iter__
    next_batch = base.__next__  # before the watcher wraps it: a batch is one wait
    kind = getattr(module, "_DatasetKind", None)

    class IdealIterator(base):  # type: ignore[misc, valid-type]
        """A loop over a DataLoader: through its first batches, and then through the kept ones."""

        def __init__(self, loader: Any, kept: list[Any]) -> None:
            # The attributes that the base class reads.
            self._sampler_iter = ()
            self._index_sampler = loader._index_sampler
            self._num_workers = 0
            self._num_yielded = 0
            self._dataset = loader.dataset
            self._dataset_kind = getattr(kind, "Map", 0)
            self._IterableDataset_len_called = None
            self._profile_name = "enumerate(DataLoader)#IdealIterator.__next__"
            self._loader = loader
            self._kept = kept
            self._inner: Any = None
            self._brought = 0
            self._length: int | None = None
            if len(kept) < count:
                kept.clear()
                self._inner = begin_loop(loader)
            else:
                self._length = _length_of(loader)

        def _next_data(self) -> Any:
            if self._inner is not None:
                return self._next_of_loader()
            is_at_end = self._length is not None and self._brought >= self._length
            if is_at_end or not self._kept:
                raise StopIteration
            batch = self._kept[self._brought % len(self._kept)]
            self._brought += 1
            return batch

        def _next_of_loader(self) -> Any:
            """Return the next batch of the DataLoader, and keep it."""
            batch = next_batch(self._inner)
            self._kept.append(batch)
            self._brought += 1
            if len(self._kept) >= count:
                _stop_workers(self._inner, self._loader)
                self._inner = None
                self._length = _length_of(self._loader)
                reports.did(treatment, f"repeats its first {count} batches", user_place())
            return batch

    @functools.wraps(begin_loop)
    def ideal_iter(this: Any) -> Any:
        kept = this.__dict__.setdefault(_KEPT_NAME, [])
        return IdealIterator(this, kept)

    loader_class.__iter__ = ideal_iter


def _length_of(loader: Any) -> int | None:
    """Return the number of batches; None for an IterableDataset without a length."""
    try:
        return len(loader)
    except TypeError:
        return None


def _stop_workers(iterator: Any, loader: Any) -> None:
    """End the workers of a loop, which are not needed any more."""
    stop = getattr(iterator, "_shutdown_workers", None)
    if stop is not None:
        stop()
    if loader.__dict__.get("_iterator") is iterator:
        loader._iterator = None


def _copy_without_waiting(torch: Any, reports: Reports, is_compiling: Any) -> None:
    """Have copies from pinned memory to a GPU not wait for the GPU."""
    for name in ("to", "cuda"):
        copy = getattr(torch.Tensor, name)
        setattr(torch.Tensor, name, _late_copy(torch, copy, name, reports, is_compiling))


def _late_copy(torch: Any, copy: Any, name: str, reports: Reports, is_compiling: Any) -> Any:
    """Return a wrapper of a method that copies a tensor."""

    reported: list[bool] = []  # whether the first copy was reported
    # Arguments before `non_blocking`: a device, and for `to` also a dtype.
    most = 2 if name == "to" else 1

    @functools.wraps(copy)
    def copy_late(this: Any, *args: Any, **kwargs: Any) -> Any:
        if not this.is_cpu or is_compiling() or not _goes_to_gpu(torch, name, args, kwargs):
            return copy(this, *args, **kwargs)
        is_given = kwargs.get("non_blocking") or len(args) > most
        if is_given or not this.is_pinned():
            return copy(this, *args, **kwargs)
        if not reported:
            reported.append(True)
            words = "copies from pinned memory with non_blocking=True"
            reports.did("pin", words, user_place())
        return copy(this, *args, **{**kwargs, "non_blocking": True})

    return copy_late


def _goes_to_gpu(torch: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a copy with these arguments goes to a GPU."""
    if name == "cuda":
        return True
    device = kwargs.get("device")
    if device is None and args:
        device = args[0]
    if isinstance(device, torch.Tensor):
        return bool(device.is_cuda)
    if isinstance(device, int) and not isinstance(device, bool):
        return True
    if isinstance(device, (str, torch.device)):
        return bool(torch.device(device).type == "cuda")
    return False
