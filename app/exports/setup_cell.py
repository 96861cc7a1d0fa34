"""The first cells of a downloaded notebook: a note about the lesson's machine, and code that sets it up."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.i18n import gettext, ngettext
from app.lessons.machine_labels import topology_label
from app.lessons.model import Cell, Lesson
from runners.wire.jupyter_kernels import JupyterKernel
from runners.wire.protocol import Topology

_KERAS_2 = """\
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 2; needs the package tf_keras

"""

_TENSORFLOW = """\
import tensorflow as tf
"""

# This code does not list logical devices: that would start TensorFlow, and a later cell that configures devices would
# fail, even in Lockstep's own kernels.
_GPUS = """\

REPLICAS = {replicas}

# With fewer GPUs than replicas, the CPU is split into that many logical devices, as in Lockstep.
# MirroredStrategy() then finds them by itself. This must run before TensorFlow is used for anything else.
gpus = tf.config.list_physical_devices("GPU")
if len(gpus) >= REPLICAS:
    print("devices:", [gpu.name for gpu in gpus])
else:
    try:
        tf.config.set_visible_devices([], "GPU")
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
        print("devices:", REPLICAS, "logical devices of the CPU")
    except RuntimeError as error:
        print("TensorFlow has started already. Restart the kernel and run this cell first.", error)
"""

_NCCL = """\


class NcclAllReduce(tf.distribute.ReductionToOneDevice):
    def __init__(self, num_packs=1):
        super().__init__()


if len(gpus) < REPLICAS:  # NCCL needs GPUs; another all-reduce takes its place, as in Lockstep
    tf.distribute.NcclAllReduce = NcclAllReduce
"""

_ONE_CPU = """\

try:
    tf.config.set_visible_devices([], "GPU")  # this lesson ran on one CPU
except RuntimeError as error:
    print("TensorFlow has started already. Restart the kernel and run this cell first.", error)
"""

_SKIP_CELLS = """\

import json
import os
import re

# Cells that begin with a line such as "# Needs {example}, Keras 3" run only on such a machine. On other machines, this
# code skips them and prints what to do.
NEEDS = {needs}


def missing(machine, keras):
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{{}}").get("cluster", {{}})
    has = {{
        "tpu": bool(tf.config.list_physical_devices("TPU")),
        "workers": "worker" in cluster and "ps" not in cluster,
        "ps": "ps" in cluster,
    }}
    fits = has.get(machine.partition(":")[0], True) and tf.keras.__version__.startswith(keras)
    return "" if fits else NEEDS[machine, keras]


def skip_what_cannot_run(lines):
    for line in lines[:2]:
        needs = re.match(r"# Needs (\\S+), Keras (\\d)$", line.strip())
        if needs and needs.groups() in NEEDS and missing(*needs.groups()):
            return [f"print({{missing(*needs.groups())!r}})\\n"]
    return lines


if "get_ipython" in globals():
    cleanup = get_ipython().input_transformers_cleanup
    cleanup[:] = [step for step in cleanup if getattr(step, "__name__", "") != "skip_what_cannot_run"]
    cleanup.append(skip_what_cannot_run)
"""

_WHOLE_NOTEBOOK_NEEDS = """\
if missing({machine!r}, "{keras}"):
    print({sentence!r})
    if "get_ipython" not in globals():  # a script
        raise SystemExit(1)
"""

_HELPERS = """\


# Lockstep's helpers, shortened for other Jupyter servers: numbers are printed, pictures are left out.
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
NEEDS_COMMENT = "# Needs {topology}, Keras {keras}"
"""The line from which the setup code knows the machine that a cell needs."""
_HELPER_IMPORT = re.compile(r"^[ \t]*(import|from)[ \t]+lockstep\b", re.MULTILINE)


def setup_code(lesson: Lesson, codes: Iterable[str] = ()) -> str:
    """Code that sets up the lesson's devices on any machine with TensorFlow, or tells what the cells need instead.

    If a cell of the lesson or one of ``codes`` imports Lockstep's helpers, the code also defines substitutes for them.
    """
    topology = Topology.parse(lesson.topology)
    codes = [*(cell.code for cell in lesson.cells), *codes]
    parts = [_KERAS_2 if lesson.keras == 2 else "", _TENSORFLOW]
    if topology.kind == "cpu":
        parts.append(_ONE_CPU)
    elif topology.kind == "gpu":
        parts.append(_GPUS.format(replicas=topology.replicas))
        if any("NcclAllReduce" in code for code in codes):
            parts.append(_NCCL)
    needs = {
        (cell.topology, str(cell.keras)): _skipped_cell_text(cell)
        for cell in lesson.cells
        if needs_other_machine(cell, lesson)
    }
    if needs:
        listed = "".join(f"    {key!r}: {sentence!r},\n" for key, sentence in needs.items())
        parts.append(_SKIP_CELLS.format(needs=f"{{\n{listed}}}", example=next(iter(needs))[0]))
    if (lesson.topology, str(lesson.keras)) in needs:
        parts.append(
            _WHOLE_NOTEBOOK_NEEDS.format(
                machine=lesson.topology, keras=lesson.keras, sentence=_how_to_get_machine(lesson)
            )
        )
    if any(_HELPER_IMPORT.search(code) for code in codes):
        parts.append(_HELPERS)
    return "".join(parts).rstrip("\n")


def needs_other_machine(cell: Cell, lesson: Lesson) -> bool:
    """Whether a cell needs a machine that setup code cannot create: a cluster, a TPU, or another version of Keras."""
    return Topology.parse(cell.topology).kind not in ("cpu", "gpu") or cell.keras != lesson.keras


def with_needs_comment(cell: Cell, code: str) -> str:
    """The code of a cell with a line such as ``# Needs workers:2, Keras 3``, which the setup code recognizes."""
    line = NEEDS_COMMENT.format(topology=cell.topology, keras=cell.keras)
    if not code.startswith("%%"):
        return f"{line}\n{code}"
    magic, _, rest = code.partition("\n")  # a cell magic must stay on the first line
    return f"{magic}\n{line}\n{rest}"


def setup_note(lesson: Lesson) -> str:
    """A note about the lesson's machine, in the current language."""
    topology = Topology.parse(lesson.topology)
    match topology.kind:
        case "cpu":
            said = [gettext("In Lockstep, this lesson runs on one CPU.")]
        case "gpu":
            said = [_gpu_setup(topology.devices)]
            said.append(gettext("The cell below creates them here too, unless this machine has enough real ones."))
        case kind:
            said = [_original_machine_note(lesson), _how_to_get_machine(lesson)]
            if kind == "tpu":
                said.append(gettext("A machine with a real TPU works too."))
            else:
                said.append(gettext("A real cluster works too, if each process has its own TF_CONFIG."))
            said.append(gettext("Elsewhere, these cells are skipped with a message."))
    others = [f"`{cell.name}` ({_machine_label(cell)})" for cell in lesson.cells if _runs_elsewhere(cell, lesson)]
    if others:
        said.append(
            gettext("In Lockstep, these cells run on machines of their own: {cells}.").format(cells=", ".join(others))
        )
        said.append(gettext("Here, they are skipped or may behave differently."))
    return " ".join(said)


def _gpu_setup(n: int) -> str:
    return ngettext(
        "In Lockstep, this lesson runs on {n} simulated GPU: a logical device of the CPU that takes its place.",
        "In Lockstep, this lesson runs on {n} simulated GPUs: logical devices of the CPU that take their place.",
        n,
    ).format(n=n)


def _original_machine_note(lesson: Lesson) -> str:
    words = gettext("In Lockstep, this lesson runs on this machine: {machine}.")
    return words.format(machine=topology_label(lesson.topology))


def _how_to_get_machine(at: Lesson | Cell) -> str:
    kernel = JupyterKernel(Topology.parse(at.topology), at.keras)
    words = gettext("To run the cells, install the kernel “{kernel}” with “{command}” and choose it.")
    return words.format(kernel=kernel.title, command=kernel.install_command)


def _skipped_cell_text(cell: Cell) -> str:
    words = gettext("Skipped: this cell needs another machine ({machine}).")
    return f"{words.format(machine=_machine_label(cell))} {_how_to_get_machine(cell)}"


def _machine_label(cell: Cell) -> str:
    return f"{topology_label(cell.topology)}, Keras {cell.keras}"


def _runs_elsewhere(cell: Cell, lesson: Lesson) -> bool:
    return (cell.topology, cell.keras) != (lesson.topology, lesson.keras)
