"""Which claims hold on which box, and by how much: a claim by row, a box by column. No statistics are made over boxes."""

from tuilab.drawings.glyphs import Style
from tuilab.runs.comparing.claim_pairs import Side
from tuilab.runs.comparing.comparison import Comparison
from tuilab.text import brief, plural, shorten, show
from tuilab.wrapping import cells

_NAME, _MEASURED = 30, 20  # characters
_GAP = 2


def claims_on_boxes(found: Comparison, style: Style, width: int) -> str:
    """Return the table; nothing where all runs were made on one box. Boxes that do not fit beside the others stand below."""
    if not found.boxes or not found.claims:
        return ""
    names = [shorten(pair.key or pair.text, _NAME) for pair in found.claims]
    sides = [[pair.sides[at] for pair in found.claims] for at in range(len(found.boxes))]
    told = [[_words(side) for side in column] for column in sides]
    boxes = [show(box, _NAME) for box in found.boxes]
    label = max(map(cells, names)) + _GAP
    each = max(cells(words) for column in [boxes, *told] for words in column) + len("✓ ") + _GAP
    count = max((width - 2 - label) // each, 1)
    lines = [style.bold(f"{plural(len(names), 'claim')} in {len(boxes)} runs on {len(set(boxes))} machines")]
    for begin in range(0, len(boxes), count):
        some = range(begin, min(begin + count, len(boxes)))
        lines.append(f"  {'':{label}}{''.join(style.bold(_padded(boxes[at], each)) for at in some)}".rstrip())
        for row, name in enumerate(names):
            row_cells = [_cell(sides[at][row], told[at][row], each, style) for at in some]
            lines.append(f"  {_padded(name, label)}{''.join(row_cells)}".rstrip())
    return "\n".join(lines)


def _words(side: Side | None) -> str:
    """Return what a run measured for a claim, in short."""
    if side is None:
        return "not claimed"
    if side.low is not None and side.ratio_words:
        return side.ratio_words
    if side.estimate is not None and not side.measured:
        return brief(side.estimate)
    return shorten(side.measured or side.why or "not decided", _MEASURED)


def _cell(side: Side | None, words: str, width: int, style: Style) -> str:
    mark = style.mark(side.verdict) if side else style.dim("–" if style.is_utf8 else "-")
    return f"{mark} {_padded(words, width - len('✓ '))}"


def _padded(words: str, width: int) -> str:
    return words + " " * (width - cells(words))
