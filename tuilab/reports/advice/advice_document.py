"""The advice as one JSON document, for programs."""

from typing import Any

from tuilab.record.encoding import spell_out
from tuilab.record.parts import RacedSetting
from tuilab.reports.advice.advised import Advice, Advised
from tuilab.reports.advice.env_file import command_to_race
from tuilab.reports.advice.winner import Choice
from tuilab.runs import command_line

SCHEMA = "tuilab.advice/1"


def advice_document(advice: Advice) -> dict[str, Any]:
    """Return what follows, what does not, and what is not known."""
    spelled: dict[str, Any] = spell_out(
        {
            "schema": SCHEMA,
            "ranks": advice.ranks or None,
            "box": advice.facts,
            "settings": [_advised(one) for one in advice.settings],
            "left": [_advised(one) for one in advice.stays],
            "conflicts": [_advised(one) for one in advice.conflicts],
            "not_counted": [{"name": one.name, "run": one.subject.run_dir.name, "why": one.why} for one in advice.unused],
            "not_known": [
                {"name": name, "command": command_to_race(name, scenario, advice.ranks)} for name, scenario in advice.unknown
            ],
        }
    )
    return spelled


def variable(raced: RacedSetting, choice: Choice) -> dict[str, Any]:
    """Return a variable whose values were held against each other in a run, and what came of it."""
    said = raced.said[0]
    return {
        "name": said.name,
        "ranks": said.ranks or None,
        "value": choice.value or None,
        "default": said.default,
        "is_decided": choice.is_decided,
        "why": choice.why,
        "about": said.about,
        "against": raced.against or None,
        "others": [
            {"value": value, "ratio": judged.estimate, "low": judged.low, "high": judged.high}
            for value, judged in choice.against.items()
        ],
        "costs": {each.value: each.cost for each in said.candidates if each.cost is not None},
        "unit": said.unit or None,
    }


def _advised(one: Advised) -> dict[str, Any]:
    run = one.subject.summary.run
    return {
        **variable(one.raced, one.choice),
        "run": one.subject.run_dir.name,
        "started_wall_ns": run.wall_ns if run else None,
        "command": command_line.rerun_words(run, one.subject.summary.planned_repeats) if run else None,
    }
