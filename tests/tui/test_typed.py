"""What is typed becomes keys; what a terminal says by itself, or what was cut off, does not."""

import random

import pytest
from textual.events import Key, Paste
from textual.message import Message

from tuilab.tui.terminal.keyboard import Typed


def keys_of(*parts: str, silence_s: float = 0.0) -> list[str]:
    """Return the keys (and 'paste ...') that these parts mean, followed by some silence."""
    now = 0.0
    typed = Typed(lambda: now)
    found: list[Message] = []
    for part in parts:
        found += typed.feed(part)
    now = silence_s
    found += typed.tick()
    return [
        event.key if isinstance(event, Key) else f"paste {event.text}"
        for event in found
        if isinstance(event, Key | Paste)
    ]


@pytest.mark.parametrize(
    "parts, keys",
    [
        (["abc"], ["a", "b", "c"]),
        (["é日"], ["é", "日"]),
        (["\r\t\x7f"], ["enter", "tab", "backspace"]),
        (["h\n\n", "\x1b[106;5u"], ["h", "enter", "enter", "enter"]),
        (["\x1b"], ["escape"]),
        (["\x1b\x1b\x1b"], ["escape"] * 3),
        (["\x1b[27u\x1b[97u"], ["escape", "a"]),
        (["\x1b[A", "\x1b", "[1;5C", "\x1bO", "P", "\x1b[[A"], ["up", "ctrl+right", "f1", "f1"]),
        (["\x1bx"], ["alt+x"]),
        (["\x1b]"], ["right_square_bracket"]),
        (["\x1b[23$"], ["f23"]),
    ],
)
def test_keys_are_keys_however_their_sequences_are_cut(parts: list[str], keys: list[str]) -> None:
    assert keys_of(*parts, silence_s=2.0) == keys
    assert keys_of(*"".join(parts), silence_s=2.0) == keys


@pytest.mark.parametrize("part", ["\x1b", "\x1b[", "\x1b]11;", "\x1b[200~pasted"])
def test_it_says_whether_silence_is_to_be_waited_for(part: str) -> None:
    now = [0.0]
    typed = Typed(lambda: now[0])
    assert not typed.is_begun
    list(typed.feed("a" + part))
    assert typed.is_begun
    now[0] = 2.0
    list(typed.tick())
    assert not typed.is_begun


@pytest.mark.parametrize(
    "said",
    [
        "\x1b]11;rgb:ffff/qqqq/ssss\x07",
        "\x1b]11;rgb:ffff/qqqq/ssss\x1b\\",
        "\x1bP1+r73;q\x1b\\",
        "\x1b_Gq;s\x1b\\",
        "\x1b[?64;1;2;4c",
        "\x1b[>1;10;0c",
        "\x1b[24;80R",
        "\x1b[48;65000;65000;1;1t",
        "\x1b[48;0;0;1;1t\x1b[<35;1;1M",
        "\x1b[97;1:3;97u",
        "\x1b[1114112u",
        "\x1b[99999999999E",
        "\x1b[M ab",
        "\x1b[200~\x1b[201~",
    ],
)
def test_what_nobody_typed_is_no_key(said: str) -> None:
    assert keys_of(f"a{said}b", silence_s=2.0) == ["a", "b"]
    assert keys_of("a", *said, "b", silence_s=2.0) == ["a", "b"]


def test_a_paste_is_one_text_whatever_is_in_it() -> None:
    text = "q s\x1bs" + "s" * 40 + "\x1b[A\r\n"

    assert keys_of(f"a\x1b[200~{text}\x1b[201~b") == [
        "a",
        "paste q s\ufffds" + "s" * 40 + "\ufffd[A\n\n",
        "b",
    ]
    assert keys_of("a\x1b[20", "0~x\x1b[2", "01~b") == ["a", "paste x", "b"]


def test_a_line_that_is_pasted_is_no_enter() -> None:
    assert keys_of("\x1b[200~a\nb\rc\x1b[201~\n") == ["paste a\nb\nc", "enter"]


def test_a_paste_whose_end_is_lost_ends_with_a_silence() -> None:
    now = 0.0
    typed = Typed(lambda: now)
    begun = list(typed.feed("\x1b[200~x"))
    now = 2.0
    ended = list(typed.tick())

    assert begun == []
    assert [event.text for event in ended if isinstance(event, Paste)] == ["x"]
    assert [event.key for event in typed.feed("q") if isinstance(event, Key)] == ["q"]


def test_a_string_whose_end_is_lost_ends_with_a_silence() -> None:
    now = 0.0
    typed = Typed(lambda: now)
    list(typed.feed("\x1b]11;rgb"))
    now = 2.0

    assert list(typed.tick()) == []
    assert [event.key for event in typed.feed("q") if isinstance(event, Key)] == ["q"]


def test_a_huge_paste_is_cut() -> None:
    typed = Typed()
    list(typed.feed("\x1b[200~"))
    found = [event for _ in range(1000) for event in typed.feed("\x1b[x" * 1024)] + [
        *typed.feed("\x1b[201~")
    ]

    assert [len(event.text) for event in found if isinstance(event, Paste)] == [100_000]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_that_is_typed_raises(seed: int) -> None:
    chance = random.Random(seed)
    typed = Typed()
    for _ in range(2000):
        kind = chance.randrange(4)
        digits = "".join(chance.choices("0123456789;:", k=chance.randrange(20)))
        text = [
            f"\x1b[{chance.choice(['', '<', '?', '>'])}{digits}{chance.choice('uABCMmRStIO~$yxZ')}",
            "\x1b" * chance.randrange(4),
            chance.choice(["\x1b]", "\x1bP", "\x07", "\x1b\\", "\x1b[200~", "\x1b[201~", "\x1b[M"]),
            "".join(chr(chance.randrange(400)) for _ in range(chance.randrange(10))),
        ][kind]
        list(typed.feed(text))
        list(typed.tick())
