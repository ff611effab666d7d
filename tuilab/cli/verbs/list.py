"""List the scenarios in teaching order, with the latest verdicts."""

import sys
from collections.abc import Mapping, Sequence

import click

from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Scenario
from tuilab.cli import options
from tuilab.drawings.glyphs import style_of
from tuilab.runs import representative
from tuilab.runs.index import Index
from tuilab.text.display import show
from tuilab.text.wrapping import terminal_width, wrap

# Fields that the document does not have, or has in another form.
_NOT_COPIED = ("id", "settings", "lesson", "sections", "imports", "wants_quiet")
_UNBOUNDED = 1000  # columns, in a pipe


@click.command(
    help=__doc__,
    params=[options.AS_JSON, *options.FOLDERS],
)
def command(as_json: bool, scenarios: Sequence[str], root: str | None) -> None:
    listed = catalog.load(scenarios)
    topics = catalog.topics(scenarios)
    statuses = representative.statuses(Index(options.root_name(root)))
    verdicts = {scenario: status.verdict for scenario, status in statuses.items()}
    if as_json:
        documents = describe_scenarios(listed, verdicts)
        options.print_document("tuilab.list/1", topics=topics, scenarios=documents)
        return
    style = style_of(sys.stdout)
    marks = {scenario: style.mark(verdict) for scenario, verdict in verdicts.items()}
    width = terminal_width() if sys.stdout.isatty() else 0
    print(style.fit(render(listed, topics, marks, width)))


# ---- the document of --json


def describe_scenarios(
    scenarios: Sequence[Scenario], verdicts: Mapping[str, str]
) -> list[dict[str, object]]:
    """Return the scenarios for `--json`, with the latest verdict of each."""
    documents = []
    for scenario in scenarios:
        document = describe_scenario(scenario)
        document["last_verdict"] = verdicts.get(scenario.id)
        documents.append(document)
    return documents


def describe_scenario(scenario: Scenario) -> dict[str, object]:
    """Return the fields of a scenario that are for programs."""
    document: dict[str, object] = {"scenario": scenario.id}
    for name, value in scenario._asdict().items():
        if name not in _NOT_COPIED:
            document[name] = value
    document["claims"] = [
        {"key": claim.key or None, "text": claim.text} for claim in scenario.claims
    ]
    document["path"] = str(scenario.path)
    document["params"] = [param._asdict() for param in scenario.params]
    return document


# ---- text


def render(
    scenarios: Sequence[Scenario],
    topics: Mapping[str, str],
    marks: Mapping[str, str],
    width: int = 0,
) -> str:
    """Return the scenarios by topic as text, or a sentence that there are none.

    `marks` has the sign of the latest verdict by scenario. With a `width`, titles are wrapped;
    without one, as in a pipe, each scenario is one line.
    """
    name_width = max((len(scenario.id) for scenario in scenarios), default=0)
    title_width = max(width - name_width - 6, 30) if width else _UNBOUNDED
    lines = []
    topic = ""
    for scenario in scenarios:
        if scenario.topic != topic:
            topic = scenario.topic
            heading = show(topic)
            if about := topics.get(topic, ""):
                heading += f": {show(about, 200)}"
            lines += ["", *wrap(heading, width or _UNBOUNDED)]
        mark = marks.get(scenario.id, " ")
        title = scenario.title
        if scenario.error:
            mark = "!"
            title = f"cannot be used: {scenario.error}"
        first, *rest = wrap(show(title, 200), title_width) or [""]
        lines.append(f"  {mark} {show(scenario.id):{name_width}}  {first}".rstrip())
        lines += [" " * (name_width + 6) + line for line in rest]
    return "\n".join(lines[1:]) or "no scenarios found; write one: tuilab new NAME"
