"""``gpu:N`` without GPUs: N logical CPU devices simulate N GPUs, and TensorFlow lists them as GPUs.

Everything is TensorFlow's own code on TensorFlow's own devices. Only device names are translated on the way in
(``gpu_names``), lists on the way out (``gpu_lists``, ``gpu_memory``), and ops that only CUDA has are replaced
(``nccl``). The README of ``runners/guest`` has a table of what is simulated, and how.
"""

from __future__ import annotations

import os

from runners.guest.tf_patches import distributed_datasets, gpu_lists, gpu_names, nccl
from runners.sandbox import nvidia_smi


def simulate(count: int) -> None:
    """Make TensorFlow in this process see ``count`` GPUs. Call once, before any op runs; runs no op itself."""
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # a learner may set it for the simulated GPUs
    os.putenv("CUDA_VISIBLE_DEVICES", "-1")  # CUDA itself reads this
    gpu_lists.show_gpus(count)
    gpu_names.translate()
    nccl.replace("nccl")
    distributed_datasets.tuning.apply()
    os.environ[nvidia_smi.GPU_COUNT_VARIABLE] = str(count)
    os.environ["PATH"] = f"{nvidia_smi.PROGRAM_FOLDER}:{os.environ.get('PATH', os.defpath)}"
