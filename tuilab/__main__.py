"""`tuilab` and `python -m tuilab`: hand over to the command line."""

import gc

from tuilab import interrupts

gc.disable()  # a front is short-lived or mostly idle; collecting while modules load costs a tenth of the start
interrupts.heed()

from tuilab.cli.main import main  # noqa: E402

if __name__ == "__main__":
    main()
