"""Start the run of a command as its options ask: in the background, on the screens, or here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuilab.cli import options
from tuilab.engine.messages import RunOrder

_IMPLY_HEADLESS = ("headless", "as_json", "as_jsonl", "quiet", "report")


def check_following(root: Path, arguments: Mapping[str, Any]) -> None:
    """Raise UsageError for options that contradict each other, or a report that cannot be written.

    Call it before anything is printed or asked.
    """
    options.refuse_both_json(as_json=arguments["as_json"], as_jsonl=arguments["as_jsonl"])
    if arguments["detach"]:
        options.check_detached(root, arguments)
    else:
        options.check_report(arguments["report"])


def start(
    order: RunOrder,
    root: Path,
    arguments: Mapping[str, Any],
    *,
    is_strict: bool = False,
    has_chart: bool = False,
) -> int:
    """Run an order, follow it unless it is detached, and return the exit code."""
    if arguments["detach"]:
        from tuilab.cli.verbs.run import detach

        return detach([order], as_json=arguments["as_json"])
    is_headless = any(arguments[name] for name in _IMPLY_HEADLESS)
    if not is_headless and options.can_open_screens():
        from tuilab import tui

        return tui.start(root, (), [order], fps=arguments["fps"])
    from tuilab.cli.follow import ResultPrinter, run_all

    printer = ResultPrinter(
        as_json=arguments["as_json"],
        as_jsonl=arguments["as_jsonl"],
        is_strict=is_strict,
        is_quiet=arguments["quiet"],
        has_chart=has_chart,
        report=arguments["report"] or "",
    )
    return run_all([order], printer)
