"""`tuilab doctor`: look at this box: what it is, what will disturb, slow or end a run here, and what to do about it.

It prints what is to be minded, and how many questions were answered how; --all prints every answer, and the facts of the box.
Each question takes 3 s at most; one that hangs or crashes is n/a with the reason. All are asked at once, and shown as they are
answered. The exit codes tell how the box is: 0 all passed or did not apply, 1 there are warnings, 2 something is broken.
(Other commands mean a mistyped option by 2.) With --gpu it is 3 where no GPU can be used.
"""

import os
import shutil
import sys
from pathlib import Path

import click

from tuilab import __version__, config
from tuilab.catalogue.params import is_gpu
from tuilab.cli import options
from tuilab.doctor.answers import counts, exit_code, problems, render, render_facts
from tuilab.doctor.asking import Asked, ask_all, document
from tuilab.drawings.glyphs import style_of
from tuilab.errors import UsageError
from tuilab.record.encoding import for_programs
from tuilab.text import show


@click.command(
    help=__doc__,
    params=[
        options.AS_JSON,
        click.Option(
            ["--all", "is_all"], is_flag=True, help="The facts of the box and every answer, those that are fine, too."
        ),
        click.Option(
            ["--bundle"],
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Write a .json or .tar.gz for an issue: this, versions, the last failures; secrets are removed.",
        ),
        click.Option(
            ["--gpu"],
            is_flag=False,
            flag_value="cuda",
            metavar="[cuda:N]",
            help="Measure one GPU instead, the emptiest unless one is named; takes about 10 s.",
        ),
        options.ROOT,
    ],
)
def command(as_json: bool, is_all: bool, bundle: Path | None, gpu: str | None, root: str | None) -> int:
    if bundle is not None and not bundle.name.endswith((".json", ".tar.gz", ".tgz")):
        raise UsageError(f"--bundle writes a .json or a .tar.gz, not {show(bundle.name, 100)}")
    if root:
        os.environ["TUILAB_ROOT"] = os.path.abspath(root)  # for the processes that ask
    asked = ask_all(has_facts=as_json or is_all or bundle is not None) if gpu is None else _ask_gpu(gpu)
    if not as_json:
        _show(asked, is_all=is_all or gpu is not None)
    code = exit_code(asked.found())
    if as_json:
        click.echo(for_programs(document(asked, code, __version__)))
    if bundle is not None:
        from tuilab.doctor import bundle as bundles

        bundles.write(bundle, document(asked, code, __version__))
        click.echo(f"wrote {show(bundle)}; read it before you hand it on: it names this host and its packages", err=True)
    return code


def _ask_gpu(wanted: str) -> Asked:
    """Ask all about one GPU, which takes so long that somebody who waits is told."""
    from tuilab.doctor.gpu_page import ask_about

    if wanted != "cuda" and not is_gpu(wanted):
        hint = config.hint_by_name(wanted) or "; tuilab doctor lists what there is"
        raise UsageError(f'--gpu takes cuda or cuda:N, as cuda:1, not "{show(wanted, 60)}"{hint}')
    if sys.stderr.isatty():
        click.echo(f"measuring {wanted}: about 10 s", err=True)
    return ask_about(wanted)


def _show(asked: Asked, *, is_all: bool) -> None:
    """Print each group as soon as it, and those before it, are answered: what is to be minded, or all."""
    style = style_of(sys.stdout)
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    pad = max(map(len, asked.names))
    if is_all:
        click.echo(style.fit(render_facts(asked.facts.result(), style, width)), color=True)
    for group in asked.groups.values():
        if found := group.result() if is_all else problems(group.result()):
            click.echo(f"{chr(10) * is_all}{style.fit(render(found, style, width, pad))}", color=True)
    more = "" if is_all else "; all of them: tuilab doctor --all"
    click.echo(f"{chr(10) * is_all}{counts(asked.found())}{more}")
