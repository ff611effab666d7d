"""The plan of a tuning follows from facts about the script, its steps and the machine."""

import dataclasses
import json
import math
from typing import Any

import msgspec
import pytest

from tests.conftest import CHECKOUT
from tests.tune.situations import (
    MACHINE,
    USUAL,
    make_ddp,
    make_loader,
    make_optimizer,
    make_root,
    make_settings,
    make_situation,
    make_steps,
    of_name,
    on_gpu,
)
from tuilab.commands.step_parts import (
    BACKWARD,
    DATA,
    FORWARD,
    OPTIMIZER,
    PARTS,
    SEVERAL_THREADS,
)
from tuilab.commands.tune.planning.candidate import Situation
from tuilab.commands.tune.planning.measured_steps import MeasuredSteps
from tuilab.commands.tune.planning.plan import check_names, plan, refine
from tuilab.commands.tune.planning.treatments import CATALOGUE
from tuilab.commands.tune.script_facts import LoaderFacts, ScriptFacts, ScriptPlace, SettingFacts
from tuilab.errors import UsageError
from tuilab.record.events import TreatmentPlanned

ALREADY = "ALREADY SET"
NOT = "NOT APPLICABLE"
SMALL = "NOT COMPARED"
OLD_GPU = on_gpu(capability="7.5")
NO_FORWARD = {FORWARD: "none was seen"}


def data_of(percent: float) -> MeasuredSteps:
    """Return steps that wait for data for a share of their time."""
    return make_steps(NO_FORWARD, data=percent, backward=50, rest=50 - percent)


def machine(**facts: Any) -> Any:
    return msgspec.structs.replace(MACHINE, **facts)


def ones(count: int = 1, **facts: Any) -> list[LoaderFacts]:
    return [make_loader(**facts)] * count


# Each case: what is expected, the treatment, the situation, and the values of the arms that are
# tried; or the outcome, and words of its reason.
APPLIES: dict[str, tuple[str, Situation, list[str]]] = {
    "the ideal loader keeps eight batches": ("ideal-loader", make_situation(), ["=8"]),
    "one worker loads in time if loading is shorter than the rest": (
        "workers",
        make_situation(steps=data_of(30)),
        ["=1"],
    ),
    "three workers are needed if loading takes 2.3 times the rest": (
        "workers",
        make_situation(steps=make_steps(data=70, rest=30)),
        ["=3"],
    ),
    "needed workers are limited by free cores, then by all cores": (
        "workers",
        make_situation(steps=make_steps(data=95, rest=5)),
        ["=4", "=8"],
    ),
    "on a GPU, one thread leaves the other cores to workers": (
        "workers",
        make_situation(steps=make_steps(data=95, rest=5), settings=on_gpu()),
        ["=7", "=8"],
    ),
    "ranks share the cores": (
        "workers",
        make_situation(steps=make_steps(data=95, rest=5), settings=on_gpu(world=2)),
        ["=3", "=4"],
    ),
    "a script that may use one core can still try one worker": (
        "workers",
        make_situation(steps=data_of(30), settings=make_settings(cores=1, threads=1)),
        ["=1"],
    ),
    "a second worker is needed if one loads half of the time needed": (
        "workers",
        make_situation(steps=data_of(40), loaders=ones(workers=1)),
        ["=2"],
    ),
    "two workers that load a step in 2.5 times the rest need three more": (
        "workers",
        make_situation(steps=make_steps(data=60, rest=40), loaders=ones(workers=2)),
        ["=4", "=5"],
    ),
    "more workers than cores are too many": (
        "workers",
        make_situation(steps=data_of(0), loaders=ones(workers=16)),
        ["=8"],
    ),
    "a process that waits for a disk can have more workers than cores": (
        "workers",
        make_situation(steps=dataclasses.replace(make_steps(data=98, rest=2), used_cores=0.8)),
        ["=10", "=4"],
    ),
    "workers that hardly compute are limited": (
        "workers",
        make_situation(steps=dataclasses.replace(make_steps(data=98, rest=2), used_cores=0.0)),
        ["=16", "=4"],
    ),
    "a process that computes while it loads gets no more workers than cores": (
        "workers",
        make_situation(steps=dataclasses.replace(make_steps(data=98, rest=2), used_cores=3.5)),
        ["=4", "=8"],
    ),
    "without timed waits the cores decide": (
        "workers",
        make_situation(steps=make_steps({DATA: SEVERAL_THREADS}, rest=100)),
        ["=4", "=8"],
    ),
    "an IterableDataset next to another dataset is skipped": (
        "workers",
        make_situation(loaders=[make_loader(is_iterable=True), make_loader()]),
        ["=1"],
    ),
    "workers that start in each loop can stay": (
        "persistent",
        make_situation(
            steps=make_steps(data=30, rest=70, starting=20),
            loaders=ones(workers=2, loops=5),
        ),
        [""],
    ),
    "the usual prefetch factor doubles": (
        "prefetch",
        make_situation(loaders=ones(workers=2)),
        ["=4"],
    ),
    "a larger prefetch factor doubles": (
        "prefetch",
        make_situation(loaders=ones(workers=2, prefetch=10)),
        ["=20"],
    ),
    "batches can be pinned for a GPU": ("pin", make_situation(settings=on_gpu()), [""]),
    "an optimizer that is able to can be fused": ("fused", make_situation(), [""]),
    "one of two optimizers can be fused": (
        "fused",
        make_situation(
            optimizers=[make_optimizer(), make_optimizer(kind="LBFGS", takes_fused=False)]
        ),
        [""],
    ),
    "on a CPU torch does not choose foreach": ("foreach", make_situation(), [""]),
    "zeros in gradients can be left out": (
        "set-to-none",
        make_situation(optimizers=[make_optimizer(fills_with_zeros=True)]),
        [""],
    ),
    "a CPU with avx512_bf16 computes in bfloat16": ("bf16", make_situation(), [""]),
    "a CPU whose instructions are not known may do so": (
        "bf16",
        make_situation(machine=machine(bf16_instructions=None)),
        [""],
    ),
    "an old GPU is no reason if its capability is not known": (
        "bf16",
        make_situation(settings=on_gpu(capability="")),
        [""],
    ),
    "one root of two is in float32": (
        "bf16",
        make_situation(roots=[make_root(dtype="bfloat16"), make_root()]),
        [""],
    ),
    "a new GPU multiplies in TF32": ("tf32", make_situation(settings=on_gpu()), [""]),
    "cuDNN can choose the algorithm of convolutions": (
        "cudnn-benchmark",
        make_situation(settings=on_gpu(), roots=[make_root(convolutions=3)]),
        [""],
    ),
    "convolutions on a CPU have a format": (
        "channels-last",
        make_situation(roots=[make_root(convolutions=3)]),
        [""],
    ),
    "on a CPU the other attention is math": (
        "attention",
        make_situation(roots=[make_root(attentions=2)]),
        ["=math"],
    ),
    "on a GPU with autocast three kinds of attention exist": (
        "attention",
        make_situation(
            settings=on_gpu(),
            roots=[make_root(attentions=2, is_autocast=True, autocast_dtype="bfloat16")],
        ),
        ["=flash", "=efficient", "=cudnn"],
    ),
    "on a GPU in float32 flash attention does not exist": (
        "attention",
        make_situation(settings=on_gpu(), roots=[make_root(attentions=2)]),
        ["=efficient", "=math"],
    ),
    "on a CPU there are no CUDA graphs": ("compile", make_situation(), [""]),
    "on a GPU torch.compile has CUDA graphs": (
        "compile",
        make_situation(settings=on_gpu()),
        ["", "=reduce-overhead"],
    ),
    "on a GPU compiled modules can have CUDA graphs": (
        "compile",
        make_situation(settings=on_gpu(), roots=[make_root(is_compiled=True)]),
        ["=reduce-overhead"],
    ),
    "modules that are compiled again can have dynamic sizes": (
        "compile",
        make_situation(roots=[make_root(is_compiled=True)], recompilations=9),
        ["=dynamic"],
    ),
    "collections of garbage can end": (
        "gc-freeze",
        make_situation(settings=make_settings(collections=100, collecting_ns=300_000_000)),
        [""],
    ),
    "gradients can be views of buckets": ("ddp-view", make_situation(ddp=[make_ddp()]), [""]),
    "the graph of DDP can be static": ("ddp-static", make_situation(ddp=[make_ddp()]), [""]),
    "large gradients get larger buckets": (
        "ddp-bucket",
        make_situation(ddp=[make_ddp()], roots=[make_root(numbers=100 << 20)]),
        ["=100"],
    ),
    "gradients in one bucket get smaller buckets": (
        "ddp-bucket",
        make_situation(ddp=[make_ddp()], roots=[make_root(numbers=4 << 20)]),
        ["=4"],
    ),
    "gradients in bfloat16 take half": (
        "ddp-bucket",
        make_situation(ddp=[make_ddp()], roots=[make_root(numbers=4 << 20, dtype="bfloat16")]),
        ["=2"],
    ),
    "one thread and half of the cores differ from four threads": (
        "threads",
        make_situation(),
        ["=1", "=2"],
    ),
    "too many threads can become as many as physical cores": (
        "threads",
        make_situation(settings=make_settings(threads=16)),
        ["=1", "=2", "=4"],
    ),
    "two ranks share the physical cores": (
        "threads",
        make_situation(settings=make_settings(threads=1, world=2)),
        ["=2"],
    ),
    "segments of GPU memory can grow": (
        "expandable-segments",
        make_situation(settings=on_gpu()),
        [""],
    ),
    "an installed jemalloc can be preloaded": ("jemalloc", make_situation(), [""]),
    "an installed tcmalloc can be preloaded": ("tcmalloc", make_situation(), [""]),
    "one of two memory nodes can be enough": (
        "numa",
        make_situation(machine=machine(nodes=[1, 3], has_numactl=True)),
        ["=1"],
    ),
}

REJECTED: dict[str, tuple[str, Situation, str, str]] = {
    "no loader, no ideal loader": (
        "ideal-loader",
        make_situation(loaders=[]),
        NOT,
        "no DataLoader",
    ),
    "a loader without batches was not used": (
        "workers",
        make_situation(loaders=ones(batches=0)),
        NOT,
        "no DataLoader",
    ),
    "an IterableDataset cannot be divided": (
        "workers",
        make_situation(loaders=ones(is_iterable=True)),
        NOT,
        "each worker would yield all items",
    ),
    "workers that load in time are enough": (
        "workers",
        make_situation(steps=data_of(0.5), loaders=ones(workers=4)),
        ALREADY,
        "4 workers load in time: the training waits for data 0.5 % of a step",
    ),
    "one worker that loads in time is enough": (
        "workers",
        make_situation(steps=data_of(0.5), loaders=ones(workers=1)),
        ALREADY,
        "1 worker loads in time",
    ),
    "as many workers as cores are enough": (
        "workers",
        make_situation(steps=data_of(40), loaders=ones(workers=8)),
        ALREADY,
        "the script has 8 workers, and it can use 8 cores",
    ),
    "short waits gain too little": (
        "workers",
        make_situation(steps=data_of(1)),
        SMALL,
        "waiting for data takes 1 % of a step, so at most 1.01x",
    ),
    "without workers, nothing persists": ("persistent", make_situation(), NOT, "has no workers"),
    "persistent workers persist": (
        "persistent",
        make_situation(loaders=ones(workers=2, keeps_workers=True, loops=5)),
        ALREADY,
        "keeps its workers",
    ),
    "in one loop, workers start once": (
        "persistent",
        make_situation(loaders=ones(workers=2)),
        NOT,
        "one loop",
    ),
    "workers that start quickly gain too little": (
        "persistent",
        make_situation(
            steps=make_steps(data=30, rest=70, starting=1), loaders=ones(workers=2, loops=5)
        ),
        SMALL,
        "starting and ending workers takes 1 % of a step, so at most 1.01x",
    ),
    "without workers, nothing is prefetched": ("prefetch", make_situation(), NOT, "no workers"),
    "many batches are prefetched": (
        "prefetch",
        make_situation(loaders=ones(workers=2, prefetch=100)),
        ALREADY,
        "already prefetches 100 batches",
    ),
    "without a GPU, pinning gains nothing": ("pin", make_situation(), NOT, "uses none"),
    "pinned batches are pinned": (
        "pin",
        make_situation(loaders=ones(pins=True), settings=on_gpu()),
        ALREADY,
        "pins",
    ),
    "a short optimizer gains too little": (
        "fused",
        make_situation(steps=make_steps(optimizer=1, rest=99)),
        SMALL,
        "the optimizer takes 1 % of a step, so at most 1.01x",
    ),
    "a fused optimizer is fused": (
        "fused",
        make_situation(optimizers=[make_optimizer(is_fused=True)]),
        ALREADY,
        "AdamW is fused",
    ),
    "an optimizer without the argument cannot be fused": (
        "fused",
        make_situation(optimizers=[make_optimizer(kind="LBFGS", takes_fused=False)]),
        NOT,
        "torch cannot run LBFGS with fused=True",
    ),
    "a device without fused kernels cannot fuse": (
        "fused",
        make_situation(optimizers=[make_optimizer(device="meta")]),
        NOT,
        "torch cannot run AdamW",
    ),
    "no optimizer, nothing to fuse": ("fused", make_situation(optimizers=[]), NOT, "no optimizer"),
    "no optimizer, no foreach": ("foreach", make_situation(optimizers=[]), NOT, "no optimizer"),
    "on a GPU torch chooses foreach": (
        "foreach",
        make_situation(optimizers=[make_optimizer(device="cuda")]),
        ALREADY,
        "torch uses foreach on this device",
    ),
    "a fused optimizer needs no foreach": (
        "foreach",
        make_situation(optimizers=[make_optimizer(is_fused=True)]),
        ALREADY,
        "fused or uses foreach",
    ),
    "an optimizer may lack foreach": (
        "foreach",
        make_situation(optimizers=[make_optimizer(takes_foreach=False)]),
        NOT,
        "with foreach=True",
    ),
    "gradients are given back by default": (
        "set-to-none",
        make_situation(),
        ALREADY,
        "does not pass set_to_none=False",
    ),
    "no optimizer, no zero_grad": ("set-to-none", make_situation(optimizers=[]), NOT, "optimizer"),
    "no module, no autocast": ("bf16", make_situation(roots=[]), NOT, "no module"),
    "autocast is on": (
        "bf16",
        make_situation(roots=[make_root(is_autocast=True, autocast_dtype="float16")]),
        ALREADY,
        "the forward computes in float16",
    ),
    "parameters are in bfloat16": (
        "bf16",
        make_situation(roots=[make_root(dtype="bfloat16")]),
        ALREADY,
        "the forward computes in bfloat16",
    ),
    "autocast leaves float64": (
        "bf16",
        make_situation(roots=[make_root(dtype="float64")]),
        NOT,
        "no parameter is float32",
    ),
    "an old CPU converts": (
        "bf16",
        make_situation(machine=machine(bf16_instructions=[])),
        NOT,
        "neither amx_bf16 nor avx512_bf16",
    ),
    "an old GPU has no units for bfloat16": (
        "bf16",
        make_situation(settings=OLD_GPU),
        NOT,
        "capability 7.5; units for bfloat16 need 8.0",
    ),
    "a CPU has no TF32": ("tf32", make_situation(), NOT, "needs a GPU"),
    "an old GPU has no TF32": ("tf32", make_situation(settings=OLD_GPU), NOT, "need 8.0"),
    "TF32 is allowed": (
        "tf32",
        make_situation(settings=on_gpu(matmul_precision="high")),
        ALREADY,
        "matrix products is high",
    ),
    "autocast leaves nothing to TF32": (
        "tf32",
        make_situation(settings=on_gpu(), roots=[make_root(is_autocast=True)]),
        NOT,
        "in float32",
    ),
    "no module, no TF32": ("tf32", make_situation(settings=on_gpu(), roots=[]), NOT, "no module"),
    "a CPU has no cuDNN": ("cudnn-benchmark", make_situation(), NOT, "needs a GPU"),
    "cuDNN chooses": (
        "cudnn-benchmark",
        make_situation(settings=on_gpu(cudnn_benchmark=True)),
        ALREADY,
        "cudnn.benchmark",
    ),
    "a deterministic script stays so": (
        "cudnn-benchmark",
        make_situation(settings=on_gpu(is_deterministic=True), roots=[make_root(convolutions=3)]),
        NOT,
        "deterministic",
    ),
    "no convolution, no algorithm": (
        "cudnn-benchmark",
        make_situation(settings=on_gpu()),
        NOT,
        "no two-dimensional convolutions",
    ),
    "no convolution, no format": ("channels-last", make_situation(), NOT, "convolutions"),
    "channels are last": (
        "channels-last",
        make_situation(roots=[make_root(convolutions=3, are_channels_last=True), make_root()]),
        ALREADY,
        "channels_last",
    ),
    "no attention, no back end": ("attention", make_situation(), NOT, "does not call"),
    "no compiler, no torch.compile": (
        "compile",
        make_situation(machine=machine(has_compiler=False)),
        NOT,
        "apt install g++",
    ),
    "no garbage, no freeze": ("gc-freeze", make_situation(), NOT, "collected no garbage"),
    "quick collections gain too little": (
        "gc-freeze",
        make_situation(settings=make_settings(collections=100, collecting_ns=15_000_000)),
        SMALL,
        "collecting garbage takes 0.5 % of the time, so at most 1.01x",
    ),
    "no DDP, no view": ("ddp-view", make_situation(), NOT, "DistributedDataParallel"),
    "no DDP, no static graph": ("ddp-static", make_situation(), NOT, "DistributedDataParallel"),
    "no DDP, no bucket": ("ddp-bucket", make_situation(), NOT, "DistributedDataParallel"),
    "gradients are views": (
        "ddp-view",
        make_situation(ddp=[make_ddp(has_bucket_view=True)]),
        ALREADY,
        "gradient_as_bucket_view",
    ),
    "the graph is static": (
        "ddp-static",
        make_situation(ddp=[make_ddp(is_static=True)]),
        ALREADY,
        "static_graph",
    ),
    "small gradients need no buckets": (
        "ddp-bucket",
        make_situation(ddp=[make_ddp()], roots=[make_root(numbers=1 << 19)]),
        NOT,
        "the gradients have 2.0 MiB",
    ),
    "one core has one thread": (
        "threads",
        make_situation(settings=make_settings(cores=1, threads=1)),
        NOT,
        "one core",
    ),
    "a CPU has no segments": ("expandable-segments", make_situation(), NOT, "uses no GPU"),
    "segments grow already": (
        "expandable-segments",
        make_situation(
            settings=on_gpu(), environ={"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
        ),
        ALREADY,
        "expandable_segments:True",
    ),
    "cudaMallocAsync has no segments": (
        "expandable-segments",
        make_situation(
            settings=on_gpu(), environ={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
        ),
        NOT,
        "cudaMallocAsync",
    ),
    "jemalloc is not there": (
        "jemalloc",
        make_situation(machine=machine(jemalloc="")),
        NOT,
        "apt install libjemalloc2",
    ),
    "jemalloc is preloaded": (
        "jemalloc",
        make_situation(environ={"LD_PRELOAD": "/opt/libjemalloc.so.2"}),
        ALREADY,
        "LD_PRELOAD has jemalloc",
    ),
    "a path with a space cannot be preloaded": (
        "tcmalloc",
        make_situation(machine=machine(tcmalloc="/opt/my libs/libtcmalloc.so")),
        NOT,
        "separates paths by spaces",
    ),
    "one memory node needs no binding": ("numa", make_situation(), NOT, "only one memory node"),
    "ranks would share a memory node": (
        "numa",
        make_situation(
            machine=machine(nodes=[0, 1], has_numactl=True), settings=make_settings(world=2)
        ),
        NOT,
        "all ranks",
    ),
    "numactl is not there": (
        "numa",
        make_situation(machine=machine(nodes=[0, 1])),
        NOT,
        "apt install numactl",
    ),
}


@pytest.mark.parametrize("case", APPLIES)
def test_treatment_applies_with_its_values(case: str) -> None:
    name, situation, values = APPLIES[case]

    records = of_name(plan(situation, [name]), name)

    tried = [record for record in records if not record.outcome]
    applied = [text for record in tried for text in record.treatments]
    assert tried
    assert sorted(applied) == sorted(f"{name}{value}" for value in values)


@pytest.mark.parametrize("case", REJECTED)
def test_treatment_is_rejected_with_a_reason(case: str) -> None:
    name, situation, outcome, words = REJECTED[case]

    records = of_name(plan(situation, [name]), name)

    assert [(record.arm, record.outcome) for record in records] in (
        [(name, outcome)],
        [(f"{name}-1", outcome)],  # workers have a number
    )
    assert words in records[0].why


@pytest.mark.parametrize(
    ("name", "situation", "at_most"),
    [
        # 30 of 100 ms can vanish: 1 + 30 / 70, and 1.19978 for processes that differ by 5 %.
        ("ideal-loader", make_situation(), 1 + 30 / 70 * 1.19978),
        ("workers", make_situation(), 1 + 30 / 70 * 1.19978),
        # 95 % of the optimizer's 10 ms can vanish.
        ("fused", make_situation(), 1 + 9.5 / 90.5 * 1.19978),
        # The forward is in the rest, so 60 ms become at best half with avx512_bf16.
        ("bf16", make_situation(), 1 + 30 / 70 * 1.19978),
        # A sixteenth stays on a GPU.
        ("bf16", make_situation(settings=on_gpu()), 1 + 56.25 / 43.75 * 1.19978),
        ("tf32", make_situation(settings=on_gpu()), 1 + 52.5 / 47.5 * 1.19978),
        # A forward that was timed leaves the rest out: 50 of 100 ms, of which a tenth stays.
        (
            "compile",
            make_situation(steps=make_steps(forward=20, backward=30, rest=50)),
            1 + 45 / 55 * 1.19978,
        ),
        # Copies to the GPU are in the rest, 30 of 100 ms.
        ("pin", make_situation(settings=on_gpu()), 1 + 30 / 70 * 1.19978),
        # 300 ms of 3 s: 100 collections vary by 10 %, so exp(hypot(0.25758, 0.18214)).
        (
            "gc-freeze",
            make_situation(settings=make_settings(collections=100, collecting_ns=300_000_000)),
            1 + 1 / 9 * math.exp(math.hypot(0.257583, 0.182139)),
        ),
        # Half of a backward of 30 ms stays.
        ("ddp-view", make_situation(ddp=[make_ddp()]), 1 + 15 / 85 * 1.19978),
        # The work on the CPU next to a GPU: 30 ms of data and 30 ms of rest.
        ("threads", make_situation(settings=on_gpu(threads=1)), 1 + 60 / 40 * 1.19978),
    ],
)  # fmt: skip
def test_at_most_follows_from_the_parts(name: str, situation: Situation, at_most: float) -> None:
    records = of_name(plan(situation, [name]), name)

    assert records[0].outcome == ""
    assert records[0].at_most == pytest.approx(at_most, rel=1e-4)
    assert records[0].at_most_why


@pytest.mark.parametrize("name", ["threads", "jemalloc", "tcmalloc"])
def test_nothing_bounds_threads_and_allocators_on_a_cpu(name: str) -> None:
    record = of_name(plan(make_situation()), name)[0]

    assert (record.at_most, record.outcome) == (None, "")
    assert record.at_most_why.endswith("so nothing bounds the gain")


@pytest.mark.parametrize(
    ("steps", "name"),
    [
        (make_steps(dict.fromkeys(PARTS, SEVERAL_THREADS), rest=100), "fused"),
        (make_steps(dict.fromkeys(PARTS, SEVERAL_THREADS), rest=100), "bf16"),
        (make_steps({OPTIMIZER: "no optimizer step was seen"}, rest=100), "fused"),
        (make_steps({DATA: "a thread that makes no steps reads the DataLoader"}), "ideal-loader"),
        (MeasuredSteps(), "compile"),
    ],
)
def test_unknown_parts_leave_the_gain_unknown_and_tried(steps: MeasuredSteps, name: str) -> None:
    record = of_name(plan(make_situation(steps=steps), [name]), name)[0]

    assert (record.at_most, record.outcome) == (None, "")
    assert "timed" in record.at_most_why


def test_backward_that_was_not_timed_counts_as_rest() -> None:
    lacks = {FORWARD: "none was seen", BACKWARD: "none was seen"}
    situation = make_situation(steps=make_steps(lacks, rest=60, data=40))

    (record,) = of_name(plan(situation), "bf16")

    assert record.at_most == pytest.approx(1 + 30 / 70 * 1.19978, rel=1e-4)
    assert record.at_most_why.startswith("the step without data and optimizer takes 60 % of a step")


def test_compiled_function_that_is_no_module_can_have_dynamic_sizes() -> None:
    situation = make_situation(roots=[], recompilations=9, machine=machine(has_compiler=False))

    records = of_name(plan(situation), "compile")

    assert {record.arm: record.outcome for record in records} == {
        "compile-dynamic": "",
        "compile": NOT,
        "compile-reduce-overhead": NOT,
    }


def test_garbage_that_takes_all_time_comes_first() -> None:
    settings = make_settings(collections=100, collecting_ns=3_000_000_000)

    planned = plan(make_situation(loaders=[], settings=settings))

    assert planned[0].name == "gc-freeze"
    assert planned[0].at_most == pytest.approx(
        1 + 99 * math.exp(math.hypot(0.257583, 0.182139)), rel=1e-4
    )


def test_bound_close_to_the_least_gain_has_more_digits() -> None:
    situation = make_situation(steps=make_steps(data=2.42, rest=97.58))

    (record,) = of_name(plan(situation), "ideal-loader")

    assert record.why == "waiting for data takes 2.4 % of a step, so at most 1.0298x"


def test_plan_has_every_treatment_once_for_each_value() -> None:
    planned = plan(make_situation())

    arms = [record.arm for record in planned]
    assert {record.name for record in planned} == set(CATALOGUE)
    assert len(set(arms)) == len(arms)


def test_treatments_that_gain_more_come_first_and_compiling_last() -> None:
    planned = plan(make_situation(steps=USUAL))

    tried = [record for record in planned if not record.outcome]
    others = [record for record in tried[1:] if record.name != "compile"]
    # A treatment without a bound is sorted as if it could double the speed.
    bounds = [record.at_most or 2.0 for record in others]
    assert planned[: len(tried)] == tried
    assert tried[0].name == "ideal-loader"
    assert tried[-1].name == "compile"
    assert bounds == sorted(bounds, reverse=True)
    assert {record.name for record in others if record.at_most is None} == {
        "threads",
        "jemalloc",
        "tcmalloc",
    }


def test_only_leaves_the_others_out() -> None:
    planned = plan(make_situation(), ["fused"])

    assert [record.name for record in planned] == ["fused"]


def test_only_workers_still_plans_the_ideal_loader() -> None:
    planned = plan(make_situation(), ["workers"])

    assert [record.name for record in planned if not record.outcome] == ["ideal-loader", "workers"]


def test_unknown_name_after_only_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match=r"no treatment is named 'worker'; did you mean workers\?"):
        check_names(["fused", "worker"])


def test_name_unlike_any_lists_the_treatments() -> None:
    with pytest.raises(UsageError, match="the treatments are ideal-loader, workers, "):
        check_names(["\x1b[31m"])


def test_all_names_of_the_catalogue_are_accepted() -> None:
    check_names(list(CATALOGUE))


def test_variables_merge_with_what_the_user_set() -> None:
    environ = {
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64, expandable_segments:False",
        "LD_PRELOAD": "/lib/libiomp5.so:/lib/libmimalloc.so",
    }

    planned = plan(make_situation(settings=on_gpu(), environ=environ))

    variables = {record.name: record.env for record in planned if record.env}
    assert variables["expandable-segments"] == {
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64,expandable_segments:True"
    }
    # Only one allocator can replace malloc, so mimalloc is left out.
    assert variables["jemalloc"] == {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2:/lib/libiomp5.so"}


def test_threads_are_set_by_variables_and_in_the_process() -> None:
    records = of_name(plan(make_situation(settings=make_settings(threads=16))), "threads")

    assert [record.arm for record in records] == ["threads-1", "threads-2", "threads-4"]
    assert records[2].env == {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"}
    assert records[2].treatments == ["threads=4"]
    assert records[2].change == "OMP_NUM_THREADS=4 MKL_NUM_THREADS=4 COMMAND"


def test_memory_node_is_bound_by_a_prefix() -> None:
    situation = make_situation(machine=machine(nodes=[1, 3], has_numactl=True))

    (record,) = of_name(plan(situation), "numa")

    assert record.prefix == ["numactl", "--cpunodebind=1", "--membind=1"]
    assert record.change == "numactl --cpunodebind=1 --membind=1 COMMAND"
    assert record.treatments == ["numa=1"]


def test_old_torch_gets_the_old_name_of_tf32() -> None:
    (old,) = of_name(plan(make_situation(settings=on_gpu(torch="2.8.1+cu128"))), "tf32")
    (new,) = of_name(plan(make_situation(settings=on_gpu(torch="2.13.0"))), "tf32")

    assert old.change == "torch.backends.cuda.matmul.allow_tf32 = True"
    assert new.change == 'torch.backends.cuda.matmul.fp32_precision = "tf32"'


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_lesson_of_the_catalogue_exists(name: str) -> None:
    lessons = {path.stem for path in (CHECKOUT / "scenarios").glob("*/*.py")}
    situations = [make_situation(settings=on_gpu(), recompilations=3), make_situation()]

    for situation in situations:
        for record in of_name(plan(situation), name):
            assert record.lesson in lessons


@pytest.mark.parametrize("case", APPLIES)
def test_records_of_a_plan_survive_the_journal(case: str) -> None:
    _, situation, _ = APPLIES[case]
    planned = plan(situation)

    encoded = msgspec.json.encode(planned)

    assert msgspec.json.decode(encoded, type=list[TreatmentPlanned]) == planned


# ---- after the ideal loader was tried


def test_ideal_loader_lowers_the_bounds_of_data_only() -> None:
    before = plan(make_situation(steps=data_of(50), loaders=ones(workers=1)))

    after = refine(before, 1.1, process_sd=0.05)

    bounds = {record.name: record.at_most for record in after}
    before_bounds = {record.name: record.at_most for record in before}
    why = of_name(after, "workers")[0].at_most_why
    assert bounds["workers"] == pytest.approx(1.1 * 1.19978, rel=1e-4)
    assert bounds["prefetch"] == pytest.approx(1.1 * 1.19978, rel=1e-4)
    assert why == "a loader that repeats its first batches was 1.10x as fast"
    for name in ("ideal-loader", "fused", "bf16", "compile"):
        assert bounds[name] == before_bounds[name]


def test_ideal_loader_never_raises_a_bound() -> None:
    before = plan(make_situation(steps=data_of(10)))

    assert refine(before, 3.0) == before


def test_one_usual_process_does_not_exclude_a_gain_of_three_percent() -> None:
    refined = refine(plan(make_situation()), 1.0, process_sd=0.05)

    assert of_name(refined, "workers")[0].outcome == ""


def test_ideal_loader_that_was_clearly_slower_drops_the_others() -> None:
    refined = refine(plan(make_situation()), 0.8, process_sd=0.05)

    (record,) = of_name(refined, "workers")
    assert record.outcome == SMALL
    assert record.why == (
        "a loader that repeats its first batches was 0.80x as fast, so at most 1.00x"
    )


def test_calibrated_machine_drops_what_the_ideal_loader_excludes() -> None:
    refined = refine(plan(make_situation()), 0.99, process_sd=0.01)

    (record,) = of_name(refined, "workers")
    assert record.outcome == SMALL
    assert record.at_most == pytest.approx(0.99 * math.exp(2.575829 * math.sqrt(2) * 0.01))


@pytest.mark.parametrize("ratio", [math.nan, math.inf, 0.0, -1.0])
def test_impossible_ratio_changes_nothing(ratio: float) -> None:
    planned = plan(make_situation())

    assert refine(planned, ratio) == planned


# ---- hostile facts

HUGE = 2**62 - 1
ODD = "\x1b[31m\u202eNet\n\udcff" * 50


def hostile_facts() -> ScriptFacts:
    """Return facts with huge numbers and odd names, as the script may have written them."""
    place = {"file": ODD, "line": HUGE}
    settings = on_gpu(
        torch=ODD,
        capability=ODD,
        matmul_precision=ODD,
        threads=HUGE,
        cores=HUGE,
        world=HUGE,
        collections=HUGE,
        collecting_ns=HUGE,
    )
    loader = {"workers": HUGE, "prefetch": HUGE, "loops": HUGE, "batches": HUGE}
    root = make_root(
        kind=ODD, dtype="float32", numbers=HUGE, convolutions=HUGE, attentions=HUGE, device=ODD
    )
    return ScriptFacts(
        loaders=[make_loader(**place, kind=ODD, **loader)] * 100,
        optimizers=[make_optimizer(**place, kind=ODD, fills_with_zeros=True)] * 100,
        roots=[root, make_root(dtype=ODD, is_autocast=True, autocast_dtype=ODD)],
        ddp=[make_ddp(**place, bucket_mb=math.nan), make_ddp(**place, bucket_mb=1e300)],
        settings=settings,
    )


@pytest.mark.parametrize("has_cuda", [True, False])
def test_hostile_facts_make_records_that_can_be_stored(has_cuda: bool) -> None:
    facts = hostile_facts()
    settings = msgspec.structs.replace(facts.settings, has_cuda=has_cuda)
    facts = msgspec.structs.replace(facts, settings=settings)
    situation = Situation(facts=facts, steps=USUAL, machine=MACHINE, script=ODD)

    planned = plan(situation)

    stored = msgspec.json.decode(msgspec.json.encode(planned), type=list[TreatmentPlanned])
    assert stored == planned
    texts = [text for record in planned for text in (record.title, record.why, record.change)]
    assert not any("\x1b" in text or "\n" in text or "\u202e" in text for text in texts)


def test_facts_without_any_content_make_a_plan() -> None:
    situation = Situation(facts=ScriptFacts(), steps=MeasuredSteps(), machine=MACHINE)

    planned = plan(situation)

    tried = {record.name for record in planned if not record.outcome}
    assert tried == {"threads", "jemalloc", "tcmalloc"}


@pytest.mark.parametrize("bucket_mb", [math.nan, math.inf, -1.0, 1e-9, 0.0])
def test_impossible_bucket_size_still_plans_a_whole_number(bucket_mb: float) -> None:
    situation = make_situation(
        ddp=[make_ddp(bucket_mb=bucket_mb)], roots=[make_root(numbers=100 << 20)]
    )

    (record,) = of_name(plan(situation), "ddp-bucket")

    assert int(record.arm.rpartition("-")[2]) >= 1


def test_facts_of_the_process_are_read_from_json() -> None:
    text = json.dumps({"loaders": [{"workers": 2, "batches": 9}], "settings": {"threads": 3}})

    facts = msgspec.json.decode(text, type=ScriptFacts)

    assert facts.loaders == [LoaderFacts(workers=2, batches=9)]
    assert facts.settings == SettingFacts(threads=3)
    assert isinstance(facts.loaders[0], ScriptPlace)
