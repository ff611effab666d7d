"""`tuilab list`: the scenarios in an order that teaches, with the last verdict on this box."""

import json
import sys
from collections.abc import Mapping, Sequence

import click

from tuilab import places
from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.translation import translated
from tuilab.cli import options
from tuilab.drawings.glyphs import style_of
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.text import show

_UNTOLD = ("lesson", "sections", "headings", "imports")


@click.command(
    help=__doc__,
    params=[click.Option(["--json", "as_json"], is_flag=True, help="As one JSON document."), options.LANG, *options.FOLDERS],
)
def command(as_json: bool, scenarios: Sequence[str], root: str | None) -> None:
    found = catalog.load(scenarios)
    topics = catalog.topics(scenarios)
    verdicts = LedgerCache(root or places.runs_folder()).last_verdicts()
    if as_json:
        print(json.dumps(document(found, topics, verdicts), indent=2))
        return
    style = style_of(sys.stdout)
    print(style.fit(render(found, topics, {scenario: style.mark(verdict) for scenario, verdict in verdicts.items()})))


def render(scenarios: Sequence[Scenario], topics: Mapping[str, str], marks: Mapping[str, str]) -> str:
    """Return the catalogue as text; `marks` has the last verdict of a scenario by its id."""
    name_width = max((len(scenario.id) for scenario in scenarios), default=0)
    lines = []
    topic = ""
    for scenario in scenarios:
        if scenario.topic != topic:
            topic = scenario.topic
            about = topics.get(topic, "")
            lines += ["", f"{show(topic)}: {show(about, 200)}" if about else show(topic)]
        mark = "!" if scenario.error else marks.get(scenario.id, " ")
        title = f"cannot be used: {scenario.error}" if scenario.error else translated(scenario).title
        lines.append(f"  {mark} {show(scenario.id):{name_width}}  {show(title, 200)}".rstrip())
    return "\n".join(lines[1:]) or "no scenarios found; write one: tuilab new NAME"


def document(scenarios: Sequence[Scenario], topics: Mapping[str, str], verdicts: Mapping[str, str]) -> dict[str, object]:
    """Return the catalogue for `--json`."""
    listed = [_fields(scenario, verdicts) for scenario in scenarios]
    return {"schema": "tuilab.list/1", "topics": topics, "scenarios": listed}


def _fields(scenario: Scenario, verdicts: Mapping[str, str]) -> dict[str, object]:
    fields = {name: value for name, value in vars(scenario).items() if name not in _UNTOLD}
    params = [vars(param) for param in scenario.params]
    claims = {
        "claims": [claim.text for claim in scenario.claims],
        "claim_keys": [claim.key or None for claim in scenario.claims],
    }
    return {**fields, **claims, "path": str(scenario.path), "params": params, "last_verdict": verdicts.get(scenario.id)}
