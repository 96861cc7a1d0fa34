"""Submissions that want to pass without solving the exercise, or to take the judge down. None passes, none harms."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace

import pytest

from runners.wire import check_messages as messages
from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from runners.wire.reports import ANSWER
from tests.factories.real_supervisor import RealSupervisor
from tests.functional.runner.judged import Exercise

SECRET = "the-sum-of-squares-7f3a"
"""Stands in the checks and in the solution; no submission may see it."""

UNSEEN = Exercise(
    needs=("import numpy as np\nimport os, sys\nSCALE = 8",),
    seconds=5,
    solution=f"""
        def scaled(x):  # {SECRET}
            return np.sum(x ** 2) / SCALE
    """,
    checks=f"""
        NAME = "{SECRET}"
        @check("task", "Equals the reference")
        def equals(work):
            x = work.rng.uniform(4, 9, size=7)  # so that no cheat guesses the result
            close(work.call("scaled", x), work.reference("scaled", x), mistakes={{"{SECRET}": 0.0}})
    """,
)
PASSED = json.dumps({"results": [{"name": "Equals the reference", "outcome": "passed"}], "request": None})
FORGED = f"""
    from IPython.display import display
    def forge(text):
        display({{{ANSWER!r}: text, "application/vnd.lockstep.check": text}}, raw=True)
        get_ipython().kernel.publish("display_data", {{"data": {{{ANSWER!r}: text}}, "metadata": {{}}}}, "worker 0")
"""

CHEATS = {
    "a constant": "def scaled(x): return 1.0",
    "zero, as the mistake": "def scaled(x): return 0.0",
    "nothing": "",
    "not a number": "def scaled(x): return float('nan')",
    "infinity": "def scaled(x): return np.inf",
    "an array that would broadcast": "def scaled(x): return np.zeros(0)",
    "text": "def scaled(x): return str(np.sum(x ** 2) / SCALE)",
    "an object that equals everything": """
        class Equal(float):
            def __eq__(self, other): return True
            def __sub__(self, other): return 0.0
            __rsub__ = __sub__
            def __hash__(self): return 0
        def scaled(x): return Equal(3)
    """,
    "an object with a method numpy": """
        class Tensor:
            __array_priority__ = 1000
            def numpy(self): return self
        def scaled(x): return Tensor()
    """,
    "a subclass of arrays": """
        class Equal(np.ndarray):
            def tobytes(self): return b"\\0" * 8
            def __array_finalize__(self, other): pass
        def scaled(x): return np.zeros(()).view(Equal)
    """,
    "patched NumPy": """
        for module in (np, np.core.numeric if hasattr(np, "core") else np):
            for name in ("allclose", "isclose", "array_equal", "isfinite"):
                if hasattr(module, name): setattr(module, name, lambda *_, **__: True)
        def scaled(x): return 1.0
    """,
    "a patched comparison": """
        import runners.checks.compare as compare, runners.checks.results as results
        import runners.guest.judging.judge as judge
        compare.close = compare.equal = compare._compare = lambda *_, **__: None
        results.run_check = judge.run_check = lambda check, work: results.JudgedCheck(check.name, "passed")
        def scaled(x): return 1.0
    """,
    "a forged verdict from the cell": FORGED + f"    forge({PASSED!r})\n    def scaled(x): return 1.0",
    "a forged verdict from a call": FORGED + f"    def scaled(x):\n        forge({PASSED!r})\n        return 1.0",
    "a forged verdict in the place of the answer": FORGED
    + f"""
    import runners.guest.judging.submission as submission
    submission.answer = lambda request: forge({PASSED!r})
    """,
    "a forged verdict after the end": FORGED
    + f"""
    import threading, time
    def forever():
        while True:
            time.sleep(0.002)
            forge({PASSED!r})
    threading.Thread(target=forever, daemon=True).start()
    def scaled(x): return 1.0
    """,
    "lines that look like events": """
        print('{"kind": "check", "seq": 2, "name": "Equals the reference", "outcome": "passed"}', flush=True)
        def scaled(x): return 1.0
    """,
    "an end that looks well": "def scaled(x): sys.exit(0)",
    "an end at once": "def scaled(x): os._exit(0)",
    "an end of the cell at once": "os._exit(0)",
    "an end by signal": "import signal\ndef scaled(x): os.kill(os.getpid(), signal.SIGKILL)",
    "an end of everything": "def scaled(x):\n    try: os.kill(-1, 9)\n    finally: return 1.0",
    "a fork": "def scaled(x):\n    os.fork()\n    return 1.0",
    "many forks": "def scaled(x):\n    while True: os.fork()",
    "every descriptor": """
        def scaled(x):
            for number in range(3, 1024):
                try: os.set_blocking(number, False); os.write(number, b'{"outcome": "passed"}\\n' * 99)
                except OSError: pass
            return 1.0
    """,
    "two gigabytes": "def scaled(x): return np.zeros(2 ** 28)",
    "two gigabytes that are there": "def scaled(x): return np.ones(2 ** 28) + 1",
    "a text of many megabytes": "def scaled(x): return 'x' * 50_000_000",
    "ten thousand lists": """
        def scaled(x):
            deep = []
            for _ in range(10_000): deep = [deep]
            return deep
    """,
    "a list in itself": "def scaled(x):\n    own = []\n    own.append(own)\n    return own",
    "a million numbers": "def scaled(x): return [0.0] * 1_000_000",
    "a recursion": "def scaled(x): return scaled(x)",
    "a flood of text": "def scaled(x):\n    while True: print('x' * 10_000)",
    "other random numbers": "import tensorflow as tf\ntf.random.set_seed = None\ndef scaled(x): return 1.0",
    "no source": "\0",
    "too many brackets": "x = " + "(" * 5_000 + ")" * 5_000,
}
"""By what is tried."""
LONG_CHEATS = {
    *("zero, as the mistake", "not a number", "infinity", "an array that would broadcast", "text"),
    *("a subclass of arrays", "an object with a method numpy", "a forged verdict from a call"),
    *("an end of the cell at once", "an end of everything", "many forks", "two gigabytes that are there"),
    *("a text of many megabytes", "ten thousand lists", "a million numbers", "a flood of text"),
    *("other random numbers", "too many brackets"),
}
"""Others of the same kind are in the main tier."""

RAISED = repr(messages.RAISED)
MALFORMED = [
    "''",
    "'nonsense'",
    "'[' * 50_000",
    "json.dumps({'value': 3})",
    "json.dumps({'value': '[' * 100})",
    "json.dumps({'value': json.dumps({'array': '|O8', 'shape': [1], 'data': 'AAAAAAAAAAA='})})",
    "json.dumps({'value': json.dumps({'array': '<f8', 'shape': [1 << 30, 4], 'data': ''})})",
    "json.dumps({'value': json.dumps({'array': '<U1', 'shape': [1], 'data': '////fw=='})})",
    "json.dumps({'value': 'NaN'})",
    "json.dumps({'failed': 'passed', 'values': {}})",
    f"json.dumps({{'failed': {RAISED}, 'values': {{'error': 'x' * 4_000_000, 'text': chr(0xd800) + chr(0)}}}})",
    f"json.dumps({{'failed': {RAISED}, 'values': {{str(n): [n] for n in range(10_000)}}}})",
    "json.dumps({'fault': 'it was not me', 'value': '1.0'})",
    "'x' * (6 << 20)",
]
"""Answers, as expressions."""


@pytest.mark.parametrize(
    "cheat",
    [
        pytest.param(cheat, id=name, marks=[pytest.mark.long] if name in LONG_CHEATS else [])
        for name, cheat in CHEATS.items()
    ],
)
async def test_nothing_but_the_solution_passes(client: RunnerClient, cheat: str) -> None:
    told = await UNSEEN.judge(client, cheat)
    assert told.verdict == "failed", told.checks
    assert told.outcome in (Outcome.ok, Outcome.error, Outcome.crash)
    assert len(told.checks) == 1
    assert len(repr(told.checks)) < 20_000


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answer, id=answer[:40], marks=[pytest.mark.long] if number > 4 else [])
        for number, answer in enumerate(MALFORMED)
    ],
)
async def test_a_malformed_answer_is_an_error_of_the_submission(client: RunnerClient, answer: str) -> None:
    code = (
        FORGED
        + f"""
    import runners.guest.judging.submission as submission
    submission.answer = lambda request: forge({answer!r})
    """
    )
    told = await UNSEEN.judge(client, code)
    assert told.verdict == "failed", told.checks
    assert told.checks[0].outcome in ("error", "failed")
    assert len(repr(told.checks)) < 20_000


async def test_a_function_that_ignores_interrupts_is_ended(client: RunnerClient) -> None:
    code = """
        def scaled(x):
            while True:
                try:
                    while True: pass
                except BaseException: pass
    """
    told = await UNSEEN.judge(client, code)
    assert [check.outcome for check in told.checks] == ["too-slow"]


@pytest.mark.long
@pytest.mark.parametrize("planted", [False, True], ids=["as it is", "planted, to be found"])
async def test_checks_and_solution_are_nowhere_in_the_sandbox_of_the_submission(
    client: RunnerClient, planted: bool
) -> None:
    """Search files, all of the process's memory, its stack, its environment, and the other processes."""
    code = """
        import inspect, re
        word = re.compile(b"sum-of-s[q]uares-7f3a")
        def look(where, data):
            if word.search(data): print("FOUND in", where, flush=True)
        def scaled(x):
            look("stack", repr([(f.frame.f_locals, f.frame.f_globals) for f in inspect.stack()]).encode())
            for folder, _, names in os.walk("/"):
                if folder.startswith(("/usr", "/sys", "/lib")) or "/site-packages/" in folder: continue
                for name in names:
                    try:
                        path = os.path.join(folder, name)
                        if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                            look(path, open(path, "rb").read())
                    except OSError: pass
            with open("/proc/self/mem", "rb", 0) as memory, open("/proc/self/maps") as maps:
                for line in maps.read().splitlines():
                    begin, end = (int(n, 16) for n in line.split()[0].split("-"))
                    if "r" not in line.split()[1] or line.endswith((".so", "[vvar]", "[vsyscall]")): continue
                    try:
                        memory.seek(begin)
                        while begin < end:
                            data = memory.read(min(end - begin, 1 << 24))
                            begin += len(data)
                            look(line, data)
                    except (OSError, ValueError, OverflowError): continue
            print("looked", flush=True)
            return 1.0
    """
    needs = (*UNSEEN.needs, f"found = '{SECRET}'") if planted else UNSEEN.needs
    told = await replace(UNSEEN, seconds=200, needs=needs).judge(client, code)
    assert "looked" in told.text, told
    assert ("FOUND in " in told.text) == planted


MEASURED = Exercise(
    needs=(
        """
        calls = []

        def measure(values):
            calls.clear()
            return total(lambda n: calls.append(n) or values[n], len(values)), len(calls)
        """,
    ),
    solution="def total(value, count): return sum(value(n) for n in range(count))",
    checks="""
        from runners.checks import untouched
        @check("task", "Asks for each value once")
        def once(work):
            untouched(work, "measure", "calls")
            values = work.rng.integers(1, 100, size=9).tolist()
            equal(work.call("measure", values), (sum(values), 9))
    """,
)
FORGED_MEASUREMENTS = {
    "a function of the same name": "def measure(values): return sum(values), len(values)",
    "a magic": "%time measure = lambda values: (sum(values), len(values))",
    "a line that only looks like a magic": (
        'x = """\n%"""; measure = lambda values: (sum(values), len(values))\ny = """\n%"""'
    ),
    "an attribute of the module": "import __main__\n__main__.measure = lambda values: (sum(values), len(values))",
    "the namespace of another function": """
        def find(): pass
        find.__globals__["mea" + "sure"] = lambda values: (sum(values), len(values))
    """,
    "text that is executed": "exec('mea' + 'sure = lambda values: (sum(values), len(values))')",
    "the counter": """
        def total(value, count):
            result = sum(value(n) + value(n) for n in range(count)) / 2
            del calls[count:]
            return int(result)
    """,
}


async def test_a_given_function_measures_what_the_solution_does(client: RunnerClient) -> None:
    told = await MEASURED.judge(client)
    assert told.verdict == "passed", told.checks


@pytest.mark.parametrize("cheat", FORGED_MEASUREMENTS.values(), ids=FORGED_MEASUREMENTS)
async def test_what_a_given_function_measures_cannot_be_forged(client: RunnerClient, cheat: str) -> None:
    unsolved = "" if "def total" in cheat else "\ndef total(value, count): return value(0)\n"
    told = await MEASURED.judge(client, textwrap.dedent(cheat) + unsolved)
    assert told.verdict == "failed", told.checks


async def test_after_all_that_the_node_judges_as_before(node: RealSupervisor, client: RunnerClient) -> None:
    told = await UNSEEN.judge(client)
    assert told.verdict == "passed", told.checks
    assert node.health()["status"] == "ready"
