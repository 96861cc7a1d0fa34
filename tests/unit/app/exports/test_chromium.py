"""PDFs and pictures by a browser that is limited, and that is not trusted with a learner's output."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from app.exports import chromium
from app.exports.chromium import BrowserUnavailable, find_browser, print_pdf, take_picture


def _browser(folder: Path, script: str) -> Path:
    program = folder / "browser"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="there is no Chromium or Chrome")
def test_a_page_becomes_a_pdf_or_a_picture() -> None:
    browser = find_browser()
    assert browser is not None

    page = "<!DOCTYPE html><title>x</title><p>Words"
    assert print_pdf(page, browser, trusted=True).startswith(b"%PDF-")
    picture = take_picture(page, browser, 320, 200, trusted=True)
    assert (picture[:8], struct.unpack(">II", picture[16:24])) == (b"\x89PNG\r\n\x1a\n", (320, 200))


@pytest.mark.parametrize(
    ("script", "reason"),
    [("exit 3", "ended with status 3"), ("exit 0", "wrote no PDF"), ("exec sleep 60", "took more")],
)
def test_a_browser_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    monkeypatch.setattr(chromium, "TIMEOUT_S", 0.2 if "sleep" in script else 60)

    with pytest.raises(BrowserUnavailable, match=reason):
        print_pdf("<p>x", _browser(tmp_path, script), trusted=True)


def test_a_browser_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrowserUnavailable, match="cannot be started"):
        print_pdf("<p>x", tmp_path / "none", trusted=True)


def test_root_prints_nothing_from_learners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    ran = tmp_path / "ran"

    with pytest.raises(BrowserUnavailable, match="run Lockstep as another user"):
        print_pdf("<p>x", _browser(tmp_path, f"touch {ran}"), trusted=False)
    assert not ran.exists()


def test_the_browser_keeps_its_sandbox_unless_root_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "said"
    browser = _browser(tmp_path, f'echo "$@" > {said}')
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.raises(BrowserUnavailable):
            print_pdf("<p>x", browser, trusted=True)
        assert ("--no-sandbox" in said.read_text()) is expected
