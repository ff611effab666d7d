"""Decide whether a run says anything about a machine as it is now.

A raced setting is a variable whose values the run compared by timing each of them. A writer is one
of the processes that timed, as the journal names it.
"""

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

_THREADS = ("OMP", "MKL", "KMP", "GOMP")  # variables with these prefixes change the same threads
_RANKS, _DEVICE = "ranks", "device"  # parameters that the advice itself is about
_FACT_LENGTH = 200  # characters
_OPTIONS_LENGTH = 200
_CHANGES_LENGTH = 300


def facts_of(summary: RunSummary, writers: Sequence[str] = ()) -> Facts:
    """Return what a run recorded about its machine, in the form of `box_facts`.

    Facts that were not recorded are left out. `writers` are the processes whose times count: the
    first of them that used a GPU gives the GPU and its driver.
    """
    host = ""
    if summary.run:
        host = summary.run.supervisor.host
    cpu = _find_inner(summary.environment.get("box"), "cpu")
    facts: dict[str, object] = {
        "host": host,
        "cores": cpu.get("usable_cores"),
        "CPU": cpu.get("model"),
        "torch": summary.environment.get("torch", {}).get("version"),
    }
    for writer in writers:
        if writer not in summary.cuda:
            continue
        gpu = name_of_gpu(torch_uuid("", summary.cuda[writer]), summary)
        if gpu:
            facts["driver"] = summary.environment.get("gpu", {}).get("driver")
            facts["GPU"] = gpu
            break
    return {name: show(fact, _FACT_LENGTH) for name, fact in facts.items() if fact}


def why_not_valid(
    subject: ReportedRun,
    declared: SettingRaced,
    writers: Sequence[str],
    here: Facts,
    hosts: Collection[str],
) -> str:
    """Return why a race says nothing about the machine now, or an empty string if it does.

    `writers` are the processes that timed the values of the setting. `here` are the facts of the
    machine now, and `hosts` all names that it has had.
    """
    summary = subject.summary
    facts = facts_of(summary, writers)
    if facts.get("host") not in hosts:
        return "it ran on another machine"
    if subject.state != RunState.SUCCEEDED or summary.run is None:
        return f"it ended as {show(subject.state)}"
    free = {_DEVICE}
    if declared.ranks:
        free.add(_RANKS)
    if not is_with_defaults(summary.run, free):
        options = show(_describe_options(summary.run, free), _OPTIONS_LENGTH)
        return f"it ran with other options: {options}"
    missing = [name for name in ("cores", "torch") if name not in facts]
    if missing:
        return f"it did not record {join(missing)}"
    changed = describe_changes({**facts, "host": ""}, here)
    if changed:
        return show("; ".join(changed), _CHANGES_LENGTH)
    variables = _list_set_variables(summary, declared.name)
    if variables:
        return f"{join(variables)} was already set when it ran"
    return ""


def _describe_options(run: RunStarted, free: Collection[str]) -> str:
    """Return the options of a run that differ from the defaults, except for free parameters."""
    words = []
    if run.quick:
        words.append("--quick")
    for name, value in changes(run).items():
        if name in free:
            continue
        if not isinstance(value, bool):
            value = spell(value)
        words += option_words(name, value)
    return " ".join(words)


def _list_set_variables(summary: RunSummary, name: str) -> list[str]:
    """Return the variables with the prefix of a setting that were set when the run began."""
    prefixes: tuple[str, ...] = (_prefix(name),)
    if _prefix(name) in _THREADS:
        prefixes = _THREADS
    variables = _find_inner(summary.environment.get("box"), "env", "variables")
    return [variable for variable in variables if _prefix(str(variable)) in prefixes]


def _prefix(variable: str) -> str:
    prefix, _, _ = variable.partition("_")
    return prefix


def _find_inner(facts: object, *path: str) -> Mapping[str, object]:
    """Return the mapping at a place within facts, which may be anything; empty if there is none."""
    for name in path:
        if not isinstance(facts, dict):
            return {}
        facts = facts.get(name)
    if not isinstance(facts, dict):
        return {}
    return facts
