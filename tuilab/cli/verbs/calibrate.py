"""`tuilab calibrate`: measure how far the lab can be trusted on this box.

Runs the same work against itself, where every difference is a false one, and against itself with a delay of 5 %, which should
be seen. What comes of it is kept for this box and printed beside verdicts.
"""

import shutil
import sys
import textwrap
from pathlib import Path

import click

from tuilab import lab
from tuilab.catalogue.source import read
from tuilab.cli import options
from tuilab.cli.follow import Outcome, follow_one
from tuilab.engine import launch
from tuilab.errors import ScenarioError
from tuilab.judging import calibration
from tuilab.record.live_run import read_run

_UNBOUNDED = 10_000  # columns, where there is no terminal


@click.command(
    help=__doc__,
    params=[
        click.Option(
            ["--minutes"], type=click.FloatRange(0.1, 600), default=2.0, show_default=True, help="How long it may take."
        ),
        click.Option(["--show"], is_flag=True, help="Print the last calibration of this box; measure nothing."),
        options.ROOT,
    ],
)
def command(minutes: float, show: bool, root: str | None) -> None:
    if not show:
        found = calibration.assess(read_run(_run(minutes, options.root(root))))
        calibration.save(found.ways, found.luck)
    kept = calibration.load()
    lines = calibration.in_words(kept.ways)
    lines += [calibration.luck_in_words(kept.luck)] if lines else []
    width = max(shutil.get_terminal_size((_UNBOUNDED, 24)).columns, 30)
    lines = [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent="    ")]
    click.echo("\n".join(lines) or "this box has not been calibrated: tuilab calibrate")


def _run(minutes: float, root: Path) -> Path:
    """Run the trials and return the folder of the run."""
    scenario = read(Path(lab.__file__).with_name("calibration_scenario.py"))
    order = launch.order(scenario, {}, root=root, repeats=1000, budget_s=60 * minutes, argv=sys.argv[1:])
    run_dir, _ = launch.start(order)
    outcome = Outcome(is_strict=False, is_silent=True)
    follow_one(run_dir, outcome, is_ours=True)
    if outcome.codes[-1]:
        raise ScenarioError(f"the calibration did not end well: tuilab attach {run_dir.name}")
    return run_dir
