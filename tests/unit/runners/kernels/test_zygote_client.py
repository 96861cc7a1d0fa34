"""A zygote that does not start, as its supervisor sees it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runners.config.settings import RunnerSettings
from runners.kernels import zygote_client
from runners.kernels.zygote_client import ZygoteClient
from runners.sandbox import zygote_command
from runners.sandbox.cgroups import NullCgroupManager
from runners.sandbox.user_pool import UserPool


async def trouble_of(folder: Path) -> list[str]:
    """The first and the second error."""
    zygote = ZygoteClient(RunnerSettings(data_dir=folder), 3, folder, NullCgroupManager(), UserPool(range(0)))
    zygote.keep()
    troubles: list[str] = []
    try:
        async with asyncio.timeout(30):
            while len(troubles) < 2:
                await asyncio.sleep(0.02)
                if zygote.trouble:
                    troubles.append(zygote.trouble)
                    zygote.trouble = None
    finally:
        await zygote.close()
    return troubles


async def test_whatever_goes_wrong_it_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistake() -> None:
        raise LookupError("a mistake of ours")

    monkeypatch.setattr(zygote_client, "compile_filters", mistake)

    assert await trouble_of(tmp_path) == ["a mistake of ours"] * 2


async def test_one_that_hangs_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(zygote_command, "zygote_command", lambda *_: (sleep, "none"))
    monkeypatch.setattr(zygote_client, "_START_S", 0.1)

    assert await trouble_of(tmp_path) == ["the zygote was not ready within 0.1 s"] * 2


SAYS_WHAT_HAS_MOVED = """
import json, socket, time
patch = dict(subject="gpu_names", when="gpu", target="tensorflow:device", changes=True, because="-", since="-",
             upstream=None, test="-", state="moved", problem="tensorflow:device: it does not exist.")
supervisor = socket.socket(fileno={descriptor})
supervisor.send(json.dumps(dict(ready=True, patches=[patch])).encode())
time.sleep(60)
"""


async def test_a_patch_that_no_longer_fits_is_named_in_the_log_when_the_zygote_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(_: object, arguments: list[str], *__: object) -> tuple[list[str], str]:
        program = SAYS_WHAT_HAS_MOVED.format(descriptor=arguments[arguments.index("--socket") + 1])
        return [sys.executable, "-S", "-c", program], "none"

    monkeypatch.setattr(zygote_command, "zygote_command", command)
    zygote = ZygoteClient(RunnerSettings(data_dir=tmp_path), 3, tmp_path, NullCgroupManager(), UserPool(range(0)))
    try:
        with capture_logs() as logged:
            await zygote._start()
    finally:
        await zygote.close()

    assert [entry["problem"] for entry in logged] == ["tensorflow:device: it does not exist."]
    assert [patch.state for patch in zygote.patches] == ["moved"]


@pytest.mark.parametrize(
    ("why", "replaced"),
    [("[Errno 11] Resource temporarily unavailable", False), ("user 61001: [Errno 12] No memory", False), ("no", True)],
)
def test_one_that_refuses_is_replaced_unless_the_machine_is_full(
    why: str, replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zygote = ZygoteClient(RunnerSettings(data_dir=tmp_path), 3, tmp_path, NullCgroupManager(), UserPool(range(0)))
    stopped: list[str] = []
    monkeypatch.setattr(zygote, "_stop", lambda: stopped.append(why))

    for _ in range(3):
        zygote._count_refusal(why)

    assert stopped == [why] * replaced
