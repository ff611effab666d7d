"""Python source loses its secrets and still parses: texts and comments are cleaned, expressions stay."""

import ast
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.engine import newest, write_scenario
from tests.test_scrub import TOKENS
from tuilab.judging.integrity import examine
from tuilab.record.origin import taken_out
from tuilab.runs.archive.unpack import unpack
from tuilab.scrub import scrubber
from tuilab.scrub.named_values import named_texts
from tuilab.scrub.source import clean_source

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

VALUE = "quiet-Harbour-42-lamp"
TOKEN = TOKENS["Hugging Face"]
clean = scrubber({"MY_API_KEY": VALUE, "HOME": "/home/ada"}, keeps_numbers=True)

SECRETS = [  # a line of source, and what is left of it
    ('api_key = "abcd1234efgh"', 'api_key = "(removed)"'),
    ("self.password: str = 'hunter22'", "self.password: str = '(removed)'"),
    (
        'def f(password: str = "hunter22", n=3): pass',
        'def f(password: str = "(removed)", n=3): pass',
    ),
    ('connect(user="ada", password="hunter22")', 'connect(user="ada", password="(removed)")'),
    (
        'config = {"password": "tulip-43", "lr": 0.1}',
        'config = {"password": "(removed)", "lr": 0.1}',
    ),
    ("os.environ['DB_PASSWORD'] = 'x\"y!z99'", "os.environ['DB_PASSWORD'] = '(removed)'"),
    ('os.getenv("API_TOKEN", "zx81Kq22Lm0")', 'os.getenv("API_TOKEN", "(removed)")'),
    ("password = 12345678", "password = (removed)"),
    (f"x = 1  # {TOKEN}", "x = 1  # (removed)"),
    (f'log("as {VALUE}\\n")', 'log("as (removed)\\n")'),
    (f"url = f'https://ada:{VALUE}@{{host}}/x'", "url = f'https://(removed)@{host}/x'"),
    ('password = f"{user}-hunter22"', 'password = f"{user}(removed)"'),
    ('text = "password=abc\\x41def"', 'text = "password=(removed)"'),
    (f'text = r"""\n{TOKEN}\n"""', 'text = r"""\n(removed)\n"""'),
    (f"data = b'{TOKEN}'", "data = b'(removed)'"),
]
EXPRESSIONS = [
    'raise RuntimeError("refused: password=" + exc)',
    "token = tokenizer.pad_token",
    'login(token=os.environ["HF_TOKEN"], password=getpass())',
    'headers = {"Authorization": f"Bearer {api_key}"}',
    "key = lambda one: one.key",
    'print("password:", password)',
    "secret = settings['secret'] or ask()",
    "max_tokens = 8192",
    "f'{password}'",
    "credentials = (user, password)",
]


@pytest.mark.parametrize(("line", "left"), SECRETS, ids=[line for line, _ in SECRETS])
def test_secret_in_quotes_leaves_source_that_parses(line: str, left: str) -> None:
    source = f'"A probe."\nimport os\n{line}\n'

    cleaned = clean_source(source, clean)

    assert cleaned == f'"A probe."\nimport os\n{left}\n'
    ast.parse(cleaned)


HIDDEN_WELL = [  # lines in which a name and its secret do not stand side by side; the secret is 8Kq22Lm0xZ81
    'PASSWORD = ("8Kq22Lm0xZ81")',
    'password = (\n    "8Kq22Lm0xZ81"\n)',
    'password = "a" if x else "8Kq22Lm0xZ81"',
    'PASSWORD = os.environ.get("X") or "8Kq22Lm0xZ81"',
    'PASSWORD = "short" "8Kq22Lm0xZ81"',
    'password = "8Kq22Lm0xZ81".encode()',
    'password = "".join(["8Kq22Lm0xZ81", "abc"])',
    'password = "8Kq22Lm0xZ81%s" % "abc"',
    'password = "x%s" % "8Kq22Lm0xZ81"',
    'password = "x{}".format("8Kq22Lm0xZ81")',
    'password = "8Kq22Lm0xZ81" * 2',
    'password = bytes("8Kq22Lm0xZ81", "utf8")',
    'login(password := "8Kq22Lm0xZ81")',
    'password = (word := "8Kq22Lm0xZ81")',
    'password = SecretStr("8Kq22Lm0xZ81")',
    'passwords = [\n    "first one",\n    "8Kq22Lm0xZ81",\n]',
    'user, password = "ada", "8Kq22Lm0xZ81"',
    'x["api_key"] = y["k"] = "8Kq22Lm0xZ81"',
    'assert token != "8Kq22Lm0xZ81"',
    "password = '''two\n8Kq22Lm0xZ81'''",
    'setattr(config, "password", "8Kq22Lm0xZ81")',
    'run(["login", "--password", "8Kq22Lm0xZ81"])',
    'parser.add_argument("--api-key", type=str, default="8Kq22Lm0xZ81", help="x")',
    'def f(*, password: str | None = "8Kq22Lm0xZ81"): pass',
    '\ufeffpassword = "8Kq22Lm0xZ81"',
    'é = "ü"; password = "8Kq22Lm0xZ81"',
    'password = "8Kq22Lm0xZ81"\r\nx = 1',
    "raw_token = r'raw\\8Kq22Lm0xZ81'",
    'def f(token: str="8Kq22Lm0xZ81"): pass',
    'x = 1  # token: str="8Kq22Lm0xZ81"',
    'x = 1  # raw_token = r"raw\\8Kq22Lm0xZ81"',
    '"""Usage.\n\nold: token = r\'raw\\\\8Kq22Lm0xZ81\'\n"""',
    'k = "-----BEGIN PRIVATE KEY-----\\n" \\\n    "8Kq22Lm0xZ81\\n" \\\n    "-----END PRIVATE KEY-----\\n"',
]


@pytest.mark.parametrize("line", HIDDEN_WELL)
def test_secret_away_from_its_name_goes_and_source_parses(line: str) -> None:
    cleaned = clean_source(f"{line}\n", clean)

    assert cleaned is not None and "8Kq22Lm0xZ81" not in cleaned and "(removed)" in cleaned
    ast.parse(cleaned.removeprefix("\ufeff"))


@pytest.mark.parametrize(
    "line",
    ['token = "hunter22x"', "def f(token: str='hunter22x'): pass", "x = 1  # token: hunter22x"],
)
def test_token_that_people_made_up_goes(line: str) -> None:
    cleaned = clean_source(f"{line}\n", clean)

    assert cleaned is not None and "hunter22x" not in cleaned
    ast.parse(cleaned)


@pytest.mark.parametrize("line", EXPRESSIONS)
def test_expression_stays_as_it_is(line: str) -> None:
    assert clean_source(f"{line}\n", clean) == f"{line}\n"


@pytest.mark.parametrize(
    "source", ["set -e\nexport API_KEY=abcd1234efgh\n", "def f(:\n", "x = '\n", "\0"]
)
def test_other_text_is_no_python_source(source: str) -> None:
    assert clean_source(source, clean) is None


def test_sources_of_this_project_parse_without_secrets() -> None:
    paths = [*(CHECKOUT / "tuilab" / "scrub").glob("*.py"), *(CHECKOUT / "scenarios").rglob("*.py")]

    for path in paths:
        source = path.read_text()
        cleaned = clean_source(source, clean)
        assert cleaned is not None, path
        names = [
            [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
            for text in (source, cleaned)
        ]
        assert names[0] == [name for name in names[1] if name != "removed"], path


LEAKS = f"""
def refuse(exc):
    raise RuntimeError("refused: password=" + exc)
lab.text("as " + "{TOKEN}"[:0])
lab.claim("one-is-one", True)
"""


@pytest.fixture
def imported(tuilab: Tuilab, root: Path, tmp_path: Path) -> Path:
    """A run of a source with one secret, packed and unpacked."""
    tuilab("run", str(write_scenario(tmp_path, LEAKS)), "--headless", "--quick", "--quiet")
    assert newest(root)
    tuilab("export", "last", "-o", f"{tmp_path}/run.tgz")
    return unpack(tmp_path / "run.tgz", tmp_path / "other").run_dir


def test_verify_accepts_a_source_that_its_archive_cleaned(tuilab: Tuilab, imported: Path) -> None:
    where = "--root", str(imported.parent)
    done = tuilab("verify", "last", *where)
    document = json.loads(tuilab("verify", "last", "--json", *where).stdout)

    source = (imported / "scenario.py").read_text()
    assert done.returncode == 0, done.stdout
    assert "1 word of scenario.py was removed when the run was exported" in done.stdout
    assert (document["exit_code"], document["taken_out"], document["wrong"]) == (0, 1, [])
    assert TOKEN not in source and '"refused: password=" + exc' in source
    ast.parse(source)


@pytest.mark.parametrize("change", ["source", "count", "not imported"])
def test_verify_finds_a_source_that_was_changed_after_packing(imported: Path, change: str) -> None:
    path = imported / "scenario.py"
    if change == "source":
        path.write_text(path.read_text().replace("True", "1 == 1"))
    elif change == "count":
        (imported / taken_out.FILE).write_text('{"places":{"source":7},"digest":"abc"}')
    else:
        (imported / "imported").unlink()

    assert "scenario.py is not the source that ran" in examine(imported).wrong


def test_archive_of_an_older_version_agrees_by_its_count(imported: Path) -> None:
    (imported / taken_out.FILE).write_text('{"places":{"source":1},"digest":"abc"}')

    findings = examine(imported)

    assert (findings.wrong, findings.taken_out) == ([], 1)


NAMED = "tulip-43-bulb"
NAMES = f"""
# once it was {NAMED}
password = "{NAMED}"
print(r"as {NAMED}")
lab.text("{NAMED} again")
raise RuntimeError("refused: " + password)
"""


def test_value_of_a_named_secret_is_removed_from_the_whole_run(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    run = tuilab("run", str(write_scenario(tmp_path, NAMES)), "--headless", "--quick")
    tuilab("export", "last", "-o", f"{tmp_path}/run.tgz")
    tuilab("report", "last", "-o", f"{tmp_path}/run.html")
    tuilab("doctor", "--bundle", f"{tmp_path}/doctor.tar.gz")
    with tarfile.open(tmp_path / "run.tgz") as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    with tarfile.open(tmp_path / "doctor.tar.gz") as archive:
        bundle = b"".join(archive.extractfile(member).read() for member in archive)  # type: ignore[union-attr]

    run_dir = newest(root) or root
    assert run.returncode == 4
    assert NAMED in (run_dir / "stdout.log").read_text()
    assert [name for name, data in files.items() if NAMED.encode() in data] == []
    assert b"as (removed)" in files[f"{run_dir.name}/stdout.log"]
    assert NAMED not in (tmp_path / "run.html").read_text()
    assert b"refused: (removed)" in bundle and NAMED.encode() not in bundle


@pytest.mark.parametrize("word", ["password", "changeme", "12345678"])
def test_named_secret_that_may_be_an_ordinary_word_stays_elsewhere(word: str) -> None:
    assert named_texts(f'password = "{word}"') == set()


def test_verify_names_a_home_folder_that_was_replaced(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    home = {"HOME": "/home/ada"}
    path = write_scenario(tmp_path, 'lab.text("/home/ada/data")')
    tuilab("run", str(path), "--headless", "--quick", "--quiet")
    tuilab("export", "last", "-o", f"{tmp_path}/run.tgz", env=home)
    other = tmp_path / "other"

    came = tuilab("import", f"{tmp_path}/run.tgz", "--root", str(other))
    done = tuilab("verify", "last", "--root", str(other))

    with tarfile.open(tmp_path / "run.tgz") as made:
        names = [Path(one.name).name for one in made]
    assert taken_out.FILE in names
    assert "the home folder in its source was replaced by ~" in came.stderr
    assert (
        done.returncode == 0 and "the home folder in scenario.py was replaced by ~" in done.stdout
    )
