"""What the processes that a test looks at are; one may end while it is looked at, and then it is nothing."""

from __future__ import annotations

import psutil


def children(process: psutil.Process | int, *, all_below: bool = False) -> list[psutil.Process]:
    """Its children, or all that is below it; none if it has ended."""
    try:
        parent = psutil.Process(process) if isinstance(process, int) else process
        return list(parent.children(recursive=all_below))
    except psutil.NoSuchProcess:
        return []


def command_line(process: psutil.Process) -> list[str]:
    """Its arguments; none if it has ended, a zombie included."""
    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def name(process: psutil.Process) -> str:
    """The name of its program; empty if it has ended."""
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""


def ended(process: psutil.Process) -> bool:
    """Whether it has ended; a zombie has."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def web_processes(server: psutil.Process | int, *, all_below: bool = False) -> list[psutil.Process]:
    """Those that Uvicorn has started among a server's children, or anywhere below it."""
    return [p for p in children(server, all_below=all_below) if "spawn_main" in " ".join(command_line(p))]
