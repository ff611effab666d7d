"""The numbers of a sentence and of its translation: 1.3 is 1,3 in German, and 65,536 is 65.536 or 65 536."""

import re
from functools import lru_cache

_BLANKS = " \u00a0\u2009\u202f"
_EXPONENT = r"(?:e[+-]?\d+)?"
_NUMBER = re.compile(rf"\d{{1,3}}(?:[{_BLANKS}]\d{{3}})+(?:[.,]\d+)?(?!\d){_EXPONENT}|\d+(?:[.,'’]\d+)*{_EXPONENT}")
_POINT = re.compile(rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?{_EXPONENT}")
_COMMA = re.compile(rf"(?:\d{{1,3}}(?:\.\d{{3}})+|\d+)(?:,\d+)?{_EXPONENT}")
_SIGNS = str.maketrans("．٫٬−", "..,-")


@lru_cache(2048)
def others(english: str, translated: str) -> tuple[str, ...]:
    """Return the numbers that only one of the two has, as they are written."""
    ours = {number: _in_english(number) for number in _numbers(english)}
    theirs = {number: _readings(number) for number in _numbers(translated)}
    wanted = frozenset[float]().union(*ours.values())
    found = frozenset[float]().union(*(reading for readings in theirs.values() for reading in readings if reading <= wanted))
    surplus = [number for number, readings in theirs.items() if not any(reading <= wanted for reading in readings)]
    return tuple(sorted({*(number for number, values in ours.items() if not values <= found), *surplus}))


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(text.translate(_SIGNS))


def _in_english(number: str) -> frozenset[float]:
    """Return the value of a number; of what is none, such as 1,2 or 0.2.1, those of its parts."""
    if _POINT.fullmatch(number):
        return frozenset([float(number.replace(",", ""))])
    return frozenset(float(part) for part in re.findall(rf"\d+(?:\.\d+)?{_EXPONENT}", number))


def _readings(number: str) -> list[frozenset[float]]:
    """Return what a number can mean in a language of which nothing is known."""
    joined = re.sub(rf"['’{_BLANKS}]", "", number)
    readings = [_in_english(number), _in_english(joined)]
    if _COMMA.fullmatch(joined):
        readings.append(frozenset([float(joined.replace(".", "").replace(",", "."))]))
    return readings
