"""Make the records of what a scenario shows.

Bars, tables, lanes, texts, images, artifacts, progress. A lane is a row of spans of time in a
picture. Each record must be small enough to be understood at a glance; an error (TypeError or
ValueError) says how much is possible.
"""

import base64
import hashlib
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from tuilab.lab.arguments import (
    LEAST,
    bare_number,
    checked,
    describe_value,
    number,
    whole,
    words,
)
from tuilab.record.events import (
    SPAN_LIMIT,
    ArtifactSaved,
    AxesNamed,
    BarsShown,
    Cell,
    ImageShown,
    Progressed,
    SpanShown,
    TableShown,
    TextShown,
)
from tuilab.text.words import format_number as in_words

Axis = Literal["", "x", "y", "xy"]

_MOST_BARS = 40  # in a chart
_MOST_ROWS = 40  # in a table
_MOST_COLUMNS = 8  # in a table
_MOST_LANES = 32  # in a picture
_NAME_LIMIT = 100  # characters
_CELL_LIMIT = 400  # characters
_UNIT_LIMIT = 20  # characters
_TEXT_LIMIT = 8_000  # characters
_PERIOD_S = 0.1  # between two records of progress
_IMAGE_CELLS = 128  # in a row, and in a column


def axes_named(metric: str, x: str, y: str, log: Axis | None) -> AxesNamed:
    """Return the record of the names of the axes of a chart.

    Raises TypeError or ValueError for wrong arguments.
    """
    is_known = log is None or (isinstance(log, str) and log in ("", "x", "y", "xy"))
    if not is_known:
        raise ValueError(f"log takes x, y, xy or an empty text, not {describe_value(log)}")
    x = words("x", x, _NAME_LIMIT)
    y = words("y", y, _NAME_LIMIT)
    return checked(AxesNamed(metric=words("metric", metric), x=x, y=y, log=log))


def bars_shown(title: str, values: Mapping[str, Any], unit: str) -> BarsShown:
    """Return the record of named values as bars.

    Raises TypeError or ValueError for wrong values, or for too many of them.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"values takes a dict of names and numbers, not {describe_value(values)}")
    _refuse_many("values", len(values), _MOST_BARS, "bars")
    names = [words("a name in values", name, _NAME_LIMIT) for name in values]
    bars = []
    for name, value in zip(names, values.values(), strict=True):
        bars.append(number(f"values[{name!r}]", value))
    unit = words("unit", unit, _UNIT_LIMIT)
    title = words("title", title, _NAME_LIMIT)
    return checked(BarsShown(title=title, names=names, values=bars, unit=unit))


def table_shown(title: str, rows: Sequence[Sequence[Any]], head: Sequence[str]) -> TableShown:
    """Return the record of a table; all rows have the length of the head, if there is one.

    Raises TypeError or ValueError for wrong values, or for too many of them.
    """
    if not _is_row(rows) or not all(_is_row(row) for row in rows):
        raise TypeError(
            "rows takes a list of rows, each a list of texts and numbers, not"
            f" {describe_value(rows)}"
        )
    _refuse_many("rows", len(rows), _MOST_ROWS, "rows")
    if not _is_row(head):
        raise TypeError(f"head takes a list of texts, not {describe_value(head)}")
    widths = {len(row) for row in rows}
    if head:
        widths.add(len(head))
    if len(widths) > 1:
        lengths = " and ".join(str(width) for width in sorted(widths))
        raise ValueError(
            f"rows takes rows as long as each other and as head, not rows of {lengths}"
        )
    argument = "rows" if rows else "head"
    _refuse_many(argument, max(widths, default=0), _MOST_COLUMNS, "columns")
    heads = [words("head", name, _NAME_LIMIT) for name in head]
    rows_of_cells = []
    for row in rows:
        rows_of_cells.append([_cell(value) for value in row])
    title = words("title", title, _NAME_LIMIT)
    return checked(TableShown(title=title, rows=rows_of_cells, head=heads))


class LaneRecorder:
    """Makes the records of spans, and limits the spans and lanes of each picture."""

    def __init__(self) -> None:
        self._spans: Counter[str] = Counter()  # by arm
        self._lanes: dict[str, dict[str, None]] = {}

    def span_shown(
        self, lane: str, began: Any, ended: Any, name: str, arm: str, unit: str
    ) -> SpanShown:
        """Return the record of a span, and count it.

        Raises TypeError or ValueError for wrong arguments, or if the picture of `arm` is full.
        """
        lane = words("lane", lane, _NAME_LIMIT)
        name = words("name", name, _NAME_LIMIT)
        start = _finite("began", began)
        end = _finite("ended", ended)
        if end < start:
            raise ValueError(
                f"ended takes a number of at least began, which is {describe_value(start)}, not"
                f" {describe_value(end)}"
            )
        unit = words("unit", unit, _UNIT_LIMIT)
        record = checked(
            SpanShown(lane=lane, began=start, ended=end, name=name, arm=arm, unit=unit)
        )
        self._count(arm, lane)
        return record

    def _count(self, arm: str, lane: str) -> None:
        """Count a span; raise ValueError if its picture has too many spans or lanes."""
        lanes = self._lanes.setdefault(arm, {})
        if lane not in lanes and len(lanes) >= _MOST_LANES:
            raise ValueError(
                f"a picture has at most {_MOST_LANES} lanes; show fewer lanes, or give some of them"
                " another arm"
            )
        if self._spans[arm] >= SPAN_LIMIT:
            raise ValueError(
                f"a picture has at most {SPAN_LIMIT} spans; show fewer spans, or give some of them"
                " another arm"
            )
        lanes[lane] = None
        self._spans[arm] += 1


def _refuse_many(name: str, count: int, most: int, noun: str) -> None:
    """Raise ValueError if there are more of something than a picture can show."""
    if count > most:
        raise ValueError(
            f"{name} takes at most {most} {noun}, not {count}; show the most important {noun}, and"
            " keep all with lab.artifact"
        )


def _is_row(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _cell(value: Any) -> Cell:
    """Return a cell of a table: a text or a number; True as yes, and NaN and Inf as words."""
    if isinstance(value, str):
        return words("a cell of rows", value, _CELL_LIMIT)
    bare = bare_number(value)
    if isinstance(bare, bool):
        return "yes" if bare else "no"
    if isinstance(bare, int):
        return whole("a cell of rows", bare, LEAST)
    checked_number = number("a cell of rows", bare)
    if not math.isfinite(checked_number):
        return in_words(checked_number)
    return checked_number


def _finite(name: str, value: Any) -> float:
    checked_number = number(name, value)
    if not math.isfinite(checked_number):
        raise ValueError(f"{name} takes a finite number, not {describe_value(value)}")
    return checked_number


def text_shown(text: str, title: str) -> TextShown:
    """Return the record of a text; a long one is cut, and says how much is missing."""
    text = words("text", text)
    if len(text) > _TEXT_LIMIT:
        text = text[:_TEXT_LIMIT] + f"\n… {len(text) - _TEXT_LIMIT} characters more"
    return TextShown(text=text, title=title)


class ProgressRecorder:
    """Makes the records of progress, not too often."""

    def __init__(self) -> None:
        self._written = 0.0

    def due(self, done: int, total: int, unit: str) -> Progressed | None:
        """Return the record of progress if it is time for one or all is done, else None."""
        done = whole("done", done)
        total = whole("total", total)
        unit = words("unit", unit)
        now_s = time.monotonic()
        if now_s - self._written < _PERIOD_S and done < total:
            return None
        self._written = now_s
        return Progressed(done=done, total=total, unit=unit)


def image_shown(title: str, cells: Any, arm: str, step: int) -> ImageShown:
    """Return the record of an array as a picture, with one byte for each cell.

    A byte is 0 to 254 from the lowest to the highest finite value, and 255 if the value is not
    finite. Of a large array, every n-th cell counts.
    """
    array = _array(cells)
    stride = [math.ceil(size / _IMAGE_CELLS) or 1 for size in array.shape]
    array = array[:: stride[0], :: stride[1]]
    finite = array[array.isfinite()]
    low = 0.0
    high = 0.0
    if finite.numel():
        low = finite.min().item()
        high = finite.max().item()
    unit = 2.0 if high - low == math.inf else 1.0  # keeps the difference finite
    span = high / unit - low / unit
    if span > 0:
        scaled = (array / unit - low / unit) / span * 254
    else:
        scaled = array * 0
    levels = torch.where(array.isfinite(), scaled, 255).to(torch.uint8)
    return ImageShown(
        title=title,
        rows=levels.shape[0],
        cols=levels.shape[1],
        cells=base64.b64encode(bytes(levels.flatten().tolist())).decode(),
        low=low,
        high=high,
        arm=arm,
        step=step,
    )


def _array(cells: Any) -> torch.Tensor:
    """Return the cells as numbers in rows and columns; raise TypeError or ValueError otherwise."""
    try:
        array = torch.as_tensor(cells).detach()
        if array.is_complex():
            raise TypeError("they are complex")
        array = array.to("cpu", torch.float64)
    except Exception as problem:
        raise TypeError(
            f"cells takes rows of numbers, not {describe_value(cells)}: {problem}"
        ) from problem
    if array.ndim != 2 or array.layout is not torch.strided:
        raise ValueError(f"cells takes an image of 2 dimensions, not of {array.ndim}")
    return array


def keep(folder: Path, name: str, data: bytes | str) -> tuple[Path, ArtifactSaved]:
    """Write a new file into a folder; return its path and its record.

    Raises ValueError if the name is not plain or exists, TypeError for other data, OSError if the
    file cannot be written: a part of it may then be there.
    """
    name = words("name", name)
    is_plain_name = bool(name) and name == Path(name).name and not name.startswith(".")
    if not is_plain_name or "\0" in name or len(os.fsencode(name)) > 255:
        raise ValueError(f"name takes a plain file name, not {describe_value(name)}")
    content = _content(data)
    digest = hashlib.sha256(content).hexdigest()
    record = checked(ArtifactSaved(name=name, bytes_total=len(content), sha256=digest))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(folder / name, flags, 0o600)
    except FileExistsError as problem:
        raise ValueError(
            f"the artifact {describe_value(name)} exists already; choose another name"
        ) from problem
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return folder / name, record


def _content(data: bytes | str) -> bytes:
    """Return the bytes of an artifact; raise TypeError or ValueError if it has none."""
    if not isinstance(data, str | bytes | bytearray):
        raise TypeError(f"data takes bytes or a text, not {describe_value(data)}")
    try:
        return data.encode() if isinstance(data, str) else bytes(data)
    except UnicodeEncodeError as problem:
        raise ValueError(f"data takes a text that can be written as UTF-8: {problem}") from problem
