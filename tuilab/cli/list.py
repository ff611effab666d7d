"""`tuilab list`: the scenarios by topic."""

import json
from collections.abc import Mapping, Sequence

import click

from tuilab import catalog
from tuilab.catalog import Scenario
from tuilab.text import show

# `options` has the same option, but loads the store with it: 10 ms that the most frequent command should not take.
_SCENARIOS = click.Option(
    ["--scenarios"], multiple=True, metavar="DIR", help="A folder with scenarios of your own; may be repeated."
)


@click.command(
    help=__doc__, params=[click.Option(["--json", "as_json"], is_flag=True, help="As one JSON document."), _SCENARIOS]
)
def command(as_json: bool, scenarios: Sequence[str]) -> None:
    found = catalog.load(scenarios)
    click.echo(json.dumps(document(found), indent=2) if as_json else render(found, {}))


def render(scenarios: Sequence[Scenario], marks: Mapping[str, str]) -> str:
    """Return the catalogue as text; `marks` has the last verdict of a scenario by its id."""
    name_width = max((len(scenario.id) for scenario in scenarios), default=0)
    mark_width = max((len(mark) for mark in marks.values()), default=1)
    lines = []
    topic = ""
    for scenario in scenarios:
        if scenario.topic != topic:
            topic = scenario.topic
            lines += ["", show(topic)]
        mark = "!" if scenario.error else marks.get(scenario.id, "")
        title = f"cannot be used: {scenario.error}" if scenario.error else scenario.title
        lines.append(f"  {mark:{mark_width}} {show(scenario.id):{name_width}}  {show(title, 200)}".rstrip())
    return "\n".join(lines[1:]) or "no scenarios found; write one: tuilab new NAME"


def document(scenarios: Sequence[Scenario]) -> dict[str, object]:
    """Return the catalogue for `--json`."""
    return {"schema": "tuilab.list/1", "scenarios": [_fields(scenario) for scenario in scenarios]}


def _fields(scenario: Scenario) -> dict[str, object]:
    fields = {name: value for name, value in vars(scenario).items() if name not in ("lesson", "sections")}
    return {**fields, "params": [vars(param) for param in scenario.params]}
