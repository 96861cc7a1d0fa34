"""Asks an idle kernel what can be written at a place in the code, or what stands there.

A question never holds up a run for long: its code, such as a ``__dir__`` of the learner's, is interrupted after a
moment, and sooner if a run waits. Pure but for ``ask``; every reply is treated as hostile input.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Any

from runners.kernels.kernel_pool import MALFORMED_ERRORS, Kernel
from runners.kernels.messages import sanitize_text, shorten
from runners.sandbox.handle import SandboxGone
from runners.wire.protocol import CompletionMatch, Introspection, IntrospectionRequest

BUSY = Introspection(state="busy")

_PATIENCE_S = 1.0
_PATIENCE_BEFORE_A_RUN_S = 0.25
_INTERRUPT_S = 10.0
"""How long an interrupt may take to be sent. Until then no run starts: it could be interrupted instead."""
_LATE_S = 0.2
"""How long the rest of an answered or interrupted question may take."""
_MOST_MATCHES = 500
_LONGEST_MATCH = 100
_LONGEST_TEXT = 20_000
_ESCAPE = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_KIND = re.compile(r"[a-z ]{1,20}")


class Question:
    """One question, from the request to its answer."""

    def __init__(self, asked: IntrospectionRequest) -> None:
        self.asked = asked
        self.answer: asyncio.Future[Introspection] = asyncio.get_running_loop().create_future()
        self.dropped = asyncio.Event()

    def drop(self) -> None:
        """Answer that the kernel is busy, because it is to do something else. Idempotent."""
        self.dropped.set()
        self.settle(BUSY)

    def settle(self, answer: Introspection) -> None:
        """Answer, unless it is dropped."""
        if not self.answer.done():
            self.answer.set_result(answer)


async def ask(kernel: Kernel, question: Question) -> Introspection:
    """Put the question to the kernel, and return once that can do something else, or does not answer."""
    asked = question.asked
    request = kernel.introspect(asked.kind, asked.code, asked.cursor)
    idle = asyncio.create_task(kernel.output_of_none(request))
    reply = asyncio.create_task(_reply(kernel, request))
    dropped = asyncio.create_task(question.dropped.wait())
    try:
        over: set[asyncio.Future[Any]] = {reply, kernel.exited}
        await asyncio.wait({*over, dropped}, timeout=_PATIENCE_S, return_when="FIRST_COMPLETED")
        if question.dropped.is_set():
            await asyncio.wait(over, timeout=_PATIENCE_BEFORE_A_RUN_S, return_when="FIRST_COMPLETED")
        if reply.done():
            await asyncio.wait({idle}, timeout=_LATE_S)
            return to_introspection(asked, reply.result())
        if not kernel.exited.done():
            await _interrupt(kernel)
            ended: set[asyncio.Future[Any]] = {idle, kernel.exited}
            await asyncio.wait(ended, timeout=_LATE_S, return_when="FIRST_COMPLETED")
        return BUSY
    finally:
        for task in (idle, reply, dropped):
            task.cancel()
        await asyncio.gather(idle, reply, dropped, return_exceptions=True)


async def _interrupt(kernel: Kernel) -> None:
    """Interrupt the kernel; end it if nothing tells whether the interrupt was sent, or is still to come."""
    with contextlib.suppress(SandboxGone):
        sent = kernel.interrupt()
        awaited: set[asyncio.Future[Any]] = {sent, kernel.exited}
        await asyncio.wait(awaited, timeout=_INTERRUPT_S, return_when="FIRST_COMPLETED")
        if not sent.done():
            await kernel.sandbox.kill()


async def _reply(kernel: Kernel, request: str) -> Mapping[str, Any]:
    while True:
        with contextlib.suppress(*MALFORMED_ERRORS):
            message = await kernel.reply()
            if message["parent_header"]["msg_id"] == request and isinstance(message["content"], Mapping):
                return message["content"]


def to_introspection(asked: IntrospectionRequest, content: Mapping[str, Any]) -> Introspection:
    """Parse the content of a reply. Pure; whatever does not follow the Jupyter protocol counts as no answer."""
    if asked.kind == "inspect":
        return Introspection(state="answered", text=_documentation(content.get("data")))
    start, matches = content.get("cursor_start"), content.get("matches")
    if type(start) is not int or not 0 <= start <= asked.cursor or not isinstance(matches, list):
        return Introspection(state="answered", start=asked.cursor)
    written = asked.code[start : asked.cursor]
    common = written.rfind(".") + 1  # IPython completes ``tf.dist`` as ``tf.distribute`` or as ``.distribute``
    kinds = _kinds(content.get("metadata"))
    texts = (text for text in matches[:_MOST_MATCHES] if isinstance(text, str) and text.startswith(written[:common]))
    kept = [text for text in texts if text.isprintable() and common < len(text) <= _LONGEST_MATCH + common]
    found = tuple(CompletionMatch(text=sanitize_text(text[common:]), kind=kinds.get(text, "")) for text in kept)
    return Introspection(state="answered", start=start + common, matches=found)


def _kinds(metadata: Any) -> dict[str, str]:
    """What each match is, as IPython adds it to the reply."""
    known = metadata.get("_jupyter_types_experimental") if isinstance(metadata, Mapping) else None
    kinds: dict[str, str] = {}
    for each in known[:_MOST_MATCHES] if isinstance(known, list) else ():
        text, kind = (each.get("text"), each.get("type")) if isinstance(each, Mapping) else (None, None)
        if isinstance(text, str) and isinstance(kind, str) and _KIND.fullmatch(kind):
            kinds[text] = kind
    return kinds


def _documentation(data: Any) -> str:
    text = data.get("text/plain") if isinstance(data, Mapping) else None
    if not isinstance(text, str):
        return ""
    plain = _ESCAPE.sub("", sanitize_text(text[: 4 * _LONGEST_TEXT])).expandtabs()
    return shorten("".join(c for c in plain if c == "\n" or c.isprintable()).strip(), _LONGEST_TEXT)
