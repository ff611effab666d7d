"""`tuilab list`: the scenarios in an order that teaches, with the last verdict on this box."""

import shutil
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
from tuilab.wrapping import wrap

_UNTOLD = ("id", "settings", "lesson", "sections", "headings", "imports")


@click.command(
    help=__doc__,
    params=[options.AS_JSON, options.LANG, *options.FOLDERS],
)
def command(as_json: bool, scenarios: Sequence[str], root: str | None) -> None:
    found = catalog.load(scenarios)
    topics = catalog.topics(scenarios)
    verdicts = LedgerCache(root or places.runs_folder()).last_verdicts()
    if as_json:
        options.print_document("tuilab.list/1", topics=topics, scenarios=listed(found, verdicts))
        return
    options.tell_language(lambda: found, found)
    style = style_of(sys.stdout)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0  # in a pipe a scenario is a line
    marks = {scenario: style.mark(verdict) for scenario, verdict in verdicts.items()}
    print(style.fit(render(found, topics, marks, width)))


def render(scenarios: Sequence[Scenario], topics: Mapping[str, str], marks: Mapping[str, str], width: int = 0) -> str:
    """Return the catalogue as text; `marks` has the last verdict of a scenario by its id. With a `width` titles are wrapped."""
    name_width = max((len(scenario.id) for scenario in scenarios), default=0)
    lines = []
    topic = ""
    for scenario in scenarios:
        if scenario.topic != topic:
            topic = scenario.topic
            about = topics.get(topic, "")
            lines += ["", *wrap(f"{show(topic)}: {show(about, 200)}" if about else show(topic), width or 1000)]
        mark = "!" if scenario.error else marks.get(scenario.id, " ")
        title = f"cannot be used: {scenario.error}" if scenario.error else translated(scenario).title
        first, *rest = wrap(show(title, 200), max(width - name_width - 6, 30) if width else 1000) or [""]
        lines.append(f"  {mark} {show(scenario.id):{name_width}}  {first}".rstrip())
        lines += [" " * (name_width + 6) + line for line in rest]
    return "\n".join(lines[1:]) or "no scenarios found; write one: tuilab new NAME"


def listed(scenarios: Sequence[Scenario], verdicts: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the scenarios for `--json`, with the last verdict of each."""
    return [{**fields_of(scenario), "last_verdict": verdicts.get(scenario.id)} for scenario in scenarios]


def fields_of(scenario: Scenario) -> dict[str, object]:
    """Return what a program may know of a scenario."""
    fields = {name: value for name, value in vars(scenario).items() if name not in _UNTOLD}
    params = [vars(param) for param in scenario.params]
    claims = [{"key": claim.key or None, "text": claim.text} for claim in scenario.claims]
    return {"scenario": scenario.id, **fields, "claims": claims, "path": str(scenario.path), "params": params}
