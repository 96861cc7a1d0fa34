"""A supervisor that finds a TPU: ``python fake_tpu_supervisor.py python -m runners.supervisor.server …``.

Its device node is one that every machine has and that no session sees otherwise. TensorFlow knows nothing of it: what
happens up to there is real.
"""

from __future__ import annotations

import os
import sys
from unittest.mock import patch

from runners.devices.allocation import DeviceMode, UsableDevices
from runners.devices.device_pool import DevicePool
from runners.devices.tpu_vm import Tpu
from runners.supervisor.server import main

NODE = "tty"
LIBRARY = "/usr/lib/libtpu.so"
FACTS = ("/sys/bus/pci", "/sys/devices")


def of_this_machine(mode: DeviceMode, sharing: int) -> DevicePool:
    """Replaces the real function."""
    return DevicePool(
        mode, sharing, UsableDevices(tpu=Tpu("v3-8", (NODE,), LIBRARY, tuple(filter(os.path.isdir, FACTS))))
    )


if __name__ == "__main__":
    sys.argv = ["server", *sys.argv[4:]]
    with patch.object(DevicePool, "of_this_machine", of_this_machine):
        main()
