"""Measure how reliable verdicts about time are on this machine, or on one of its GPUs.

tuilab compares the same work with itself, where every difference is false, and with itself plus a
delay of 5 %, which should be detected. The calibration is saved for this machine (or for that GPU),
and shown next to verdicts about runs on it.
"""

import shutil
import sys
from pathlib import Path

import click

from tuilab import lab
from tuilab.catalogue.source import read
from tuilab.cli import options
from tuilab.cli.follow import ResultPrinter, follow_one
from tuilab.engine import launch
from tuilab.errors import BoxLacks, ScenarioError, UsageError
from tuilab.judging import calibration, calibration_file
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.runs.command_line import hint
from tuilab.text.display import show as to_text
from tuilab.text.wrapping import wrap_indented

_UNBOUNDED = 10_000  # columns, without a terminal


@click.command(
    help=__doc__,
    params=[
        click.Option(
            ["--minutes"],
            type=options.Number(0.1, 600),
            metavar="N",
            help="Time limit in minutes (default: 2 for the CPU, 5 for a GPU).",
        ),
        click.Option(
            ["--device"],
            metavar="DEVICE",
            default="cpu",
            show_default=True,
            help="Calibrate cpu, cuda or cuda:N.",
        ),
        click.Option(
            ["--show"],
            is_flag=True,
            help="Print the latest calibrations of this machine and its GPUs; measure nothing.",
        ),
        options.AS_JSON,
        options.ROOT,
    ],
)
def command(
    minutes: float | None, device: str, show: bool, as_json: bool, root: str | None
) -> None:
    folder = options.root_path(root)
    if device == "auto":
        raise UsageError(
            "--device auto is not possible, as a calibration is for one device; "
            "use cpu, cuda (the GPU with the most free memory) or cuda:N"
        )
    if minutes:
        options.refuse_without_effect("--minutes", {"--show": show})
    if not show:
        usual_minutes = calibration.USUAL_MINUTES["cpu" if device == "cpu" else "cuda"]
        _calibrate(minutes or usual_minutes, device, folder)
    if as_json:
        options.print_document("tuilab.calibrate/1", **calibration.export_saved())
        return
    width = max(shutil.get_terminal_size((_UNBOUNDED, 24)).columns, 30)
    lines = []
    for line in calibration.describe_saved():
        lines += wrap_indented(line, width)
    click.echo("\n".join(lines))


def _calibrate(minutes: float, device: str, root: Path) -> None:
    """Run the trials, and save the calibration that they give."""
    summary = _run_trials(minutes, device, root)
    assessment = calibration.assess(summary)
    uuid, name = gpu_of(summary)
    calibration_file.save(assessment.trials_of_method, assessment.process_sd, uuid, name)


def _run_trials(minutes: float, device: str, root: Path) -> RunSummary:
    """Run the trials as a run of its own, and return what was recorded.

    Raises BoxLacks if the machine lacks something, such as the GPU, ScenarioError if the run
    failed.
    """
    source = read(Path(lab.__file__).with_name("calibration_scenario.py"))
    scenario = source._replace(id="calibration", topic="box")  # its name in lists and headings
    order = launch.order(
        scenario,
        {"device": device},
        root=root,
        repeats=1000,
        budget_s=60 * minutes,
        argv=sys.argv[1:],
    )
    # If the first repeat times nothing, as on a machine without a GPU, it is the only one.
    order.has_usual_repeats = True
    run_dir, _ = launch.start(order)
    printer = ResultPrinter(is_silent=True)
    follow_one(run_dir, printer, is_ours=True)
    summary = read_run(run_dir)
    if summary.box_lacks:
        raise BoxLacks(summary.box_lacks)
    if printer.codes[-1]:
        step = hint(root, "attach", run_dir.name)
        raise ScenarioError(f"the calibration failed; see why: {step}")
    return summary


def gpu_of(summary: RunSummary) -> tuple[str, str]:
    """Return torch's UUID of the calibrated GPU, and its name; empty if it was the CPU.

    Raises BoxLacks if torch does not report the UUID, ScenarioError if there were several GPUs.
    """
    races = [race for _, race in summary.races if race.device == "cuda"]
    if not races:
        return "", ""
    uuids = {race.uuid for race in races}
    if "" in uuids:
        raise BoxLacks(
            "a GPU calibration needs the UUID of the GPU, which this torch does not report; "
            "install a newer torch"
        )
    if len(uuids) > 1:
        raise ScenarioError(
            "the processes of the calibration ran on several GPUs; name one GPU: --device cuda:0"
        )
    uuid = races[0].uuid
    for facts in summary.cuda.values():
        for gpu in facts.get("devices", []):
            if gpu.get("uuid") == uuid:
                return uuid, to_text(gpu.get("name", ""), 100)
    return uuid, ""
