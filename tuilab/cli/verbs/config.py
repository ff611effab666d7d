"""`tuilab config [print|path|validate]`: what is set, and who says so; where the file is; whether it is right.

The file is TOML, in the user's config folder (XDG_CONFIG_HOME). Keys: root (the folder of runs), scenarios (a list of folders
with scenarios of your own), fps (how often the screens draw), device (auto, cpu, cuda or a GPU such as cuda:3, for scenarios
that have a --device). An option on the command line counts before a variable (TUILAB_ROOT, TUILAB_SCENARIOS, TUILAB_FPS,
TUILAB_DEVICE), a variable before the file, the file before the default. A variable that is empty is not set.
"""

import json
import os

import click

from tuilab import config, places
from tuilab.cli import options
from tuilab.config import SETTINGS, Value
from tuilab.errors import UsageError
from tuilab.text import plural, show


@click.command(
    help=__doc__,
    params=[click.Argument(["what"], type=click.Choice(["print", "path", "validate"]), default="print"), options.AS_JSON],
)
def command(what: str, as_json: bool) -> None:
    if what == "print" and as_json:
        path = str(places.config_file())
        settings = {
            key: {"value": json.loads(_toml(key, value)), "origin": value.origin}
            for key, value in config.effective(os.environ).items()
        }
        options.print_document("tuilab.config/1", path=path, is_there=os.path.exists(path), settings=settings)
    elif as_json:
        raise UsageError(f"--json is of tuilab config print, not of {what}")
    elif what == "path":
        click.echo(show(places.config_file()))
    elif what == "validate":
        click.echo(_validate())
    else:
        is_there = "" if os.path.exists(places.config_file()) else " (not there)"
        found = config.effective(os.environ)
        rows = [f"{key} = {_toml(key, value)}" for key, value in found.items()]
        width = max(map(len, rows))
        origins = [value.origin for value in found.values()]
        lines = [f"{row.ljust(width)}  # {origin}" for row, origin in zip(rows, origins, strict=True)]
        click.echo("\n".join([f"# {show(places.config_file())}{is_there}", *lines]))


def _validate() -> str:
    where = show(places.config_file())
    if not os.path.lexists(places.config_file()):
        return f"there is no {where}: everything has its default"
    return f"{where} is right: {plural(len(config.checked()), 'setting')}"


def _toml(key: str, value: Value) -> str:
    """Return a setting as the file would have it."""
    if key == "fps":
        return str(config.fps() if value.origin == SETTINGS[key].variable else float(value.text or config.FPS))
    if key == "device":
        return json.dumps((config.device() if value.origin == SETTINGS[key].variable else value.text) or config.DEVICE)
    if key == "scenarios":
        return show(json.dumps([part for part in value.text.split(os.pathsep) if part], ensure_ascii=False))
    return show(json.dumps(value.text or places.runs_folder(), ensure_ascii=False))
