"""A sweep as plain text: each claim with a line a point, and from where on it holds."""

from collections.abc import Sequence

from tuilab.drawings.glyphs import Style
from tuilab.reports.sweeps.panels import chart
from tuilab.reports.sweeps.swept import Along, Swept
from tuilab.text.display import show
from tuilab.text.wrapping import cell_width, wrap, wrap_indented

_LEAST = 24  # cells beside a verdict


def render(found: Swept, style: Style, width: int, *, has_chart: bool) -> str:
    """Return what a terminal shows of it."""
    parts = [_heading(found, style, width)]
    parts += (
        ["\n".join(line for words in found.doubts for line in wrap(words, width))]
        if found.doubts
        else []
    )
    parts += ["\n".join(_claim(claim, style, width)) for claim in found.claims]
    panels = [claim.panel for claim in found.claims if claim.panel] + [*found.curves]
    parts += [
        drawn
        for panel in panels
        if has_chart and (drawn := chart(panel, width, is_utf8=style.is_utf8))
    ]
    if found.numbers:
        parts.append("\n".join(table(found.numbers, width)))
    if found.missing:
        parts.append(
            "\n".join(
                [
                    "without a result:",
                    *(
                        line
                        for words in found.missing
                        for line in wrap_indented(f"  {words}", width)
                    ),
                ]
            )
        )
    return "\n\n".join(
        [*parts, *(["\n".join(map(style.dim, wrap(found.note, width)))] if found.note else [])]
    )


def _heading(found: Swept, style: Style, width: int) -> str:
    lines = wrap(f"{found.id}  {show(found.name)}: {'; '.join(found.settings)}", width, hang="  ")
    fits = len(lines) == 1 and cell_width(lines[0]) + 2 + cell_width(found.counts) <= width
    between = "  " if fits else "\n  "
    return (
        style.bold(found.id)
        + "\n".join(lines).removeprefix(found.id)
        + between
        + style.dim(found.counts)
    )


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines whose cells stand beneath each other."""
    widths = _widths(rows)
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table that fits, without the columns that matter least: what is told at most length, but for its edges.

    What stands behind a semicolon goes before any of them. Where not even three have room beside each other, they stand one
    below the other.
    """
    left_out = []
    if len(rows[0]) > 3 and sum(_widths(rows)) + 2 * len(rows[0]) - 2 > width:
        rows = [[row[0], *(cell.partition("; ")[0] for cell in row[1:])] for row in rows]
    while len(rows[0]) > 3 and sum(_widths(rows)) + 2 * len(rows[0]) - 2 > width:
        widths = _widths(rows)
        widest = max(range(1, len(widths) - 1), key=lambda at: widths[at])
        left_out.append(rows[0][widest].strip())
        rows = [[*row[:widest], *row[widest + 1 :]] for row in rows]
    them = "it" if len(left_out) == 1 else "them"
    note = (
        wrap(f"left out for the width: {', '.join(left_out)}; a report has {them}", width)
        if left_out
        else []
    )
    if max(map(cell_width, lines := columns(rows))) <= width:
        return [*lines, *note]
    names, *rest = rows
    stacked = [
        [row[0], *(f"  {name}  {cell}" for name, cell in zip(names[1:], row[1:], strict=True))]
        for row in rest
    ]
    return [
        part for block in stacked for line in block for part in wrap_indented(line, width)
    ] + note


def _claim(claim: Along, style: Style, width: int) -> list[str]:
    """Return a claim with a line a point; one that holds throughout, and was counted alike, in short."""
    heading = wrap(show(claim.text), width - 2) or [""]
    holds = [
        style.bold(line) for words in claim.holds for line in wrap_indented(f"  {words}", width)
    ]
    about = (
        [style.dim(line) for line in wrap_indented(f"  {claim.about}", width)]
        if claim.about
        else []
    )
    is_alike = len({one.found for one in claim.told}) == 1
    if (
        len(claim.told) > 1
        and is_alike
        and all(one.holds and not one.row.interval for one in claim.told)
    ):
        return [
            f"{style.mark(claim.told[0].claim.outcome)} {heading[0]}",
            *(f"  {line}" for line in heading[1:]),
            *about,
            *holds,
        ]
    heads = columns([(one.words, one.claim.outcome) for one in claim.told])
    pad = max(map(cell_width, heads))
    rows = [
        _row(head.ljust(pad), show(one.found, 200), width - 4)
        for one, head in zip(claim.told, heads, strict=True)
    ]
    marked = [
        line
        for one, (first, *rest) in zip(claim.told, rows, strict=True)
        for line in (
            f"  {style.mark(one.claim.outcome)} {first}",
            *(f"    {line}" for line in rest),
        )
    ]
    return [*heading, *about, *marked, *holds]


def _row(head: str, found: str, width: int) -> list[str]:
    """Return what was found at a point beside its verdict; below, where that leaves it too little room."""
    room = width - cell_width(head) - 2
    if room < min(_LEAST, cell_width(found)):
        return [
            *wrap(head.rstrip(), width),
            *(f"  {line}" for line in wrap(found, max(width - 2, _LEAST))),
        ]
    first, *rest = wrap(found, max(room, 1)) or [""]
    return [f"{head}  {first}".rstrip(), *(" " * (cell_width(head) + 2) + line for line in rest)]
