"""Every table there is: importing this module fills ``Base.metadata``."""

from __future__ import annotations

from app.accounts import models as accounts
from app.db import Base
from app.progress import models as progress
from app.runs import models as runs

MODULES = (accounts, progress, runs)
TABLES = tuple(Base.metadata.sorted_tables)
