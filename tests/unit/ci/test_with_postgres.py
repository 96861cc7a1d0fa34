"""The environment of a test run: its own server and folder, both removed afterward."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / ".ci" / "with-postgres"


def start(command: str) -> subprocess.Popen[str]:
    """Start it in its own process group, without a server, which would take a second.

    Nothing but a signal's default lets a shell catch it: tests that run in the background ignore interrupts.
    """
    environment = {**os.environ, "LOCKSTEP_TEST_POSTGRES_URL": "postgresql+asyncpg://elsewhere/tests"}
    with default_interrupts():
        return subprocess.Popen(
            [SCRIPT, "bash", "-c", command], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )


@contextmanager
def default_interrupts() -> Iterator[None]:
    """Started meanwhile, a program gets the default for an interrupt: Python's own handler is not inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_command_has_a_folder_that_is_gone_afterwards_and_its_own_exit_status() -> None:
    process = start('touch "$TMPDIR/file"; echo "$TMPDIR $LOCKSTEP_TEST_POSTGRES_URL"; exit 3')
    out, _ = process.communicate(timeout=60)
    folder, url = out.split()
    assert process.returncode == 3
    assert url == "postgresql+asyncpg://elsewhere/tests"
    assert Path(folder).is_absolute()
    assert not Path(folder).parent.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_no_folder_behind(number: signal.Signals) -> None:
    wait = "import os, time; print(os.environ['TMPDIR'], flush=True); time.sleep(600)"
    # No shell waits here for a program to end: one that ends well takes an interrupt away from its shell.
    process = start(f'touch "$TMPDIR/file"; exec python3 -c "{wait}" 2>/dev/null')
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder.is_dir()
    os.killpg(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == -number
    assert not folder.parent.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_what_a_command_left_mounted_is_unmounted() -> None:
    process = start(
        'mkdir "$TMPDIR/disk" && mount -t tmpfs tmpfs "$TMPDIR/disk" && touch "$TMPDIR/disk/x"; echo "$TMPDIR"'
    )
    out, _ = process.communicate(timeout=60)
    assert not Path(out.strip()).parent.exists()
    assert out.strip() not in Path("/proc/mounts").read_text()
