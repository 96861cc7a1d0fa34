"""The courses as learners know them: those of a Git revision, or the copy of what the server has shown last."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.cli.console import USAGE_ERROR, fail
from app.lessons.catalog import Catalog
from app.settings import Settings

_GIT_TIMEOUT_S = 120


@contextmanager
def published_courses(settings: Settings, revision: str) -> Iterator[Catalog | None]:
    """The published courses. None if there is no revision to compare with, and nothing was served here yet."""
    if not revision:
        folder = settings.last_good_courses
        yield _read(folder) if folder.is_dir() else None
        return
    with tempfile.TemporaryDirectory(prefix="lockstep-") as place:
        _extract(settings.lessons_dir, revision, Path(place))
        yield _read(Path(place))


def _read(root: Path) -> Catalog:
    catalog = Catalog(root, quiet=True)
    catalog.reload()
    return catalog


def _extract(lessons: Path, revision: str, target: Path) -> None:
    """Write the folder of lessons at a revision into another folder; exit with a sentence if Git cannot."""
    command = ["git", "-C", str(lessons), "archive", "--format=tar", "--end-of-options", revision, "."]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_GIT_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as e:
        fail(f"Git cannot be run: {e}.", USAGE_ERROR)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        fail(f"Git cannot read '{revision}' of {lessons}: {reason}", USAGE_ERROR)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(target, filter="data")
