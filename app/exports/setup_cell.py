"""The first cells of a downloaded notebook: what machine the lesson ran on, and code that makes it anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.i18n import gettext, ngettext
from app.lessons.model import Cell, Lesson
from runners.protocol import Topology

_KERAS_2 = """\
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 2; needs the package tf_keras

"""

_DEVICES = """\
{keras}import tensorflow as tf

REPLICAS = {replicas}

# With fewer GPUs than replicas, the CPU is cut into as many logical devices, as Lockstep does.
# MirroredStrategy() then finds them by itself. This has to run before TensorFlow is used for anything else.
if len(tf.config.list_physical_devices("GPU")) < REPLICAS:
    tf.config.set_visible_devices([], "GPU")
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)

print("devices:", [device.name for device in tf.config.list_logical_devices()])
"""

_ONE_CPU = """\
{keras}import tensorflow as tf

tf.config.set_visible_devices([], "GPU")  # this lesson ran on one CPU
print("devices:", [device.name for device in tf.config.list_logical_devices()])
"""

_HELPERS = """\


# Lockstep's helpers in short, for a Jupyter that has none: numbers are printed, pictures are left out.
import contextlib
import sys
import types


def log(step, **values):
    print(f"step {int(step)}:", ", ".join(f"{name} = {float(value):.4g}" for name, value in values.items()))


def progress(iterable, *_, **__):
    return iterable


def replay(*_, **__):
    return contextlib.nullcontext()


def only_in_lockstep(*_, **__):
    print("(Lockstep shows or does something here; see the lesson's page.)")


try:
    import lockstep
except ImportError:
    lockstep = sys.modules["lockstep"] = types.ModuleType("lockstep")
    for helper in (log, progress, replay):
        setattr(lockstep, helper.__name__, helper)
    for name in ("help", "shards", "placement", "kill", "pause", "resume", "slow", "restart"):
        setattr(lockstep, name, only_in_lockstep)
"""
_IMPORTS_HELPERS = re.compile(r"^[ \t]*(import|from)[ \t]+lockstep\b", re.MULTILINE)


def machine(lesson: Lesson) -> Topology:
    """The one machine a notebook can have: the lesson's own."""
    return Topology.parse(lesson.topology)


def setup_code(lesson: Lesson, codes: Iterable[str] = ()) -> str:
    """Code that makes the lesson's devices on any machine with TensorFlow.

    Where a cell of the lesson, or one of ``codes``, imports Lockstep's helpers, it also defines stand-ins for them.
    """
    keras = _KERAS_2 if lesson.keras == 2 else ""
    topology = machine(lesson)
    template = _ONE_CPU if topology.kind == "cpu" else _DEVICES
    devices = template.format(keras=keras, replicas=topology.replicas)
    wanted = any(_IMPORTS_HELPERS.search(code) for code in (*(cell.code for cell in lesson.cells), *codes))
    return (devices + _HELPERS if wanted else devices).rstrip("\n")


def setup_note(lesson: Lesson) -> str:
    """Words about the machine, in the language in use."""
    topology = machine(lesson)
    if topology.kind == "cpu":
        said = [gettext("In Lockstep this lesson runs on one CPU.")]
    else:
        said = [
            ngettext(
                "In Lockstep this lesson runs on {n} simulated GPU: a logical device of the CPU that stands for it.",
                "In Lockstep this lesson runs on {n} simulated GPUs: logical devices of the CPU that stand for them.",
                topology.devices,
            ).format(n=topology.devices),
            gettext("The cell below makes them here too, unless this machine has enough real ones."),
        ]
    others = [
        f"`{cell.name}` ({cell.topology}, Keras {cell.keras})" for cell in lesson.cells if _elsewhere(cell, lesson)
    ]
    if others:
        said.append(
            gettext(
                "These cells have a machine of their own in Lockstep and may do something else here: {cells}."
            ).format(cells=", ".join(others))
        )
    return " ".join(said)


def _elsewhere(cell: Cell, lesson: Lesson) -> bool:
    return (cell.topology, cell.keras) != (lesson.topology, lesson.keras)
