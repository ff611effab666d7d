"""Show a run on the screens, live or after its end.

RUN is an id, the unique start of one, or `last` (the default). With --headless, or without a
terminal, tuilab follows the run to its end and prints its result. Ctrl-C ends only the output here;
the run continues. A sweep is always followed like this, until all its running and queued points are
finished.
"""

import click

from tuilab.cli import completion, options
from tuilab.errors import UsageError


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], default="last", shell_complete=completion.runs_or_sweeps),
        options.shared("--headless"),
        options.shared("--json"),
        options.shared(
            "--jsonl",
            "Print every record as one line of JSON, from the first one. Implies --headless.",
        ),
        options.shared("--strict"),
        click.Option(
            ["--plot"],
            is_flag=True,
            help="Print the chart even if stdout is not a terminal. Implies --headless.",
        ),
        click.Option(
            ["--quiet"],
            is_flag=True,
            help="Print no progress, and no chart without --plot. Implies --headless.",
        ),
        options.READ_ONLY,
        options.FPS,
        options.ROOT,
    ],
)
def command(
    run: str,
    headless: bool,
    as_json: bool,
    as_jsonl: bool,
    strict: bool,
    plot: bool,
    quiet: bool,
    fps: float,
    read_only: bool,
    root: str | None,
) -> int:
    from tuilab.runs import store, sweeps

    folder = options.root_path(root)
    is_sweep = run.startswith(sweeps.PREFIX)
    run_dir = None if is_sweep else store.find(run, folder)
    if run_dir and not (headless or as_json or as_jsonl or quiet or plot):
        from tuilab import tui

        if not tui.why_not():
            return tui.start(folder, show=run_dir, fps=fps, is_read_only=read_only)
    from tuilab.cli.follow import ResultPrinter, follow_one

    if plot:
        options.refuse_without_effect("--plot", {"--json": as_json, "--jsonl": as_jsonl})
    printer = ResultPrinter(
        as_json=as_json,
        as_jsonl=as_jsonl,
        is_strict=strict,
        is_quiet=quiet,
        has_chart=options.has_chart(plot=plot, quiet=quiet),
    )
    if run_dir is None:
        from tuilab.cli.sweeping import follow_sweep

        if as_jsonl:
            raise UsageError(
                "--jsonl follows one run, not a sweep; drop it, or name one run of the sweep"
            )
        return follow_sweep(run, folder, printer)
    follow_one(run_dir, printer, is_ours=False)
    return printer.finish()
