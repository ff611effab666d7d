"""A supervisor that is started ahead of its order: its worker loads torch while the rest of this process is loaded.

python -P -m tuilab.engine.early_start              its run may time something
python -P -m tuilab.engine.early_start --untimed    it does not
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
    from tuilab.engine import supervisor  # this takes longer to load than the worker to start

    supervisor.serve(spare, is_timed="--untimed" not in sys.argv)


if __name__ == "__main__":
    main()
