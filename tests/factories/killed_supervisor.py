"""What has to be so after a supervisor was killed, whatever was killed before it."""

from __future__ import annotations

import signal

import psutil

from tests.factories.real_supervisor import RealSupervisor, SessionClient


async def expect_an_end_with_the_sessions(
    node: RealSupervisor, killed_before: list[psutil.Process], *, and_a_run: bool = True
) -> None:
    """Kill the supervisor of busy sessions after other processes: nothing of it remains, and the next one works.

    Without ``and_a_run``, the next one answers and cleans up, and nobody waits until it has imported TensorFlow.
    """
    async with node.client() as client:
        await SessionClient(client).run("import subprocess; p = subprocess.Popen(['setsid', 'sleep', '1000'])")
        await SessionClient(client).submit("while True: pass")
    folders, cgroups = node.folders(), node.cgroups()
    assert folders
    for process in killed_before:
        process.kill()

    node.stop(signal.SIGKILL)
    node.wait(lambda: not node.processes(), 10)
    node.launch()
    node.wait(node.health)
    node.wait(lambda: not [f for f in (*folders, *cgroups) if f.exists()], 10)
    assert not [p for p in psutil.disk_partitions(all=True) if p.mountpoint.startswith(str(node.folder))]
    if and_a_run:
        async with node.client() as client:
            assert (await SessionClient(client).run("1 + 1")).result == "2"
