"""The catalogue as `tuilab list` prints it."""

import sys
from collections.abc import Mapping, Sequence

from tuilab.catalogue.scenario import Scenario
from tuilab.drawings.glyphs import style_of
from tuilab.runs import representative
from tuilab.runs.index import Index
from tuilab.storage import places
from tuilab.text.display import show
from tuilab.text.wrapping import terminal_width, wrap


def print_list(
    scenarios: Sequence[Scenario], topics: Mapping[str, str], root: str | None = None
) -> None:
    """Print the scenarios by topic, each with its last verdict on this box."""
    style = style_of(sys.stdout)
    width = terminal_width() if sys.stdout.isatty() else 0  # in a pipe a scenario is a line
    statuses = representative.statuses(Index(root or places.runs_folder()))
    marks = {scenario: style.mark(status.verdict) for scenario, status in statuses.items()}
    print(style.fit(render(scenarios, topics, marks, width)))


def render(
    scenarios: Sequence[Scenario],
    topics: Mapping[str, str],
    marks: Mapping[str, str],
    width: int = 0,
) -> str:
    """Return the catalogue as text; `marks` has the last verdict of a scenario by its id. With a `width` titles are wrapped."""
    name_width = max((len(scenario.id) for scenario in scenarios), default=0)
    lines = []
    topic = ""
    for scenario in scenarios:
        if scenario.topic != topic:
            topic = scenario.topic
            about = topics.get(topic, "")
            lines += [
                "",
                *wrap(
                    f"{show(topic)}: {show(about, 200)}" if about else show(topic), width or 1000
                ),
            ]
        mark = "!" if scenario.error else marks.get(scenario.id, " ")
        title = f"cannot be used: {scenario.error}" if scenario.error else scenario.title
        first, *rest = wrap(
            show(title, 200), max(width - name_width - 6, 30) if width else 1000
        ) or [""]
        lines.append(f"  {mark} {show(scenario.id):{name_width}}  {first}".rstrip())
        lines += [" " * (name_width + 6) + line for line in rest]
    return "\n".join(lines[1:]) or "no scenarios found; write one: tuilab new NAME"
