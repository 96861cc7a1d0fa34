"""``gpu:N`` without GPUs: N logical CPU devices stand in for N GPUs, and TensorFlow's questions about GPUs are
answered as if they were.

Everything is TensorFlow's own code on TensorFlow's own devices. Only the word ``GPU`` is replaced on the way in
(``gpu_names``), the lists on the way out (``gpu_lists``, ``gpu_memory``), and what only CUDA has (``nccl``). The table
of what is simulated, and how, is in the README of ``runners/guest``.
"""

from __future__ import annotations

import os

from runners.guest.tf_patches import distributed_datasets, gpu_lists, gpu_names, nccl
from runners.sandbox import nvidia_smi


def simulate(count: int) -> None:
    """Make TensorFlow in this process see ``count`` GPUs. Call once, before any op runs; runs no op itself."""
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # a learner may set it, for the simulated ones
    os.putenv("CUDA_VISIBLE_DEVICES", "-1")  # CUDA itself reads this
    gpu_lists.show_gpus(count)
    gpu_names.translate()
    nccl.replace_nccl()
    distributed_datasets.disable_autotune()
    os.environ[nvidia_smi.GPU_COUNT_VARIABLE] = str(count)
    os.environ["PATH"] = f"{nvidia_smi.PROGRAM_FOLDER}:{os.environ.get('PATH', os.defpath)}"
