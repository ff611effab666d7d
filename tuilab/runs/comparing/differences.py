"""What was asked of runs and where they ran, as far as it is not the same in all."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tuilab.catalogue.params import spell
from tuilab.record.events import BarsShown
from tuilab.record.finding_words import ends_of_curves
from tuilab.record.gpus.own_gpus import name_of_gpu, own_gpus
from tuilab.record.summary import RunSummary
from tuilab.runs import command_line
from tuilab.text.display import plural
from tuilab.text.words import gpu_words, size

ABSENT = "n/a"
_FACTS = 400  # of an environment that are compared
LENGTH = 300  # of a value
# What is another number at every look says nothing about the box.
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


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in all runs: a value for each of them."""

    part: str  # "parameter", "source", "run", "environment" or "conditions"
    name: str
    values: tuple[str, ...]


def differing(
    summaries: Sequence[RunSummary], going_on: Container[int] = ()
) -> tuple[list[Difference], int]:
    """Return what is not the same in all runs, how busy the box was last, and how many facts are the same."""
    known = [facts_of(summary) for summary in summaries]
    lacks = [
        partial(absent, summary, is_going_on=at in going_on) for at, summary in enumerate(summaries)
    ]
    rows = [
        Difference(
            *key,
            tuple(facts.get(key) or lack(key[0]) for facts, lack in zip(known, lacks, strict=True)),
        )
        for key in dict.fromkeys(key for facts in known for key in facts)
    ]
    different = [row for row in rows if len(set(row.values)) > 1]
    late = _only_late(different, known, summaries)
    told = [row for row in different if row not in late]
    if late:
        counts = [sum((row.part, row.name) in facts for row in late) for facts in known]
        values = (
            plural(count, "fact") if count else lack("environment")
            for count, lack in zip(counts, lacks, strict=True)
        )
        told.append(Difference("environment", "the rest", tuple(values)))
    return [*told, *conditions(summaries)], len(rows) - len(different)


def _only_late(
    rows: Sequence[Difference],
    known: Sequence[Container[tuple[str, str]]],
    summaries: Sequence[RunSummary],
) -> list[Difference]:
    """Return the facts of the box that differ only because some runs have not recorded a whole part of it."""
    parts = {part for summary in summaries for part in summary.environment}
    behind = [at for at, summary in enumerate(summaries) if parts - summary.environment.keys()]
    late = []
    for row in rows:
        without = {at for at in behind if (row.part, row.name) not in known[at]}
        told = {value for at, value in enumerate(row.values) if at not in without}
        if row.part == "environment" and without and len(told) < 2:
            late.append(row)
    return late


def facts_of(summary: RunSummary) -> dict[tuple[str, str], str]:
    """Return what should be the same for two runs to be alike, by part and name, in the order in which it matters."""
    run = summary.run
    if run is None:
        return {}
    found = {("run", "scenario"): f"{run.topic}/{run.scenario}" if run.topic else run.scenario}
    found |= {("parameter", name): _words(value) for name, value in run.params.items()}
    found |= {("run", name): value for name, value in _of_command(summary).items()}
    found["source", "scenario.py"] = run.source_sha256[:12] or ABSENT
    found["run", "repeats"] = f"up to {run.repeats}" if run.looks else str(summary.planned_repeats)
    found["run", "quick"] = "yes" if run.quick else "no"
    found["run", "tuilab"] = run.tuilab
    found["environment", "host"] = run.supervisor.host
    if run.node:
        found["environment", "node"] = run.node
    if summary.gpus or "gpu" in summary.unavailable:
        found["environment", "GPUs"] = _gpus(summary)
    if own := own_gpus(summary):
        found["environment", "GPU of the run"] = ", ".join(
            gpu_words(name_of_gpu(one.torch_uuid, summary), one.torch_uuid or one.nvml_uuid)
            for one in own
        )
    for part, facts in summary.environment.items():
        found |= {
            ("environment", _spoken(name)): value for name, value in _flat(part, facts).items()
        }
    return dict(list(found.items())[:_FACTS])


def box_of(summary: RunSummary) -> str:
    """Return where a run was made: on which node of a cluster, else on which host."""
    return (summary.run.node or summary.run.supervisor.host) if summary.run else ABSENT


def _of_command(summary: RunSummary) -> dict[str, str]:
    """Return of a command of the user's what was run, and what its steps amounted to."""
    run = summary.run
    if run is None or not run.command:
        return {}
    found = {
        "command": command_line.line(run.command),
        "how": " ".join(command_line.verb_of(run)[1:]),
        "folder": run.folder,
    }
    for text in summary.texts:
        found[text.title] = text.text.partition("\n")[0].partition(":")[0]
    found |= ends_of_curves(summary)
    for bars in summary.figures.values():
        if isinstance(bars, BarsShown):
            found |= {
                f"{bars.title}: {name}": f"{value:.0f} {bars.unit}"
                for name, value in zip(bars.names, bars.values, strict=False)
            }
    return {name: value[:LENGTH] for name, value in found.items()}


def absent(summary: RunSummary, part: str, *, is_going_on: bool = False) -> str:
    """Return that a fact of a part is not known of a run, and why."""
    if summary.run is None:
        return f"{ABSENT}: nothing was recorded"
    if part == "environment" and is_going_on:
        return f"{ABSENT}: not recorded yet"
    if part == "environment" and not summary.environment:
        return f"{ABSENT}: the run ended before it was recorded"
    return f"{ABSENT}: not in this run" if part == "parameter" else f"{ABSENT}: not recorded"


def _gpus(summary: RunSummary) -> str:
    if summary.gpus:
        models = Counter(gpu.name for gpu in summary.gpus.values())
        return ", ".join(
            f"{count}x {name}" if count > 1 else name for name, count in sorted(models.items())
        )
    return f"{ABSENT}: {summary.unavailable['gpu']}"


def _flat(name: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return nested facts by their path; a fact that is missing says why."""
    found: dict[str, str] = {}
    for key, value in facts.items():
        if isinstance(value, dict) and key != "missing":
            found |= _flat(f"{name} {key}", value)
        elif key not in _MOMENTARY:
            is_size = key.endswith("_bytes") and isinstance(value, int)
            found[f"{name} {key.removesuffix('_bytes')}"] = (
                size(value) if is_size else _words(value)
            )
    missing = facts.get("missing")
    if isinstance(missing, dict):
        found |= {
            f"{name} {key.removesuffix('_bytes')}": f"{ABSENT}: {_words(why)}"
            for key, why in missing.items()
        }
    return found


def _spoken(path: str) -> str:
    """Return the path of a fact as it is told: what is known of a box needs no telling of its place in the record."""
    for prefix in ("box env ", "box cpu ", "box "):
        path = path.removeprefix(prefix)
    return path.replace("_", " ")


def conditions(summaries: Sequence[RunSummary]) -> list[Difference]:
    """Return how busy the box was as each run began: never the same, and worth a look when times differ."""
    rows = []
    for key, name in _CONDITIONS.items():
        found = [_condition(key, summary) for summary in summaries]
        if len({*found} - {""}) > 1:
            told = (
                value or absent(summary, "environment")
                for value, summary in zip(found, summaries, strict=True)
            )
            rows.append(Difference("conditions", name, tuple(told)))
    return rows


def _condition(key: str, summary: RunSummary) -> str:
    box = summary.environment.get("box", {}).get("cpu", {})
    value = box.get(key) if isinstance(box, dict) else None
    value = value[0] if isinstance(value, list) and value else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return size(value) if key.endswith("_bytes") else f"{value:.3g}"


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_words(one) for one in value[:50])[:LENGTH]
    return (spell(value) if isinstance(value, bool | int | float | str) else str(value))[:LENGTH]
