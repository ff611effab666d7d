"""What a list reads of a scenario file is what all of it says; a source that is walked once says what it says."""

import ast
import random
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_catalog import GOOD
from tuilab.catalogue import catalog, source
from tuilab.catalogue.reading import comments, nodes, title
from tuilab.catalogue.scenario import Scenario

LESSONS = [path.read_text() for path in sorted(Path(catalog.scenario_dirs()[0]).glob("*/*.py"))]
ODD = (
    *(
        "#",
        '"',
        "'",
        '"""',
        "\\",
        "\n",
        "\t",
        "\r",
        "\f",
        "(",
        ")",
        ":",
        "{",
        " ",
        "0",
        "*",
        "/, ",
        "é",
        "\x07",
        "\ud800",
        "\\ud800",
    ),
    *(
        "def run(",
        "async ",
        "@f\n",
        "if 1:\n ",
        "class run: pass\n",
        "\n\ndef run(l): 1\n",
        "run = ",
        "global run\n",
        "lambda: ",
    ),
    *(
        ") -> None:\n",
        ") -> None:  # why\n",
        ", a: int = 99 # b, 1..9\n",
        "no_tidy: bool = True,",
        "**more",
        ", x: str = '''):\n'''",
    ),
    *("return\n", "from __future__ import x\n", 'f"""{1}"""', "lab.claim(f'{0x" + "f" * 9000 + "}', 1)", "-" * 5000, "é" * 200),
)
SYNTAX = """
import a.b as c, d
from . import e
@f(1)
async def g(a, /, b: int = 1, *c, d=2, **e) -> h[i]:
    global j
    async with k as (l, m), n: await o
    async for p in q: yield r
    else: return
class s(t, u=v):
    w: x = y; z += 1; a @= b
    del c, d[e:f, ::2], g.h
    try: raise i from j
    except (k, l) as m: assert o, p
match q:
    case [1, -2j, *r] | {"s": t, **u} if v: ...
    case w.x(y, z=None) as a: pass
    case _: pass
lambda b, c=1: (d := [*e, {**f, "g": h}, {i for j in k if l}])
f"{m!r:>{n}} {f'{o}'}" "p", b"q" if not -r < s <= t is not u and v in w else x[y.z("/proc/")]
async def a(): return {b: c async for d in e for f in g}, [(yield h)]
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of scenarios with one file, beside which there is no other; nothing was read of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(catalog, "scenario_dirs", lambda extra=(): [*map(str, extra)])
    (tmp_path / "good.py").write_text(GOOD)
    return tmp_path


def heads(folder: Path) -> list[Scenario]:
    return catalog.listed([folder])[0]


def head_of(scenario: Scenario) -> Scenario:
    return Scenario(scenario.id, scenario.topic, scenario.path, scenario.title)


def test_a_list_makes_no_tree_of_a_plain_file(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = source.read(mine / "good.py")
    monkeypatch.setattr(source, "read", None)

    assert heads(mine) == [head_of(whole)]


def test_what_was_read_for_a_list_is_not_taken_for_all(mine: Path) -> None:
    heads(mine)

    assert catalog.load([mine]) == [source.read(mine / "good.py")]


def test_a_list_leaves_what_was_read_in_whole(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = catalog.load([mine])
    heads(mine)
    monkeypatch.setattr(source, "read", None)

    assert catalog.load([mine]) == whole


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("name", ["good", "memory", "all", "memory/good", "basics/good", "bad", "basics", "good.py"])
def test_what_is_named_is_the_same_as_if_all_had_been_read(mine: Path, name: str, *, is_read: bool) -> None:
    (mine / "course.txt").write_text("memory: of it\n  good: other\n  other: good\n")
    for path, text in (("memory/good", GOOD), ("memory/other", GOOD), ("basics/good", GOOD), ("basics/bad", "x = ")):
        (mine / path).parent.mkdir(exist_ok=True)
        (mine / f"{path}.py").write_text(text)
    (mine / "good.py").rename(mine / "last.py")
    name = str(mine / "memory" / name) if name.endswith(".py") else name
    every = catalog.find(catalog.load([mine]), name)
    if not is_read:
        Path(catalog.cache_path()).unlink()

    found = catalog.find_whole(heads(mine), name, [mine])

    assert found == every


def test_a_list_says_why_a_file_cannot_be_used_each_time(mine: Path) -> None:
    (mine / "good.py").write_text(GOOD.replace("lr: float = 1", "lr: float = one"))

    first, second = heads(mine), heads(mine)

    assert first == second == catalog.load([mine])
    assert first[0].error == "line 23: lr: one is not a literal number, truth value or text"


@pytest.mark.parametrize("text", [GOOD, *LESSONS])
def test_the_head_of_a_lesson_is_that_of_all_of_it(mine: Path, text: str) -> None:
    (mine / "good.py").write_text(text)

    assert title.read(str(mine / "good.py")) in (None, head_of(source.read(mine / "good.py")))


@given(st.sampled_from([GOOD, *LESSONS]), st.integers(0), st.integers(0, 30), st.sampled_from(ODD))
def test_a_file_that_needs_no_tree_can_be_used(
    tmp_path_factory: pytest.TempPathFactory, text: str, seed: int, gone: int, odd: str
) -> None:
    chance = random.Random(seed)
    run = text.index("\ndef run(") + 1
    near = chance.choice([0, text.index('"""', 3), run, text.index("\n", run), len(text)])
    at = max(chance.choice([near, near + chance.randrange(-60, 200), chance.randrange(len(text))]), 0)
    path = tmp_path_factory.getbasetemp() / "changed.py"
    path.write_bytes((text[:at] + odd + text[at + gone :]).encode("utf-8", "surrogatepass"))

    head, whole = title.read(str(path)), source.read(path)

    assert head is None or (head == head_of(whole) and not whole.error)


@pytest.mark.parametrize("text", [SYNTAX, GOOD, *LESSONS])
def test_a_walk_finds_what_that_of_python_does_in_its_order(text: str) -> None:
    tree = ast.parse(text)

    found = [node for node in nodes.nodes(tree) if isinstance(node, ast.AST)]

    signs = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
    assert found == [node for node in ast.walk(tree) if not isinstance(node, signs)]


_PARAMS = (
    "x: int = 1",
    "x: str = '#'",
    "x: Literal['#', 'é'] = 'é'",
    "x: int = (1 # in\n)",
    "x=f(\n'#')",
    'x: str = """\n#"""',
)
_BEHIND = (",", " ,", ", # label\n", ",\n", ', # "\n', ",\\\n", ",\n# of its own\n")
_ENDS = ("): pass", "): # of run\n pass", "): x = '#'  # y", "\n) -> '#': # z\n pass", "): '''#\n'''  # z", "  # last\n): pass")


@given(st.lists(st.tuples(st.sampled_from(_PARAMS), st.sampled_from(_BEHIND)), min_size=1, max_size=5), st.sampled_from(_ENDS))
def test_comments_behind_parameters_are_those_that_python_finds(parts: list[tuple[str, str]], end: str) -> None:
    params = "".join(f"{param.replace('x', f'x{at}', 1)}{behind}" for at, (param, behind) in enumerate(parts))
    text = f"\n\ndef run(lab, {params}{end}\n"
    run = ast.parse(text).body[0]
    assert isinstance(run, ast.FunctionDef)

    found = comments.behind(text, run, run.args.defaults)

    every = comments.tokenized(text, run)
    assert [found.get(node.end_lineno, "") for node in run.args.defaults] == [
        every.get(node.end_lineno, "") for node in run.args.defaults
    ]


_FIRST = ("T", " T", "T  ", "", "\tT", "T\t.")
_BELOW = ("", "\n", "\n\nA\n  B\n\n", "\n  A\n  B\n ", "\n\tA\nB", "\n \nA  \n\n \n", "\n\x0cA\n", "\n\n")


@pytest.mark.parametrize(("first", "below"), [*product(_FIRST, _BELOW)])
def test_a_lesson_is_what_python_takes_for_the_docstring(first: str, below: str) -> None:
    tree = ast.parse(f'"""{first}{below}"""')

    assert source.docstring_of(tree) == (ast.get_docstring(tree) or "")
