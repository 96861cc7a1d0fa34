"""``nvidia-smi`` in a session whose GPUs are simulated: how many they are, and what is true of them.

A program of its own, run by Python without anything else: sandboxes hold a copy of this file (``sandbox/policy.py``),
on the PATH only while GPUs are simulated. It is laid out in its own way, and says that there is no NVIDIA. A simulated
GPU has the session's memory, as have all the others; what nobody can know of it is ``[N/A]``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

FOLDER = "/opt/lockstep/bin"
"""Where a sandbox has it."""
COUNT = "LOCKSTEP_GPUS"
"""The variable of the environment that holds the number of simulated GPUs."""
NAME = "Lockstep simulated GPU"
"""What each of them is called."""

_MiB = 1 << 20
_WIDTH = 76
_NO_DEVICES = 6
_WRONG_USE = 2
_ASIDE = "nvidia-smi: simulated by Lockstep; memory is that of the session, which its GPUs share\n"
_KNOWN = (
    "nvidia-smi: simulated by Lockstep, it knows: nothing (a table), -L, -i INDEX, "
    "--query-gpu=FIELD,… --format=csv[,noheader][,nounits]\n"
)
_UNKNOWN = (
    *("driver_version", "vbios_version", "serial", "pci.bus_id", "pstate", "compute_cap", "compute_mode"),
    *("utilization.gpu", "utilization.memory", "temperature.gpu", "fan.speed", "power.draw", "power.limit"),
    *("clocks.sm", "clocks.mem", "clocks.gr"),
)
_UNITS = {"memory": "MiB", "utilization": "%", "power": "W", "clocks": "MHz", "fan": "%"}


@dataclass(frozen=True, slots=True)
class Machine:
    """What is known of the session.

    Attributes:
        gpus: how many are simulated.
        memory_mib: what the session may use, in MiB; None where that is not known.
        used_mib: what its processes use.
    """

    gpus: int
    memory_mib: int | None = None
    used_mib: int | None = None


class Answer(NamedTuple):
    """What is printed, and the exit status."""

    out: str = ""
    err: str = ""
    status: int = 0


_FIELDS: dict[str, Callable[[Machine, int], object]] = {
    "index": lambda _, i: i,
    "count": lambda machine, _: machine.gpus,
    "name": lambda *_: NAME,
    "gpu_name": lambda *_: NAME,
    "uuid": lambda _, i: f"GPU-simulated-{i}",
    "gpu_uuid": lambda _, i: f"GPU-simulated-{i}",
    "memory.total": lambda machine, _: machine.memory_mib,
    "memory.used": lambda machine, _: machine.used_mib,
    "memory.free": lambda machine, _: _free_mib(machine),
} | dict.fromkeys(_UNKNOWN, lambda *_: None)


def answer(arguments: Sequence[str], machine: Machine) -> Answer:
    """What ``nvidia-smi`` with these arguments says. Pure."""
    listing, fields, form, chosen = False, None, "", None
    rest = list(arguments)
    while rest:
        option, _, value = rest.pop(0).partition("=")
        if option in ("-i", "--id", "--query-gpu", "--format") and not value:
            value = rest.pop(0) if rest else ""
        match option:
            case "-L" | "--list-gpus":
                listing = True
            case "-i" | "--id" if value.isdecimal():
                chosen = int(value)
            case "--query-gpu" if value:
                fields = [field.strip() for field in value.split(",")]
            case "--format" if value:
                form = value
            case _:
                return Answer(err=_KNOWN, status=_WRONG_USE)
    gpus = [i for i in range(machine.gpus) if chosen in (None, i)]
    if not gpus:
        return Answer("No devices were found\n", "", _NO_DEVICES)
    if fields is not None:
        return _query(fields, form.split(","), gpus, machine)
    if listing:
        return Answer("".join(f"GPU {i}: {NAME} (UUID: GPU-simulated-{i})\n" for i in gpus))
    return Answer(_table(gpus, machine))


def _query(fields: list[str], form: list[str], gpus: list[int], machine: Machine) -> Answer:
    for field in fields:
        if field not in _FIELDS:
            return Answer(f'Field "{field}" is not a valid field to query.\n\n', _KNOWN, _WRONG_USE)
    if form[0] != "csv" or set(form) - {"csv", "noheader", "nounits"}:
        return Answer(err=_KNOWN, status=_WRONG_USE)
    rows = [[_value(field, _FIELDS[field](machine, i), "nounits" not in form) for field in fields] for i in gpus]
    if "noheader" not in form:
        rows.insert(0, [f"{field} [{unit}]" if (unit := _unit(field)) else field for field in fields])
    aside = _ASIDE if any(field.startswith("memory.") for field in fields) else ""
    return Answer("".join(", ".join(row) + "\n" for row in rows), aside)


def _value(field: str, value: object, with_unit: bool) -> str:
    if value is None:
        return "[N/A]"
    unit = _unit(field)
    return f"{value} {unit}" if unit and with_unit else str(value)


def _unit(field: str) -> str:
    return _UNITS.get(field.partition(".")[0], "")


def _table(gpus: list[int], machine: Machine) -> str:
    rule = "+" + "-" * _WIDTH + "+"
    rows = [f"{'GPU':>3}   {'Name':<24}   {'Driver':<6}   {'GPU-Util':<8}   Memory"]
    rows += [f"{i:>3}   {NAME:<24}   {'none':<6}   {'N/A':<8}   the session's" for i in gpus]
    lines = [
        rule,
        _line("nvidia-smi, simulated by Lockstep: there is no NVIDIA driver here, no CUDA"),
        _line("and no GPU. These devices share the CPU and the memory of this session."),
        rule,
        *map(_line, rows),
        rule,
        _line(f"Memory of the session, for all of them: {_session_memory(machine)}"),
        rule,
    ]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return f"| {text:<{_WIDTH - 2}} |"


def _session_memory(machine: Machine) -> str:
    used = "not known" if machine.used_mib is None else f"{machine.used_mib} MiB"
    return used if machine.memory_mib is None else f"{used} of {machine.memory_mib} MiB in use"


def _free_mib(machine: Machine) -> int | None:
    if machine.memory_mib is None or machine.used_mib is None:
        return None
    return max(0, machine.memory_mib - machine.used_mib)


def used_mib(proc: Path = Path("/proc")) -> int | None:
    """What the processes of this PID namespace use in MiB, shared pages in parts; None where none can be read."""
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
    count = os.environ.get(COUNT, "")
    said = answer(arguments, Machine(int(count) if count.isdecimal() else 0, int(memory), used_mib()))
    sys.stdout.write(said.out)
    sys.stdout.flush()
    sys.stderr.write(said.err)
    return said.status


if __name__ == "__main__":
    sys.exit(main())
