"""A supervisor on a machine that seems to have a TPU: ``python with_tpu.py python -m runners.server …``.

Its device node is one that every machine has and that no session sees otherwise. TensorFlow knows nothing of it: what
happens up to there is real.
"""

from __future__ import annotations

import os
import sys
from unittest.mock import patch

from runners.devices.hardware import Mode, Usable
from runners.devices.stock import Stock
from runners.devices.tpu_vm import Tpu
from runners.server import main

NODE = "tty"
LIBRARY = "/usr/lib/libtpu.so"
FACTS = ("/sys/bus/pci", "/sys/devices")


def of_this_machine(mode: Mode, sharing: int) -> Stock:
    """In the place of the real one."""
    return Stock(mode, sharing, Usable(tpu=Tpu("v3-8", (NODE,), LIBRARY, tuple(filter(os.path.isdir, FACTS)))))


if __name__ == "__main__":
    sys.argv = ["server", *sys.argv[4:]]
    with patch.object(Stock, "of_this_machine", of_this_machine):
        main()
