"""Turns a page into a PDF or a picture with Chromium, in a process of its own that is limited and thrown away.

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
MAX_FILE_BYTES = 100_000_000


class BrowserUnavailable(Exception):
    """There is no PDF or picture. ``str()`` says why, and what to do."""


def find_browser() -> Path | None:
    """Chromium or Chrome on the path of commands; None if there is none."""
    return next((Path(found) for name in BROWSERS if (found := shutil.which(name))), None)


def print_pdf(html: str, browser: Path, *, trusted: bool) -> bytes:
    """The page as a PDF. ``trusted`` says that it contains nothing from learners.

    Raises:
        BrowserUnavailable: the browser failed, took too long, or could not be isolated.
    """
    return _convert(html, browser, "pdf", ["--no-pdf-header-footer", "--print-to-pdf="], trusted=trusted)


def take_picture(html: str, browser: Path, width: int, height: int, *, trusted: bool) -> bytes:
    """The top of the page as a PNG of this many pixels.

    Raises:
        BrowserUnavailable: as in ``print_pdf``.
    """
    size = ["--hide-scrollbars", "--force-device-scale-factor=1", f"--window-size={width},{height}", "--screenshot="]
    return _convert(html, browser, "png", size, trusted=trusted)


def _convert(html: str, browser: Path, form: str, options: list[str], *, trusted: bool) -> bytes:
    """Run Chromium with ``options``, the last of which takes the path of the file to write."""
    is_root = os.geteuid() == 0
    if is_root and not trusted:
        raise BrowserUnavailable("Chromium cannot isolate a learner's output for root; run Lockstep as another user")
    with tempfile.TemporaryDirectory(prefix="lockstep-page-") as temporary:
        folder = Path(temporary)
        (folder / "page.html").write_text(html, encoding="utf-8")
        file = folder / f"page.{form}"
        *others, writes_to = options
        command = [
            str(browser),
            "--headless=new",
            "--disable-gpu",
            "--disable-extensions",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder / 'profile'}",
            *others,
            f"{writes_to}{file}",
            *(["--no-sandbox"] if is_root else []),
            (folder / "page.html").as_uri(),
        ]
        _run(command, folder)
        if not file.is_file() or file.stat().st_size > MAX_FILE_BYTES:
            raise BrowserUnavailable(f"{browser} wrote no {form.upper()} of at most {MAX_FILE_BYTES:,} bytes")
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
        raise BrowserUnavailable(f"{command[0]} cannot be started: {e.strerror}") from e
    try:
        status = process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise BrowserUnavailable(f"{command[0]} took more than {TIMEOUT_S} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status:
        raise BrowserUnavailable(f"{command[0]} ended with status {status}")
