"""The result of a run as text for a terminal or a log."""

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from tuilab.drawings.glyphs import Style
from tuilab.drawings.shade import shade
from tuilab.drawings.symbols import ASCII, BRAILLE
from tuilab.drawings.text_chart import line_chart
from tuilab.judging import prediction
from tuilab.record.blocks import has_times
from tuilab.record.events import AxesNamed, TableShown
from tuilab.record.finding_words import device_notices, unmeasured
from tuilab.record.series import first_of_each_arm, siblings
from tuilab.record.states import FINAL_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.record.tracebacks import as_named, frames, own_frame, parts_of
from tuilab.record.verdicts import Verdict
from tuilab.reports.notices import ending_of
from tuilab.reports.result import Result, keyed, result_of
from tuilab.runs import command_line, store
from tuilab.text.display import distinct_labels, plural, show, show_lines
from tuilab.text.wrapping import cell_width, spans, wrap

_TEXT_LINES = 30
_FRAME_LINES = 12
_NAME_WIDTH = 48  # of arms, cut for the eye
_CLAIM_WIDTH = 600  # characters of a claim: what is longer, reports have


def render(
    summary: RunSummary, state: str, run_dir: Path, style: Style, width: int, *, has_chart: bool, trust: str = "",
    before: Mapping[str, str] = {},
) -> str:  # fmt: skip
    """Return the result of one run: claims, key numbers, chart, where it is.

    `trust` is what the calibration says, `before` by claim how often it was judged on this machine before.
    """
    result = result_of(summary, state, run_dir)
    parts = [
        _heading(result, summary, style),
        "\n".join(_claims(result, style, width, before)),
        "\n".join(_trouble(result, summary, style)),
        prediction.describe_prediction(summary.run, summary.claims.values()),
        *_texts(result, style, width),
        *_figures(summary, style, width, has_chart=has_chart),
        _numbers(result, summary, style, width, trust),
    ]
    if has_chart:
        parts += [_chart(summary, style, width), *_pictures(summary, style, width)]
    parts.append(_where(summary, result, run_dir, style))
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(result: Result, summary: RunSummary, style: Style) -> str:
    run = summary.run
    if run is None:
        return "a run without recorded data"
    params = ", ".join(
        f"{show(name)}={show(run.params[name])}" for name in run.changed if name in run.params
    )
    words = [
        f"{style.bold(show(run.topic) + '/' + show(run.scenario))}  {result.state} in {result.elapsed_s:.1f} s",
        style.tally(claim.outcome for claim in result.claims),
        style.dim("quick") if run.quick else "",
        style.dim(params) if params else "",
    ]
    arms = [f"  {show(arm)}" for arm in command_line.arms_of(run)]
    notices = [f"notice: {notice}" for notice in device_notices(summary)]
    return "\n".join(["  ".join(filter(None, words)), *notices, show(run.title), *arms])


def _claims(result: Result, style: Style, width: int, before: Mapping[str, str]) -> Iterator[str]:
    """Yield mark, verdict and text of each claim, and what was measured: on the same line if there is room.

    A claim that did not hold has its key: that is what `refutes:` in a lesson takes.
    """
    pad = max((len(claim.outcome) for claim in result.claims), default=0)
    indent = " " * (pad + 4)
    room = max(width - len(indent), 30)
    for claim in result.claims:
        key = claim.key if claim.is_contradicted else ""
        lines = wrap(keyed(key, claim.text), room) or [""]
        is_told_below = claim.verdict == Verdict.NOT_TESTABLE and claim.why == result.box_lacks
        evidence = "" if is_told_below else claim.evidence
        measured = wrap(show("; ".join(filter(None, (evidence, before.get(claim.claim_id))))), room)
        if len(measured) == 1 and cell_width(lines[-1]) + 2 + cell_width(measured[0]) <= room:
            lines[-1] += "  " + style.dim(measured.pop())
        first, *rest = lines
        yield f"{style.mark(claim.outcome)} {style.verdict(claim.outcome, pad)}  {style.dim_key(key, first)}"
        yield from (indent + line for line in rest)
        yield from (indent + style.dim(line) for line in measured)


def _trouble(result: Result, summary: RunSummary, style: Style) -> Iterator[str]:
    """Yield what went wrong, and what is to be known before the result is read."""
    ending = ending_of(summary, result.state)
    if ending and not (summary.failure and _says_failure(summary)):
        yield ending
    if summary.failure:
        yield style.paint(f"{show(summary.failure.type)}: {show(summary.failure.message)}", 31)
        frame = own_frame(summary)
        if frame:
            yield f"  {show(frame.place)}"
            yield from (f"    {show(line)}" for line in frame.code)
        if parts_of(summary) != [frame]:  # more than that frame, which has been shown
            yield from _last_frames(
                show_lines(as_named(frames(summary.failure), summary)).splitlines(), style
            )
        if summary.failure.hint:
            yield f"hint: {show(summary.failure.hint)}"
    for fault in summary.faults:
        yield from (
            style.dim("  " + line) for line in show_lines(fault).splitlines()[:_FRAME_LINES]
        )
    above = device_notices(summary)
    yield from (f"notice: {notice}" for notice in result.notices if notice not in above)


def _says_failure(summary: RunSummary) -> bool:
    """Say whether the reason is what failed, and no more: of ranks it names the first, and the node."""
    failure, reason = summary.failure, " ".join(summary.reason.removeprefix("ArmFailed: ").split())
    own = " ".join(f"{failure.type}: {failure.message}".split()) if failure else ""
    return not reason or own.startswith(reason) or own.endswith(f": {reason}")


def _last_frames(lines: list[str], style: Style) -> list[str]:
    """Return the end of a traceback, and how much of it is left out."""
    left_out = len(lines) - _FRAME_LINES
    before = [f"… {plural(left_out, 'line')} before"] if left_out > 0 else []
    return [style.dim("  " + line) for line in [*before, *lines[-_FRAME_LINES:]]]


def _numbers(result: Result, summary: RunSummary, style: Style, width: int, trust: str) -> str:
    """Return the numbers beside the claims, and what was not measured."""
    long = distinct_labels(
        [number.name for number in result.numbers if cell_width(number.name) > _NAME_WIDTH],
        _NAME_WIDTH,
    )
    rows = [(long.get(number.name, number.name), number.words) for number in result.numbers]
    if trust:
        rows.append(("calibration", trust))
    rows += [("not measured", f"{what}: {why}") for what, why in unmeasured(summary)]
    label = max((cell_width(name) for name, _ in rows), default=0)
    return "\n".join(
        line
        for name, value in rows
        for line in _row(name + " " * (label - cell_width(name)), value, style, width)
    )


def _row(name: str, value: str, style: Style, width: int) -> list[str]:
    """Return a name and its value, which goes on below itself where it is long."""
    first, *rest = wrap(value, max(width - cell_width(name) - 2, 30)) or [""]
    return [f"{style.dim(name)}  {first}", *(" " * (cell_width(name) + 2) + line for line in rest)]


def _chart(summary: RunSummary, style: Style, width: int) -> str:
    if not summary.series:
        return ""
    name = next(iter(summary.series))[0]  # the metric that was logged first
    lines = first_of_each_arm(summary.series, name)
    axes, kin = summary.axes_of(name), siblings(summary.series, name)
    chart = line_chart(lines, min(width, 100), 14, whole=kin, axes=axes, is_utf8=style.is_utf8)
    bad = [line for line in lines if line.bad_count]
    notes = [
        f"{show(line.name)}{' ' + show(line.arm) if line.arm else ''}: {plural(line.bad_count, 'value')} not finite, "
        f"the first {line.bad[0].value} at {place_words(line.bad[0].step, axes)}"
        for line in bad
    ]
    return "\n".join([part for part in (chart, *notes) if part])


def place_words(step: float, axes: AxesNamed) -> str:
    """Return where something is along a chart: `step 7`, or `logit 88.7` where the scenario named what is along x."""
    return f"{show(axes.x, 60) or 'step'} {step:.10g}"


def _texts(result: Result, style: Style, width: int) -> list[str]:
    """Return the short texts that the scenario showed, the last of each title."""
    latest = {text.title: text.text for text in result.texts}
    return [
        "\n".join([*filter(None, [style.bold(show(title))]), *_fold_lines(text, width)])
        for title, text in latest.items()
    ]


def _fold_lines(text: str, width: int) -> list[str]:
    """Return the first lines of a text, long ones folded; the spaces of a table stay."""
    lines = [
        part
        for line in show_lines(text).splitlines()
        for part in _folded(line, max(width - 2, 30)) or [""]
    ]
    return [f"  {line}" for line in lines[:_TEXT_LINES]]


def _folded(line: str, width: int) -> list[str]:
    if line.isascii():
        return textwrap.wrap(line, width, replace_whitespace=False, drop_whitespace=False)
    line = line.expandtabs()
    return [line[start:end] for start, end in spans(line, width)]


def _figures(summary: RunSummary, style: Style, width: int, *, has_chart: bool) -> list[str]:
    """Return tables, and with a chart bars and lanes as well, each below its title."""
    has_tables = any(isinstance(figure, TableShown) for figure in summary.figures.values())
    if not (has_tables or (has_chart and (summary.figures or summary.spans))):
        return []
    from tuilab.drawings.figures import draw_figure, figures_of  # which load numpy

    symbols, found = BRAILLE if style.is_utf8 else ASCII, []
    for figure in figures_of(summary):
        if has_chart or isinstance(figure, TableShown):
            title, _, rest = draw_figure(figure, min(width, 100), symbols).text.partition("\n")
            found.append(f"{style.bold(title)}\n{rest}")
    return found


def _pictures(summary: RunSummary, style: Style, width: int) -> list[str]:
    return [
        shade(image, min(width, 32), is_utf8=style.is_utf8)
        for image in list(summary.images.values())[:4]
    ]


def _is_unjudged(summary: RunSummary, state: str) -> bool:
    """Say whether what a run has measured for its claims was never judged: its supervisor was killed, or the disk was full."""
    claims = summary.claims.values()
    is_measured = any(claim.measured or (claim.declared and has_times(summary)) for claim in claims)
    return (
        is_measured
        and state in {*FINAL_STATES, RunState.LOST}
        and not any(claim.verdict for claim in claims)
    )


def _where(summary: RunSummary, result: Result, run_dir: Path, style: Style) -> str:
    there = [store.short_id(run_dir.name), *map(show, command_line.root_option(run_dir.parent))]
    attach, verify = (command_line.line(["tuilab", verb, *there]) for verb in ("attach", "verify"))
    again = f"show again: {attach}   check its data: {verify}"
    if decide := command_line.deciding_line(summary, run_dir.parent):
        again += f"\nto settle the inconclusive claims: {show(decide)}"
    if _is_unjudged(summary, result.state):
        again += f"\nno claim was judged; to judge them now: {command_line.line(['tuilab', 'verify', *there, '--rejudge'])}"
    if summary.run and summary.run.prediction is not None:
        again += "\nthe next lesson: tuilab learn"
    return style.dim(f"run {show(run_dir)}\ndigest {result.record.digest}\n{again}")
