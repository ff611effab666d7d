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
from typing import TYPE_CHECKING, Any

import click

from tuilab.cli import completion, options
from tuilab.commands import make_order as orders
from tuilab.commands.start_command import NOT_STARTED, OURS, CannotStart
from tuilab.engine.messages import CommandOrder, RunOrder
from tuilab.errors import ExitCode, TuilabError
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.text.display import show

if TYPE_CHECKING:
    from tuilab.cli.follow import Outcome


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
        type=click.Choice(orders.WATCH),
        default="all",
        show_default=True,
        help="Watch where the time of each step goes (all), only the steps, or nothing.",
    ),
    options.shared("--metric"),
    options.shared("--step-of"),
    options.shared("--timeout"),
    options.shared(
        "--json",
        "Print the result as one JSON document on stdout, and the output of the command on stderr. Implies --headless.",
    ),
    options.shared(
        "--jsonl",
        "Print every record as one line of JSON on stdout, and the output of the command on stderr. Implies --headless.",
    ),
    options.shared("--report"),
    options.shared(
        "--quiet", "Print only the output of the command: no alerts, no result. Implies --headless."
    ),
    options.FPS,
    options.ROOT,
]


@click.command(
    params=_OPTIONS,
    help=__doc__,
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
def command(**given: Any) -> int:
    others = _given_by_the_shell()
    try:
        order = _order(given)
    except CannotStart as problem:
        print(f"tuilab: {problem}", file=sys.stderr)
        return problem.code
    if given["detach"]:
        return _detach(order, given)
    assert order.command is not None
    order.command.others = others
    outcome = _outcome(given)
    options.check_report(given["report"])
    if not any(given[name] for name in ("headless", "as_json", "as_jsonl", "quiet", "report")):
        from tuilab import tui

        why = tui.why_not()
        if not why:
            return tui.start(
                options.root(given["root"]), (), [order], fps=given["fps"], code_of=code_of
            )
        print(f"tuilab: {why}; printing the result instead (same as --headless)", file=sys.stderr)
    try:
        return _follow(order, outcome)
    except (TuilabError, OSError) as problem:
        print(f"tuilab: {problem}", file=sys.stderr)
        return OURS


def _order(given: dict[str, Any]) -> RunOrder:
    if given["step_of"]:
        options.refuse_without_effect("--step-of", {"--watch nothing": given["watch"] == "nothing"})
    return orders.order(
        CommandOrder(
            words=list(given["command"]),
            watch=given["watch"],
            metrics=list(given["metrics"]),
            step_of=given["step_of"] or "",
        ),
        root=options.root(given["root"]),
        name=given["name"] or "",
        timeout_s=given["timeout"],
        argv=sys.argv[1:],
    )


def _detach(order: RunOrder, given: dict[str, Any]) -> int:
    from tuilab.cli.verbs.run import detach

    options.check_detached(options.root(given["root"]), given)
    return detach([order], as_json=given["as_json"])


def _outcome(given: dict[str, Any]) -> "Outcome":
    from tuilab.cli.follow import Outcome

    return Outcome(
        as_json=given["as_json"],
        as_jsonl=given["as_jsonl"],
        is_quiet=True,  # what the command prints is the talk
        tells_alerts=not given["quiet"],
        is_silent=given["quiet"],
        result=sys.stderr,
        report=given["report"] or "",
    )


def _follow(order: RunOrder, outcome: "Outcome") -> int:
    """Run it with its prints passed on, and end as it ends."""
    from tuilab.cli.follow import run_all
    from tuilab.cli.passed_signals import PassedSignals

    assert order.command is not None
    is_for_programs = outcome.as_json or outcome.as_jsonl
    order.command.outputs = [os.dup(2 if is_for_programs else 1), os.dup(2)]
    order.command.is_joined = not is_for_programs and _is_one_file(1, 2)
    order.command.stdin = _hand_over_stdin()
    with PassedSignals() as signals:
        outcome.pass_on = signals.pass_on
        run_all([order], outcome)
    watch, state = outcome.watched[-1]
    if watch.was_interrupted:
        return ExitCode.INTERRUPTED
    code = code_of(watch.summary, state)
    if outcome.is_silent and code == OURS and not _has_ended_itself(watch.summary):
        print(f"tuilab: {show(watch.summary.reason or state)}", file=sys.stderr)
    return code


def _has_ended_itself(summary: RunSummary) -> bool:
    """Say whether the command was started and ended, so that its exit code is its own."""
    worker = summary.workers.get("worker-0")
    return (
        worker is not None
        and worker.exited is not None
        and not summary.reason.startswith(NOT_STARTED)
    )


def _is_one_file(one: int, other: int) -> bool:
    """Say whether two descriptors lead to one file, terminal or pipe, in which what is written to both has an order."""
    seen = os.fstat(one)
    return os.path.samestat(seen, os.fstat(other)) and (
        os.isatty(one) or not stat.S_ISCHR(seen.st_mode)
    )


def _hand_over_stdin() -> int | None:
    """Return a descriptor of what the command is to read; None of a terminal, which belongs to whoever types there."""
    if os.isatty(0):
        return None
    handed_over, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)  # so that whoever writes there sees when the command has closed it
    os.close(null)
    return handed_over


def _given_by_the_shell() -> list[int]:
    """Return the descriptors beyond stderr that were open when this process began, as of <(...), but for terminals."""
    return [one for one in map(int, os.listdir("/proc/self/fd")) if one > 2 and _is_given(one)]


def _is_given(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor) and not os.isatty(
            descriptor
        )  # what Python opens itself is not inheritable
    except OSError:  # that of the folder that was listed
        return False


def code_of(summary: RunSummary, state: str) -> int:
    """Return what the command ended with, as a shell tells it; of one that was stopped and ended well, that it was stopped."""
    worker = summary.workers.get("worker-0")
    exited = worker.exited if worker else None
    if state == RunState.SUCCEEDED:
        return 0
    if exited is None:
        return OURS
    if exited.signal:
        return 128 + exited.signal
    was_stopped = any(event.state == RunState.STOPPING for event in summary.states)
    return exited.code or (128 + signal.SIGTERM if was_stopped else OURS)
