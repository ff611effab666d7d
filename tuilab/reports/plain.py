"""The result of a run as text for a terminal or a log."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from tuilab.drawings.glyphs import Style
from tuilab.drawings.shade import shade
from tuilab.drawings.symbols import ASCII, BRAILLE
from tuilab.drawings.text_chart import line_chart
from tuilab.judging import prediction
from tuilab.record.blocks import has_times, measure_of
from tuilab.record.digest import digest_of
from tuilab.record.events import CLAIM_LIMIT, AxesNamed, TableShown
from tuilab.record.folding.arms_table import ARMS
from tuilab.record.gpus.own_gpus import Throttling, own_gpus
from tuilab.record.parts import Claim
from tuilab.record.series import Series, siblings
from tuilab.record.states import FINAL_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clock_words import time_words
from tuilab.record.timing.clocks import WALL, arm_times
from tuilab.record.told import (
    alert_words,
    device_notices,
    device_words,
    dropped_words,
    ends_of_curves,
    evidence,
    gpu_errors,
    gpu_rows,
    leftover_words,
    lost_words,
    node_words,
    ranks_words,
    unmeasured,
)
from tuilab.record.tracebacks import as_named, frames, own_frame, parts_of
from tuilab.record.verdicts import Verdict
from tuilab.runs import command_line, store
from tuilab.text import clip, plural, show, show_lines, told_apart
from tuilab.words import seconds, size, spell_of
from tuilab.wrapping import cells, spans, wrap

_TEXT_LINES = 30
_FRAME_LINES = 12
_NAME_WIDTH = 48  # of arms, cut for the eye
_CLAIM_WIDTH = 600  # characters of a claim: what is longer, reports have


def render(
    summary: RunSummary, state: str, run_dir: Path, style: Style, width: int, *, has_chart: bool, trust: str = "",
    before: Mapping[str, str] = {},
) -> str:  # fmt: skip
    """Return the result of one run: claims, key numbers, chart, where it is.

    `trust` is what the calibration says, `before` by claim how often it was judged on this box before.
    """
    parts = [_heading(summary, state, style), _claims(summary, style, width, before), _trouble(summary, state, style)]
    parts += [
        prediction.describe_prediction(summary.run, summary.claims.values()),
        *_texts(summary, style, width),
        *_figures(summary, style, width, has_chart=has_chart),
    ]
    parts.append(_key_numbers(summary, style, width, trust))
    if has_chart:
        parts += [_chart(summary, style, width), *_pictures(summary, style, width)]
    parts.append(_where(summary, state, run_dir, style))
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(summary: RunSummary, state: str, style: Style) -> str:
    run = summary.run
    if run is None:
        return "a run without recorded data"
    params = ", ".join(f"{show(name)}={show(run.params[name])}" for name in run.changed if name in run.params)
    line = f"{style.bold(show(run.topic) + '/' + show(run.scenario))}  {state} in {summary.elapsed_s:.1f} s"
    counts = style.tally(claim.outcome for claim in summary.claims.values())
    line += f"  {counts}" if counts else ""
    line += f"  {style.dim('quick')}" if run.quick else ""
    line += f"  {style.dim(params)}" if params else ""
    notices = [f"notice: {words}" for words in device_notices(summary)]
    return "\n".join([line, *notices, show(run.title), *(f"  {show(arm)}" for arm in command_line.arms_of(run))])


def _claims(summary: RunSummary, style: Style, width: int, before: Mapping[str, str]) -> str:
    claims = list(summary.claims.values())
    pad = max((len(claim.outcome) for claim in claims), default=0)
    told = [(claim, _found(claim, summary, before.get(claim.claim_id, ""))) for claim in claims]
    return "\n".join(line for claim, found in told for line in _claim(claim, found, style, width, pad))


def _found(claim: Claim, summary: RunSummary, before: str) -> str:
    """Return what was measured for a claim, now and before; what the whole run lacks is told once, below."""
    why = claim.verdict.why if claim.verdict and claim.outcome == Verdict.NOT_TESTABLE else ""
    is_told_below = bool(why) and why == summary.box_lacks
    return show("; ".join(filter(None, ("" if is_told_below else evidence(claim, summary), before))))


def _claim(claim: Claim, said: str, style: Style, width: int, pad: int) -> list[str]:
    """Return mark, verdict and claim, and what is said of it: on the same line if there is room.

    A claim that did not hold has its key: that is what `refutes:` in a lesson takes.
    """
    indent = " " * (pad + 4)
    room = max(width - len(indent), 30)
    key = claim.key if claim.is_contradicted else ""
    lines = wrap(keyed(key, claim.text), room) or [""]
    found = wrap(said, room)
    if len(found) == 1 and cells(lines[-1]) + 2 + cells(found[0]) <= room:
        lines[-1] += "  " + style.dim(found.pop())
    first, *rest = lines
    verdict = claim.outcome
    shown = [f"{style.mark(verdict)} {style.verdict(verdict, pad)}  {dim_key(key, first, style)}"]
    return shown + [indent + line for line in rest] + [indent + style.dim(line) for line in found]


def keyed(key: str, text: str) -> str:
    """Return a claim as its lesson has it, behind its key if there is one to tell."""
    told = clip(show(text, CLAIM_LIMIT), _CLAIM_WIDTH)
    return f"[{key}] {told}" if key else told


def dim_key(key: str, line: str, style: Style) -> str:
    """Return the first line of a claim with its key in the background."""
    return line.replace(f"[{key}]", style.dim(f"[{key}]"), 1) if key else line


def _trouble(summary: RunSummary, state: str, style: Style) -> str:
    """Return what went wrong, and what the record lacks."""
    lines = []
    if summary.failure is not None:
        lines += [] if _says_failure(summary) else [f"{summary.state}: {show(summary.reason)}"]
        lines += [style.paint(f"{show(summary.failure.type)}: {show(summary.failure.message)}", 31)]
        if frame := own_frame(summary):
            lines += [f"  {show(frame.place)}", *(f"    {show(line)}" for line in frame.code)]
        if parts_of(summary) != [frame]:  # which has been told
            lines += _last_frames(show_lines(as_named(frames(summary.failure), summary)).splitlines(), style)
        lines += [f"hint: {show(summary.failure.hint)}"] if summary.failure.hint else []
    elif summary.reason and not (summary.box_lacks and summary.state == RunState.SUCCEEDED):  # which is told below
        lines.append(f"{summary.state}: {show(summary.reason)}")
    elif state == RunState.LOST:
        lines.append(f"lost: {lost_words(summary)}")
    for fault in summary.faults:
        lines += [style.dim("  " + line) for line in show_lines(fault).splitlines()[:12]]
    if summary.box_lacks:
        lines.append(f"not testable here: {show(summary.box_lacks)}")
    if summary.leftovers:
        lines.append(leftover_words(summary))
    lines += [f"notice: {words}" for words in (*gpu_errors(summary), *map(alert_words, summary.alerts))]
    damage = summary.damage
    if damage.is_any:
        lines.append(
            f"the recorded data is incomplete: {plural(damage.corrupt_count, 'corrupt line')}, "
            f"{plural(damage.missing_count, 'record')} missing, {damage.lost_count} not written"
        )
    return "\n".join([*lines, *dropped_words(summary).values()])


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


def _key_numbers(summary: RunSummary, style: Style, width: int, trust: str) -> str:
    """Return the numbers beside the claims: races, memory, peaks of the process and the GPUs."""
    rows = key_numbers(summary)
    rows += [("calibration", trust)] if trust else []
    rows += [("not measured", f"{what}: {why}") for what, why in unmeasured(summary)]
    label = max((cells(name) for name, _ in rows), default=0)
    return "\n".join(line for name, value in rows for line in _row(name + " " * (label - cells(name)), value, style, width))


def _row(name: str, value: str, style: Style, width: int) -> list[str]:
    """Return a name and its value, which goes on below itself where it is long."""
    first, *rest = wrap(value, max(width - cells(name) - 2, 30)) or [""]
    return [f"{style.dim(name)}  {first}", *(" " * (cells(name) + 2) + line for line in rest)]


def key_numbers(summary: RunSummary, name_width: int = _NAME_WIDTH) -> list[tuple[str, str]]:
    """Return where it was, the times of the arms, counted memory, and peaks of the process and the GPUs, as (name, value)."""
    where = ("node", node_words(summary)), ("device", device_words(summary)), ("ranks", ranks_words(summary))
    places = [(name, words) for name, words in where if words]
    races = [*_race_rows(summary, name_width), *_setting_rows(summary)]
    ends = [] if races else [*ends_of_curves(summary).items()]
    return [*places, *ends, *races, *_memory_rows(summary, name_width), *_resource_rows(summary)]


def _race_rows(summary: RunSummary, name_width: int) -> list[tuple[str, str]]:
    """Return the median time of each arm, and what its first call cost where that is another matter; a table may tell more."""
    if ARMS in summary.figures:
        return []
    rows = []
    times = list(arm_times(summary).items())[:12]
    measure = measure_of(summary)
    samples = (measure.sample, "processes" if measure.sample == "process" else "")
    names = told_apart([arm for arm, _ in times], name_width)
    for arm, one in times:
        first = median(summary.first_calls.get(arm, [0.0]))  # which is timed on the wall clock alone
        once = ""
        if first > 3 * median(one.on(WALL)):
            once = f", the first one {seconds(first)}{' on the wall clock' if one.clock != WALL else ''}"
        rows.append((names[arm], f"{time_words(one, measure)}, median of {plural(len(one.times), *samples)}{once}"))
    return rows


def _setting_rows(summary: RunSummary) -> list[tuple[str, str]]:
    """Return which values of variables won; whether this run counts, `tuilab advise` says."""
    if not summary.settings or not summary.is_over or (summary.run and summary.run.quick):
        return []
    from tuilab.reports.advice.env_file import in_short  # few runs have any

    return [in_short(summary, raced) for raced in summary.settings.values()]


def _memory_rows(summary: RunSummary, name_width: int) -> list[tuple[str, str]]:
    rows: dict[str, str] = {}
    for memory in summary.memory:
        values = [f"{show(name.removesuffix('_bytes'))} {spell_of(name)(value)}" for name, value in memory.values.items()]
        rows[f"{memory.name} {memory.arm}".strip()] = ", ".join(values)
    names = told_apart(list(rows)[:12], name_width)
    return [(shown, rows[name]) for name, shown in names.items()]


def _resource_rows(summary: RunSummary) -> list[tuple[str, str]]:
    rows = []
    if peak := rss_peak_bytes(summary):
        waiting = summary.resources.get("waiting_bytes")
        beside = f"; processes that wait for their repeat: {size(waiting.high or 0)}" if waiting else ""
        counted = "RSS"
        is_command = bool(summary.run and summary.run.command)  # which a process of ours starts, and stays beside
        name = "peak memory, with tuilab" if is_command else "peak memory"
        processes = summary.resources.get("processes")
        are_several = processes is not None and (processes.high or 0) > (2 if is_command else 1)
        if are_several:
            counted = "RSS; shared pages are counted in each process"
        rows.append((name, f"{size(peak)} ({counted}){beside}"))
    return rows + gpu_rows(summary) + _held_rows(summary)


def _held_rows(summary: RunSummary) -> list[tuple[str, str]]:
    """Return what held the clocks of the run's GPUs down."""
    gpus = [gpu.found for gpu in own_gpus(summary) if gpu.found]
    if not gpus:
        return []
    from tuilab.drawings.gpu_strips import held_down, held_words  # which a run without a GPU need not wait for

    words = held_words(held_down(summary, gpus, Throttling()))
    return [("  clocks", words)] if words else []


def rss_peak_bytes(summary: RunSummary) -> float:
    """Return the most that processes of a run had resident, as far as it was seen; 0: nothing was seen.

    Samples are of all of them, but now and then; of the largest by itself the kernel knows the most, however short it lived.
    """
    sampled = summary.resources.get("rss_bytes")
    kept = (worker.exited.rss_peak_bytes for worker in summary.workers.values() if worker.exited)
    return max([sampled.high or 0 if sampled else 0, *(one or 0 for one in kept)])


def _chart(summary: RunSummary, style: Style, width: int) -> str:
    lines = main_series(summary)
    if not lines:
        return ""
    axes, kin = summary.axes_of(lines[0].name), siblings(summary.series, lines[0].name)
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


def main_series(summary: RunSummary) -> list[Series]:
    """Return the series that says most: the name that was logged first, all its arms, of the first process that has it."""
    if not summary.series:
        return []
    return first_repeat(summary, next(iter(summary.series))[0])


def first_repeat(summary: RunSummary, name: str) -> list[Series]:
    """Return the series of a name, each arm's of the first process that has it."""
    firsts: dict[str, Series] = {}
    for line in summary.series.values():
        if line.name == name:
            firsts.setdefault(line.arm, line)
    return list(firsts.values())


def _texts(summary: RunSummary, style: Style, width: int) -> list[str]:
    """Return the short texts that the scenario showed, the last of each title."""
    latest = {text.title: text.text for text in summary.texts}
    return ["\n".join([*filter(None, [style.bold(show(title))]), *_fold_lines(text, width)]) for title, text in latest.items()]


def _fold_lines(text: str, width: int) -> list[str]:
    """Return the first lines of a text, long ones folded; the spaces of a table stay."""
    lines = [part for line in show_lines(text).splitlines() for part in _folded(line, max(width - 2, 30)) or [""]]
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
    return [shade(image, min(width, 32), is_utf8=style.is_utf8) for image in list(summary.images.values())[:4]]


def _is_unjudged(summary: RunSummary, state: str) -> bool:
    """Say whether what a run has measured for its claims was never judged: its supervisor was killed, or the disk was full."""
    claims = summary.claims.values()
    is_measured = any(claim.measured or (claim.declared and has_times(summary)) for claim in claims)
    return is_measured and state in {*FINAL_STATES, RunState.LOST} and not any(claim.verdict for claim in claims)


def _where(summary: RunSummary, state: str, run_dir: Path, style: Style) -> str:
    there = [store.short_id(run_dir.name), *map(show, command_line.root_option(run_dir.parent))]
    attach, verify = (command_line.line(["tuilab", verb, *there]) for verb in ("attach", "verify"))
    again = f"show again: {attach}   check its data: {verify}"
    if decide := command_line.deciding_line(summary, run_dir.parent):
        again += f"\nto settle the inconclusive claims: {show(decide)}"
    if _is_unjudged(summary, state):
        again += f"\nno claim was judged; to judge them now: {command_line.line(['tuilab', 'verify', *there, '--rejudge'])}"
    if summary.run and summary.run.prediction is not None:
        again += "\nthe next lesson: tuilab learn"
    return style.dim(f"run {show(run_dir)}\ndigest {digest_of(run_dir, state)}\n{again}")
