"""Run the command line, for `tuilab` and `python -m tuilab`."""

import gc

from tuilab import interrupts

# A client is short-lived or mostly idle. Collecting while modules load takes a tenth of its start.
gc.disable()
interrupts.heed()

from tuilab.cli.main import main  # noqa: E402

if __name__ == "__main__":
    main()
