"""The commands in the guide to the API do what it says."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from fastapi import FastAPI

from tests.factories.accounts import store_account
from tests.factories.api import store_token
from tests.factories.http_server import serving
from tests.factories.routes import all_routes

_GUIDE = (Path(__file__).parents[2] / "docs/learn/api.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```sh\n(curl .*?)\n```", _GUIDE, re.DOTALL)


def test_the_guide_has_commands() -> None:
    assert len(COMMANDS) >= 2


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="needs curl")
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_of_the_guide_prints_what_the_api_answers(app: FastAPI, command: str) -> None:
    token = await store_token(app.state.db, await store_account(app.state.db))
    async with serving(app) as site:
        environment = os.environ | {"LOCKSTEP": str(site.base_url).rstrip("/"), "TOKEN": token, "no_proxy": "*"}
        curl = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE, env=environment)
        printed, _ = await curl.communicate()

    assert curl.returncode == 0
    assert json.loads(printed).keys() & {"scopes", "items"}


def test_the_guide_names_every_path_of_the_api(app: FastAPI) -> None:
    paths = {route.path for route in all_routes(app) if route.path.startswith("/api/v1/")}
    parts = {"report": "NAME", "course": "COURSE", "slug": "SLUG"}
    named = {re.sub(r"\{(\w+)\}", lambda part: parts.get(part[1], "ID"), path) for path in paths}

    assert {path for path in named if f"`{path.removeprefix('/api/v1')}`" not in _GUIDE} == {"/api/v1/openapi.json"}
