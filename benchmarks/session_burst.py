"""How long the last of many learners waits who all ask at once, beside plain Jupyter kernels started at once.

30 sessions are asked for in the same moment, several rounds on one supervisor (the first right after its start) and
12 plain kernels in the same moment, one round. All run the same code. Goal: 3 s to the last first output on 2 cores.

    python benchmarks/session_burst.py [--quick] [--json]
"""

from __future__ import annotations

import asyncio
import time
from statistics import median

from harness import FIRST_OUTPUT, Row, Supervisor, arguments, first_words, plain_kernel, plain_words, report, supervisor

LEARNERS = 30
_BETWEEN_S = 3.0


async def burst(lockstep: Supervisor) -> tuple[list[float], float]:
    """Seconds to each learner's first output, and CPU milliseconds a session."""
    before = lockstep.cpu_s()
    sessions = await asyncio.gather(*(first_words(lockstep.client, FIRST_OUTPUT) for _ in range(LEARNERS)))
    cpu_ms = (lockstep.cpu_s() - before) / LEARNERS * 1000
    assert {words for _, words, _ in sessions} == {"Replicas: 4, 42\n"}
    await asyncio.gather(*(lockstep.client.end(name) for name, _, _ in sessions))
    return [seconds for _, _, seconds in sessions], cpu_ms


async def of_jupyter(begun: float) -> float:
    """Seconds since ``begun`` to the first output of one plain kernel."""
    async with plain_kernel() as (client, _):
        await plain_words(client, FIRST_OUTPUT, "Replicas")
        return time.perf_counter() - begun


async def measure(rounds: int, peers: int, as_json: bool) -> None:
    """Measure both and print the table."""
    bursts = []
    async with supervisor() as lockstep:
        for _ in range(rounds):
            bursts.append(await burst(lockstep))
            await asyncio.sleep(_BETWEEN_S)
    begun = time.perf_counter()
    plain = await asyncio.gather(*(of_jupyter(begun) for _ in range(peers)))
    last = Row(f"Lockstep, last of {LEARNERS}", [max(times) for times, _ in bursts], "s", 2)
    rows = [
        last,
        Row("  the first of these rounds, last learner", [max(bursts[0][0])], "s", 2),
        Row("  learner in the middle", [median(times) for times, _ in bursts], "s", 2),
        Row("  CPU of supervisor and sandbox, a session", [cpu_ms for _, cpu_ms in bursts], "ms"),
        Row(f"plain Jupyter kernels, last of {peers}", [max(plain)], "s", 2),
    ]
    ratio = (max(plain) / peers) / (last.median / LEARNERS)
    report(rows, ratio, "times as many learners a second as plain kernels", as_json)


if __name__ == "__main__":
    asked = arguments(__doc__)
    asyncio.run(measure(*((2, 4) if asked.quick else (6, 12)), asked.json))
