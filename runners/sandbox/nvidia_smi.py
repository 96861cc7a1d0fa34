"""``nvidia-smi`` in a session with simulated GPUs: lists them, and tells the truth about them.

A standalone program without dependencies: sandboxes have a copy of this file (``sandbox/policy.py``), which is on the
PATH only if GPUs are simulated. Its layout is its own, and it says that there is no NVIDIA hardware. All simulated GPUs
share the session's memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROGRAM_FOLDER = "/opt/lockstep/bin"
"""Its folder in a sandbox."""
GPU_COUNT_VARIABLE = "LOCKSTEP_GPUS"
"""The environment variable that holds the number of simulated GPUs."""
GPU_NAME = "Lockstep simulated GPU"
"""The name of each of them."""

_MiB = 1 << 20
_WIDTH = 76
_NO_DEVICES = 6
_WRONG_USE = 2
_KNOWN = "nvidia-smi: simulated by Lockstep. Run it without arguments for a table, or with -L for a list.\n"


@dataclass(frozen=True, slots=True)
class SessionResources:
    """The session's GPUs and memory.

    Attributes:
        gpus: the number of simulated GPUs.
        memory_mib: what the session may use, in MiB.
        used_mib: what its processes use; None if unknown.
    """

    gpus: int
    memory_mib: int
    used_mib: int | None = None


class SmiOutput(NamedTuple):
    """The printed text and the exit status."""

    out: str = ""
    err: str = ""
    status: int = 0


def respond(arguments: Sequence[str], machine: SessionResources) -> SmiOutput:
    """Compute the output of ``nvidia-smi`` with these arguments. Pure."""
    if arguments and list(arguments) not in (["-L"], ["--list-gpus"]):
        return SmiOutput(err=_KNOWN, status=_WRONG_USE)
    if not machine.gpus:
        return SmiOutput("No devices were found\n", "", _NO_DEVICES)
    if arguments:
        return SmiOutput("".join(f"GPU {i}: {GPU_NAME} (UUID: GPU-simulated-{i})\n" for i in range(machine.gpus)))
    return SmiOutput(_table(machine))


def _table(machine: SessionResources) -> str:
    rule = "+" + "-" * _WIDTH + "+"
    rows = [f"{'GPU':>3}   {'Name':<24}   {'Driver':<6}   {'GPU-Util':<8}   Memory"]
    rows += [f"{i:>3}   {GPU_NAME:<24}   {'none':<6}   {'N/A':<8}   the session's" for i in range(machine.gpus)]
    used = "not known" if machine.used_mib is None else f"{machine.used_mib} MiB"
    lines = [
        rule,
        _line("nvidia-smi, simulated by Lockstep: there is no NVIDIA driver here, no CUDA"),
        _line("and no GPU. These devices share the CPU and the memory of this session."),
        rule,
        *map(_line, rows),
        rule,
        _line(f"Memory of the session, for all of them: {used} of {machine.memory_mib} MiB in use"),
        rule,
    ]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return f"| {text:<{_WIDTH - 2}} |"


def used_mib(proc: Path = Path("/proc")) -> int | None:
    """Memory of the processes in this PID namespace in MiB, shared pages in proportion; None if it cannot be read."""
    sizes = [size for folder in proc.iterdir() if folder.name.isdecimal() and (size := _share(folder)) is not None]
    return sum(sizes) // _MiB if sizes else None


def _share(process: Path) -> int | None:
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), None)


def main() -> int:
    """Run as ``smi.py MEMORY_MIB [ARGUMENT …]``."""
    memory, *arguments = sys.argv[1:]
    count = os.environ.get(GPU_COUNT_VARIABLE, "")
    said = respond(arguments, SessionResources(int(count) if count.isdecimal() else 0, int(memory), used_mib()))
    sys.stdout.write(said.out)
    sys.stdout.flush()
    sys.stderr.write(said.err)
    return said.status


if __name__ == "__main__":
    sys.exit(main())
