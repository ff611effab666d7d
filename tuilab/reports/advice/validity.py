"""Whether a run can speak for a box as it is now: what it ran on, and how it ran."""

from collections.abc import Collection, Mapping, Sequence

from tuilab.catalogue.params import spell
from tuilab.probes.same_box import describe_changes
from tuilab.record.events import RunStarted, SettingRaced
from tuilab.record.gpus.own_gpus import name_of_gpu
from tuilab.record.gpus.raced_gpu import torch_uuid
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.reports.reported_run import ReportedRun
from tuilab.runs.command_line import changes, option_words
from tuilab.runs.representative import is_with_defaults
from tuilab.text.display import join, show

Facts = dict[str, str]

_THREADS = ("OMP", "MKL", "KMP", "GOMP")  # variables of these names act on each other's threads
_RANKS, _DEVICE = "ranks", "device"  # parameters that say for what an advice is


def facts_of(summary: RunSummary, writers: Sequence[str] = ()) -> Facts:
    """Return what a run recorded of its box, as `box_facts` has it; of GPUs the one that these workers had."""
    cpu = _inner(summary.environment.get("box"), "cpu")
    facts: dict[str, object] = {
        "host": summary.run.supervisor.host if summary.run else "",
        "cores": cpu.get("usable_cores"),
        "CPU": cpu.get("model"),
        "torch": summary.environment.get("torch", {}).get("version"),
    }
    gpus = dict.fromkeys(
        name_of_gpu(torch_uuid("", summary.cuda[one]), summary)
        for one in writers
        if one in summary.cuda
    )
    if names := [name for name in gpus if name]:
        facts |= {"driver": summary.environment.get("gpu", {}).get("driver"), "GPU": names[0]}
    return {name: show(value, 200) for name, value in facts.items() if value}


def why_not(
    subject: ReportedRun,
    said: SettingRaced,
    writers: Sequence[str],
    here: Facts,
    hosts: Collection[str],
) -> str:
    """Return why what raced in a run says nothing about the box now; nothing where it does."""
    summary = subject.summary
    facts = facts_of(summary, writers)
    if facts.get("host") not in hosts:
        return "it ran on another machine"
    if subject.state != RunState.SUCCEEDED or summary.run is None:
        return f"it ended as {show(subject.state)}"
    free = {_DEVICE, _RANKS} if said.ranks else {_DEVICE}
    if not is_with_defaults(summary.run, free):
        return f"it ran with other options: {show(_other_options(summary.run, free), 200)}"
    if lacking := [name for name in ("cores", "torch") if name not in facts]:
        return f"it did not record {join(lacking)}"
    if changed := describe_changes({**facts, "host": ""}, here):
        return show("; ".join(changed), 300)
    if own := _set_before(summary, said.name):
        return f"{join(own)} was already set when it ran"
    return ""


def _other_options(run: RunStarted, free: Collection[str]) -> str:
    """Return the options of a run that differ from the defaults, except for free parameters."""
    words = ["--quick"] if run.quick else []
    for name, value in changes(run).items():
        if name not in free:
            words += option_words(name, value if isinstance(value, bool) else spell(value))
    return " ".join(words)


def _set_before(summary: RunSummary, name: str) -> list[str]:
    """Return the variables of the kind of a setting that were set when the run began."""
    kind = name.partition("_")[0]
    kinds = _THREADS if kind in _THREADS else (kind,)
    known = _inner(summary.environment.get("box"), "env", "variables")
    return [one for one in known if str(one).partition("_")[0] in kinds]


def _inner(facts: object, *path: str) -> Mapping[str, object]:
    """Return what stands at a place within facts, which may be anything; nothing where there is no such place."""
    for name in path:
        facts = facts.get(name) if isinstance(facts, dict) else None
    return facts if isinstance(facts, dict) else {}
