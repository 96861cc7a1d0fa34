"""Prints an exported page to PDF with Chromium, in a process of its own that is limited and thrown away.

The page has no scripts and may load nothing: its content security policy says so, and Chromium resolves no name of a
host. Its own sandbox stays on; root, whom Chromium refuses to sandbox, prints only what authors wrote.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT_S = 120
MAX_PDF_BYTES = 100_000_000


class PdfUnavailable(Exception):
    """There is no PDF. ``str()`` says why, and what to do."""


def find_browser() -> Path | None:
    """Chromium or Chrome on the path of commands; None if there is none."""
    return next((Path(found) for name in BROWSERS if (found := shutil.which(name))), None)


def print_pdf(html: str, browser: Path, *, trusted: bool) -> bytes:
    """The page as a PDF. ``trusted`` says that it contains nothing from learners.

    Raises:
        PdfUnavailable: the browser failed, took too long, or could not be isolated.
    """
    is_root = os.geteuid() == 0
    if is_root and not trusted:
        raise PdfUnavailable("Chromium cannot isolate a learner's output for root; run Lockstep as another user")
    with tempfile.TemporaryDirectory(prefix="lockstep-pdf-") as temporary:
        folder = Path(temporary)
        (folder / "page.html").write_text(html, encoding="utf-8")
        command = [
            str(browser),
            "--headless=new",
            "--disable-gpu",
            "--disable-extensions",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder / 'profile'}",
            f"--print-to-pdf={folder / 'page.pdf'}",
            *(["--no-sandbox"] if is_root else []),
            (folder / "page.html").as_uri(),
        ]
        _run(command, folder)
        file = folder / "page.pdf"
        if not file.is_file() or file.stat().st_size > MAX_PDF_BYTES:
            raise PdfUnavailable(f"{browser} wrote no PDF of at most {MAX_PDF_BYTES:,} bytes")
        return file.read_bytes()


def _run(command: list[str], folder: Path) -> None:
    environment = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8"}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError as e:
        raise PdfUnavailable(f"{command[0]} cannot be started: {e.strerror}") from e
    try:
        status = process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise PdfUnavailable(f"{command[0]} took more than {TIMEOUT_S} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status:
        raise PdfUnavailable(f"{command[0]} ended with status {status}")
