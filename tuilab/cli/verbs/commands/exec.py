"""Run a command, such as a training script, and watch how it trains.

The command runs unchanged: it keeps its arguments, folder, variables, input, output and exit code.
tuilab records the steps of torch's optimizers, where the time of a step goes, the values that
backward starts from, and the metrics that the script logs. `tuilab attach`, `replay`, `report` and
`compare` work with this run as with any other. tuilab reports a stall, a NaN, steadily growing
memory and a slow rank as they happen.

\b
    tuilab exec -- python train.py --lr 0.1
    tuilab exec -- torchrun --nproc-per-node 2 train.py
    tuilab exec --metric 'acc=acc ([0-9.]+)' -- ./train.sh

Without the screens, stdout and stderr of the command appear unchanged, the result goes to stderr,
and SIGTERM, SIGUSR1 and SIGUSR2 are passed on to the command. The command reads the stdin of
tuilab, unless stdin is a terminal. Ctrl-C interrupts the command, which then has 30 s to save; a
second Ctrl-C ends it at once.

The exit code is that of the command (128+n for signal n, 127 if not found, 126 if not executable).
It is 125 if tuilab itself failed, 2 if an option is wrong, and 130 after Ctrl-C.
"""

import os
import signal
import stat
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from tuilab.cli import completion, options
from tuilab.commands import make_order
from tuilab.commands.start_command import NOT_STARTED, OURS, CannotStart
from tuilab.engine.messages import CommandOrder, RunOrder
from tuilab.errors import ExitCode, TuilabError
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.text.display import show

if TYPE_CHECKING:
    from tuilab.cli.follow import ResultPrinter


_OPTIONS: list[click.Parameter] = [
    click.Argument(
        ["command"],
        nargs=-1,
        required=True,
        metavar="-- COMMAND...",
        type=click.UNPROCESSED,
        shell_complete=completion.files,
    ),
    options.shared("--name"),
    options.shared("--headless", "Do not open the screens; print the output of the command here."),
    options.shared("--detach"),
    click.Option(
        ["--watch"],
        type=click.Choice(make_order.WATCH),
        default="all",
        show_default=True,
        help="Watch where the time of each step goes (all), only the steps, or nothing.",
    ),
    options.shared("--metric"),
    options.shared("--step-of"),
    click.Option(
        ["--memory-history"],
        is_flag=True,
        help="Record which line allocates each block on a GPU, so that the result of an "
        "out-of-memory error names the lines. Steps take longer.",
    ),
    click.Option(
        ["--tokens"],
        type=click.IntRange(min=1),
        metavar="N",
        help="Tokens of a step, of one process (default: size of the integer input).",
    ),
    click.Option(
        ["--peak-tflops"],
        type=click.FloatRange(min=0.001, max=100_000),
        metavar="X",
        help="Peak of the device by its data sheet, in TFLOP/s, to compute the MFU.",
    ),
    options.shared("--timeout"),
    options.shared(
        "--json",
        "Print the result as one JSON document on stdout, and the output of the command on stderr. "
        "Implies --headless.",
    ),
    options.shared(
        "--jsonl",
        "Print every record as one line of JSON on stdout, and the output of the command on "
        "stderr. Implies --headless.",
    ),
    options.shared("--report"),
    options.shared(
        "--quiet", "Print only the output of the command: no alerts, no result. Implies --headless."
    ),
    options.FPS,
    options.ROOT,
]
_IMPLY_HEADLESS = ("headless", "as_json", "as_jsonl", "quiet", "report")


@click.command(
    params=_OPTIONS,
    help=__doc__,
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
def command(**arguments: Any) -> int:
    descriptors = _list_inherited_descriptors()  # first, before tuilab opens files of its own
    try:
        order = _make_order(arguments)
    except CannotStart as problem:
        print(f"tuilab: {problem}", file=sys.stderr)
        return problem.code
    root = options.root_path(arguments["root"])
    if arguments["detach"]:
        from tuilab.cli.verbs.run import detach

        options.check_detached(root, arguments)
        return detach([order], as_json=arguments["as_json"])
    assert order.command is not None
    order.command.others = descriptors
    printer = _make_printer(arguments)
    options.check_report(arguments["report"])
    is_headless = any(arguments[name] for name in _IMPLY_HEADLESS)
    if not is_headless and options.can_open_screens():
        from tuilab import tui

        return tui.start(root, (), [order], fps=arguments["fps"], code_of=exit_code_of_command)
    try:
        return _run(order, printer)
    except (TuilabError, OSError) as problem:
        print(f"tuilab: {problem}", file=sys.stderr)
        return OURS


def _make_order(arguments: Mapping[str, Any]) -> RunOrder:
    """Return the order of the command; raise UsageError or CannotStart if it cannot be run."""
    if arguments["step_of"]:
        is_unwatched = arguments["watch"] == "nothing"
        options.refuse_without_effect("--step-of", {"--watch nothing": is_unwatched})
    if arguments["memory_history"]:
        is_partly_watched = arguments["watch"] != "all"
        options.refuse_without_effect(
            "--memory-history", {f"--watch {arguments['watch']}": is_partly_watched}
        )
    for name in ("tokens", "peak_tflops"):
        if arguments[name]:
            is_partly_watched = arguments["watch"] != "all"
            options.refuse_without_effect(
                f"--{name.replace('_', '-')}", {f"--watch {arguments['watch']}": is_partly_watched}
            )
    command_order = CommandOrder(
        words=list(arguments["command"]),
        watch=arguments["watch"],
        metrics=list(arguments["metrics"]),
        step_of=arguments["step_of"] or "",
        has_memory_history=arguments["memory_history"],
        tokens=arguments["tokens"] or 0,
        peak_tflops=arguments["peak_tflops"] or 0.0,
    )
    return make_order.order(
        command_order,
        root=options.root_path(arguments["root"]),
        name=arguments["name"] or "",
        timeout_s=arguments["timeout"],
        argv=sys.argv[1:],
    )


def _make_printer(arguments: Mapping[str, Any]) -> "ResultPrinter":
    """Return a printer to stderr: stdout belongs to the command, whose output is the progress."""
    from tuilab.cli.follow import ResultPrinter

    return ResultPrinter(
        as_json=arguments["as_json"],
        as_jsonl=arguments["as_jsonl"],
        is_quiet=True,  # the output of the command is the progress
        has_alerts=not arguments["quiet"],
        is_silent=arguments["quiet"],
        stream=sys.stderr,
        report=arguments["report"] or "",
    )


def _run(order: RunOrder, printer: "ResultPrinter") -> int:
    """Run the command with its output passed on, and return its exit code."""
    from tuilab.cli.follow import run_all
    from tuilab.cli.passed_signals import PassedSignals

    assert order.command is not None
    is_for_programs = printer.as_json or printer.as_jsonl
    output = 2 if is_for_programs else 1  # stdout of tuilab then belongs to the JSON
    order.command.outputs = [os.dup(output), os.dup(2)]
    order.command.is_joined = not is_for_programs and _is_one_file(1, 2)
    order.command.stdin = _hand_over_stdin()
    with PassedSignals() as signals:
        printer.on_summary = signals.pass_on
        run_all([order], printer)
    watch, state = printer.finished[-1]
    if watch.was_interrupted:
        return ExitCode.INTERRUPTED
    summary = watch.summary
    code = exit_code_of_command(summary, state)
    if printer.is_silent and code == OURS and not _has_own_code(summary):
        print(f"tuilab: {show(summary.reason or state)}", file=sys.stderr)
    return code


# ---- the exit code


def exit_code_of_command(summary: RunSummary, state: str) -> int:
    """Return the exit code of the command, as a shell reports it.

    A command that was stopped and exited with 0 gets the code of SIGTERM.
    """
    if state == RunState.SUCCEEDED:
        return 0
    worker = summary.workers.get("worker-0")
    exited = worker.exited if worker else None
    if exited is None:
        return OURS
    if exited.signal:
        return 128 + exited.signal
    if exited.code:
        return exited.code
    if any(event.state == RunState.STOPPING for event in summary.states):
        return 128 + signal.SIGTERM
    return OURS


def _has_own_code(summary: RunSummary) -> bool:
    """Return whether the command was started and has ended, so that its exit code is its own."""
    worker = summary.workers.get("worker-0")
    has_exited = worker is not None and worker.exited is not None
    return has_exited and not summary.reason.startswith(NOT_STARTED)


# ---- input and output of the command


def _is_one_file(first: int, second: int) -> bool:
    """Return whether two descriptors lead to one file, terminal or pipe.

    Then the order matters in which the command writes to both.
    """
    first_stat = os.fstat(first)
    if not os.path.samestat(first_stat, os.fstat(second)):
        return False
    # Character devices that are no terminal, such as /dev/null, keep no order.
    return os.isatty(first) or not stat.S_ISCHR(first_stat.st_mode)


def _hand_over_stdin() -> int | None:
    """Return a new descriptor of stdin for the command, and give this process an empty stdin.

    It is None for a terminal, whose input belongs to the user of tuilab: stdin then stays.
    """
    if os.isatty(0):
        return None
    stdin = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)  # so that the writer of a pipe notices when the command has closed it
    os.close(null)
    return stdin


def _list_inherited_descriptors() -> list[int]:
    """Return the descriptors beyond stderr that the shell gave to this process, as for <(...).

    The list is empty where /proc does not show processes: no run can be started there.
    """
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []
    return [number for number in descriptors if number > 2 and _is_inherited(number)]


def _is_inherited(descriptor: int) -> bool:
    try:
        # Descriptors that Python opens itself are not inheritable.
        return os.get_inheritable(descriptor) and not os.isatty(descriptor)
    except OSError:  # it was the descriptor of the listed folder
        return False
