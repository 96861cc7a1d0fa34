"""How long a learner waits for the first TensorFlow output of a new session, beside a plain Jupyter kernel.

Both run the same code, one after the other, in one run of this script. Lockstep's time is from the request reaching
the supervisor's socket to the first output event coming back over it, a new session each time; Jupyter's is from
``start_kernel`` to the first output message. Goal: median 60 ms, 95th percentile 120 ms.

    python benchmarks/first_output.py [--quick] [--json]
"""

from __future__ import annotations

import asyncio
import time

from harness import FIRST_OUTPUT, Row, arguments, first_words, plain_kernel, plain_words, report, supervisor

_BETWEEN_S = 2.0
"""A pause between two sessions: one learner arrives after the other."""


async def of_lockstep(sessions: int) -> list[float]:
    """Milliseconds to the first output of new sessions."""
    async with supervisor() as lockstep:
        times = []
        for _ in range(sessions):
            await asyncio.sleep(_BETWEEN_S)
            session, words, seconds = await first_words(lockstep.client, FIRST_OUTPUT)
            assert words == "Replicas: 4, 42\n", words
            times.append(seconds * 1000)
            await lockstep.client.end(session)
        return times


async def of_jupyter() -> float:
    """Milliseconds to the first output of one plain kernel."""
    begun = time.perf_counter()
    async with plain_kernel() as (client, _):
        await plain_words(client, FIRST_OUTPUT, "Replicas")
        return (time.perf_counter() - begun) * 1000


async def measure(sessions: int, peers: int, as_json: bool) -> None:
    """Measure both and print the table."""
    warm = Row("Lockstep, new session", await of_lockstep(sessions), "ms")
    plain = Row("plain Jupyter kernel", [await of_jupyter() for _ in range(peers)], "ms")
    report([warm, plain], plain.median / warm.median, "times as fast as a plain kernel", as_json)


if __name__ == "__main__":
    asked = arguments(__doc__)
    asyncio.run(measure(*((8, 2) if asked.quick else (40, 5)), asked.json))
