"""Gates: a scenario and a test wait for each other's files."""

from pathlib import Path

from tests.engine import until
from tests.faults.sites import Site

STEPS = """
from pathlib import Path
def wait_for(name):
    Path(os.environ["GATES"], os.environ["TUILAB_RUN"] + ".at." + name).write_text("")
    while not Path(os.environ["GATES"], name).exists(): time.sleep(0.005)
"""


def gates(site: Site) -> Path:
    """Return the folder of the gates of a site."""
    folder = site.folder / "gates"
    folder.mkdir(exist_ok=True)
    site.environment["GATES"] = str(folder)
    return folder


def reaches(gates: Path, name: str) -> None:
    until(lambda: any(gates.glob(f"*.at.{name}")))
