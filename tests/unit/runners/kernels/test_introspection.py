"""What a kernel's reply to a question about code becomes, whatever it holds."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runners.kernels import introspection
from runners.kernels.introspection import BUSY, Question, ask, to_introspection
from runners.kernels.kernel_pool import Kernel
from runners.sandbox.cgroups import NullCgroup
from runners.sandbox.handle import Sandbox
from runners.wire.protocol import Introspection, IntrospectionRequest


@pytest.fixture
def pid_1() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The supervisor's end of a control socket, and that of PID 1."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.setblocking(False)
        yield ours, theirs


class SilentKernel:
    """A kernel that never answers a question."""

    def __init__(self, control: socket.socket, folder: Path) -> None:
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.sandbox = Sandbox("s", folder, os.getpid(), -1, control, NullCgroup())
        asyncio.get_running_loop().add_reader(control.fileno(), self.sandbox._hear)
        self.interrupt = self.sandbox.interrupt

    def introspect(self, *_: object) -> str:
        return "question"

    async def output_of_none(self, request: str) -> None:
        await asyncio.Event().wait()

    async def reply(self) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}


async def heard(theirs: socket.socket) -> dict[str, Any]:
    """The next command to PID 1."""
    async with asyncio.timeout(60):
        command: dict[str, Any] = json.loads(await asyncio.get_running_loop().sock_recv(theirs, 1 << 16))
        return command


async def test_a_dropped_question_is_over_only_once_its_interrupt_has_been_sent(
    pid_1: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    """Otherwise, where PID 1 is slow, the interrupt would come while the next run does its work."""
    ours, theirs = pid_1
    kernel = SilentKernel(ours, tmp_path)
    question = Question(IntrospectionRequest(kind="complete", code="x.", cursor=2))
    question.drop()
    asked = asyncio.create_task(ask(cast(Kernel, kernel), question))
    command = await heard(theirs)
    assert (command["op"], command["signum"]) == ("signal", signal.SIGINT)
    await asyncio.wait({asked}, timeout=1.0)
    assert not asked.done()

    theirs.send(json.dumps({"answered": command["id"], "result": "done"}).encode())
    async with asyncio.timeout(60):
        assert await asked == BUSY


async def test_a_kernel_whose_interrupt_may_still_come_is_ended(
    pid_1: tuple[socket.socket, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = pid_1
    kernel, ended = SilentKernel(ours, tmp_path), asyncio.Event()

    async def kill() -> None:
        ended.set()

    monkeypatch.setattr(introspection, "_INTERRUPT_S", 0.0)
    kernel.sandbox = cast(Sandbox, SimpleNamespace(kill=kill))
    question = Question(IntrospectionRequest(kind="complete", code="x.", cursor=2))
    question.drop()
    async with asyncio.timeout(60):
        assert await ask(cast(Kernel, kernel), question) == BUSY
    assert ended.is_set()


def completed(code: str, **content: Any) -> Introspection:
    """The reply to a completion at the end of the code."""
    return to_introspection(IntrospectionRequest(kind="complete", code=code, cursor=len(code)), content)


def inspected(data: Any) -> str:
    """The text of the reply to an inspection."""
    asked = IntrospectionRequest(kind="inspect", code="tf", cursor=2)
    return to_introspection(asked, {"status": "ok", "data": data}).text


@pytest.mark.parametrize(
    ("start", "matches"), [(0, ["tf.dist", "tf.data"]), (2, [".dist", ".data"]), (3, ["dist", "data"])]
)
def test_matches_of_an_attribute_begin_after_the_dot(start: int, matches: list[str]) -> None:
    found = completed("tf.d", cursor_start=start, matches=matches)
    assert found.start == 3
    assert [match.text for match in found.matches] == ["dist", "data"]


def test_what_a_match_is_comes_from_the_metadata() -> None:
    types = [{"text": "fit", "type": "function"}, {"text": "x", "type": "<b>"}, {"text": 1, "type": "function"}, 7]
    found = completed("", cursor_start=0, matches=["fit", "x"], metadata={"_jupyter_types_experimental": types})
    assert [(match.text, match.kind) for match in found.matches] == [("fit", "function"), ("x", "")]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"matches": "abc", "cursor_start": 0},
        {"matches": ["a"], "cursor_start": -1},
        {"matches": ["a"], "cursor_start": 10**9},
        {"matches": ["a"], "cursor_start": True},
        {"matches": ["a"], "cursor_start": "0"},
        {"matches": [1, None, {}, "a\nb", "a\x1b[31m", "\u202ea", "\ud800", "", "x" * 1000], "cursor_start": 0},
    ],
)
def test_an_invalid_reply_offers_nothing(content: dict[str, Any]) -> None:
    assert completed("abc", **content).matches == ()


def test_at_most_500_matches_are_kept() -> None:
    assert len(completed("m", cursor_start=0, matches=[f"m{n}" for n in range(10_000)]).matches) == 500


@pytest.mark.parametrize("data", [None, [], "text", {"text/plain": 7}, {"text/html": "<b>x</b>"}])
def test_only_plain_text_documents_a_name(data: Any) -> None:
    assert inspected(data) == ""


def test_documentation_has_no_escape_codes_or_control_characters() -> None:
    assert inspected({"text/plain": "\x1b[31mSignature:\x1b[0m\tf(x)\r\n\x1b[38;5;28mDoc\0\u202e\x07 <b>\x1b"}) == (
        "Signature:      f(x)\nDoc␀ <b>"
    )
    long = inspected({"text/plain": "y" * 1_000_000})
    assert 20_000 <= len(long) < 20_100
