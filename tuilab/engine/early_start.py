"""A supervisor that is started before its order: its worker loads torch in the meantime.

python -P -m tuilab.engine.early_start              the run may time something
python -P -m tuilab.engine.early_start --untimed    it times nothing
"""

import os
import sys

from tuilab.engine import processes
from tuilab.engine.spawn import spawn_spare


def main() -> None:
    """Start the worker first, then become the supervisor."""
    os.umask(0o077)
    processes.become_subreaper()
    spare = spawn_spare()
    from tuilab.engine import supervisor  # imported here: it loads slower than the worker starts

    supervisor.serve(spare, is_timed="--untimed" not in sys.argv)


if __name__ == "__main__":
    main()
