"""Runs a notebook as Jupyter does where there is no Lockstep."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbclient import NotebookClient
from traitlets.config import Config


def run_in_plain_jupyter(made: Any, folder: Path, timeout_s: int) -> None:
    """Run the cells with ipykernel, in ``folder``, and store what they print; an error in one is raised."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    with TemporaryDirectory(prefix="lj-") as sockets:
        # By default, Jupyter picks free ports, which others may take before the kernel listens, seconds later.
        by_files = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/k"}})
        resources = {"metadata": {"path": folder}}
        NotebookClient(made, kernel_name="python3", timeout=timeout_s, resources=resources, config=by_files).execute(
            env=environment
        )
