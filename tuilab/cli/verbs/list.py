"""List the scenarios in teaching order, with the latest verdicts."""

from collections.abc import Mapping, Sequence

import click

from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Scenario
from tuilab.cli import listing, options
from tuilab.runs import representative
from tuilab.runs.index import Index
from tuilab.storage import places

_UNTOLD = ("id", "settings", "lesson", "sections", "imports", "wants_quiet")


@click.command(
    help=__doc__,
    params=[options.AS_JSON, *options.FOLDERS],
)
def command(as_json: bool, scenarios: Sequence[str], root: str | None) -> None:
    found = catalog.load(scenarios)
    topics = catalog.topics(scenarios)
    if as_json:
        statuses = representative.statuses(Index(root or places.runs_folder()))
        verdicts = {scenario: status.verdict for scenario, status in statuses.items()}
        options.print_document("tuilab.list/1", topics=topics, scenarios=listed(found, verdicts))
        return
    listing.print_list(found, topics, root)


def listed(scenarios: Sequence[Scenario], verdicts: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the scenarios for `--json`, with the last verdict of each."""
    return [
        {**fields_of(scenario), "last_verdict": verdicts.get(scenario.id)} for scenario in scenarios
    ]


def fields_of(scenario: Scenario) -> dict[str, object]:
    """Return what a program may know of a scenario."""
    fields = {name: value for name, value in scenario._asdict().items() if name not in _UNTOLD}
    params = [param._asdict() for param in scenario.params]
    claims = [{"key": claim.key or None, "text": claim.text} for claim in scenario.claims]
    return {
        "scenario": scenario.id,
        **fields,
        "claims": claims,
        "path": str(scenario.path),
        "params": params,
    }
