"""Whether the database works: a check of ``lockstep doctor``.

``python -m app.cli.database_check`` prints it as JSON. Root runs that as the web application's user.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from asyncio.subprocess import DEVNULL, PIPE

from app.cli.console import read_settings
from app.cli.web_user import as_web_user, needs_web_user, web_user_environment
from app.db import Database
from app.health.checks import HealthCheck, check_database, run_with_timeout
from app.settings import Settings


async def check_configured_database(settings: Settings) -> HealthCheck:
    """Check the database that the settings name, as the user to whom it belongs."""
    if not needs_web_user(settings.data_dir):
        return await _check(settings)
    command = as_web_user(settings, "app.cli.database_check")
    process = await asyncio.create_subprocess_exec(
        *command, env=web_user_environment(settings), stdin=DEVNULL, stdout=PIPE
    )
    out, _ = await process.communicate()
    try:
        return HealthCheck(**json.loads(out))
    except (ValueError, TypeError):
        return HealthCheck("database", False, "its user cannot check it")


async def _check(settings: Settings) -> HealthCheck:
    db = Database(settings.database, pooled=settings.database_transaction_pooling)
    if (file := db.file()) is not None and not file.exists():
        return HealthCheck("database", True, "none yet: 'lockstep serve' creates it")
    try:
        return await run_with_timeout("database", check_database(db))
    finally:
        await db.close()


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(asyncio.run(_check(read_settings())))))
