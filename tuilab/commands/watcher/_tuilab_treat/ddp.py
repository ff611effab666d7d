"""Treat how DistributedDataParallel exchanges gradients."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .places import arguments_by_name, user_place
from .reports import Reports

NAMES = ("ddp-view", "ddp-static", "ddp-bucket")
_DEFAULT_MB = 25  # of torch
_ARGUMENTS = {
    "ddp-view": "gradient_as_bucket_view",
    "ddp-static": "static_graph",
    "ddp-bucket": "bucket_cap_mb",
}


def treat(torch: Any, wanted: dict[str, str], reports: Reports, watcher: Any) -> None:
    """Treat each DistributedDataParallel that the script makes from now on."""
    ddp_class = torch.nn.parallel.DistributedDataParallel
    init = ddp_class.__init__
    names = list(inspect.signature(init).parameters)[1:]
    values: dict[str, Any] = dict.fromkeys(wanted, True)
    if "ddp-bucket" in wanted:
        values["ddp-bucket"] = _megabytes(wanted["ddp-bucket"])

    @functools.wraps(init)
    def treated_init(this: Any, *args: Any, **kwargs: Any) -> None:
        given = arguments_by_name(names, args, kwargs)
        changed: dict[str, Any] = {}
        place = user_place()
        for name, value in wanted.items():
            treatment = f"{name}={value}" if value else name
            argument = _ARGUMENTS[name]
            if argument not in names:
                reports.skipped(treatment, f"this torch has no {argument}", place)
                continue
            new = values[name]
            before = given.get(argument)
            if name == "ddp-bucket" and before is None:
                before = _DEFAULT_MB
            if before == new:
                why = f"the script has {argument}={new}"
                reports.skipped(treatment, why, place, is_already_set=True)
                continue
            changed[argument] = new
            reports.did(treatment, f"DistributedDataParallel({argument}={new})", place)
        if changed:
            init(this, **{**given, **changed})
        else:
            init(this, *args, **kwargs)

    ddp_class.__init__ = treated_init


def _megabytes(value: str) -> float:
    size = float(value)
    return int(size) if size == int(size) else size
