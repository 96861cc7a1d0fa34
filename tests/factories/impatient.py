"""A supervisor that soon loses patience with a run: ``python impatient.py python -m runners.server …``.

A run that does not end when it is interrupted is killed after one second instead of five. All else is real. It is for
tests that only need such a run to be over; the tests of interrupts keep the product's patience.
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from runners import execution
from runners.server import main

PATIENCE_S = (0.4, 0.6)

if __name__ == "__main__":
    sys.argv = ["server", *sys.argv[4:]]
    with patch.object(execution, "_PATIENCE_S", PATIENCE_S):
        main()
