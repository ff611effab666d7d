"""Names that run from right to left, are wide, or have no width: they stand where they are put and move nothing else."""

import pytest
from rich.cells import cell_len

from tests.engine import write_scenario
from tests.faults.fronts import LOOKS, WAITS, Open, check_looks
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, reach_stage

pytestmark = pytest.mark.faults

NAMES = {
    "right to left": "מודל-שפה",
    "turned around": "abc\u202etxt.exe\u202c\u2067x\u2069",
    "wide": "学習率の実験",
    "joined": "👩\u200d👩\u200d👧\u200d👦 run 🇩🇪",
    "stacked": "a" + "\u0301" * 60,
    "nothing": "\u200b\u2060\ufeff\u00ad",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_57_a_name_of_any_script_stays_in_its_place(
    site: Site, screens: Open, go: object, name: str
) -> None:
    folder = site.folder / name
    folder.mkdir()
    body = f"NAME = {name!r}\nlab.stage(NAME)\nlab.log(0, arm=NAME, **{{NAME: 1.0}})\nlab.text(NAME, title=NAME)\nlab.claim('name', True){WAITS}"
    path = write_scenario(folder, body, claims={"name": name})
    term = screens("run", str(path), columns=80, rows=24)
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    check_looks(term, LOOKS)
    rows = term.text.splitlines()
    open(site.environment["GO"], "w").close()
    term.wait_for("succeeded")
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    assert max(map(cell_len, rows)) <= 80
    check(site, run_dir, "succeeded")
    said = [
        site.run(*words)
        for words in (("runs",), ("attach", "last", "--plot"), ("verify",), ("show", str(path)))
    ]
    assert all(map(is_well, said)), [done.stdout for done in said]
