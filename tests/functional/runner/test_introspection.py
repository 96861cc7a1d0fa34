"""Completion and documentation from the kernel of a session, which may be busy, slow or hostile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from runners.wire.client import RequestRefused, ResourceNotFound
from runners.wire.protocol import MAX_CODE_BYTES, Introspection, IntrospectionRequest, Outcome, SessionState
from tests.factories.real_supervisor import SessionClient

TENSORFLOW = "import tensorflow as tf\n"


async def completed(learner: SessionClient, code: str) -> Introspection:
    """What the session's kernel offers at the end of the code."""
    request = IntrospectionRequest(kind="complete", code=code, cursor=len(code))
    return await learner.client.introspect(learner.session, request)


async def inspected(learner: SessionClient, code: str) -> Introspection:
    """What it says about the end of the code."""
    request = IntrospectionRequest(kind="inspect", code=code, cursor=len(code))
    return await learner.client.introspect(learner.session, request)


async def answered(
    learner: SessionClient,
    code: str,
    ask: Callable[[SessionClient, str], Awaitable[Introspection]] = completed,
) -> Introspection:
    """The answer, asked for again while it is "busy", as it is after a second: a busy machine may need longer."""
    while (found := await ask(learner, code)).state == "busy":
        pass
    return found


async def ready(learner: SessionClient) -> None:
    """Wait for a session that has run nothing."""
    await learner.client.request_session(learner.session, learner.spec)
    while (await learner.client.session(learner.session)).state != SessionState.idle:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def test_imports_of_the_code_count_before_anything_has_run(learner: SessionClient) -> None:
    await ready(learner)
    code = f"{TENSORFLOW}strategy = tf.distribute.Mirr"
    found = await answered(learner, code)
    assert [match.text for match in found.matches] == ["MirroredStrategy"]
    assert code[found.start :] == "Mirr"

    told = await answered(learner, f"{TENSORFLOW}tf.keras.layers.Dense(", inspected)
    assert "units," in told.text
    assert "densely-connected" in told.text
    assert "\x1b" not in told.text
    assert (await answered(learner, "no_such_name", inspected)).text == ""

    run = await learner.run("tf")
    assert run.outcome == Outcome.error, "the name was there for the question only"


async def test_names_of_earlier_cells_and_their_members_are_offered(learner: SessionClient) -> None:
    assert (await learner.run("class Grid:\n    rows = columns = 3\ngrid = Grid()")).outcome == Outcome.ok
    assert [match.text for match in (await answered(learner, "gri")).matches] == ["grid"]
    assert [match.text for match in (await answered(learner, "print(grid.")).matches] == ["columns", "rows"]


async def test_a_busy_kernel_answers_that_it_is_busy_before_its_run_ends(learner: SessionClient) -> None:
    run = await learner.submit("import time\nprint('going', flush=True)\ntime.sleep(200)")
    async for event in learner.client.events(run.id):
        if event.kind == "text":
            break
    async with asyncio.timeout(20):
        assert (await completed(learner, "pri")).state == "busy"
    await learner.client.stop(run.id)


async def test_a_run_does_not_wait_for_a_question_without_end(learner: SessionClient) -> None:
    endless = "class Endless:\n    def __dir__(self):\n        while True: pass\nendless = Endless()"
    assert (await learner.run(endless)).outcome == Outcome.ok
    question = asyncio.create_task(completed(learner, "endless."))
    await asyncio.sleep(0)  # its request goes first
    while (await completed(learner, "prin")).state != "busy":  # until the kernel is at it
        if question.done():  # the other one was being asked
            question = asyncio.create_task(completed(learner, "endless."))
    async with asyncio.timeout(10):
        run = await learner.run("print('ran')")
    assert run.outcome == Outcome.ok, "the interrupt is for the question only"
    assert run.text == "ran\n"
    assert await question == Introspection(state="busy")
    async with asyncio.timeout(10):
        assert (await completed(learner, "endless.")).state == "busy"
    assert (await answered(learner, "prin")).matches[0].text == "print"


async def test_questions_add_nothing_to_the_next_run_and_take_nothing_from_it(learner: SessionClient) -> None:
    talks = (
        "import threading, time\nasked = threading.Event()\n"
        "def talk():\n    asked.wait()\n    time.sleep(0.3)\n    print('late', flush=True)\n"
        "threading.Thread(target=talk, daemon=True).start()\n"
        "class Loud:\n    def __dir__(self):\n        asked.set()\n        return ['loud']\nloud = Loud()"
    )
    assert (await learner.run(talks)).outcome == Outcome.ok
    for _ in range(30):
        assert (await answered(learner, "loud.")).state == "answered"
    run = await learner.run("time.sleep(0.5)\nprint('ran')")
    assert sorted(run.text.split()) == ["late", "ran"]


HOSTILE = """
from IPython import get_ipython
kernel = get_ipython().kernel
type(kernel).do_complete = lambda self, code, cursor: {content}
type(kernel).do_inspect = lambda self, code, cursor, *a, **k: {content}
"""


async def test_a_hostile_kernel_can_only_send_bounded_plain_text(learner: SessionClient) -> None:
    content = (
        "{'matches': ['m%d' % n for n in range(100_000)], 'cursor_start': 0, "
        "'data': {'text/plain': '\\x1b[31m<b>' + 'y' * 10**6 + '\\0\\u202e'}}"
    )
    assert (await learner.run(HOSTILE.replace("{content}", content))).outcome == Outcome.ok
    found = await answered(learner, "m")
    assert len(found.matches) == 500
    told = (await answered(learner, "m", inspected)).text
    assert told.startswith("<b>y")
    assert 20_000 <= len(told) < 20_100
    assert not set(told) & set("\x1b\0\u202e")


async def test_only_a_session_that_exists_answers_and_only_a_valid_question(learner: SessionClient) -> None:
    with pytest.raises(ResourceNotFound):
        await completed(learner, "pri")
    await ready(learner)
    invalid = IntrospectionRequest.model_construct(kind="complete", code="x" * (MAX_CODE_BYTES + 1), cursor=0)
    with pytest.raises(RequestRefused):
        await learner.client.introspect(learner.session, invalid)
