"""All tables: importing this module fills ``Base.metadata``.

A feature's tables are in its ``models.py``. Rate limits and site switches belong to no feature.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from app import rate_limit as _rate_limit  # noqa: F401
from app import site_switches as _site_switches  # noqa: F401
from app.db import Base

for _file in sorted(Path(__file__).parent.glob("*/models.py")):
    import_module(f"app.{_file.parent.name}.models")

TABLES = tuple(Base.metadata.sorted_tables)
