"""A supervisor that hurries: ``python short_timeouts.py python -m runners.supervisor.server …``.

A run that does not end when it is interrupted is killed after one second instead of five, the next kernel is made
ready at once instead of half a second after the last was taken, and after one that failed, another is tried at once
instead of two seconds later. All else is real. It is for tests that only need such a run to be over, or the node to be
as it was; the tests of interrupts keep the product's patience.
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from runners.kernels import kernel_pool
from runners.supervisor import execution
from runners.supervisor.server import main

TIMEOUTS_S = (0.4, 0.6)
PAUSE_S = 0.02
TRY_AGAIN_S = 0.1

if __name__ == "__main__":
    sys.argv = ["server", *sys.argv[4:]]
    with (
        patch.object(execution, "_PATIENCE_S", TIMEOUTS_S),
        patch.multiple(kernel_pool, _PAUSE_S=PAUSE_S, _TRY_AGAIN_S=TRY_AGAIN_S),
    ):
        main()
