"""A comparison of runs as text and as a JSON document: what differs first, then what came of it, then the curves."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import msgspec

from tuilab.drawings.glyphs import Style
from tuilab.drawings.text_chart import line_chart
from tuilab.record.encoding import spell_out
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series
from tuilab.record.states import RUNNING_STATES
from tuilab.record.summary import RunSummary
from tuilab.record.told import for_how_long
from tuilab.record.verdicts import NOT_DECIDED, NOT_JUDGED
from tuilab.reports.boxes import claims_on_boxes
from tuilab.reports.plain import dim_key, first_repeat, keyed
from tuilab.reports.step_times import about_one_process, rows_of_commands
from tuilab.reports.subject import Subject
from tuilab.runs import store
from tuilab.runs.comparing import comparison
from tuilab.runs.comparing.claim_pairs import ClaimPair, Shift, Side
from tuilab.runs.comparing.comparison import Comparison, claim_groups, key_words, no_claims, time_rows, verdict_words
from tuilab.runs.comparing.differences import Difference, box_of
from tuilab.runs.run_name import RunName
from tuilab.text import brief, plural, shorten, show
from tuilab.words import seconds, spell_of
from tuilab.wrapping import wrap

_CURVES = 4
_LINES = 6  # of one chart
_ROWS = 60  # of differences
_PARTS = ("parameter", "source", "run", "environment", "conditions")


def going_on(looks: Sequence[Subject]) -> set[int]:
    """Return the places of the runs that have not said all yet."""
    return {at for at, look in enumerate(looks) if look.state in RUNNING_STATES}


def source_changes(looks: Sequence[Subject]) -> list[str]:
    """Return how the source of the last run differs from that of the first, where both are of one scenario and kept it."""
    is_one = len({look.summary.run.scenario if look.summary.run else "" for look in looks}) == 1
    first, last = looks[0].source, looks[-1].source
    return comparison.source_changes(first, last) if is_one and first and last else []


def in_order(differences: Sequence[Difference]) -> list[Difference]:
    """Return what differs, what was asked first, how busy the box was last."""
    return sorted(differences, key=lambda row: _PARTS.index(row.part) if row.part in _PARTS else len(_PARTS))


def shared_names(looks: Sequence[Subject], found: Comparison) -> list[str]:
    """Return the names of the curves that more than one run has."""
    having = [{name for name, _, _ in look.summary.series} for look in looks]
    return [name for name in found.series if sum(name in names for names in having) > 1]


def overlaid(summaries: Sequence[RunSummary], name: str) -> list[Series]:
    """Return the curves of a name, the first repeat of each arm of each run, called by the number of the run and the arm."""
    by_arm: dict[str, list[Series]] = {}
    for at, summary in enumerate(summaries, 1):
        for line in first_repeat(summary, name):
            by_arm.setdefault(line.arm, []).append(replace(line, arm=f"{at} {line.arm}".strip()))
    return [line for arm in by_arm.values() for line in arm]


def axes_of(summaries: Sequence[RunSummary], name: str) -> AxesNamed:
    """Return the axes of a metric as the newest of the runs that say so has them: its name may be new, its meaning is not."""
    return next((one.axes[name] for one in reversed(summaries) if name in one.axes), AxesNamed(metric=name))


# ---- text


def render(looks: Sequence[Subject], found: Comparison, style: Style, width: int, *, has_chart: bool) -> str:
    """Return a comparison as text for people."""
    parts = [_runs(looks, found, style), _differences(found, source_changes(looks), style, width)]
    parts += [claims_on_boxes(found, style, width), _claims(found, style, width), _numbers(found, style)]
    parts.append(_commands(looks, found, style, width))
    if has_chart:
        parts += _curves(looks, found, style, min(width, 100))
    return "\n\n".join(part for part in parts if part)


def render_boxes(found: Comparison, style: Style, width: int) -> str:
    """Return which claims hold on which box, and in what the boxes differ."""
    table = claims_on_boxes(found, style, width) or style.dim(no_claims(found))
    return "\n".join([style.bold(show(found.names[0])), table, _differences(found, [], style, width)])


def width_here() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def _runs(looks: Sequence[Subject], found: Comparison, style: Style) -> str:
    lines = [style.bold("compare ") + " and ".join(map(show, dict.fromkeys(found.names)))]
    for at, look in enumerate(looks, 1):
        run, name = look.summary.run, RunName(look.run_dir.name)
        where = f" on {show(box_of(look.summary), 40)}" if run else ""
        when = show(name.text, 40) if name.started_s is None else name.started
        end = f"{look.state} {for_how_long(f'{look.summary.elapsed_s:.1f} s', look.state)}"
        lines.append(f"  {at}  {show(name.id, 20)}  {when}{where}  {end}".rstrip())
    if len(set(found.names)) > 1:
        lines.append(style.paint("  These are different scenarios, so most claims, times and curves cannot be compared.", 33))
    return "\n".join(lines)


def _differences(found: Comparison, changes: Sequence[str], style: Style, width: int) -> str:
    rows = in_order(found.differences)
    pad = min(max((len(f"{row.part} {row.name}") for row in rows), default=0), 40)
    lines = [style.bold("What differs")]
    for row in rows[:_ROWS]:
        lines += _row(show(f"{row.part} {row.name}", 60).ljust(pad), [show(value, 120) for value in row.values], width)
        if row.part == "source":
            lines += [style.paint(f"      {show(line, 160)}", _CHANGED.get(line[:1], 2)) for line in changes]
    lines += [f"  … and {len(rows) - _ROWS} more"] if len(rows) > _ROWS else []
    return "\n".join([*lines, style.dim(f"  {plural(found.same, 'fact')} (parameters, source, environment) are the same")])


_CHANGED = {"+": 32, "-": 31}


def _row(name: str, values: Sequence[str], width: int) -> list[str]:
    """Return values side by side where there is room, else one below the other."""
    line = f"  {name}  {'  |  '.join(values)}"
    if len(line) <= width:
        return [line.rstrip()]
    below = [wrap(f"{at}  {value}", max(width - 6, 30), hang="   ") for at, value in enumerate(values, 1)]
    return [f"  {name}".rstrip(), *(f"      {part}" for parts in below for part in parts)]


def _claims(found: Comparison, style: Style, width: int) -> str:
    if not found.claims:
        return style.dim(no_claims(found))
    blocks = []
    for title, pairs in claim_groups(found).items():
        lines = [line for pair in pairs for line in _claim(pair, style, width)]
        blocks.append("\n".join([style.bold(f"{title}: {plural(len(pairs), 'claim')}"), *lines]))
    return "\n\n".join(blocks)


def _claim(pair: ClaimPair, style: Style, width: int) -> list[str]:
    marks = "".join(style.mark(side.verdict) if side else style.dim("–" if style.is_utf8 else "-") for side in pair.sides)
    indent = " " * (len(pair.sides) + 4)
    key = pair.key if verdict_words(pair) else ""
    first, *rest = wrap(keyed(key, pair.text), max(width - len(indent), 30)) or [""]
    lines = [f"  {marks}  {dim_key(key, first, style)}", *(indent + line for line in rest)]
    told = [side_words(side) for side in pair.sides]
    rows = [f"all  {told[0]}"] if len(set(told)) == 1 else [f"{at}  {words}" for at, words in enumerate(told, 1)]
    lines += [indent + line for row in rows for line in wrap(row, max(width - len(indent), 30))]
    words = [told for told in (verdict_words(pair), key_words(pair)) if told]
    words += [shift_words(at, shift) for at, shift in enumerate(pair.shifts, 2) if shift is not None]
    return [*lines, *([indent + style.paint("; ".join(words), 33)] if words else [])]


def side_words(side: Side | None) -> str:
    """Return what one run says of a claim."""
    return "  ".join(filter(None, side_found(side))) if side is not None else "not claimed"


def side_found(side: Side) -> tuple[str, str]:
    """Return the verdict of one run, and what it measured."""
    verdict = show(side.verdict or (NOT_DECIDED if side.is_open else NOT_JUDGED), 40)
    return verdict, side.ratio_words or show(side.measured or side.why, 300)


def shift_words(at: int, shift: Shift) -> str:
    """Return by how much a later run's estimate is another than the first one's."""
    return f"run {at} / run 1: x{brief(shift.ratio)} [{brief(shift.low)}, {brief(shift.high)}]{shift.lone_words}"


def _numbers(found: Comparison, style: Style) -> str:
    blocks = []
    if found.times:
        rows = [measured_cells(row.label, row.values, seconds, found.lacks, row.shifts) for row in time_rows(found)]
        blocks.append("\n".join([style.bold(f"Median time of a {found.of}"), *_aligned(rows)]))
    if found.sizes:
        rows = [measured_cells(name, values, spell_of(name), found.lacks) for name, values in differing(found.sizes)]
        same = len(found.sizes) - len(rows)
        told = [style.dim(f"  {plural(same, 'value')} are the same")] if same else []
        blocks.append("\n".join([style.bold("Measured with lab.memory"), *_aligned(rows), *told]))
    return "\n\n".join(blocks)


def _commands(looks: Sequence[Subject], found: Comparison, style: Style, width: int) -> str:
    """Return what watched commands cost beside each other, and what that can say."""
    cells = command_cells(looks, found)
    if not cells:
        return ""
    note = [style.dim(f"  {line}") for line in wrap(about_one_process(looks), max(width - 2, 30))]
    return "\n".join([style.bold("Measured in one process each"), *_aligned(cells), *note])


def command_cells(looks: Sequence[Subject], found: Comparison) -> list[list[str]]:
    """Return the rows of watched commands: each number, with its ratio to that of the first run."""
    rows = rows_of_commands(looks)
    return [measured_cells(show(row.name, 60), row.values, row.spell, found.lacks, row.shifts) for row in rows]


def differing(table: Sequence[tuple[str, tuple[float | None, ...]]]) -> list[tuple[str, tuple[float | None, ...]]]:
    """Return the rows whose values are not the same in all runs."""
    return [(name, values) for name, values in table if len(set(values)) > 1]


def measured_cells(
    name: str,
    values: Sequence[float | None],
    spell: Callable[[float], str],
    lacks: Sequence[str],
    shifts: Sequence[Shift | None] = (),
) -> list[str]:
    """Return a row: the name, the first run's value, and the others' with their ratio to it, and its interval if it has one."""
    first = values[0]
    cells = [lack if value is None else spell(value) for value, lack in zip(values, lacks, strict=True)]
    ratios = [f" x{brief(value / first)}" if at and value is not None and first else "" for at, value in enumerate(values)]
    ends = ["", *(f" [{brief(shift.low)}, {brief(shift.high)}]" if shift else "" for shift in shifts)]
    return [shorten(name, 60), *(f"{cell}{ratio}{end}" for cell, ratio, end in zip_longest(cells, ratios, ends, fillvalue=""))]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _curves(looks: Sequence[Subject], found: Comparison, style: Style, width: int) -> list[str]:
    """Return a chart of each of the first curves that more than one run has."""
    names = shared_names(looks, found)
    charts = [_curve(looks, name, style, width) for name in names[:_CURVES]]
    more = [style.dim(f"… and {plural(len(names) - _CURVES, 'curve')} more")] if len(names) > _CURVES else []
    return [chart for chart in charts if chart] + more


def _curve(looks: Sequence[Subject], name: str, style: Style, width: int) -> str:
    lines = overlaid([look.summary for look in looks], name)
    axes = axes_of([look.summary for look in looks], name)
    chart = line_chart(lines[:_LINES], width, 14, whole=lines, axes=axes, is_utf8=style.is_utf8)
    left_out = style.dim(f"{_LINES} of {len(lines)} lines") if len(lines) > _LINES else ""
    return "\n".join(part for part in (chart, left_out) if part)


# ---- JSON


def fields(looks: Sequence[Subject], found: Comparison) -> dict[str, Any]:
    """Return a comparison for a JSON document; non-finite numbers are spelled as strings."""
    claims = [
        {
            "key": pair.key or None,
            "former_keys": pair.former_keys,
            "text": pair.text,
            "differs": verdict_words(pair),
            "sides": [side and side_fields(side) for side in pair.sides],
            "shifts": pair.shifts,
        }
        for pair in found.claims
    ]
    told: dict[str, Any] = msgspec.to_builtins(
        {
            "scenarios": found.names,
            "runs": [_run(look) for look in looks],
            "differences": found.differences,
            "same": found.same,
            "source_changes": source_changes(looks),
            "claims": claims,
            "times_s": dict(found.times),
            "time_shifts": found.shifts,
            "cpu_times_s": dict(found.cpu_times),
            "cpu_time_shifts": found.cpu_shifts,
            "judged_on_cpu": sorted(found.judged_on_cpu),
            "memory": dict(found.sizes),
            "commands": [{"name": row.name, "values": row.values, "shifts": row.shifts} for row in rows_of_commands(looks)],
            "curves": [_curve_fields(looks, name) for name in shared_names(looks, found)],
            "regressions": comparison.regressions(found),
        }
    )
    spelled: dict[str, Any] = spell_out(told)
    return spelled


def side_fields(side: Side) -> dict[str, Any]:
    """Return what one run says of a claim, for a JSON document: null where there is no verdict; the GPU is told in words."""
    told: dict[str, Any] = msgspec.to_builtins(side)
    words, _ = told.pop("gpu"), told.pop("bound")
    return {**told, "verdict": side.verdict or None, "gpu_words": words}


def _run(look: Subject) -> dict[str, Any]:
    run = look.summary.run
    about = {**store.fields(look.run_dir), "state": look.state, "elapsed_s": look.summary.elapsed_s}
    return {**about, "scenario": run.scenario if run else None, "host": run.supervisor.host if run else None}


def _curve_fields(looks: Sequence[Subject], name: str) -> dict[str, Any]:
    lines = [
        {
            "run": look.run_dir.name,
            "arm": line.arm,
            "writer": line.writer,
            "count": line.count,
            "last": line.last,
            "low": line.low,
            "high": line.high,
        }
        for look in looks
        for line in look.summary.series.values()
        if line.name == name
    ]
    return {"name": name, "lines": lines}
