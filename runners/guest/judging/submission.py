"""In the sandbox of a submission or of the reference: calls a function with data, and answers with data.

Nothing here is secret, and nothing is believed that it says: it shares its process with the submission.
"""

from __future__ import annotations

import json
import random
import sys
import zlib
from typing import Any

import numpy as np
import tensorflow as tf
from IPython.core.getipython import get_ipython

from runners.checks.plain_data import NotPlainData, decode, encode
from runners.guest.cluster.task_context import current_context
from runners.guest.judging import graphs
from runners.guest.reporting import publisher
from runners.wire import check_messages as messages
from runners.wire.reports import ANSWER

_shown: set[tuple[str, str]] = set()
"""Errors that the learner has seen: each check may meet the same one."""


def seed(number: int) -> None:
    """Seed all random numbers; called before the first needed cell, and before each call."""
    random.seed(number)
    np.random.seed(number)
    tf.random.set_seed(number)
    if keras := sys.modules.get("keras"):
        keras.utils.set_random_seed(number)


def answer(request: str) -> None:
    """Do what a JSON text asks for, and display the answer as one: ``{"value": …}`` or ``{"failed": …}``.

    The request is ``{"do": "call" | "value" | "graph" | "examine", "name": …, "args": …, "seed": …}``. A call may have
    ``"own"``: further arguments for each task of a cluster.
    """
    reply: dict[str, Any]
    try:
        reply = {"value": _carry_out(json.loads(request))}
    except _Unanswerable as e:
        reply = {"failed": e.message, "values": e.values}
    except NotPlainData as e:
        reply = {"failed": messages.NOT_PLAIN, "values": {"name": json.loads(request)["name"], "why": str(e)}}
    publisher.send("display_data", {"data": {ANSWER: json.dumps(reply)}, "metadata": {}, "transient": {}})


class _Unanswerable(Exception):
    """The submission has no answer."""

    def __init__(self, message: str, **values: str) -> None:
        super().__init__(message)
        self.message, self.values = message, values


def _carry_out(request: dict[str, Any]) -> str:
    name = request["name"]
    if request["do"] == "examine":
        return encode(graphs.examine(decode(request["graph"]), decode(request["args"]), alone=request["alone"]))
    found = _find(name)
    if request["do"] == "value":
        return encode(found)
    if not callable(found):
        raise _Unanswerable(messages.NOT_CALLABLE, name=name)
    args = decode(request["args"])
    if own := request.get("own"):
        context = current_context()
        args += decode(own[min(context.number if context else 0, len(own) - 1)])
    seed(zlib.crc32(request["args"].encode(), request["seed"]) & 0x7FFF_FFFF)
    try:
        result = graphs.export(found, args) if request["do"] == "graph" else found(*args)
        return encode(result)
    except (KeyboardInterrupt, NotPlainData):
        raise
    except BaseException as e:
        _show(e)
        raise _Unanswerable(messages.RAISED, error=type(e).__name__, text=str(e)[:2000]) from e


def _find(name: str) -> Any:
    first, *attributes = name.split(".")
    try:
        found = get_ipython().user_ns[first]
        for attribute in attributes:
            found = getattr(found, attribute)
    except (KeyError, AttributeError):
        raise _Unanswerable(messages.NOT_DEFINED, name=name) from None
    return found


def _show(error: BaseException) -> None:
    """Show the traceback from the learner's code on, once."""
    key = type(error).__name__, str(error)
    if key in _shown:
        return
    _shown.add(key)
    trace = error.__traceback__
    if trace and trace.tb_next:
        trace = trace.tb_next  # leaves this module's frame out
    get_ipython().showtraceback((type(error), error, trace), tb_offset=0)
