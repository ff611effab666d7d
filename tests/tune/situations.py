"""Make the situations from which a tuning is planned: facts, steps and machines."""

from typing import Any

from tuilab.commands.step_parts import BACKWARD, DATA, FORWARD, LOGGING, OPTIMIZER, REST
from tuilab.commands.tune.planning.candidate import Situation
from tuilab.commands.tune.planning.machine import TunedMachine
from tuilab.commands.tune.planning.measured_steps import STARTING, MeasuredSteps, TimedParts
from tuilab.commands.tune.script_facts import (
    DdpFacts,
    LoaderFacts,
    OptimizerFacts,
    RootFacts,
    ScriptFacts,
    SettingFacts,
)
from tuilab.record.events import TreatmentPlanned

MS = 1_000_000  # nanoseconds
STEPS = 30
MACHINE = TunedMachine(
    cores=8,
    physical_cores=4,
    nodes=[0],
    bf16_instructions=["avx512_bf16"],
    has_compiler=True,
    jemalloc="/usr/lib/libjemalloc.so.2",
    tcmalloc="/usr/lib/libtcmalloc.so.4",
)


def make_parts(
    *,
    data: float = 0,
    forward: float = 0,
    backward: float = 0,
    optimizer: float = 0,
    rest: float = 0,
    starting: float = 0,
) -> TimedParts:
    """Return a step with these milliseconds in its parts; `starting` is included in `data`."""
    milliseconds = {
        DATA: data,
        FORWARD: forward,
        BACKWARD: backward,
        OPTIMIZER: optimizer,
        LOGGING: 0.0,
        REST: rest,
    }
    parts = {part: round(value * MS) for part, value in milliseconds.items()}
    took_ns = sum(parts.values())
    parts[STARTING] = round(starting * MS)
    return TimedParts(took_ns, parts)


def make_steps(lacks: dict[str, str] | None = None, **parts: float) -> MeasuredSteps:
    """Return 30 equal steps with these milliseconds in their parts."""
    times = [make_parts(**parts)] * STEPS
    span_ns = sum(step.took_ns for step in times)
    return MeasuredSteps(times=times, lacks=lacks or {}, span_ns=span_ns)


# A step of 100 ms, without a measured forward, as in most scripts.
USUAL = make_steps({FORWARD: "none was seen"}, data=30, backward=30, optimizer=10, rest=30)


def make_loader(**facts: Any) -> LoaderFacts:
    return LoaderFacts(**{"file": "train.py", "line": 5, "loops": 1, "batches": STEPS, **facts})


def make_optimizer(**facts: Any) -> OptimizerFacts:
    usual = {"file": "train.py", "line": 7, "kind": "AdamW", "tensors": 400, "numbers": 10**6}
    abilities = {"device": "cpu", "takes_fused": True, "takes_foreach": True}
    return OptimizerFacts(**{**usual, **abilities, **facts})


def make_root(**facts: Any) -> RootFacts:
    return RootFacts(
        **{"kind": "Net", "numbers": 10**6, "dtype": "float32", "device": "cpu", **facts}
    )


def make_ddp(**facts: Any) -> DdpFacts:
    return DdpFacts(**{"file": "train.py", "line": 6, "bucket_mb": 25.0, **facts})


def make_settings(**facts: Any) -> SettingFacts:
    return SettingFacts(**{"torch": "2.13.0", "threads": 4, "cores": 8, **facts})


def on_gpu(**facts: Any) -> SettingFacts:
    return make_settings(
        **{"has_cuda": True, "capability": "9.0", "matmul_precision": "highest", **facts}
    )


def make_situation(
    *,
    loaders: list[LoaderFacts] | None = None,
    optimizers: list[OptimizerFacts] | None = None,
    roots: list[RootFacts] | None = None,
    ddp: list[DdpFacts] | None = None,
    settings: SettingFacts | None = None,
    **others: Any,
) -> Situation:
    """Return the situation of a usual script on a CPU, except for what the arguments change."""
    facts = ScriptFacts(
        loaders=[make_loader()] if loaders is None else loaders,
        optimizers=[make_optimizer()] if optimizers is None else optimizers,
        roots=[make_root()] if roots is None else roots,
        ddp=ddp or [],
        settings=settings or make_settings(),
    )
    usual = {"steps": USUAL, "machine": MACHINE, "script": "train.py"}
    return Situation(facts=facts, **{**usual, **others})


def of_name(planned: list[TreatmentPlanned], name: str) -> list[TreatmentPlanned]:
    """Return the records of a treatment, in the order of the plan."""
    return [record for record in planned if record.name == name]
