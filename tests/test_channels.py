"""Every string that a scenario, a path, a user, a file or a box brings goes through every verb: it is shown, and never obeyed.

The rows are verbs with their formats; the columns are the channels of `tests/channels.py`, which all are there at once, each
with a word that names it. In the same way the screens are looked at by `tests/tui/test_pages.py` and by
`tests/faults/test_c_screens.py`, what a shell is offered by `tests/test_completion.py`, and a run that says all of it itself
by `tests/faults/test_c_text.py`.
"""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from xml.etree import ElementTree

import pytest

from tests.channels import OwnedElements, find_obeyed, hostile_source, hostile_word, make_world
from tuilab.errors import ExitCode

Tuilab = Callable[..., "CompletedProcess[str]"]
OURS = "\u200b"  # stands in Markdown where a word would else be taken for an address
USER = hostile_word("a user's word")
ROWS = [
    *(
        "attach ev1l00 --headless",
        "attach ev1l00 --json",
        "runs",
        "show good --scenarios OWN",
        "runs --json",
        "verify ev1l00",
    ),
    *(
        "report ev1l00 -o - --as html",
        "report ev1l00 -o - --as md",
        "report ev1l00 -o - --as csv",
        "compare ev1l00 abc123",
    ),
    *(
        "report ev1l00 -o - --as junit",
        "export ev1l00 -o packed.tgz",
        "list --scenarios OWN",
        "list --json --scenarios OWN",
    ),
    *(
        "attach ev1l00 --headless --plot",
        "attach ev1l00 --jsonl",
        "verify ev1l00 --json",
        "show good --json --scenarios OWN",
    ),
    *(
        "show good --source --scenarios OWN",
        "show good --lang zh --scenarios OWN",
        "run good --help --scenarios OWN",
    ),
    *("report ev1l00 -o - --as json", "report 71aed0 -o - --as trace", "doctor --json"),
    *(
        "report ev1l00 abc123 -o - --as html",
        "report all -o - --as md",
        "compare ev1l00 abc123 --json",
        "runs --claim key",
    ),
    *(
        "compare ev1l00 abc123 -o told.md",
        "compare ev1l00 abc123 -o told.html",
        "runs --tag even",
        "check FILE",
    ),
    *(
        "attach USER",
        "show USER",
        "stop USER",
        "rm USER",
        "verify USER",
        "new USER",
        "run USER --headless",
        "replay USER",
    ),
    *(
        "note ev1l00 --tag USER",
        "run good --choice USER --headless --scenarios OWN",
        "report ev1l00 -o USER",
        "import USER",
    ),
    *(
        "run good --rows USER --headless --scenarios OWN",
        "export USER",
        "USER",
        "check USER",
        "compare USER USER",
    ),
    *("config USER", "queue USER", "queue", "queue --json", "stop e15ewe", "rm e15ewe"),
    *(
        "calibrate --show",
        "calibrate --show --json",
        "import WORLD/run.tgz --root x",
        "import WORLD/member.tgz --root x",
    ),
    *("import WORLD/stream.tgz --root x", "import WORLD/link.tgz --root x"),
]


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder in which all channels are, and the environment that leads there."""
    folder = tmp_path_factory.mktemp("everywhere")
    return folder, make_world(folder)


def is_well_made(text: str, kind: str) -> None:
    """Read what was written as its readers do: no word has become a part of it."""
    if kind == "html":
        assert OwnedElements(text).found == []
    elif kind == "md":
        assert re.findall(r"(?<!\\)(?:!\[|\]\(http://owned|<owned)", without_code(text)) == []
    elif kind == "csv":
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert any("owned" in cell for cell in cells)
        assert [cell for cell in cells if cell[:1] in "=+-@\t\r" and "owned" in cell] == []
    elif kind == "junit":
        assert [
            node.tag for node in ElementTree.fromstring(text).iter() if "owned" in node.tag
        ] == []
    elif kind in ("json", "trace"):
        assert json.loads(text)


def without_code(text: str) -> str:
    """Return Markdown without what stands in fences and in code, where nothing is obeyed."""
    return re.sub(r"(`+)[^`].*?\1", "", re.sub(r"(?ms)^ *(`{3,})[^\n]*\n.*?^ *\1`*$", "", text))


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.first(8)
def test_no_word_is_obeyed_whichever_way_it_came_and_whatever_shows_it(
    tuilab: Tuilab, everywhere: tuple[Path, dict[str, str]], tmp_path: Path, row: str
) -> None:
    folder, environment = everywhere
    places = {
        "USER": USER,
        "OWN": str(folder / "own"),
        "FILE": str(next(folder.glob("own/*/good.py"))),
    }
    words = [places.get(one, one).replace("WORLD", str(folder)) for one in row.split()]
    done = tuilab(*words, env=environment, cwd=tmp_path)

    assert done.returncode in set(ExitCode) and not re.search(
        "^Traceback", done.stderr, re.MULTILINE
    ), done.stderr
    written = next((file.read_text() for file in tmp_path.glob("told.*")), done.stdout)
    form = re.search(r"(?:--as |told\.|--)(json|html|md|csv|junit|trace)\b", row)
    assert "owned" in written + done.stderr
    assert (
        find_obeyed(done.stderr)
        == []
        == find_obeyed(done.stdout.replace(OURS, ""))
        == find_obeyed(written.replace(OURS, ""))
    )
    is_well_made(written, form[1] if form else "")


def test_what_is_not_shown_cannot_have_been_obeyed() -> None:
    """A terminal without our care does all of it, and a page without it has new elements."""
    raw = hostile_word("x")

    assert {"set_title", "erase_in_display", "backspace"} <= {
        one.split(" ")[0] for one in find_obeyed(raw)
    }
    assert len(OwnedElements(f"<p>{raw}</p>").found) > 0
    assert "owned" in hostile_source()
