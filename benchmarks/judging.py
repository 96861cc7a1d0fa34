"""How long a learner waits for the verdict on a submission, beside nbgrader's autograding of the same exercise.

The exercise: divide a loss by the right number, on four simulated GPUs, with TensorFlow, without training; judged in
three fresh sandboxes, with a reference, on hidden inputs. "At the supervisor" is the time from the request at its
socket to the last event; "click to verdict" is that of a learner in Chromium, from the click on Check until the page
shows the verdict. nbgrader's time is that of ``nbgrader autograde``: one fresh kernel, in which the submission and the
tests share a process, on fixed inputs. It is installed in an environment of its own, which ``--peer`` keeps.
Goals: median 300 ms; ten at once within 3 s on 2 cores.

    python benchmarks/judging.py [--quick] [--json] [--peer FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import PLAIN_ENVIRONMENT, Row, Supervisor, report, supervisor
from page_throughput import LOCKSTEP, serving
from playwright.async_api import async_playwright

from runners.wire.client import RunnerClient
from runners.wire.protocol import Judgement, NeededCell, RunRequest, SessionSpec, submission_verdict

AT_ONCE = 10
_BETWEEN_S = 1.0
_LESSON = """\
---
title: A loss
summary: It is divided by the global batch.
minutes: 5
status: published
topology: gpu:4
---

```{code-cell} python
:name: strategy

%(needed)s
```

```{code-cell} python
:name: loss
:tags: [exercise]
:needs: [strategy]

### BEGIN SOLUTION
%(starter)s
%(solution)s
### END SOLUTION
```
"""
"""Its starter solves the exercise, so that a click is enough to pass."""
_COURSE = """\
title.en = "A course"
summary.en = "One exercise."

[[modules]]
slug = "first"
title.en = "First"
lessons = ["loss"]
"""
_CLICK = """panel => new Promise(done => {
  const begun = performance.now();
  const line = panel.querySelector(".exercise-status");
  const over = () => ["good", "bad"].includes(line.dataset.tone) && done(performance.now() - begun);
  panel.querySelector("[data-action=check]").click();
  new MutationObserver(over).observe(line, {attributes: true, attributeFilter: ["data-tone"]});
})"""
"""Resolves with milliseconds, in the page: no time of the driver is in them."""
NEEDED = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\nGLOBAL = 8"
SOLUTION = "def loss_of(losses):\n    return tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL)"
CHECKS = """
from runners.checks import check, close

@check("loss", "The loss is divided by the global batch", xp=20)
def divided(work):
    losses = work.rng.normal(size=6).astype("float32")
    want = work.reference("loss_of", losses, topology="cpu")
    close(work.call("loss_of", losses), want, mistakes={"divided by the replica's batch": losses.mean()})

@check("loss", "It also holds for one example")
def one(work):
    losses = work.rng.normal(size=1).astype("float32")
    close(work.call("loss_of", losses), work.reference("loss_of", losses, topology="cpu"))
"""
TESTS = """
import numpy as np
for losses in (np.float32([1, 2, 3, 4, 5, 6]), np.float32([3])):
    assert np.allclose(loss_of(losses), losses.sum() / 8, rtol=1e-4), "divided by something else"
"""
_NBGRADER = "nbgrader==0.9.5"


async def verdict_ms(client: RunnerClient) -> float:
    """Milliseconds from the request to the verdict on the solution, by a learner of its own."""
    name = secrets.token_hex(8)
    needs = (NeededCell(name="strategy", code=NEEDED),)
    judgement = Judgement(exercise="loss", needs=needs, solution=SOLUTION, checks=CHECKS)
    spec = SessionSpec(owner=name, topology="gpu:4")
    begun = time.perf_counter()
    await client.submit(RunRequest(id=name, session=name, spec=spec, code=SOLUTION, judgement=judgement))
    events = [event async for event in client.events(name)]
    took = time.perf_counter() - begun
    end = events[-1]
    assert end.kind == "finished"
    verdict = submission_verdict(end.outcome, [event.outcome for event in events if event.kind == "check"])
    assert verdict == "passed", events
    return took * 1000


async def of_lockstep(singles: int, bursts: int) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of clicks and of single judgements, and seconds to the last of ten asked for at once."""
    async with supervisor() as lockstep:
        await verdict_ms(lockstep.client)  # from then on a kernel for the judge is warm, as on any site in use
        times, lasts = [], []
        for _ in range(singles):
            await asyncio.sleep(_BETWEEN_S)
            times.append(await verdict_ms(lockstep.client))
        for _ in range(bursts):
            await asyncio.sleep(3 * _BETWEEN_S)
            lasts.append(max(await asyncio.gather(*(verdict_ms(lockstep.client) for _ in range(AT_ONCE)))) / 1000)
        return await in_browser(lockstep, singles), times, lasts


# --- a learner in a browser ------------------------------------------------------------------------------------------


async def in_browser(supervised: Supervisor, clicks: int) -> list[float]:
    """Milliseconds from a click on Check to the verdict on the page, served by one web process."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lesson = root / "lessons" / "course" / "loss"
        lesson.mkdir(parents=True)
        starter = "\n".join(f"#: {line}" for line in SOLUTION.splitlines())
        (lesson / "lesson.md").write_text(
            _LESSON % {"needed": NEEDED, "solution": f"{SOLUTION}  # solved", "starter": starter}
        )
        (lesson / "checks.py").write_text(CHECKS)
        (lesson.parent / "course.toml").write_text(_COURSE)
        chosen = {"DATA_DIR": root, "LESSONS_DIR": root / "lessons", "RUNNER_SOCKET": supervised.socket}
        settings = {f"LOCKSTEP_{name}": str(value) for name, value in chosen.items()}
        page = "/en/courses/course/loss"
        with serving(root, *LOCKSTEP, "serve", probe=page, **{**PLAIN_ENVIRONMENT, **settings}) as server:
            return await _clicked(f"http://127.0.0.1:{server.port}{page}", clicks)


async def _clicked(address: str, clicks: int) -> list[float]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        page = await (await browser.new_context()).new_page()
        await page.goto(address)
        panel = page.locator("#exercise-loss")
        times = []
        for _ in range(clicks + 1):
            await asyncio.sleep(_BETWEEN_S)
            times.append(float(await panel.evaluate(_CLICK)))
            await panel.and_(page.locator(":not([data-at-work])")).wait_for()
            assert "2 of 2" in await panel.locator(".exercise-status").inner_text()
            assert await panel.locator(".exercise-body").get_attribute("data-verdict") == "passed"
        await browser.close()
        return times[1:]


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)


# --- the peer -------------------------------------------------------------------------------------------------------


def install_nbgrader(folder: Path) -> Path:
    """An environment with nbgrader, which sees TensorFlow and Jupyter in ours. Returns its ``nbgrader``."""
    program = folder / "bin" / "nbgrader"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        (packages,) = folder.glob("lib/python3*/site-packages")
        (packages / "ours.pth").write_text(sysconfig.get_path("purelib"))
        python = str(folder / "bin" / "python")
        pip = [python, "-m", "pip", "install", "-q"]
        subprocess.run([*pip, _NBGRADER], check=True)
        subprocess.run([*pip, "--no-deps", "--ignore-installed", "alembic"], check=True)  # nbgrader starts it by name
        install = [python, "-m", "ipykernel", "install", "--prefix", str(folder), "--name", "python3"]
        subprocess.run(install, check=True, capture_output=True)
    return program


class Course:
    """An nbgrader course with the exercise, and as many submissions of the solution as are asked for."""

    def __init__(self, folder: Path, program: Path) -> None:
        self._folder = folder
        self._program = program
        self._submitted = 0
        self._write(folder / "source" / "loss" / "loss.ipynb", "def loss_of(losses):\n    raise NotImplementedError")
        self._nbgrader("generate_assignment", "loss", "--create")

    def submit(self, number: int) -> None:
        """Hand in the solution of so many more learners."""
        for _ in range(number):
            self._submitted += 1
            self._write(self._folder / "submitted" / f"s{self._submitted}" / "loss" / "loss.ipynb", SOLUTION)

    def autograde_s(self) -> float:
        """Seconds to grade what is not graded yet, in one command."""
        begun = time.perf_counter()
        self._nbgrader("autograde", "loss", "--create")
        took = time.perf_counter() - begun
        graded = list((self._folder / "autograded").glob("*/loss/loss.ipynb"))
        assert len(graded) == self._submitted, "nbgrader has not graded every submission"
        return took

    def _nbgrader(self, *arguments: str) -> None:
        command = [str(self._program), *arguments, "--ExecutePreprocessor.timeout=600"]
        path = os.pathsep.join((str(self._program.parent), os.environ["PATH"]))
        done = subprocess.run(command, cwd=self._folder, env=PLAIN_ENVIRONMENT | {"PATH": path}, capture_output=True)
        if done.returncode:
            raise SystemExit(done.stderr.decode())

    def _write(self, path: Path, answer: str) -> None:
        path.parent.mkdir(parents=True)
        cells = [
            _cell("needed", NEEDED, locked=True),
            _cell("answer", f"### BEGIN SOLUTION\n{answer}\n### END SOLUTION" if "source" in path.parts else answer),
            _cell("tests", TESTS, locked=True, points=1),
        ]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        path.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


def _cell(name: str, source: str, *, locked: bool = False, points: int | None = None) -> dict[str, Any]:
    marks: dict[str, Any] = {"grade_id": name, "locked": locked, "schema_version": 3, "cell_type": "code"}
    marks |= {"grade": points is not None, "solution": not locked, "task": False}
    marks |= {} if points is None else {"points": points}
    cell: dict[str, Any] = {"cell_type": "code", "id": name, "source": source, "outputs": [], "execution_count": None}
    return cell | {"metadata": {"nbgrader": marks}}


def of_nbgrader(program: Path, singles: int) -> tuple[list[float], list[float]]:
    """Milliseconds of single submissions, each a command; and seconds for ten in one command."""
    with tempfile.TemporaryDirectory() as folder:
        course = Course(Path(folder), program)
        times = []
        for _ in range(singles):
            course.submit(1)
            times.append(course.autograde_s() * 1000)
        course.submit(AT_ONCE)
        return times, [course.autograde_s()]


async def measure(singles: int, bursts: int, peers: int, peer: Path, as_json: bool) -> None:
    """Measure both and print the table."""
    program = install_nbgrader(peer)
    clicks, ours, ours_at_once = await of_lockstep(singles, bursts)
    theirs, theirs_at_once = await asyncio.to_thread(of_nbgrader, program, peers)
    rows = [
        Row("Lockstep, click to verdict", clicks, "ms"),
        Row("Lockstep, at the supervisor", ours, "ms"),
        Row(f"Lockstep, last of {AT_ONCE} at once", ours_at_once, "s", 2),
        Row("nbgrader autograde, one submission", theirs, "ms"),
        Row(f"nbgrader autograde, {AT_ONCE} submissions", theirs_at_once, "s", 2),
    ]
    report(rows, rows[3].median / rows[0].median, "times as fast as nbgrader", as_json)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    parser.add_argument("--peer", type=Path, help="where nbgrader is installed; default: a folder that is removed")
    asked = parser.parse_args()
    kept = asked.peer or Path(tempfile.mkdtemp(prefix="nbgrader-"))
    try:
        asyncio.run(measure(*((10, 2, 1) if asked.quick else (40, 5, 3)), kept.absolute(), asked.json))
    finally:
        if not asked.peer:
            shutil.rmtree(kept, ignore_errors=True)
