"""Exercises on clusters, written as the guide for authors recommends, and attempts to pass them unsolved.

Those on one machine are in ``tests/functional/runner/test_cheats_by_kind.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from runners.wire import check_messages as messages
from runners.wire.client import RunnerClient
from tests.factories.real_supervisor import RealSupervisor
from tests.functional.runner.judged import Exercise

PARTITION = Exercise(
    topology="workers:2",
    needs=(
        """
        import json, os, time
        task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        """,
    ),
    solution="def records(ids): return ids[task::2]",
    checks="""
        @check("task", "Each record is read once")
        def once(work):
            ids = [int(n) for n in work.rng.choice(10**9, size=11, replace=False)]
            shards = work.per_task("records", ids)
            if not all(isinstance(shard, list) and all(type(n) is int for n in shard) for shard in shards):
                fail("Return a list of ids.")
            read = [record for shard in shards for record in shard]
            if len(read) > len(set(read)): fail("{got} records were read twice.", got=len(read) - len(set(read)))
            equal(sorted(read), sorted(ids))
            sizes = [len(shard) for shard in shards]
            if max(sizes) - min(sizes) > 1: fail("The shares are of different sizes.")
    """,
)
PARTITION_CHEATS = {
    "everything": ("def records(ids): return ids", "{got} records were read twice."),
    "everything for one worker": ("def records(ids): return [] if task else ids", "different sizes"),
    "nothing": ("def records(ids): return []", messages.WRONG_LENGTH),
    "the same half twice": ("def records(ids): return ids[::2]", "{got} records were read twice."),
    "ids that nobody has": ("def records(ids): return ids[:6] if task else list(range(5))", messages.DIFFERENT),
    "what the other has left, wherever that is": (
        """
        import glob, pickle
        def records(ids):
            for path in glob.glob("*.taken") + glob.glob("/tmp/*.taken") + glob.glob("/dev/shm/*.taken"):
                ids = [n for n in ids if n not in pickle.load(open(path, "rb"))]
            pickle.dump(ids, open(f"{task}.taken", "wb"))
            return ids
        """,
        "",
    ),
    "an answer for the other worker": (
        """
        import runners.guest.judging.submission as submission
        from runners.guest.reporting import publisher
        send = publisher.send
        def to_both(kind, content, lane=None):
            for each in ("worker 0", "worker 1"): send(kind, content, each)
        def records(ids):
            publisher.send = to_both
            return ids if task == 0 else time.sleep(1) or []
        """,
        "",
    ),
}
RECOVERY = Exercise(
    topology="workers:2",
    seconds=20,
    needs=(
        """
        import json, os
        import lockstep
        task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        """,
    ),
    solution="""
        def train(folder, numbers):
            path = f"{folder}-{task}"
            first, state = json.load(open(path)) if os.path.exists(path) else (0, 0.0)
            for step in range(first, len(numbers)):
                state = 0.9 * state + numbers[step]
                with open(path, "w") as file: json.dump((step + 1, state), file)
                lockstep.log(step + 1, loss=state)
            return state
    """,
    checks="""
        @check("task", "A failure changes nothing")
        def resumes(work):
            step = int(work.rng.integers(5, 15))
            before, after = ([float(n) for n in work.rng.normal(size=20)] for _ in range(2))
            folder = f"state-{work.rng.integers(10**9)}"
            work.call("train", folder, before, kill="worker 1", at_step=step)
            state = 0.0
            for number in before[:step] + after[step:]: state = 0.9 * state + number
            close(work.per_task("train", folder, after)[1], state)
    """,
)
LOOP = """
                state = 0.9 * state + number
                lockstep.log(step + 1, loss=state)
"""
RECOVERY_CHEATS = {
    "from the start again": (
        f"""
        def train(folder, numbers):
            state = 0.0
            for step, number in enumerate(numbers):{LOOP}
            return state
        """,
        messages.DIFFERENT,
    ),
    "the end computed beforehand": (
        f"""
        def train(folder, numbers):
            if os.path.exists(f"{{folder}}-{{task}}"): return float(open(f"{{folder}}-{{task}}").read())
            state = 0.0
            for number in numbers: state = 0.9 * state + number
            with open(f"{{folder}}-{{task}}", "w") as file: file.write(str(state))
            for step, number in enumerate(numbers):{LOOP}
            return state
        """,
        messages.DIFFERENT,
    ),
    "the data kept": (
        f"""
        def train(folder, numbers):
            path, state = f"{{folder}}-{{task}}", 0.0
            if os.path.exists(path): numbers = json.load(open(path))
            with open(path, "w") as file: json.dump(numbers, file)
            for step, number in enumerate(numbers):{LOOP}
            return state
        """,
        messages.DIFFERENT,
    ),
    "no steps to be killed at": (
        """
        def train(folder, numbers):
            state = 0.0
            for number in numbers: state = 0.9 * state + number
            return state
        """,
        messages.NOT_AT_STEP,
    ),
    "an end before the kill": (
        """
        def train(folder, numbers):
            if not os.path.exists(f"{folder}-{task}"):
                open(f"{folder}-{task}", "w").close()
                raise RuntimeError("killed")
            state = 0.0
            for number in numbers: state = 0.9 * state + number
            return state
        """,
        messages.RAISED,
    ),
    "the kill taken back": (
        f"""
        from runners.guest.cluster import task_context
        def train(folder, numbers):
            path, state, first = f"{{folder}}-{{task}}", 0.0, 0
            if os.path.exists(path): first, state = json.load(open(path))
            task_context.current_context().send_command("worker 1", "cancel")
            task_context.current_context().shared_state.take_failure(1)
            for step, number in list(enumerate(numbers))[first:]:{LOOP}
            with open(path, "w") as file: json.dump((len(numbers), state), file)
            return state
        """,
        messages.DIFFERENT,
    ),
}
EXERCISES = {"partition": (PARTITION, PARTITION_CHEATS), "recovery": (RECOVERY, RECOVERY_CHEATS)}


@pytest.fixture(scope="module")
def clusters() -> Iterator[RealSupervisor]:
    """A node with room for all tests."""
    node = RealSupervisor(limits__run_s=90, max_sessions=20)
    yield node.start()
    node.remove()


@pytest.fixture
async def client(clusters: RealSupervisor) -> AsyncIterator[RunnerClient]:
    """A client of that node."""
    async with clusters.client() as client:
        yield client


@pytest.mark.parametrize("exercise", [PARTITION, RECOVERY], ids=EXERCISES)
async def test_the_solution_of_each_kind_passes(client: RunnerClient, exercise: Exercise) -> None:
    told = await exercise.judge(client)
    assert told.verdict == "passed", [*told.checks, told.text[-1500:]]


@pytest.mark.parametrize(
    ("exercise", "code", "message"),
    [
        pytest.param(exercise, code, message, id=f"{kind}: {title}")
        for kind, (exercise, cheats) in EXERCISES.items()
        for title, (code, message) in cheats.items()
    ],
)
async def test_no_cheat_passes(client: RunnerClient, exercise: Exercise, code: str, message: str) -> None:
    told = await exercise.judge(client, code)
    (check,) = told.checks
    assert told.verdict == "failed", [*told.checks, told.text[-1500:]]
    assert message in check.message
