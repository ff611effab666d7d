"""Create a run: its folder, its source, its first record, and the answer to the client."""

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tuilab import __version__
from tuilab.catalogue.imports import SOURCE_LIMIT, still_first
from tuilab.engine import messages
from tuilab.engine.capture import Capture
from tuilab.engine.messages import Receipt, RunOrder
from tuilab.errors import BoxLacks, CannotRecord, UsageError
from tuilab.record import events, presence
from tuilab.record.events import Event, RunDescribed, RunStarted
from tuilab.record.journal.writer import Writer
from tuilab.record.secrets import Hiding, cleaner
from tuilab.record.verdicts import RULE
from tuilab.runs import store
from tuilab.runs.run_name import kind_of_run
from tuilab.scrub import GONE, words_for_record
from tuilab.storage.files import read_regular
from tuilab.text.display import clip, show

_PORTION = 40 * 1024  # bytes of a record, besides the short fields
_LONG = ("params", "changed", "claims", "claim_keys", "argv", "command")
_TITLE_LIMIT = 1000  # characters
_WORD_LIMIT = 5000  # characters of a word of the command line; no path is as long


@dataclass
class OpenRun:
    """The folder of a run, and the files in it that its supervisor writes."""

    run_dir: Path
    journal: Writer
    outputs: dict[int, Capture]  # by file descriptor: 1 is stdout, 2 is stderr


def open_run(order: RunOrder) -> OpenRun:
    """Create the folder of a run with the source as it will run, and write the first record.

    `order.imports` becomes the modules that this source imports first. Raises UsageError if the
    source cannot be read. Raises CannotRecord if the disk takes no record; the folder is then
    removed. Raises BoxLacks where /proc does not show processes, because a run could not be stopped
    there.
    """
    why = presence.why_not_shown()
    if why:
        step = f"mount one for this namespace: {presence.MOUNT}"
        raise BoxLacks(f"a run could not be looked after or stopped here: {why}; {step}")
    try:
        # The file may have changed since the catalogue read it: a FIFO would block here.
        source = b""
        if order.path:  # a command may have none
            source = read_regular(order.path, SOURCE_LIMIT, may_be_link=True)
    except OSError as problem:
        raise UsageError(f"cannot read {show(order.path)}: {problem.strerror}") from problem
    order.imports = still_first(order.imports, source)
    words: list[str] = []
    verb = ""
    if order.command:
        words = order.command.all_words
        verb = order.topic
    clean = cleaner(order.params, order.secrets, words)
    run_dir = store.create(kind_of_run(order.scenario, verb), Path(order.root))
    try:
        (run_dir / "scenario.py").write_bytes(source)
        journal = Writer(run_dir / "journal" / "supervisor.jsonl", Hiding(clean))
        outputs = {
            1: Capture(run_dir / "stdout.log", clean),
            2: Capture(run_dir / "stderr.log", clean),
        }
        records = first_records(_run_started(order, run_dir.name, source))
    except OSError as problem:
        raise cannot_record(run_dir, problem.strerror or str(problem)) from problem
    for record in records:
        if not journal.append(record):
            raise cannot_record(run_dir, journal.trouble)
    return OpenRun(run_dir, journal, outputs)


def cannot_record(run_dir: Path, why: str) -> CannotRecord:
    """Remove the folder of a run that cannot start, and return the error with the reason."""
    store.remove(run_dir)
    error = store.cannot_write(run_dir.parent, why)
    return CannotRecord(f"nothing was started: {error}")


def _run_started(order: RunOrder, run: str, source: bytes) -> events.RunStarted:
    """Return the first record of a run: what was ordered, without the values of secrets."""
    me = presence.identify(os.getpid())
    assert me is not None  # this process exists
    process_sd = None
    if order.quick or order.repeats == 1:
        process_sd = _process_sd()
    secret_values = [str(order.params[name]) for name in order.secrets]
    command: list[str] = []
    folder = ""
    if order.command:
        command = words_for_record(order.command.words)
        if order.command.folder.isprintable():
            folder = order.command.folder
    nodes = []
    if order.spread:
        nodes = [node.name for node in order.spread.nodes]
    return events.RunStarted(
        format=events.FORMAT,
        run=run,
        scenario=order.scenario,
        topic=order.topic,
        title=order.title,
        source_sha256=hashlib.sha256(source).hexdigest(),
        params=_params_without_secrets(order),
        supervisor=me,
        tuilab=__version__,
        wall_ns=time.time_ns(),
        changed=order.changed,
        claims=order.claims,
        claim_keys=order.claim_keys if any(order.claim_keys) else [],
        repeats=order.repeats,
        looks=order.looks,
        rule=RULE,
        luck=process_sd,
        budget_s=order.budget_s,
        quick=order.quick,
        timeout_s=order.timeout_s,
        prediction=order.prediction,
        argv=words_for_record(order.argv, secret_values),
        command=command,
        sweep=_sweep(order),
        retry_of=order.retry_of,
        node=order.node,
        nodes=nodes,
        folder=folder,
    )


def _params_without_secrets(order: RunOrder) -> dict[str, Any]:
    params: dict[str, Any] = dict(order.params)
    for name in order.secrets:
        params[name] = GONE
    return params


def _sweep(order: RunOrder) -> events.Sweep | None:
    if order.sweep is None:
        return None
    return structs.replace(order.sweep, argv=words_for_record(order.sweep.argv))


def _process_sd() -> float | None:
    """Return the calibrated standard deviation between processes; None without a calibration.

    Verdicts of one process need it. The record of the run contains it, so that its verdict can be
    computed again elsewhere.
    """
    from tuilab.judging import calibration_file  # slow to import, and most runs do not need it

    return calibration_file.load().process_sd


def answer_front(receipt: Receipt) -> bool:
    """Send the receipt to the client, and return whether it was received.

    A client that gets a run answers with GO, and this waits for that. After an error, there is
    nothing to wait for. False means that the client is gone.
    """
    try:
        os.write(1, messages.RECEIPT + messages.pack(receipt))
        return bool(receipt.error) or sys.stdin.buffer.read(1) == messages.GO
    except OSError:
        return False


def let_go(run_dir: Path) -> None:
    """Redirect the standard streams, so that an ssh session can end while the run continues.

    stderr goes to supervisor.log in the folder of the run, or nowhere if that cannot be opened.
    """
    null = os.open(os.devnull, os.O_RDWR)
    log = null
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with contextlib.suppress(OSError):  # a full disk costs only the messages of the supervisor
        log = os.open(run_dir / "supervisor.log", flags, 0o600)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(log, 2)


def first_records(started: RunStarted) -> list[Event]:
    """Return the first record of a run, and more records for what does not fit into it.

    `started` becomes that first record: its texts are clipped, and long lists are cut.
    """
    started.title = clip(started.title, _TITLE_LIMIT)
    started.argv = [clip(word, _WORD_LIMIT) for word in started.argv]
    started.command = [clip(word, _WORD_LIMIT) for word in started.command]
    first, *others = list(_portions(started)) or [RunDescribed()]
    for name in _LONG:
        setattr(started, name, getattr(first, name))
    return [started, *others]


def _portions(started: RunStarted) -> Iterator[RunDescribed]:
    """Yield the parameters, claims and words in portions that fit into a record."""
    portion = RunDescribed()
    size = 0
    for entry in _entries(started):
        length = len(messages.pack(entry))  # an upper bound: records spell non-ASCII shorter
        if size and size + length > _PORTION:
            yield portion
            portion = RunDescribed()
            size = 0
        size += length
        for name, value in entry.items():
            part = getattr(portion, name)
            if isinstance(part, dict):
                part |= value
            else:
                part.append(value)
    if size:
        yield portion


def _entries(started: RunStarted) -> Iterator[dict[str, Any]]:
    """Yield the fields that must stay together in a record: a claim comes with its key."""
    for name, value in started.params.items():
        yield {"params": {name: value}}
    for name in started.changed:
        yield {"changed": name}
    if started.claim_keys:
        for text, key in zip(started.claims, started.claim_keys, strict=True):
            yield {"claims": text, "claim_keys": key}
    else:
        for text in started.claims:
            yield {"claims": text}
    for word in started.argv:
        yield {"argv": word}
    for word in started.command:
        yield {"command": word}
