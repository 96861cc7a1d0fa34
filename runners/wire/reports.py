"""The reports of Lockstep's own code inside a sandbox: metrics, progress, notices. Pure.

They are displays with MIME types of their own, so that any Jupyter client can ignore them. A learner's program can
forge them, just as it can print any text. A metric is therefore only numbers, and a notice only one of the sentences
below, with short values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from runners.wire.error_hints import ERROR_HINTS, Need

METRIC = "application/vnd.lockstep.metric+json"
"""``{"step": N, "per": "step" | "epoch", "values": {name: number | "nan" | "inf" | "-inf"}, "training": name}``"""
PROGRESS = "application/vnd.lockstep.progress+json"
"""``{"label": …, "done": N, "total": N | null, "unit": "step" | "epoch" | "item", "left_s": seconds | null}``"""
NOTICE = "application/vnd.lockstep.notice+json"
"""``{"code": …, "values": {…}}``"""
PICTURE = "application/vnd.lockstep.picture+json"
"""``{"picture": kind, …}`` beside a ``text/plain`` that says the same; the page draws it and adds a table."""
ANSWER = "application/vnd.lockstep.answer"
"""Text: what a sandbox of a judgement answers the supervisor, see ``runners.wire.judging``. Never shown."""
MOST_ANSWER_BYTES = 5 << 20
"""Of one answer: a little more than the data in it may have."""

NOTICES: dict[str, str] = {
    "gpu-memory": (
        "{gpu} is simulated and has no memory of its own. The figures are the bytes of the tensors and "
        "variables that are on it now, not what a step needs while it runs."
    ),
    "gpu-memory-limits": "Simulated GPUs have no memory of their own: limits are recorded but not enforced.",
    "gpu-names": (
        "{gpu} is simulated by TensorFlow's logical device {device}. Its tensors and variables report that name."
    ),
    "hierarchical-copy": (
        "HierarchicalCopyAllReduce is designed for an even number of GPUs. With {replicas}, it leaves "
        "one replica's gradients out of the sum, on real GPUs too. Choose another all-reduce or "
        "another number of GPUs."
    ),
    "nccl": (
        "NCCL needs real GPUs. Instead, each simulated GPU adds up all the gradients itself. The sums "
        "are the same, only computed another way."
    ),
    "nccl-logical": (
        "NCCL cannot reduce between logical GPUs of one real GPU. Instead, each of them adds up all the "
        "gradients itself. The sums are the same, only computed another way."
    ),
    "nccl-ring": (
        "NCCL needs real GPUs. Instead, the simulated GPUs pass their gradients around a ring. The "
        "sums are the same, only computed another way."
    ),
    "keras-2-chosen": (
        "This session uses Keras 3, and TF_USE_LEGACY_KERAS cannot change that, because TensorFlow is imported "
        "already. This code needs a session with Keras 2."
    ),
    "member-ended": "{task} has ended ({why}).",
    "mirrored-among-workers": (
        "In a process with a MultiWorkerMirroredStrategy, TensorFlow gives a MirroredStrategy the "
        "devices of all workers, and it crashes in its first step. Here, Lockstep gave it only the "
        "devices of its own worker. On real machines, create the two in separate programs."
    ),
    "never-began": (
        "{task} did not start this cell within {seconds} seconds and was stopped. The next cell restarts it."
    ),
    "no-steps-counted": (
        "This run counted no steps, so the failure of {task} still waits. Only fit, train_on_batch, and lockstep.log "
        "count steps."
    ),
    "reset-states": (
        "Keras 3 renamed reset_states() to reset_state(). Lockstep accepts the former name too; elsewhere, use the new "
        "name or Keras 2."
    ),
    "wait-broken-off": (
        "{task} no longer waits for the others. To train together again, rerun the cell that creates the strategy."
    ),
    "waiting-for-ended": "{task} is waiting for {other} at {address}, which has ended.",
    "waiting-for-paused": "{task} is waiting for {other} at {address}, which is paused.",
    "waiting-for-slow": "{task} is waiting for {other} at {address}, which is slowed down.",
    "waiting-for-done": "{task} is waiting for {other} at {address}, which has finished this cell.",
    "waiting-for-late": "{task} is waiting for {other} at {address}, which has not reached this point.",
    "tensorboard-empty": (
        "There are no scalars in {folder} yet. Train with a tf.keras.callbacks.TensorBoard, then run this cell again."
    ),
    "tensorboard-scalars": (
        "TensorBoard is a server, and a page cannot reach one in the sandbox. These are the scalars in {folder}; run "
        "this cell again to see later ones."
    ),
    "tpu-compiled-again": (
        "{function} has now been compiled {count} times: for {new} after {old}. Each compilation takes "
        "a TPU seconds to minutes. Keep shapes the same, and pass changing numbers as tensors."
    ),
    "tpu-dynamic-batch": (
        "{function}: an input of shape {shape} has a dimension that is unknown until the program runs. "
        "A TPU pads it to the largest batch, and some operations reject it. Make all batches the same "
        "size with batch(…, drop_remainder=True)."
    ),
    "tpu-computed-size": (
        "{function}: {operation} has an output size that is computed in the step. A TPU's compiler "
        "needs a constant there (must be a compile-time constant). Take the size from a shape or a "
        "Python number, or keep the size fixed and use a mask."
    ),
    "tpu-dynamic-operation": (
        "{function}: the size of what {operation} returns depends on its values. A TPU pads it to the "
        "largest possible size, and later operations may reject it. Keep the size fixed with "
        "tf.where(condition, x, y) or by multiplying with a mask."
    ),
    "tpu-on-host": (
        "{function}: a TPU cannot run {operation}, so it runs on the host, and every step waits for "
        "it. Move it to the input pipeline or out of the step."
    ),
    "tpu-simulated": (
        "This TPU is simulated: {count} logical CPU devices take the place of its cores. It follows a "
        "TPU's rules, but its speed says nothing about a real TPU."
    ),
    "tpu-wide": (
        "{function}: {operation} computes in {dtype}, which TPU hardware does not support. It is "
        "emulated, many times slower. Use float32 or bfloat16."
    ),
}
NOTICES.update((hint.code, hint.sentence) for hint in ERROR_HINTS)
"""Code to English sentence, with the names of its values in braces."""
NEEDS: dict[str, Need] = {hint.code: hint.needs for hint in ERROR_HINTS if hint.needs} | {"keras-2-chosen": "keras-2"}
"""The codes of notices about what only another session has; each client says where to get one."""

_MOST_VALUES = 20
_LONGEST_NAME = 60
_LONGEST_VALUE = 120
_LARGEST = 2**53
_LONGEST_LANE = 24
_BRACES = re.compile(r"\{(\w+)\}")

Fields = tuple[str, dict[str, Any]]


def parse_report(data: Mapping[str, Any]) -> Fields | None:
    """Parse the data of a display; returns the kind of event and its fields, or None if it is not a report."""
    for mime, read in _READERS.items():
        if isinstance(content := data.get(mime), Mapping):
            return read(content)
    return None


def is_report(data: Mapping[str, Any]) -> bool:
    """Whether a display claims to be a report; malformed ones are dropped, not shown."""
    return any(mime in data for mime in _READERS)


def lane_from_metadata(metadata: Any) -> str | None:
    """The lane that a message names in its metadata, ``{"lockstep": {"lane": …}}``."""
    own = metadata.get("lockstep") if isinstance(metadata, Mapping) else None
    lane = own.get("lane") if isinstance(own, Mapping) else None
    return _word(lane, _LONGEST_LANE) or None if isinstance(lane, str) else None


def answer_from_message(message: Mapping[str, Any]) -> str | None:
    """The answer in a message of a kernel's output channel, if it is one."""
    content = message.get("content")
    data = content.get("data") if message.get("msg_type") == "display_data" and isinstance(content, Mapping) else None
    text = data.get(ANSWER) if isinstance(data, Mapping) else None
    return text if isinstance(text, str) and len(text) <= MOST_ANSWER_BYTES else None


def position_from_metadata(metadata: Any) -> int | None:
    """How far the text of a message reaches in its stream's journal, ``{"lockstep": {"position": …}}``."""
    own = metadata.get("lockstep") if isinstance(metadata, Mapping) else None
    position = own.get("position") if isinstance(own, Mapping) else None
    return position if type(position) is int else None


def json_number(value: Any) -> float | str | None:
    """Convert a number for JSON: ``nan``, ``inf`` and ``-inf`` become words; None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if value in ("nan", "inf", "-inf") else None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else str(value)


def _metric(content: Mapping[str, Any]) -> Fields | None:
    step, per, values = _count(content.get("step")), content.get("per", "step"), content.get("values")
    if step is None or per not in ("step", "epoch") or not isinstance(values, Mapping):
        return None
    named = {
        _word(k, _LONGEST_NAME): json_number(v) for k, v in list(values.items())[:_MOST_VALUES] if isinstance(k, str)
    }
    kept = {name: value for name, value in named.items() if name and value is not None}
    training = content.get("training")
    name = _word(training, _LONGEST_NAME) if isinstance(training, str) else ""
    fields = {"step": step, "per": per, "values": kept} | ({"training": name} if name else {})
    return ("metric", fields) if kept else None


def _progress(content: Mapping[str, Any]) -> Fields | None:
    label, done, unit = content.get("label"), _count(content.get("done")), content.get("unit", "step")
    if not isinstance(label, str) or done is None or unit not in ("step", "epoch", "item"):
        return None
    left = json_number(content.get("left_s"))
    return "progress", {
        "label": _word(label, _LONGEST_NAME),
        "done": done,
        "total": _count(content.get("total")),
        "unit": unit,
        "left_s": left if isinstance(left, float) and left >= 0 else None,
    }


def _notice(content: Mapping[str, Any]) -> Fields | None:
    code, values = content.get("code"), content.get("values", {})
    if not isinstance(code, str) or code not in NOTICES or not isinstance(values, Mapping):
        return None
    kept: dict[str, str | int | float] = {}
    for name in _BRACES.findall(NOTICES[code]):
        value = values.get(name)
        if isinstance(value, str):
            kept[name] = _word(value, _LONGEST_VALUE)
        elif isinstance(plain := json_number(value), float):
            kept[name] = int(plain) if plain.is_integer() and abs(plain) < _LARGEST else plain
        else:
            return None
    return "notice", {"code": code, "values": kept, "text": NOTICES[code].format_map(kept)}


_READERS = {METRIC: _metric, PROGRESS: _progress, NOTICE: _notice}


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < _LARGEST else None


def _word(text: str, most: int) -> str:
    """Reduce text to one line of printable characters."""
    line = "".join(character if character.isprintable() else " " for character in text[:most])
    return line.encode("utf-8", "replace").decode().strip()
