"""`tuilab` and `python -m tuilab`: hand over to the command line."""

import gc
import signal

gc.disable()  # a front is short-lived or mostly idle; collecting while modules load costs a tenth of the start
heeds_ctrl_c = signal.getsignal(signal.SIGINT)
if heeds_ctrl_c is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an exception in the middle of an import may be lost, and its lock kept

from tuilab.cli import main  # noqa: E402

signal.signal(signal.SIGINT, heeds_ctrl_c)

if __name__ == "__main__":
    main()
