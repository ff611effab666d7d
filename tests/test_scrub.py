"""What leaves this box, and what a record keeps, has no secret in it, and is otherwise what it was."""

import base64
import json
import os
import random
import string
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine import look, newest, write_scenario
from tests.slow_cases import slow_cases
from tuilab.doctor import bundle
from tuilab.errors import CannotRecord
from tuilab.record.secrets import without_places
from tuilab.runs import store
from tuilab.runs.archive.pack import pack
from tuilab.scrub import GONE, environment_for_record, is_secret_value, scrub, words_for_record
from tuilab.scrub.names import is_certain, is_secret, is_variable

Tuilab = Callable[..., "CompletedProcess[str]"]

ORDINARY = (Path(__file__).parent / "texts" / "ordinary.txt").read_text()
_DRAWN = random.Random(7)


def drawn(size: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Return a word that no scanner of sources takes for a token that somebody left there."""
    return "".join(_DRAWN.choices(letters, k=size))


CAPITALS = string.ascii_uppercase + string.digits
KEY = "\n".join(drawn(64) for _ in range(5))
TOKENS = {
    "GitHub": "ghp_" + drawn(36),
    "GitHub, fine": "github_pat_" + drawn(22) + "_" + drawn(59),
    "GitLab": "glpat-" + drawn(20),
    "Hugging Face": "hf_" + drawn(34),
    "OpenAI": "sk-proj-7" + drawn(40),
    "Stripe": "sk_live_" + drawn(24),
    "Slack": "xoxb-" + drawn(12, "0123456789") + "-" + drawn(24),
    "AWS": "AKIA" + drawn(16, CAPITALS),
    "AWS, for a while": "ASIA" + drawn(16, CAPITALS),
    "Google": "AIza" + drawn(35),
    "npm": "npm_" + drawn(36),
    "NVIDIA": "nvapi-" + drawn(64),
    "JWT": f"eyJ{drawn(30)}.eyJ{drawn(60)}.{drawn(43)}",
    "random": drawn(40),
}
SENTENCES = [
    "{}",
    "cannot log in with {}",
    "token={}",
    '{{"value": "{}"}}',
    "({})",
    "'{}',",
    "a\x00b {} \ufffd",
    "X-Auth:{}\r",
]


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_token_is_known_by_its_form_wherever_it_stands(kind: str, sentence: str) -> None:
    cleaned = scrub(sentence.format(TOKENS[kind]), {})

    assert TOKENS[kind] not in cleaned and GONE in cleaned
    assert scrub(cleaned, {}) == cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Authorization: Basic dXNlcjpwYXNz and more\nnext", f"Authorization: {GONE}\nnext"),
        (
            "{'Authorization': 'Bearer abcdefgh', 'Accept': '*/*'}",
            f"{{'Authorization': '{GONE}', 'Accept': '*/*'}}",
        ),
        (
            "< Set-Cookie: sid=31d4d96e407aad42; Path=/\n< Date: today",
            f"< Set-Cookie: {GONE}\n< Date: today",
        ),
        (
            "https://hooks.slack.com/services/T000/B000/abc posted",
            f"https://hooks.slack.com/{GONE} posted",
        ),
        ("https://discord.com/api/webhooks/12/ab-cd", f"https://discord.com/api/webhooks/{GONE}"),
        (
            "https://x.blob.core.windows.net/c?sv=2024&sig=ab%2Bcd%2Fefgh&se=1",
            f"https://x.blob.core.windows.net/c?sv=2024&{GONE}&se=1",
        ),
        ("https://s3/x?X-Amz-Signature=0123456789abcdef&x=1", f"https://s3/x?{GONE}&x=1"),
        ("postgres://me:p@ss/w0rd@db:5432/lab", f"postgres://{GONE}@db:5432/lab"),
        ("redis://:hunter22@cache/0", f"redis://{GONE}@cache/0"),
        ("url=https://host/x?token=a1b2c3d4E5F6&rows=5", f"url=https://host/x?token={GONE}&rows=5"),
        (
            "wandb: API key 0123456789abcdef0123456789abcdef01234567 used",
            f"wandb: API key {GONE} used",
        ),
        ("password='correct horse, battery' rows=5", f"password='{GONE}' rows=5"),
        ('"db_password": "it\\"s", "rows": 5', f'"db_password": "{GONE}", "rows": 5'),
        ("DB_PASS=ab,cd;ef rows=5", f"DB_PASS={GONE} rows=5"),
        ("connect(host='db', api_key=abc, rows=5)", f"connect(host='db', api_key={GONE}, rows=5)"),
        ("--token abcd-1234 --tokens 512", f"--token {GONE} --tokens 512"),
        ("--admin-tokens hunter2 --api-keys 12,13", f"--admin-tokens {GONE} --api-keys 12,13"),
        (
            "`--tokens 8192`: few; --max-tokens 4,8 --token x1`",
            f"`--tokens 8192`: few; --max-tokens 4,8 --token {GONE}",
        ),
        (
            "x --password='a b' -api-key=-c --tokens=512",
            f"x --password='{GONE}' -api-key={GONE} --tokens=512",
        ),
        (
            f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----\nend",
            f"{GONE}\nend",
        ),
        (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY[:90]}", GONE),
        (repr(f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n"), f"'{GONE}\\n'"),
    ],
)
def test_what_follows_a_telling_name_goes_and_what_follows_that_stays(
    text: str, cleaned: str
) -> None:
    assert scrub(text, {}) == cleaned
    assert scrub(cleaned, {}) == cleaned


BEGINNINGS = [
    *(
        "key=",
        "token=",
        "://a:b",
        "'",
        "sk-",
        "…",
        "eyJ-",
        "aB3/",
        "-----BEGIN PRIVATE KEY-----\n",
        "\\",
        "password\t",
        "((",
    ),
    *slow_cases("password=['", 'cookie: "', "authorization:", "pass\n"),
    "pass value ",
]


@pytest.mark.parametrize("unit", BEGINNINGS)
@pytest.mark.first(3)
def test_a_log_of_nothing_but_beginnings_is_read_to_its_end(unit: str) -> None:
    """In time that grows with the log; the square of it would outlast the patience of this test."""
    cleaned = scrub(unit * (16 * 1024 // len(unit)), {"DB_PASS": drawn(20)})

    assert scrub(cleaned, {}) == cleaned


def test_ordinary_text_stays_as_it_is() -> None:
    environment = {f"LAB_{size}_PASS": drawn(size) for size in range(6, 60)}

    assert (
        scrub(ORDINARY, {**environment, "HOME": "/home/me", "TOKENIZERS_PARALLELISM": "false"})
        == ORDINARY
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "/root/x -I/root/lib PYTHONPATH=/a:/root/b file:///root/c '/root'",
            "~/x -I~/lib PYTHONPATH=/a:~/b file://~/c '~'",
        ),
        ("in /root. And (/root)", "in ~. And (~)"),
        ("/mnt/root/x s3://bucket/root/z /rooted /root-old /root.bak http://host/root", None),
    ],
)
def test_a_path_that_begins_with_the_home_says_so_and_no_other(
    text: str, expected: str | None
) -> None:
    assert scrub(text, {"HOME": "/root"}) == (expected or text)


SECRETS = """
    DB_PASS GITHUB_PAT MYSQL_PWD AWS_CREDS JWT SLACK_WEBHOOK_URL AZURE_SAS NETRC_LOGIN HF_TOKEN PGPASSWORD PGPASS SSHPASS
    dbPassword APIKEY WANDB_API_KEY apiKey x-api-key SENTRY_DSN DB_CONN SESSION_COOKIE AUTH OAUTH_TOKEN AWS_SECRET_ACCESS_KEY
"""
FRIENDS = """
    PATH PWD OLDPWD KEYBOARD XAUTHORITY TOKENIZERS_PARALLELISM GIT_AUTHOR_NAME LOGNAME KeyError MONKEY COMPASS PYTHONHASHSEED
    OMP_NUM_THREADS CUDA_DEVICE_MAX_CONNECTIONS PATTERN CONNECTED SSH_CONNECTION LS_COLORS AuthenticationError
"""


def test_names_of_secrets_are_known_and_their_false_friends_are_left_alone() -> None:
    assert [name for name in SECRETS.split() if not is_secret(name)] == []
    assert [name for name in FRIENDS.split() if is_secret(name)] == []


def test_the_words_of_models_are_secrets_for_certain_only_with_a_word_about_doors() -> None:
    assert not any(
        map(is_certain, ["token", "tokens", "key", "pad_token", "key_padding_mask", "pass"])
    )
    assert all(
        map(
            is_certain,
            ["hf_token", "access_token", "api-key", "SSH_KEY", "password", "client_secret"],
        )
    )


# ---- values behind names

WRITINGS = [
    *(
        "{n}={v}",
        "{n}: {v}",
        "{n}:{v}",
        "{n} = '{v}'",
        "{n} := {v}",
        "{n} => {v}",
        "{n}=={v}",
        "export {n}={v}",
    ),
    *(
        '{{"{n}": "{v}", "rows": 5}}',
        "{{'{n}': b'{v}'}}",
        '\\"{n}\\": \\"{v}\\"',
        "os.environ['{n}'] = '{v}'",
        "cfg[{n}]={v}",
    ),
    *('{n} = """{v}"""', "{n}=('{v}',)", "{n}:\n  {v}"),
    *("--{n} {v}", "--{n}={v}", "https://h/x?{n}={v}&rows=5", "f({n}={v}, rows=5)"),
]
TOLD = [name for name in SECRETS.split() if is_certain(name) or is_variable(name)]
TYPED = st.from_regex(r"[A-Za-z]{3}[A-Za-z0-9!#$%*+./:?@^_~-]{3,40}", fullmatch=True).filter(
    lambda value: len(set(value)) > 4
)


@settings(max_examples=100)
@given(st.sampled_from(WRITINGS), st.sampled_from(TOLD), TYPED)
def test_what_stands_behind_the_name_of_a_secret_goes_however_that_is_written(
    writing: str, name: str, value: str
) -> None:
    text = writing.format(n=name, v=value)

    cleaned = scrub(text, {})
    assert value not in cleaned.replace(name, "") and name in cleaned
    assert scrub(cleaned, {}) == cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("passwords=['one', 'two'], rows=5", f"passwords={GONE}, rows=5"),
        ("secrets={'a': 'hunter2'}", f"secrets={GONE}"),
        (
            "b'Authorization': b'Basic dXNlcg', b'a': b'b'",
            f"b'Authorization': b'{GONE}', b'a': b'b'",
        ),
        ('"Cookie": "a=\\"b c\\"; d", "rows": 5', f'"Cookie": "{GONE}", "rows": 5'),
        ('"Authorization": ["Basic dXNlcg"]', f'"Authorization": ["{GONE}"]'),
        ("authorization: token abcdefgh", f"authorization: {GONE}"),
        (
            "ACCESS_CODE=1234 PIN_CODE: 5678 error_code=9012",
            f"ACCESS_CODE={GONE} PIN_CODE: {GONE} error_code=9012",
        ),
        ("DB_PASSWORD=12345678", f"DB_PASSWORD={GONE}"),
        ("private_cert=abcdef client_cert=abcdef", f"private_cert={GONE} client_cert=abcdef"),
        ('f(password: str = "a b", n: int=3)', f'f(password: str = "{GONE}", n: int=3)'),
        ('hf_token: str | None="abc"  # old', f'hf_token: str | None="{GONE}"  # old'),
        ('api_keys: dict[str, str] = {"a": "b"}, x', f"api_keys: dict[str, str] = {GONE}, x"),
        ("note: token = r'raw\\s3cret99'", f"note: token = r'{GONE}'"),
        ("token: hunter22x and raw_token=raw\\s3cret99", f"token: {GONE} and raw_token={GONE}"),
        ("bearer: abc", f"bearer: {GONE}"),
    ],
)
def test_headers_lists_and_codes_tell_no_secret(text: str, cleaned: str) -> None:
    assert scrub(text, {}) == cleaned


COUNTED = [
    "pat",
    "num_tokens",
    "MAX_TOKENS",
    "access_tokens",
    "session-keys",
    "API_KEYS",
    "cookies",
    "auth_token_length",
]
NOTHING = ["none", "None", "null", "true", "FALSE", "nan", "n/a"]
NUMBERS = st.one_of(
    st.integers(0, 10**12).map(str),
    st.floats(0, 1e9).map(str),
    st.integers(0, 10**12).map("{:,}".format),
)


@settings(max_examples=100)
@given(st.sampled_from(WRITINGS), st.sampled_from(COUNTED), NUMBERS | st.sampled_from(NOTHING))
def test_a_number_or_nothing_is_no_secret_where_tokens_and_keys_are_counted(
    writing: str, name: str, value: str
) -> None:
    text = writing.format(n=name, v=value)

    assert scrub(text, {}) == text


HARMLESS = """
cookie: none
Set-Cookie: None
Authorization: failed for user
authorization: required
password: required
password: str = None
password: str = getpass(), token: str | None = None
cls_token: 1x1x768x16 pos_embed: 1x197x768 token: layer.weight token_embedding.weight: torch.Size([50257, 768])
token_type=bpe_v2_fast next token: 12345 tokens: <s> hello99world
SORT_KEY=accuracy
tokenizer=gpt2 tokenizer: AutoTokenizer
token_embedding.weight: torch.Size([50257, 768])
Missing keys: "token_embedding.weight", "layers.0.attn.1.proj.2.weight"
tokens/s: 123456.7 tokens_per_s=1.2M TOKENS_SEEN=300B
('token', 'the') ["key", "value"]
token\tcount\tpass
session_key=(1, 2) api_keys=[] pad_token='<pad>'
the default login page asks for a password again
password_length=1024 certainty=0.98 exit_code=3 cert: ok
cannot read the password
\tat login.py
forward pass\t12.3 ms
"""


@pytest.mark.parametrize("line", HARMLESS.strip("\n").split("\n"))
def test_a_line_of_a_log_about_tokens_and_passwords_stays_as_it_is(line: str) -> None:
    assert scrub(line, {}) == line
    assert scrub(HARMLESS, {}) == HARMLESS


# ---- values of variables

NAMES = st.sampled_from(
    [
        "DB_PASS",
        "GITHUB_PAT",
        "MYSQL_PWD",
        "AWS_CREDS",
        "JWT",
        "WEBHOOK",
        "NETRC_LOGIN",
        "LAB_TOKEN",
        "SAS",
    ]
)
VALUES = st.text(
    string.ascii_letters + string.digits + "!#$%&()*+,-./:;<=>?@[]^_{|}~\"'\\",
    min_size=10,
    max_size=80,
).filter(
    lambda text: (
        len(set(text)) >= 8 and not text.isalpha()
    )  # a short word is looked for as a whole word
)
SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "quoted": lambda value: quote(value, safe=""),
    "path": quote,
    "form": quote_plus,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "url base64": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "base64 without its end": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
}


@settings(max_examples=100)
@given(
    NAMES, VALUES, st.sampled_from(sorted(SPELLINGS)), st.text(max_size=30), st.text(max_size=30)
)
def test_value_of_a_secret_variable_never_remains(
    name: str, value: str, spelling: str, before: str, after: str
) -> None:
    spelt = SPELLINGS[spelling](value)

    cleaned = scrub(before + spelt + after, {name: value})
    assert spelt not in cleaned and value not in cleaned


def test_the_password_in_an_address_is_a_value_as_it_is_written_there_and_as_it_is_typed() -> None:
    environment = {"DATABASE_URL": "postgres://lab:p%40ss%2Fw0rd@db/lab"}

    assert scrub("p@ss/w0rd and p%40ss%2Fw0rd of lab", environment) == f"{GONE} and {GONE} of lab"


def test_the_password_in_an_address_is_a_value_away_from_it() -> None:
    assert (
        scrub("log in: lab hunter22x", {"DATABASE_URL": "postgres://lab:hunter22x@db/lab"})
        == f"log in: lab {GONE}"
    )


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"GITHUB_AUTH": "enabled"}, "it is enabled"),
        ({"HF_TOKEN": "none", "LAB_PASS": "12345"}, "none of 123456"),
        ({"SSH_AUTH_SOCK": "/tmp/ssh/agent"}, "/tmp/ssh/agent.py"),
        ({"NETRC_LOGIN": "python"}, "pythonic"),
        ({"MAX_TOKENS": "1048576", "ACCESS_TOKEN_COUNT": "4000000"}, "1048576 of 4000000"),
        ({"PWD": "/srv/lab", "OLDPWD": "/srv/old"}, "/srv/lab /srv/old"),
    ],
)
def test_a_value_that_ordinary_text_has_is_left_alone(
    environment: dict[str, str], text: str
) -> None:
    assert scrub(text, environment) == text


def test_word_of_a_model_in_a_variable_is_no_secret_elsewhere() -> None:
    environment = {"SORT_KEY": "accuracy", "DATASET_TOKEN": "letmein", "LR_KEY": "hunter22-9"}

    assert (
        scrub("accuracy of letmein is hunter22-9", environment) == f"accuracy of {GONE} is {GONE}"
    )
    assert environment_for_record(environment, {}) == {
        "SORT_KEY": "accuracy",
        "DATASET_TOKEN": GONE,
        "LR_KEY": GONE,
    }


def test_words_of_a_recorded_command_are_cleaned_again() -> None:
    """A run that an older version recorded may have such words."""
    assert (
        scrub({"command": ["x.py", "token=letmein", "a word: token=letmein"]}, {})["command"][1]
        == f"token={GONE}"
    )


def test_names_of_files_and_of_fields_are_texts_too() -> None:
    value = drawn(16)

    assert scrub({f"x-{value}.log": {"a": [f"/tmp/{value}/y"]}}, {"DB_PASS": value}) == {
        f"x-{GONE}.log": {"a": [f"/tmp/{GONE}/y"]}
    }


# ---- what a run's record keeps


def test_an_environment_is_recorded_as_far_as_it_differs() -> None:
    base = {"A": "1", "HF_TOKEN": "old", "PATH": "/bin"}
    given = {
        **base,
        "HF_TOKEN": "new",
        "OMP_NUM_THREADS": "2",
        "URL": "https://me:hunter22@host/x",
        "TOKENIZERS_PARALLELISM": "false",
    }

    assert environment_for_record(given, base) == {
        "HF_TOKEN": GONE,
        "OMP_NUM_THREADS": "2",
        "URL": f"https://{GONE}@host/x",
        "TOKENIZERS_PARALLELISM": "false",
    }


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        (["numactl", "-N", "0", "--"], ["numactl", "-N", "0", "--"]),
        (
            ["env", "PGPASSWORD=a b c", "--api-key=a b"],
            ["env", f"PGPASSWORD={GONE}", f"--api-key={GONE}"],
        ),
        (["env", "HF_TOKEN=abc", "A=1"], ["env", f"HF_TOKEN={GONE}", "A=1"]),
        (
            ["wrap", "--api-key", "abc", "--tokens", "512"],
            ["wrap", "--api-key", GONE, "--tokens", "512"],
        ),
        (
            ["run", "x", "--name", "mine", "--name=mine", "mine.py"],
            ["run", "x", "--name", GONE, f"--name={GONE}", "mine.py"],
        ),
        (["wrap", "--api-key=abc", "--tokens=512"], ["wrap", f"--api-key={GONE}", "--tokens=512"]),
        (
            ["curl", "-H", "Authorization: Bearer abcdefgh"],
            ["curl", "-H", f"Authorization: {GONE}"],
        ),
        (
            ["bash", "-c", "export API_KEY=a1b2; curl x --retry 3"],
            ["bash", "-c", f"export API_KEY={GONE}; curl x --retry 3"],
        ),
        (
            ["sh", "-lc", "API_KEY=a1b2 python x.py --lr 3"],
            ["sh", "-lc", f"API_KEY={GONE} python x.py --lr 3"],
        ),
        (
            ["sh", "-c", "train --password 'a b' --lr 3"],
            ["sh", "-c", f"train --password '{GONE}' --lr 3"],
        ),
        (["git", "-c", "api.token=letmein", "pull"], ["git", "-c", f"api.token={GONE}", "pull"]),
        (
            ["--arm", "one: API_KEY=x OMP_NUM_THREADS=3 -- --lr 3"],
            ["--arm", f"one: API_KEY={GONE} OMP_NUM_THREADS=3 -- --lr 3"],
        ),
        (
            ["x.py", "token=letmein", "+hub.token=hunter22"],
            ["x.py", f"token={GONE}", f"+hub.token={GONE}"],
        ),
        (
            ["x.py", "token=512", "lr_key=cosine", "key=cosine"],
            ["x.py", "token=512", "lr_key=cosine", "key=cosine"],
        ),
    ],
)
def test_a_command_line_is_recorded_without_secrets(words: list[str], recorded: list[str]) -> None:
    assert words_for_record(words, ["mine"]) == recorded


ARMS = """
def body(lab):
    return os.environ["HF_TOKEN"] + os.environ["ARM_SECRET"]
"""
RUN = """
given = {**os.environ, "ARM_SECRET": "only-in-the-arm", "OMP_NUM_THREADS": "1"}
got = lab.arm("a", body, env=given, prefix=["env", "MORE_PASS=in-the-prefix"])()
are_real = [got == os.environ["HF_TOKEN"] + "only-in-the-arm", token == "given-by-hand"]
lab.claim("real", all(are_real))
try:
    lab.arm("b", body, prefix=["/none/API_KEY=in-the-command"])()
except Exception as problem:
    lab.text(str(problem))
sleep = ["p", "-c", "import time; time.sleep(600)", "--password=of-a-child"]
subprocess.Popen(sleep, executable=sys.executable, start_new_session=True)
"""


@pytest.mark.slow
def test_no_secret_of_the_environment_or_the_command_line_is_exported(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, RUN, ARMS)
    path.write_text(path.read_text().replace("lab: Lab)", 'lab: Lab, token: str = "")'))

    done = tuilab(
        "run",
        str(path),
        "--headless",
        "--token",
        "given-by-hand",
        env={"HF_TOKEN": "of-the-environment"},
    )
    run_dir = newest(root) or root
    packed = pack(run_dir, tmp_path / "run.tgz").files
    with tarfile.open(tmp_path / "run.tgz") as made:
        files = {member.name.partition("/")[2]: made.extractfile(member).read() for member in made}  # type: ignore[union-attr]
    data = b"".join(data for name, data in files.items() if name != "scenario.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert packed == len(files)
    for kept in (
        '"ARM_SECRET":"(removed)"',
        '"MORE_PASS=(removed)"',
        "cannot start /none/API_KEY=(removed)",
        "--password=(removed)",
    ):
        assert kept.encode() in data
    for secret in (
        "of-the-environment",
        "only-in-the-arm",
        "in-the-prefix",
        "in-the-command",
        "given-by-hand",
        "of-a-child",
    ):
        assert secret.encode() not in data and secret not in done.stdout


PRINTS = """
import base64, os, sys
for name in ("MY_API_KEY", "ARM_PASSWORD"):
    value = os.environ.get(name, "not set")
    print("\\xfc before", value, "behind", base64.b64encode(value.encode()).decode(), "end")
    print("on stderr", value, file=sys.stderr)
"""


def packed_logs(run_dir: Path, target: Path) -> dict[str, str]:
    """Export a run and return the logs of the archive, by name."""
    pack(run_dir, target)
    with tarfile.open(target) as made:
        files = {member.name.partition("/")[2]: made.extractfile(member).read() for member in made}  # type: ignore[union-attr]
    return {
        name: data.decode()
        for name, data in files.items()
        if name.endswith(".log") or name.startswith("journal")
    }


def test_export_from_another_shell_has_no_value_that_was_set_for_the_run(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    script = tmp_path / "prints.py"
    script.write_text(PRINTS)

    tuilab(
        "exec", "--quiet", "--", sys.executable, str(script), env={"MY_API_KEY": "tulip harbour"}
    )
    run_dir = newest(root) or root
    whole = (run_dir / "stdout.log").read_text()
    logs = packed_logs(run_dir, tmp_path / "run.tgz")

    assert whole.count("tulip harbour") == 1
    assert logs["stdout.log"].startswith(
        f"\xfc before {GONE} behind {GONE} end\n\xfc before not set"
    )
    assert logs["stderr.log"].startswith(f"on stderr {GONE}\n")
    assert "tulip harbour" not in str(logs) and '"secrets"' not in str(logs)


def test_bundle_from_another_shell_has_no_value_that_was_set_for_the_run(
    tuilab: Tuilab, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "prints.py"
    script.write_text(f"{PRINTS}\nsys.exit(3)\n")

    tuilab(
        "exec", "--quiet", "--", sys.executable, str(script), env={"MY_API_KEY": "tulip harbour"}
    )
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    (failure,) = bundle.failures()

    assert f"on stderr {GONE}" in failure["stderr"] and "tulip" not in str(failure)


@pytest.mark.parametrize("places", [[(0, 3), (2, 5)], [(5, 2)], [(90, 99)], [(3, 900)]])
def test_places_that_make_no_sense_break_nothing(places: list[tuple[int, int]]) -> None:
    assert without_places(b"a secret\xff", places).startswith((b"a", GONE.encode()))


@pytest.mark.slow
def test_a_secret_parameter_is_shown_as_removed_and_has_to_be_given_again(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, "raise ValueError(len(token))")
    path.write_text(
        path.read_text().replace(
            "lab: Lab)", 'lab: Lab, token: str = "", tokens: int = 5, tokenizer: str = "a")'
        )
    )
    words = ["run", str(path), "--headless", "--quiet"]

    tuilab(*words, "--token=a-secret", "--tokens", "6", "--tokenizer", "words")
    tuilab("report", "last", "-o", str(tmp_path / "report.json"))
    report = (tmp_path / "report.json").read_text()
    again = tuilab(*words, "--token", GONE)

    run = look(newest(root) or root).summary.run
    assert run is not None and run.params == {"token": GONE, "tokens": 6, "tokenizer": "words"}
    assert f"--token={GONE}" in run.argv and f'"{GONE}"' in report and "a-secret" not in report
    assert (again.returncode, again.stderr) == (
        2,
        "tuilab: token: this value is a secret and was not recorded; give it again\n",
    )


# ---- the bundle

PRINTED = """
value = os.environ["DB_PASS"]
print("plain", value, "quoted", quote(value, safe=""), "coded", base64.b64encode(value.encode()).decode(), file=sys.stderr)
print("\\x1b[1m" + value[:5] + "\\x1b[0m" + value[5:], file=sys.stderr)
sys.stderr.buffer.write(value.encode("utf-16") + b"\\xff\\0" + value.encode() + b"\\0\\n")
sys.stderr.buffer.write(b"x" * 70_000 + value.encode() + b"\\n" + b"y " * 4000 + b"legible\\n")
raise ValueError("x" * 90 + value)
"""


@pytest.mark.slow
def test_a_bundle_has_no_secret_however_a_run_printed_it(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    value = drawn(12) + "/+&=" + drawn(12)
    path = write_scenario(tmp_path, PRINTED, "import base64\nfrom urllib.parse import quote\n")
    environment = {"DB_PASS": value, "HOME": str(tmp_path)}
    target = tmp_path / "bundle.tar.gz"
    target.write_text("old")
    target.chmod(0o666)
    tuilab("run", str(path), "--headless", "--quiet", env=environment)
    (newest(root) or root).joinpath("fault-worker-0.log").write_text(
        f"Fatal Python error: {value}\n"
    )

    tuilab("doctor", "--bundle", str(target), env=environment)
    with tarfile.open(target) as made:
        data = b"".join(made.extractfile(member).read() for member in made)  # type: ignore[union-attr]

    assert (
        b"ValueError: xxx" in data
        and b"legible" in data
        and b"Fatal Python error: (removed)" in data
    )
    for spelt in (
        value,
        quote(value, safe=""),
        base64.b64encode(value.encode()).decode(),
        value[:8],
        value[-8:],
    ):
        assert spelt.encode() not in data
    assert target.stat().st_mode & 0o777 == 0o600 and sorted(os.listdir(tmp_path)) == [
        "bundle.tar.gz",
        "probe.py",
        "runs",
    ]


BYTES = st.binary(min_size=12, max_size=40).filter(lambda data: len(set(data)) >= 8)


@pytest.mark.slow
@settings(max_examples=25)
@given(values=st.lists(BYTES, min_size=1, max_size=4, unique=True), at=st.integers(0, 70_000))
def test_the_log_of_a_failed_run_is_clean_wherever_a_secret_stands(
    tmp_path_factory: pytest.TempPathFactory, values: list[bytes], at: int
) -> None:
    folder = tmp_path_factory.mktemp("failed")
    secrets = [base64.b64encode(value).decode() for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUILAB_ROOT", str(folder))
        for number, secret in enumerate(secrets):
            patch.setenv(f"LAB_{number}_PASS", secret)
        run_dir = folder / "20260101T000000000Z-probe-abc123"
        (run_dir / "journal").mkdir(parents=True)
        printed = "\n".join(
            [
                ORDINARY[: at % 4000],
                "x" * (at % 9000),
                *secrets,
                ORDINARY,
                *map(quote_plus, secrets),
                "y" * at,
            ]
        )
        (run_dir / "stderr.log").write_text(printed)
        (told,) = bundle.failures()

    assert not [
        secret
        for secret in secrets
        if secret in json.dumps(told) or quote_plus(secret) in json.dumps(told)
    ]


def test_a_bundle_never_takes_the_place_of_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")

    with pytest.raises(
        CannotRecord, match=r"cannot write .*x\.json: it exists and is not a regular file"
    ):
        bundle.write(tmp_path / "x.json", {})
    assert (tmp_path / "x.json").is_fifo() and os.listdir(tmp_path) == ["x.json"]


def test_the_log_of_a_crashed_worker_goes_with_a_run(tmp_path: Path) -> None:
    run_dir: Any = store.create("probe", tmp_path / "runs")
    for name in ("fault-worker-3.log", "fault-worker-3-rank-1.log", "fault-evil.log"):
        (run_dir / name).write_text("Fatal Python error\n")

    pack(run_dir, tmp_path / "run.tgz")
    with tarfile.open(tmp_path / "run.tgz") as made:
        assert sorted(made.getnames()) == [
            f"{run_dir.name}/fault-worker-3-rank-1.log",
            f"{run_dir.name}/fault-worker-3.log",
        ]


OF_MODELS = [
    *(
        ("--lr-key", "cosine"),
        ("--pad-token", "<pad>"),
        ("--eos-token", "</s>"),
        ("--special-tokens", "bos,eos"),
    ),
    *(
        ("--eos-token", "<|endoftext|>"),
        ("--mask-token", "[MASK]"),
        ("--sep-token", "[SEP]"),
        ("--bos-token", "<s>"),
    ),
    *(
        ("--special-tokens", "<s>,</s>,<pad>"),
        ("--sort-key", "val_loss"),
        ("--label-key", "labels"),
        ("--image-key", "jpg"),
    ),
    *(
        ("--metric-keys", "loss,acc"),
        ("--key-name", "plain1"),
        ("--token-type", "bpe2"),
        ("--token", "<pad>"),
    ),
    *(("--cls-token", "CLS"), ("--text-key", "json.text"), ("--max-tokens", "512")),
    *(
        ("--key", "cosine"),
        ("--keys", "loss,acc"),
        ("--cache-key", "abc"),
        ("--partition-key", "date"),
        ("LR_KEY", "cosine"),
    ),
]
OF_DOORS = [
    *(
        ("--token", "hunter"),
        ("--token", "abcd-1234"),
        ("--key", "hunter22"),
        ("--api-key", "cosine"),
        ("--hf-token", "words"),
    ),
    *(
        ("--access-token", "<pad>"),
        ("--hub-token", "x8Kq22Lm0"),
        ("--deploy-key", "plain"),
        ("--lr-key", "a1b2c3d4"),
    ),
    *(
        ("--backup-key", "correct-horse-battery-staple"),
        ("--pad-token", TOKENS["Hugging Face"]),
        ("--password", "cosine"),
    ),
    *(
        ("--admin-tokens", "hunter2"),
        ("--sort-key", "qwrtzpsdfg"),
        ("--ngrok-token", "abcdefghijklmnopqrstuvw"),
    ),
    *(
        ("--secret-key", "labels"),
        ("--auth-key", "val_loss"),
        ("--label-key", "aB3dE5gH7jK9"),
        ("--webhook-key", "words"),
    ),
    *(
        ("--jupyter-token", "letmein"),
        ("--join-token", "rabbit"),
        ("--admin-key", "letmein"),
        ("--id-token", "letmein"),
    ),
    *(("--openai-key", "letmein"), ("--cluster-token", "letmein"), ("--pad-token", "hunter22")),
    *(("--bearer", "letmein"), ("--raw-token", "letmein")),
]


@pytest.mark.parametrize(("option", "value"), OF_MODELS)
def test_option_of_a_model_keeps_its_word(option: str, value: str) -> None:
    name = option.lstrip("-").replace("-", "_")

    assert words_for_record(["train", option, value]) == ["train", option, value]
    assert words_for_record(["train", f"{option}={value}"]) == ["train", f"{option}={value}"]
    assert scrub({"argv": ["train", option, value]}, {}) == {"argv": ["train", option, value]}
    assert scrub(f"train {option} {value} --rows 5", {}) == f"train {option} {value} --rows 5"
    assert not is_secret_value(name, value)


@pytest.mark.parametrize(("option", "value"), OF_DOORS)
def test_option_of_a_door_loses_its_value(option: str, value: str) -> None:
    assert words_for_record(["train", option, value]) == ["train", option, GONE]
    assert value not in scrub(f"train {option} {value} --rows 5", {}).replace(option, "")
    assert is_secret_value(option.lstrip("-").replace("-", "_"), value)


@pytest.mark.parametrize("kind", ["html", "md"])
def test_report_says_that_a_command_without_its_secret_does_not_repeat(
    tuilab: Callable[..., "CompletedProcess[str]"], tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "probe.py"
    path.write_text(
        '"""A probe.\n\n## Look for\n- [one] one is one\n"""\n'
        'def run(lab, password: str = "", pad_token: str = "") -> None:\n    lab.claim("one", True)\n'
    )
    words = ["run", str(path), "--headless", "--quiet", "--pad-token", "<pad>"]

    tuilab(*words)
    whole = tuilab("report", "last", "-o", "-", "--as", kind).stdout
    tuilab(*words, "--password", "tulip-43")
    cut = tuilab("report", "last", "-o", "-", "--as", kind).stdout

    said = "This command does not repeat the run: the command contains a secret"
    assert said not in whole and said in cut
    assert GONE in cut and GONE not in whole
