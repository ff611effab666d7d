"""The result of a run as text for a terminal or a log."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tuilab.drawings.glyphs import Style
from tuilab.drawings.shade import shade
from tuilab.drawings.symbols import ASCII, BRAILLE
from tuilab.drawings.text_chart import line_chart
from tuilab.judging import prediction
from tuilab.record.blocks import has_times
from tuilab.record.events import AxesNamed, RunStarted, ScenarioFailed, TableShown
from tuilab.record.finding_words import device_notices, unmeasured
from tuilab.record.series import Series, first_of_each_arm, siblings
from tuilab.record.states import FINAL_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.record.tracebacks import as_named, frames, own_frame, parts_of
from tuilab.record.verdicts import Verdict
from tuilab.reports.notices import ending_of
from tuilab.reports.result import Result, ResultClaim, result_of, with_key
from tuilab.reports.tuning.document import ResultTuning
from tuilab.reports.tuning.rows import find_winners
from tuilab.reports.tuning.text import note_lines, render_tuning
from tuilab.runs import command_line, store
from tuilab.text.display import distinct_labels, plural, show, show_lines
from tuilab.text.wrapping import cell_width, spans, wrap

_TEXT_LINES = 30
_FRAME_LINES = 12
_NAME_WIDTH = 48  # of an arm, which is shortened to it
_MIN_WIDTH = 30  # of a column of text, however narrow the terminal is
_CHART_WIDTH = 100
_CHART_HEIGHT = 14
_PICTURE_WIDTH = 32
_MOST_PICTURES = 4


def render(
    summary: RunSummary,
    state: str,
    run_dir: Path,
    style: Style,
    width: int,
    *,
    has_chart: bool,
    trust: str = "",
    earlier: Mapping[str, str] = {},
) -> str:
    """Return the result of one run: claims, key numbers, chart, where it is.

    `trust` is what the calibration says. `earlier` says how often each claim was judged before
    on this machine.
    """
    result = result_of(summary, state, run_dir)
    if result.tuning:
        findings = "\n".join(render_tuning(result.tuning, style, width))
    else:
        findings = "\n".join(_claims(result, style, width, earlier))
    parts = [
        _heading(result, summary, style),
        findings,
        "\n".join(_trouble(result, summary, style)),
        prediction.describe_prediction(summary.run, summary.claims.values()),
        *_texts(result, style, width),
        *_figures(summary, style, width, has_chart=has_chart),
        _tuning_notes(result, style, width),
        _numbers(result, summary, style, width, trust),
    ]
    if has_chart:
        parts.append(_chart(summary, style, width))
        parts += _pictures(summary, style, width)
    parts.append(_where(summary, result, run_dir, style))
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(result: Result, summary: RunSummary, style: Style) -> str:
    """Return the first lines: scenario, state, verdicts, changed parameters, notices and title.

    A comparison of commands has a line for each arm, with the command that it stands for.
    """
    run = summary.run
    if run is None:
        return "a run without recorded data"
    name = style.bold(f"{show(run.topic)}/{show(run.scenario)}")
    words = [
        f"{name}  {result.state} in {result.elapsed_s:.1f} s",
        style.tally(claim.outcome for claim in result.claims),
    ]
    if run.quick:
        words.append(style.dim("quick"))
    words.append(style.dim(_describe_changes(run)))
    lines = ["  ".join(filter(None, words))]
    for notice in device_notices(summary):
        lines.append(f"notice: {notice}")
    lines.append(show(run.title))
    for arm in command_line.arms_of(run):
        lines.append(f"  {show(arm)}")
    return "\n".join(lines)


def _describe_changes(run: RunStarted) -> str:
    """Return the parameters that differ from the defaults of the scenario."""
    params = []
    for name in run.changed:
        if name in run.params:
            params.append(f"{show(name)}={show(run.params[name])}")
    return ", ".join(params)


# ---- claims


def _claims(result: Result, style: Style, width: int, earlier: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of each claim: mark, verdict and text, and what was measured.

    That is on the same line if there is room. A claim that did not hold is shown with its key,
    because `refutes:` in a lesson takes the key.
    """
    verdict_width = 0
    for claim in result.claims:
        verdict_width = max(verdict_width, len(claim.outcome))
    indent = " " * (verdict_width + 4)
    text_width = max(width - len(indent), _MIN_WIDTH)
    for claim in result.claims:
        key = claim.key if claim.is_contradicted else ""
        lines = wrap(with_key(key, claim.text), text_width) or [""]
        measured = wrap(_evidence(claim, result, earlier), text_width)
        if len(measured) == 1:
            used = cell_width(lines[-1]) + 2 + cell_width(measured[0])
            if used <= text_width:
                lines[-1] += "  " + style.dim(measured.pop())
        verdict = f"{style.mark(claim.outcome)} {style.verdict(claim.outcome, verdict_width)}"
        yield f"{verdict}  {style.dim_key(key, lines[0])}"
        for line in lines[1:]:
            yield indent + line
        for line in measured:
            yield indent + style.dim(line)


def _evidence(claim: ResultClaim, result: Result, earlier: Mapping[str, str]) -> str:
    """Return what was measured for a claim, and how often it was judged before."""
    parts = [claim.evidence, earlier.get(claim.claim_id)]
    if claim.verdict == Verdict.NOT_TESTABLE and claim.why == result.box_lacks:
        parts[0] = ""  # a notice below the claims has the reason, once for all of them
    return show("; ".join(filter(None, parts)))


def _tuning_notes(result: Result, style: Style, width: int) -> str:
    """Return what a reader needs to know besides the table of a tuning; empty for another run."""
    if result.tuning is None:
        return ""
    return "\n".join(note_lines(result.tuning, style, width))


# ---- what went wrong


def _trouble(result: Result, summary: RunSummary, style: Style) -> Iterator[str]:
    """Yield what went wrong, and what is to be known before the result is read."""
    failure = summary.failure
    ending = ending_of(summary, result.state)
    if ending and not (failure and _says_failure(summary.reason, failure)):
        yield ending
    if failure:
        yield style.paint(f"{show(failure.type)}: {show(failure.message)}", 31)
        yield from _frames(summary, failure, style)
        if failure.hint:
            yield f"hint: {show(failure.hint)}"
    for fault in summary.faults:
        for line in show_lines(fault).splitlines()[:_FRAME_LINES]:
            yield style.dim("  " + line)
    in_heading = device_notices(summary)
    for notice in result.notices:
        if notice not in in_heading:
            yield f"notice: {notice}"


def _says_failure(reason: str, failure: ScenarioFailed) -> bool:
    """Say whether the reason for the end is the failure, and no more.

    If ranks failed, the reason names the first of them, and its node.
    """
    reason = " ".join(reason.removeprefix("ArmFailed: ").split())
    words = " ".join(f"{failure.type}: {failure.message}".split())
    return not reason or words.startswith(reason) or words.endswith(f": {reason}")


def _frames(summary: RunSummary, failure: ScenarioFailed, style: Style) -> Iterator[str]:
    """Yield the frame of the author's code, and the end of the traceback if it has other frames."""
    frame = own_frame(summary)
    if frame:
        yield f"  {show(frame.place)}"
        for line in frame.code:
            yield f"    {show(line)}"
    if parts_of(summary) == [frame]:
        return
    lines = show_lines(as_named(frames(failure), summary)).splitlines()
    left_out = len(lines) - _FRAME_LINES
    if left_out > 0:
        yield style.dim(f"  … {plural(left_out, 'line')} before")
    for line in lines[-_FRAME_LINES:]:
        yield style.dim("  " + line)


# ---- numbers


def _numbers(result: Result, summary: RunSummary, style: Style, width: int, trust: str) -> str:
    """Return the numbers beside the claims, and what was not measured, in two columns.

    `trust` is what the calibration says; empty for no row about it.
    """
    long_names = []
    for number in result.numbers:
        if cell_width(number.name) > _NAME_WIDTH:
            long_names.append(number.name)
    short_names = distinct_labels(long_names, _NAME_WIDTH)
    rows = []
    for number in result.numbers:
        rows.append((short_names.get(number.name, number.name), number.words))
    if trust:
        rows.append(("calibration", trust))
    for name, why in unmeasured(summary):
        rows.append(("not measured", f"{name}: {why}"))
    name_width = 0
    for name, _ in rows:
        name_width = max(name_width, cell_width(name))
    lines = []
    for name, value in rows:
        padded = name + " " * (name_width - cell_width(name))
        lines += _row(padded, value, style, width)
    return "\n".join(lines)


def _row(name: str, value: str, style: Style, width: int) -> list[str]:
    """Return the lines of a name and its value; a long value continues below itself."""
    indent = " " * (cell_width(name) + 2)
    first, *rest = wrap(value, max(width - len(indent), _MIN_WIDTH)) or [""]
    lines = [f"{style.dim(name)}  {first}"]
    for line in rest:
        lines.append(indent + line)
    return lines


# ---- charts, texts, figures and pictures


def _chart(summary: RunSummary, style: Style, width: int) -> str:
    """Return the chart of the metric that was logged first, and which values are not finite.

    Empty if nothing was logged.
    """
    if not summary.series:
        return ""
    name, _, _ = next(iter(summary.series))
    lines = first_of_each_arm(summary.series, name)
    axes = summary.axes_of(name)
    chart = line_chart(
        lines,
        min(width, _CHART_WIDTH),
        _CHART_HEIGHT,
        whole=siblings(summary.series, name),
        axes=axes,
        is_utf8=style.is_utf8,
    )
    return "\n".join(filter(None, [chart, *_list_not_finite(lines, axes)]))


def _list_not_finite(lines: Iterable[Series], axes: AxesNamed) -> Iterator[str]:
    """Yield, for each line with values that are not finite, how many and where the first is."""
    for line in lines:
        if not line.bad_count:
            continue
        name = show(line.name)
        if line.arm:
            name += f" {show(line.arm)}"
        count = plural(line.bad_count, "value")
        first = line.bad[0]
        place = f"{show(axes.x, 60) or 'step'} {first.step:.10g}"
        yield f"{name}: {count} not finite, the first {first.value} at {place}"


def _texts(result: Result, style: Style, width: int) -> list[str]:
    """Return the short texts that the scenario showed, the last of each title."""
    latest: dict[str, str] = {}
    for shown in result.texts:
        latest[shown.title] = shown.text
    texts = []
    for title, text in latest.items():
        lines = _fold_lines(text, width)
        heading = style.bold(show(title))
        if heading:
            lines.insert(0, heading)
        texts.append("\n".join(lines))
    return texts


def _fold_lines(text: str, width: int) -> list[str]:
    """Return the first lines of a text, long ones folded; the spaces of a table stay."""
    lines = []
    for line in show_lines(text).splitlines():
        for part in _fold(line, max(width - 2, _MIN_WIDTH)) or [""]:
            lines.append(f"  {part}")
    return lines[:_TEXT_LINES]


def _fold(line: str, width: int) -> list[str]:
    if line.isascii():
        return textwrap.wrap(line, width, replace_whitespace=False, drop_whitespace=False)
    line = line.expandtabs()
    return [line[start:end] for start, end in spans(line, width)]


def _figures(summary: RunSummary, style: Style, width: int, *, has_chart: bool) -> list[str]:
    """Return tables, and with a chart bars and lanes as well, each below its title.

    A lane is a row of spans along time, for example what one process did.
    """
    if has_chart:
        has_figures = bool(summary.figures or summary.spans)
    else:
        has_figures = any(isinstance(figure, TableShown) for figure in summary.figures.values())
    if not has_figures:
        return []
    # imported here: this loads numpy, and few runs show figures
    from tuilab.drawings.figures import draw_figure, figures_of

    symbols = BRAILLE if style.is_utf8 else ASCII
    figures = []
    for figure in figures_of(summary):
        if has_chart or isinstance(figure, TableShown):
            picture = draw_figure(figure, min(width, _CHART_WIDTH), symbols)
            title, _, rest = picture.text.partition("\n")
            figures.append(f"{style.bold(title)}\n{rest}")
    return figures


def _pictures(summary: RunSummary, style: Style, width: int) -> list[str]:
    """Return the first pictures, as characters."""
    images = list(summary.images.values())
    columns = min(width, _PICTURE_WIDTH)
    pictures = []
    for image in images[:_MOST_PICTURES]:
        pictures.append(shade(image, columns, is_utf8=style.is_utf8))
    return pictures


# ---- where the run is


def _where(summary: RunSummary, result: Result, run_dir: Path, style: Style) -> str:
    """Return where the run is, its digest, and the commands that take it further."""
    root_option = command_line.root_option(run_dir.parent)
    words = [store.short_id(run_dir.name), *map(show, root_option)]
    attach = command_line.line(["tuilab", "attach", *words])
    verify = command_line.line(["tuilab", "verify", *words])
    lines = [
        f"run {show(run_dir)}",
        f"digest {result.record.digest}",
        f"show again: {attach}   check its data: {verify}",
    ]
    if result.tuning:
        lines += _tuning_commands(result.tuning, words)
    deciding = command_line.deciding_line(summary, run_dir.parent)
    if deciding:
        lines.append(f"to settle the inconclusive claims: {show(deciding)}")
    if _is_unjudged(summary, result.state):
        judge = command_line.line(["tuilab", "verify", *words, "--rejudge"])
        lines.append(f"no claim was judged; to judge them now: {judge}")
    if summary.run and summary.run.prediction is not None:
        lines.append("the next lesson: tuilab learn")
    return style.dim("\n".join(lines))


def _tuning_commands(tuning: ResultTuning, words: Sequence[str]) -> list[str]:
    """Return the commands that show the details of a tuning, and what it has left open.

    `words` name the run in a command.
    """
    if not tuning.treatments:
        return []
    report = command_line.line(["tuilab", "report", *words, "-o", "tune.html"])
    lines = [f"changes as diffs, all reasons: {report}"]
    for winner in find_winners(tuning):
        if winner.next_command:
            title = show(winner.title, _NAME_WIDTH)
            lines.append(f"to compare what is learned with {title}: {show(winner.next_command)}")
    lessons = [winner.lesson for winner in find_winners(tuning) if winner.lesson]
    if lessons:
        lesson = command_line.line(["tuilab", "show", lessons[0]])
        lines.append(f"the lesson on the best one: {show(lesson)}")
    return lines


def _is_unjudged(summary: RunSummary, state: str) -> bool:
    """Say whether a run that is over has measured claims, and none of them was judged.

    That happens if its supervisor was killed, or if the disk was full.
    """
    if state not in {*FINAL_STATES, RunState.LOST}:
        return False
    claims = summary.claims.values()
    if any(claim.verdict for claim in claims):
        return False
    if any(claim.measured for claim in claims):
        return True
    return any(claim.declared for claim in claims) and has_times(summary)
