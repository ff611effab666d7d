"""The local copy of a run on another machine, which grows with it."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tuilab.errors import CannotRecord
from tuilab.fleet.file_pieces import FilePiece, digest, write
from tuilab.record.origin import carried
from tuilab.record.origin.carried import Carrier
from tuilab.runs import store
from tuilab.runs.archive.names import FOLDERS, MOST_BYTES, MOST_FILES, is_run_file
from tuilab.text.words import size

_FAULT = "fault-"  # prefix of logs that are removed if nothing crashed


class Mirror:
    """Writes the pieces from a node; their names are checked as in an archive."""

    def __init__(self, run_dir: Path, carrier: Carrier) -> None:
        """Create the folder of the copy, and record in it which process copies it.

        Raises CannotRecord if the disk does not allow that.
        """
        self.run_dir = run_dir
        self.known: dict[str, int] = {}  # the size of each copied file
        self._carrier = carrier
        self._bytes = 0  # that were received
        try:
            run_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            run_dir.mkdir(mode=0o700)
            carried.write(run_dir, carrier)
            for folder in FOLDERS:
                (run_dir / folder).mkdir(mode=0o700)
        except OSError as problem:
            raise store.cannot_write(run_dir, problem.strerror or str(problem)) from problem

    def take(self, pieces: Iterable[FilePiece]) -> None:
        """Write new pieces; raise CannotRecord if the run is too large, or the disk is full.

        Ignores a piece that does not continue its file, and one with a name that no file of a run
        has.
        """
        for piece in pieces:
            self._bytes += len(piece.data)
            if self._bytes > MOST_BYTES or len(self.known) > MOST_FILES:
                most = f"{MOST_FILES:,} files of {size(MOST_BYTES)}"
                raise CannotRecord(
                    f"{self.run_dir.name} has more than {most}, the limit for a run on another"
                    " node; it is stopped"
                )
            if is_run_file(piece.name) and piece.at == self.known.get(piece.name, 0):
                try:
                    write(self.run_dir, piece)
                except OSError as problem:
                    raise store.cannot_write(
                        self.run_dir, problem.strerror or str(problem)
                    ) from problem
                self.known[piece.name] = piece.end

    def forget_wrong(self, digests: Mapping[str, str]) -> bool:
        """Compare every file with the digest of the node, and return whether all are the same.

        Files that differ are forgotten, so that they are copied again. A crash log that the node
        has removed is removed here as well.
        """
        for name in list(self.known):
            if name not in digests and name.startswith(_FAULT):  # it existed while its worker lived
                (self.run_dir / name).unlink(missing_ok=True)
                del self.known[name]
        names = {*self.known, *filter(is_run_file, digests)}
        wrong = [name for name in names if digest(self.run_dir / name) != digests.get(name)]
        for name in wrong:
            self.known.pop(name, None)
        return not wrong

    def end(self) -> None:
        """Record that the run is no longer copied: without an end in its record, it is lost."""
        self._carrier.is_over = True
        with suppress(OSError):  # its folder is gone, or the disk is full
            carried.write(self.run_dir, self._carrier)
