"""Compare the settings of runs and the machines that they ran on: the facts that differ."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuilab.catalogue.params import spell
from tuilab.record.events import BarsShown
from tuilab.record.finding_words import ends_of_curves
from tuilab.record.gpus.own_gpus import name_of_gpu, own_gpus
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.stages import is_tuning
from tuilab.runs import command_line
from tuilab.text.display import plural
from tuilab.text.words import gpu_words, size

ABSENT = "n/a"
_MAX_FACTS = 400  # of an environment that are compared
LENGTH = 300  # characters of a value
# Facts that differ at each reading. They say nothing about the machine.
_MOMENTARY = (
    "load_average",
    "pressure_avg10",
    "memory_available_bytes",
    "memory_free_bytes",
    "missing",
    "why",
)
_CONDITIONS = {
    "load_average": "load in the minute before",
    "pressure_avg10": "waiting for a core, % of 10 s",
    "memory_available_bytes": "memory available",
}

Facts = dict[tuple[str, str], str]  # values in words, by part and name


@dataclass(frozen=True)
class Difference:
    """One fact that is not the same in all runs: a value for each of them."""

    part: str  # "parameter", "source", "run", "environment" or "conditions"
    name: str
    values: tuple[str, ...]


def differing(
    summaries: Sequence[RunSummary], running: Container[int] = ()
) -> tuple[list[Difference], int]:
    """Return the facts that are not the same in all runs, and how many are the same.

    The conditions, such as the load of the machine, come last. `running` are the positions of the
    runs that may record more facts.
    """
    facts_of_runs = [facts_of(summary) for summary in summaries]
    keys: dict[tuple[str, str], None] = {}
    for facts in facts_of_runs:
        keys |= dict.fromkeys(facts)
    rows = []
    same_count = 0
    for part, name in keys:
        values = []
        for position, facts in enumerate(facts_of_runs):
            value = facts.get((part, name))
            if not value:
                value = absent(summaries[position], part, is_running=position in running)
            values.append(value)
        if len(set(values)) > 1:
            rows.append(Difference(part, name, tuple(values)))
        else:
            same_count += 1
    late = _find_late(rows, facts_of_runs, summaries)
    rows = [row for row in rows if row not in late]
    if late:
        values = []
        for position, facts in enumerate(facts_of_runs):
            count = sum((row.part, row.name) in facts for row in late)
            if count:
                values.append(plural(count, "fact"))
            else:
                is_running = position in running
                values.append(absent(summaries[position], "environment", is_running=is_running))
        rows.append(Difference("environment", "the rest", tuple(values)))
    return rows + conditions(summaries), same_count


def _find_late(
    rows: Sequence[Difference],
    facts_of_runs: Sequence[Container[tuple[str, str]]],
    summaries: Sequence[RunSummary],
) -> list[Difference]:
    """Return the facts of the machine that differ only because they come late in a run.

    Some runs have not recorded a whole part of the machine, and the others have the same value.
    """
    parts: set[str] = set()
    for summary in summaries:
        parts |= summary.environment.keys()
    incomplete = []  # the positions of runs without some part
    for position, summary in enumerate(summaries):
        if parts - summary.environment.keys():
            incomplete.append(position)
    late = []
    for row in rows:
        if row.part != "environment":
            continue
        lacking = {run for run in incomplete if (row.part, row.name) not in facts_of_runs[run]}
        values = {value for run, value in enumerate(row.values) if run not in lacking}
        if lacking and len(values) < 2:
            late.append(row)
    return late


def facts_of(summary: RunSummary) -> Facts:
    """Return the facts that are the same in two equal runs, the most important ones first.

    There are none if the first record is lost, and never more than `_MAX_FACTS`.
    """
    run = summary.run
    if run is None:
        return {}
    scenario = f"{run.topic}/{run.scenario}" if run.topic else run.scenario
    facts = {("run", "scenario"): scenario}
    for name, value in run.params.items():
        facts["parameter", name] = _words(value)
    for name, text in _command_facts(summary).items():
        facts["run", name] = text
    facts["source", "scenario.py"] = run.source_sha256[:12] or ABSENT
    if not is_tuning(summary):  # its planned repeats are only a limit, which nobody chose
        repeats = f"up to {run.repeats}" if run.looks else str(summary.planned_repeats)
        facts["run", "repeats"] = repeats
    facts["run", "quick"] = "yes" if run.quick else "no"
    facts["run", "tuilab"] = run.tuilab
    facts["environment", "host"] = run.supervisor.host
    if run.node:
        facts["environment", "node"] = run.node
    if summary.gpus or "gpu" in summary.unavailable:
        facts["environment", "GPUs"] = _gpus(summary)
    gpus = []
    for gpu in own_gpus(summary):
        name = name_of_gpu(gpu.torch_uuid, summary)
        gpus.append(gpu_words(name, gpu.torch_uuid or gpu.nvml_uuid))
    if gpus:
        facts["environment", "GPU of the run"] = ", ".join(gpus)
    for part, part_facts in summary.environment.items():
        for path, text in _flatten(part, part_facts).items():
            facts["environment", _title_of(path)] = text
    return dict(list(facts.items())[:_MAX_FACTS])


def box_of(summary: RunSummary) -> str:
    """Return where a run was made: the node of a cluster, else the host."""
    if summary.run is None:
        return ABSENT
    return summary.run.node or summary.run.supervisor.host


def _command_facts(summary: RunSummary) -> dict[str, str]:
    """Return the facts about a user's command and its steps; none for a scenario."""
    run = summary.run
    if run is None or not run.command:
        return {}
    facts = {
        "command": command_line.line(run.command),
        "how": " ".join(command_line.verb_of(run)[1:]),
        "folder": run.folder,
    }
    for text in summary.texts:
        facts[text.title] = text.text.partition("\n")[0].partition(":")[0]
    facts |= ends_of_curves(summary)
    for bars in summary.figures.values():
        if isinstance(bars, BarsShown):
            for name, value in zip(bars.names, bars.values, strict=False):
                facts[f"{bars.title}: {name}"] = f"{value:.0f} {bars.unit}"
    return {name: value[:LENGTH] for name, value in facts.items()}


def absent(summary: RunSummary, part: str, *, is_running: bool = False) -> str:
    """Return that a fact of a part is not known of a run, and why."""
    if summary.run is None:
        return f"{ABSENT}: nothing was recorded"
    if part == "environment" and is_running:
        return f"{ABSENT}: not recorded yet"
    if part == "environment" and not summary.environment:
        return f"{ABSENT}: the run ended before it was recorded"
    if part == "parameter":
        return f"{ABSENT}: not in this run"
    return f"{ABSENT}: not recorded"


def _gpus(summary: RunSummary) -> str:
    """Return the models of the GPUs of the machine with their numbers, or why none is known."""
    if not summary.gpus:
        return f"{ABSENT}: {summary.unavailable['gpu']}"
    counts = Counter(gpu.name for gpu in summary.gpus.values())
    models = []
    for name in sorted(counts):
        if counts[name] > 1:
            models.append(f"{counts[name]}x {name}")
        else:
            models.append(name)
    return ", ".join(models)


def _flatten(path: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return nested facts by their path; the value of a missing fact is the reason."""
    texts: dict[str, str] = {}
    for key, value in facts.items():
        if isinstance(value, dict) and key != "missing":
            texts |= _flatten(f"{path} {key}", value)
        elif key not in _MOMENTARY:
            text = _words(value)
            if key.endswith("_bytes") and isinstance(value, int):
                text = size(value)
            texts[f"{path} {key.removesuffix('_bytes')}"] = text
    missing = facts.get("missing")
    if isinstance(missing, dict):
        for key, reason in missing.items():
            texts[f"{path} {key.removesuffix('_bytes')}"] = f"{ABSENT}: {_words(reason)}"
    return texts


def _title_of(path: str) -> str:
    """Return the title of a fact: its path, without the beginning that all facts of a part have."""
    for prefix in ("box env ", "box cpu ", "box "):
        path = path.removeprefix(prefix)
    return path.replace("_", " ")


def conditions(summaries: Sequence[RunSummary]) -> list[Difference]:
    """Return how busy the machine was when each run began.

    These facts are never the same. They matter when times differ.
    """
    rows = []
    for key, name in _CONDITIONS.items():
        values = [_condition(key, summary) for summary in summaries]
        if len(set(values) - {""}) < 2:
            continue
        for position, summary in enumerate(summaries):
            if not values[position]:
                values[position] = absent(summary, "environment")
        rows.append(Difference("conditions", name, tuple(values)))
    return rows


def _condition(key: str, summary: RunSummary) -> str:
    """Return a condition in words; empty if it was not recorded."""
    cpu_facts = summary.environment.get("box", {}).get("cpu", {})
    if not isinstance(cpu_facts, dict):
        return ""
    value = cpu_facts.get(key)
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if key.endswith("_bytes"):
        return size(value)
    return f"{value:.3g}"


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_words(item) for item in value[:50])[:LENGTH]
    if isinstance(value, bool | int | float | str):
        return spell(value)[:LENGTH]
    return str(value)[:LENGTH]
