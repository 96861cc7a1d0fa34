"""Programs on simulated devices, each in a fresh fork of one process that has imported TensorFlow.

As in a session, but without its walls: ``TensorFlowForkServer`` starts this module once for each Keras, and every
program costs only what it does itself.
"""

from __future__ import annotations

import gc
import json
import linecache
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_REPOSITORY = Path(__file__).resolve().parents[2]
_CPU_S = 200
"""CPU time that a program may take: a busy machine is no reason to end it."""
_TIMEOUT_S = 850
"""For one that hangs without taking any."""


class CompletedProgram(NamedTuple):
    """How a program ended, and its output on both streams."""

    status: int
    output: str


class TensorFlowForkServer:
    """The forking process; its home folder, with Keras's files, is ``home``."""

    def __init__(self, keras: int, home: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(_REPOSITORY), "TF_CPP_MIN_LOG_LEVEL": "3"}
        environment |= {"TF_USE_LEGACY_KERAS": str(int(keras == 2)), "KERAS_BACKEND": "tensorflow"}
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "-1"}
        environment |= {"HOME": str(home), "KERAS_HOME": str(home / ".keras")}
        command = [sys.executable, "-m", "tests.factories.tensorflow_forks"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, cwd=_REPOSITORY, text=True)

    def run(self, code: str, topology: str = "gpu:4", **environment: str) -> CompletedProgram:
        """Run a program to its end."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([code, topology, environment]) + "\n")
        self._process.stdin.flush()
        return CompletedProgram(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self._process.communicate()


Forges = Callable[[int], TensorFlowForkServer]
"""The fork server for a Keras version."""


def main() -> None:
    """Run programs from standard input, one per line, until it ends."""
    gc.disable()  # as a zygote does while it imports
    import tensorflow as tf

    from runners.guest.tf_patches import distributed_datasets, eager_ops, placement_log
    from runners.guest.tf_patches import gpu as gpu  # imported once, not in each fork

    eager_ops.subject.apply()
    placement_log.subject.apply()
    distributed_datasets.lifetime.apply()  # as a kernel does before it has devices
    tf.config.list_physical_devices()
    _ = tf.keras.layers, tf.keras.optimizers
    gc.freeze()
    gc.enable()
    for line in sys.stdin:
        print(json.dumps(_run(*json.loads(line))), flush=True)


def _run(code: str, topology: str, environment: dict[str, str]) -> tuple[int, str]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            _become_program(code, topology, environment)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return status, output.read().decode(errors="replace")


def _become_program(code: str, topology: str, environment: dict[str, str]) -> None:
    status = 1
    try:
        signal.setitimer(signal.ITIMER_PROF, _CPU_S)
        signal.alarm(_TIMEOUT_S)
        os.environ.update(environment)
        from runners.guest.runtime import device_setup
        from runners.wire.topology import Topology

        device_setup.set_up_devices(Topology.parse(topology))
        lines = code.splitlines(keepends=True)
        linecache.cache["<program>"] = (len(code), None, lines, "<program>")
        exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
