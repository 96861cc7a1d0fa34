"""Rules for every service: modules that do the work, as opposed to those that speak HTTP."""

from __future__ import annotations

import ast
from pathlib import Path

APP = Path("app")
HTTP_MODULES = {
    *("api_access", "dependencies", "feature", "metrics_server", "navigation", "observability", "responses", "routes")
}
"""Beside ``app.web``, ``app.main`` and the modules whose names end in ``_routes``."""


def _speaks_http(file: Path) -> bool:
    return (
        file.is_relative_to(APP / "web")
        or file == APP / "main.py"
        or file.stem in HTTP_MODULES
        or file.stem.endswith("_routes")
    )


def _imports_request(file: Path) -> bool:
    imports = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import | ast.ImportFrom))
    return any(
        alias.name in ("Request", "HTTPConnection", "WebSocket") or alias.name.startswith("starlette.requests")
        for node in imports
        for alias in node.names
    )


def test_services_take_no_request() -> None:
    files = sorted(APP.rglob("*.py"))
    takers = [file for file in files if _imports_request(file)]

    assert len(takers) > 10, "the routes do, so this test no longer sees them"
    assert [str(file) for file in takers if not _speaks_http(file)] == []
