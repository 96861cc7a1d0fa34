"""Every table there is: importing this module fills ``Base.metadata``."""

from __future__ import annotations

from app import rate_limit
from app.accounts import models as accounts
from app.comments import models as comments
from app.db import Base
from app.feedback import models as feedback
from app.mail import models as mail
from app.notifications import models as notifications
from app.progress import models as progress
from app.runs import models as runs

MODULES = (accounts, comments, feedback, mail, notifications, progress, rate_limit, runs)
TABLES = tuple(Base.metadata.sorted_tables)
