"""Make runs of `tuilab tune` that never ran: each outcome, a combination, and runs cut short."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.made_runs import identity, started
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.record.tuning.outcomes import LEARNING_DOUBT

COMMAND = ["python", "train.py", "--data", "my data"]
DIFF = """\
--- train.py
+++ train.py
@@ -14 +14 @@
-    loader = DataLoader(data, batch_size=64)
+    loader = DataLoader(data, batch_size=64, num_workers=2, persistent_workers=True)
"""
_MIB = 1024**2
_GIB = 1024**3
_PARTS = {"waits for data": 34.0, "backward": 31.0, "forward + rest": 34.0, "optimizer": 1.0}
# By arm: what a treatment is, and what it may gain at most.
PLANNED: dict[str, dict[str, Any]] = {
    "ideal-loader": {"title": "ideal loader", "learns": "bound", "at_most": 1.72},
    "workers-2": {
        "name": "workers",
        "title": "2 DataLoader workers",
        "treatments": ["workers=2"],
        "change": "DataLoader(..., num_workers=2, persistent_workers=True)",
        "diff": DIFF,
        "file": "/home/ada/project/train.py",
        "line": 14,
        "lesson": "loader-workers",
        "at_most": 1.72,
        "at_most_why": "all time that the script waits for data",
        "memory": "a copy of the dataset for each worker",
    },
    "channels-last": {
        "title": "channels_last",
        "learns": "rounding",
        "change": "model.to(memory_format=torch.channels_last)",
        "file": "train.py",
        "line": 20,
        "lesson": "channels-last",
        "at_most": 1.5,
        "at_most_why": "forward and backward, at most twice as fast",
    },
    "bf16": {
        "title": "bf16 autocast",
        "learns": "other rounding",
        "change": "with torch.autocast('cuda', torch.bfloat16): ...",
        "lesson": "bf16-decay",
        "at_most": 1.9,
    },
    "compile": {"title": "torch.compile", "learns": "rounding", "at_most": 1.8},
    "foreach": {"title": "AdamW(foreach=True)", "learns": "rounding", "at_most": 1.12},
    "gc-freeze": {"title": "no garbage collection", "at_most": 1.04},
    "jemalloc": {
        "title": "jemalloc",
        "env": {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"},
        "at_most": None,
        "at_most_why": "not known: the time for allocations was not measured",
    },
    "attention-math": {"name": "attention", "title": "attention by math", "learns": "rounding"},
    "prefetch-8": {"name": "prefetch", "title": "prefetch_factor=8", "at_most": 1.3},
    "threads-8": {"name": "threads", "title": "8 threads", "learns": "rounding", "at_most": 2.0},
    "ddp-static": {"title": "static_graph=True", "at_most": 1.1},
    "fused": {
        "title": "AdamW(fused=True)",
        "learns": "rounding",
        "at_most": 1.01,
        "outcome": "NOT COMPARED",
        "why": "the optimizer takes 1 % of a step: at most 1.01x",
    },
    "pin": {"title": "pin_memory=True", "outcome": "NOT APPLICABLE", "why": "no GPU is used"},
    "set-to-none": {
        "title": "zero_grad(set_to_none=True)",
        "outcome": "ALREADY SET",
        "why": "it is the default of torch, and the script does not change it",
    },
}
# By arm: what a process with the treatment has come to.
TRIED: dict[str, dict[str, Any]] = {
    "ideal-loader": {"ratio": 1.69, "did": ["replays 8 batches"]},
    "workers-2": {"ratio": 1.5, "peak_bytes": 1310 * _MIB, "did": ["num_workers=2"]},
    "channels-last": {"ratio": 1.1, "peak_bytes": 1010 * _MIB},
    "bf16": {"ratio": 1.24, "peak_bytes": 700 * _MIB},
    "compile": {"ratio": 1.05, "peak_bytes": 1100 * _MIB, "graphs": 2, "compile_s": 31.0},
    "foreach": {"ratio": 1.01, "peak_bytes": 1000 * _MIB},
    "gc-freeze": {"ratio": 1.02, "peak_bytes": 1000 * _MIB},
    "jemalloc": {"ratio": 0.95, "peak_bytes": 990 * _MIB},
    "attention-math": {
        "outcome": "OUT OF MEMORY",
        "why": "CUDA out of memory: tried to allocate 2 GiB; the peak of the base is 1000 MiB",
    },
    "prefetch-8": {"outcome": "OVER TIME", "why": "no step within 180 s"},
    "threads-8": {"outcome": "NOT COMPARED", "why": "slower in one process: 0.6x", "step_s": 0.69},
    "ddp-static": {"outcome": "FAILED", "why": "RuntimeError: a parameter got no gradient"},
}
# By arm: verdict, estimate, low and high.
JUDGED: dict[str, tuple[str, float | None, float | None, float | None]] = {
    "workers-2": ("SUPPORTED", 1.5521, 1.41, 1.7),
    "channels-last": ("SUPPORTED", 1.09, 1.02, 1.16),
    "bf16": ("INCONCLUSIVE", 1.21, 1.12, 1.31),
    "compile": ("INCONCLUSIVE", 1.04, 0.91, 1.2),
    "foreach": ("NO MEANINGFUL DIFFERENCE", 1.004, 0.99, 1.02),
    "gc-freeze": ("INVALID", 1.1, 1.05, 1.15),
    "jemalloc": ("REFUTED", 0.93, 0.9, 0.96),
    "ddp-static": ("NOT TESTABLE HERE", None, None, None),
}
_WHY = {
    "bf16": LEARNING_DOUBT,
    "compile": "6 repeats are too few for this noise",
    "gc-freeze": "it learns something else: the loss differs at step 4",
    "ddp-static": "the process failed",
}


def run_started(**fields: Any) -> events.RunStarted:
    """Return the first record of a tuning."""
    defaults: dict[str, Any] = {
        "scenario": "train",
        "topic": "tune",
        "title": "python train.py",
        "command": COMMAND,
        "folder": "/home/ada/project",
        "argv": ["tune", "--budget", "15m", "--", *COMMAND],
        "repeats": 81,
        "looks": [2, 3, 4, 6, 9, 14, 21, 32, 48, 81],
        "budget_s": 900.0,
    }
    return started(**{**defaults, **fields})


def planned(arm: str, **fields: Any) -> events.TreatmentPlanned:
    """Return the plan of one treatment."""
    return events.TreatmentPlanned(
        **{"arm": arm, "name": arm, "treatments": [arm], **PLANNED.get(arm, {}), **fields}
    )


def plan(arms: Sequence[str] = (*PLANNED,)) -> list[events.Event]:
    """Return the records of a plan: its treatments, then its end."""
    end = events.TuningPlanned(
        steps=60,
        step_s=0.414,
        process_s=28.0,
        parts=_PARTS,
        disabled=["W&B (WANDB_MODE=disabled)", "uploads to the hub (HF_HUB_OFFLINE=1)"],
        written=["out/log.txt", "out/last.pt", "out/first.pt", "out/args.json"],
    )
    return [*(planned(arm) for arm in arms), end]


def tried(arm: str, **fields: Any) -> events.TreatmentTried:
    """Return the record of a process with a treatment."""
    known = {**TRIED.get(arm, {}), **fields}
    if known.get("peak_bytes") is not None:
        known.setdefault("base_peak_bytes", 1000 * _MIB)
    return events.TreatmentTried(arm=arm, **known)


def declared(arm: str, over: str = "base", key: str = "") -> events.ClaimDeclared:
    """Return the claim that an arm is faster than another."""
    title = PLANNED.get(arm, {}).get("title", arm)
    return events.ClaimDeclared(
        key=key or arm,
        text=f"{title} is faster than the {'unchanged script' if over == 'base' else over}",
        over=over,
        under=arm,
        op="at_least",
        bound=1.0,
    )


def verdict(arm: str, *judged: Any, key: str = "", **fields: Any) -> events.VerdictReached:
    """Return the verdict on the claim of an arm: the word, the estimate and its interval."""
    word, estimate, low, high = judged or JUDGED[arm]
    defaults: dict[str, Any] = {"why": _WHY.get(arm, ""), "confidence": 0.95, "units": 6}
    return events.VerdictReached(
        key=key or arm,
        text=f"{PLANNED.get(arm, {}).get('title', arm)} is faster than the unchanged script",
        verdict=word,
        rule="tuilab-7",
        unit="repeats",
        estimate=estimate,
        low=low,
        high=high,
        **{**defaults, **fields},
    )


def raced(
    arms: Sequence[str], stage: str = "comparison", factor: float = 1.0
) -> list[events.Event]:
    """Return one repeat of a comparison: a block of each arm, and one of the base again.

    The times of the base are multiplied by a factor.
    """
    arms = ["base", *(arm for arm in arms if arm != "base")]
    race = events.RaceStarted(
        arms=arms,
        threads=0,
        device=events.OWN_PROCESS,
        loops=dict.fromkeys(arms, 1),
        base="base",
        has_instances=True,
        stage=stage,
        learns={arm: PLANNED.get(arm, {}).get("learns", "same") for arm in arms[1:]},
    )
    blocks = []
    accounts = {}
    for slot, arm in enumerate([*arms, "base"]):
        ratio = (JUDGED.get(arm) or ("", 1.6, None, None))[1] or 1.0
        step_s = 0.414 * factor if arm == "base" else 0.414 / ratio
        wall_ns = round(step_s * 1e9)
        block = events.BlockTimed(
            arm=arm, round=0, slot=slot, loops=1, wall_ns=wall_ns, cpu_ns=wall_ns
        )
        if slot == len(arms):
            block.control = "same"
        blocks.append(block)
        data_s = 0.14 if arm == "base" else max(step_s - 0.27, 0.0)
        accounts[arm] = {
            "step_s": step_s,
            "data_s": data_s,
            "backward_s": 0.13,
            "optimizer_s": 0.004,
            "rest_s": 0.136,
            "cpu_s": 30.0,
            "peak_bytes": float(_GIB),
        }
    return [race, *blocks, events.RaceFinished(arms=arms, accounts=accounts)]


def combined() -> list[events.Event]:
    """Return the records of the combination of the winners, until its comparison has ended."""
    arm = "combination"
    record = events.TuningCombined(
        arm=arm,
        parts=["workers-2", "channels-last"],
        best="workers-2",
        learns="rounding",
        left_out={"bf16": "it is not shown to learn as well"},
    )
    return [
        record,
        declared(arm),
        declared(arm, "workers-2", "combination-over-best"),
        *raced(["workers-2", arm], "combination"),
        tried(arm, peak_bytes=1312 * _MIB),
    ]


def judged_combination() -> list[events.Event]:
    """Return the verdicts on the combination of the winners."""
    arm = "combination"
    over_best = ("INCONCLUSIVE", 1.038, 0.98, 1.1)
    return [
        verdict(arm, "SUPPORTED", 1.611, 1.47, 1.77),
        verdict(arm, *over_best, key="combination-over-best"),
    ]


class Repeat(NamedTuple):
    """A repeat of a comparison, which a worker of its own records."""

    arms: Sequence[str]
    stage: str = "comparison"
    factor: float = 1.0  # by which the base is slower than in other repeats


def make_tuning(root: Path, *parts: events.Event | Repeat, **fields: Any) -> Path:
    """Make the folder of a tuning with these records and repeats after its first record."""
    run_dir = root / "20270115T080000000Z-train.tune-7u4e00"
    (run_dir / "journal").mkdir(parents=True)
    supervisor = Writer(run_dir / "journal" / "supervisor.jsonl")
    supervisor.append(run_started(**fields))
    repeats = 0
    for part in parts:
        if isinstance(part, Repeat):
            _add_repeat(run_dir, supervisor, part, repeats)
            repeats += 1
        else:
            supervisor.append(part)
    supervisor.close()
    return run_dir


def _add_repeat(run_dir: Path, supervisor: Writer, repeat: Repeat, number: int) -> None:
    """Add a repeat to a run: the records of its worker, with the start and the end of that."""
    name = f"worker-{number}"
    supervisor.append(events.WorkerStarted(writer=name, pid=1, start=1, repeat=number))
    worker = Writer(run_dir / "journal" / f"{name}.jsonl")
    claims = [declared(arm) for arm in repeat.arms]
    for record in [*claims, *raced(repeat.arms, repeat.stage, repeat.factor)]:
        worker.append(record)
    worker.append(events.ScenarioFinished())
    worker.close()
    supervisor.append(events.WorkerExited(writer=name, code=0))


def repeats_of(arms: Sequence[str], count: int) -> list[Repeat]:
    """Return repeats of a comparison whose times differ by a few percent."""
    return [Repeat(arms, factor=1 + 0.02 * (number % 3)) for number in range(count)]


def whole_tuning(root: Path, **fields: Any) -> Path:
    """Make a tuning that has ended, with every outcome."""
    return make_tuning(
        root,
        *plan(),
        *map(tried, TRIED),
        *repeats_of([arm for arm in JUDGED if arm != "ddp-static"], 3),
        declared("ddp-static"),
        *combined(),
        *map(verdict, JUDGED),
        *judged_combination(),
        events.StateChanged(state="succeeded"),
        **fields,
    )


def running_tuning(root: Path, repeats: int, *, tries: int = len(TRIED)) -> Path:
    """Make a tuning that is running: with the first tries, and with repeats of its comparison."""
    return make_tuning(
        root,
        events.StateChanged(state="running"),
        *plan(),
        *map(tried, list(TRIED)[:tries]),
        *repeats_of(["workers-2", "channels-last", "bf16"], repeats),
        supervisor=identity(is_alive=True),
    )


def stopped_tuning(root: Path) -> Path:
    """Make a tuning that was stopped while it screened the treatments, before any comparison."""
    end = events.StateChanged(state="stopped", reason="stopped by the user")
    return make_tuning(root, *plan(), tried("ideal-loader"), tried("workers-2"), end)


def hostile_tuning(root: Path, text: str) -> Path:
    """Make a tuning in which every text is hostile."""
    plan_of_one = planned(
        "workers-2",
        title=text,
        change=text,
        diff=f"--- {text}\n+++ {text}\n-{text}\n+{text}\n",
        file=text,
        lesson=text,
        memory=text,
        at_most_why=text,
        treatments=[text],
        env={text: text},
        prefix=[text],
    )
    bf16 = planned("bf16", title=text, change=text, treatments=[text], env={"A": text})
    refused = planned("pin", title=text, outcome="NOT APPLICABLE", why=text)
    end = events.TuningPlanned(
        steps=9, step_s=0.1, process_s=3.0, parts={text: 50.0}, disabled=[text], written=[text]
    )
    combination = events.TuningCombined(
        arm="combination", parts=["workers-2"], best="workers-2", left_out={"bf16": text}
    )
    return make_tuning(
        root,
        *(plan_of_one, bf16, refused, end),
        *(tried("workers-2", did=[text], why=text), tried("bf16")),
        *(declared("workers-2"), declared("bf16")),
        *raced(["workers-2", "bf16"]),
        *(combination, verdict("workers-2", why=text), verdict("bf16", why=text)),
        events.StateChanged(state="succeeded", reason=text),
        command=["python", "train.py", text],
        title=text,
    )
