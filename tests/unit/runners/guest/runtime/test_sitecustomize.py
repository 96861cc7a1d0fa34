"""A program that a session starts is ready for Keras's data sets, and otherwise knows nothing of Lockstep."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import runners
from runners.guest.runtime import sitecustomize

LOADED = "print(sorted(name for name in sys.modules if name.startswith('runners.guest.tf_patches.')))"
SPAWNED = f"""
import multiprocessing, sys

def child():
    import keras
    {LOADED}

if __name__ == "__main__":
    sys.path[:] = [folder for folder in sys.path if folder != {{folder!r}}]
    multiprocessing.set_start_method("spawn")
    process = multiprocessing.Process(target=child)
    process.start()
    process.join()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a sandbox has on PYTHONPATH, and a package that calls itself Keras."""
    shutil.copy(Path(sitecustomize.__file__), tmp_path)
    (tmp_path / "runners").symlink_to(Path(runners.__file__).parent)
    (tmp_path / "own" / "keras").mkdir(parents=True)
    (tmp_path / "own" / "keras" / "__init__.py").touch()
    return tmp_path


def ran(folder: Path, code: str) -> str:
    program = folder / "own" / "main.py"
    program.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_imported_before_keras_is(folder: Path) -> None:
    before, after = ran(folder, f"import sys\n{LOADED}\nimport keras\n{LOADED}").splitlines()
    assert before == "[]"
    assert "runners.guest.tf_patches.keras_datasets" in after
    assert "runners.guest.tf_patches.tfds_datasets" not in after


def test_a_process_that_multiprocessing_spawns_is_ready_too(
    folder: Path,
) -> None:
    assert "runners.guest.tf_patches.keras_datasets" in ran(folder, SPAWNED.format(folder=str(folder)))
