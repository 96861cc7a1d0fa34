"""Readers of the guides in ``docs/teach``, who type their commands into a shell."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
TEACH = ROOT / "docs" / "teach"


def guide_blocks(guide: str, language: str) -> list[str]:
    """The examples of a guide in a language, without those inside others."""
    text = (TEACH / guide).read_text(encoding="utf-8")
    found = re.findall(r"^(`{3,})(\w+)\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL)
    return [example for _, name, example in found if name == language]


class GuideReader:
    """Somebody with a home folder and the command ``lockstep``, which finds a runner at ``socket``."""

    def __init__(self, socket: Path, home: Path) -> None:
        program = home / "bin" / "lockstep"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from app.cli.main import app; app()" "$@"\n')
        program.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_")}
        own = {"LOCKSTEP_RUNNER_SOCKET": str(socket), "LOCKSTEP_DATA_DIR": str(home / "data")}
        paths = {"PATH": f"{program.parent}:{kept['PATH']}", "PYTHONPATH": str(ROOT)}
        self.environment = kept | own | paths
        self.folder = home
        """Where the next commands start."""

    async def follow(self, commands: str, *, status: int = 0) -> str:
        """What the commands print. ``status`` is what the last one has to end with."""
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-e", "-c", commands),
            cwd=self.folder,
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await shell.communicate()
        assert shell.returncode == status, out.decode()
        return out.decode()

    async def see(self, preview: str) -> httpx.Response:
        """The page of a lesson behind the link that the command for a preview prints."""
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", f"exec {preview.strip()} --port 0"),
            cwd=self.folder,
            env=self.environment,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            line = (await process.stderr.readline()).decode()
            link = re.search(r"http://localhost(\S+)", line)
            assert link is not None, line
            async with httpx.AsyncClient(follow_redirects=True, timeout=60) as browser:
                page = await browser.get(f"http://127.0.0.1{link[1]}")
        finally:
            process.terminate()
            await process.communicate()
        assert process.returncode == 0
        return page
