"""A program behind some of the walls only, without a supervisor: to see what each of them holds alone.

Layers: ``namespaces`` (all of ``runners.sandbox.setup`` but the filters), ``landlock``, ``seccomp``.
``no mount_setattr`` is an old kernel, or gVisor.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from runners.config.settings import Limits, RunnerSettings
from runners.sandbox import landlock, linux
from runners.sandbox.policy import SandboxPolicy, session_policy
from runners.sandbox.seccomp import compile_filters
from runners.sandbox.setup import enter
from runners.sandbox.zygote_command import zygote_command

_USER = 99_000


def program_output(program: str, *layers: str) -> str:
    """The output of the program behind these layers."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", Path(__file__).read_text(), *layers]
    if "namespaces" in layers:  # Python may live where only root can look: show it as a zygote is shown it
        wall, name = zygote_command(RunnerSettings(data_dir=Path("/nowhere")), [])
        command = [*wall[: wall.index("--") + 1], *command] if name == "bubblewrap" else command
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=60, env=environment)
    return done.stdout + done.stderr


def main() -> None:
    """Run a program behind some layers; see the module."""
    layers, program = sys.argv[1:], sys.stdin.read()
    policy = session_policy(Limits(memory_mb=512, disk_mb=64), None, compile_filters() if "seccomp" in layers else ())
    if "landlock" not in layers:
        policy = replace(policy, landlock=())
    if "no mount_setattr" in layers:
        linux._NR_MOUNT_SETATTR = 1000  # a number without a call
    if os.geteuid() == 0:
        os.setgroups([])
        linux.switch_user(_USER)
    if "namespaces" in layers:
        _behind_namespaces(policy, program)
    beside, _until = _unconfined_process()
    linux.no_new_privileges()
    if policy.landlock:
        landlock.restrict(policy.landlock)
    for code in policy.seccomp:
        linux.install_seccomp(bytes.fromhex(code))
    _run(program, beside)


def _unconfined_process() -> tuple[int, int]:
    """A process of the same user that is behind no wall, and the descriptor that keeps it alive.

    It ends with the program: it has the program's output open, and ``said`` reads that to its end.
    """
    end, until = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(until)
        os.read(end, 1)
        os._exit(0)
    os.close(end)
    return pid, until


def _behind_namespaces(policy: SandboxPolicy, program: str) -> None:
    hear, report = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        hear.close()
        enter(policy, report, lambda _: _fork_and_run(program))
    report.close()
    while word := hear.recv(4096):
        if word.startswith(b"!"):
            print("FAILED", word.decode())
    os._exit(0)


def _fork_and_run(program: str) -> None:
    if os.fork():
        os.wait()
        return
    linux.set_dumpable()
    _run(program)


def _run(program: str, beside: int = 0) -> None:
    try:
        exec(program, {"__name__": "__main__", "BESIDE": beside})
    except BaseException as e:
        print("ENDED", repr(e))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
