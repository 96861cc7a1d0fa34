"""The names of settings, and which environment variables a supervisor gets from its parent.

It gets those it needs, and no secrets. A supervisor parses data from hostile code. Its parent's other variables, such
as the database password or a Jupyter token, must not be there to be stolen.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

SETTINGS = frozenset(
    [
        "DATA_DIR",
        "MAX_SESSIONS",
        "SESSIONS_PER_LEARNER",
        "MAX_JUDGEMENTS",
        "RUNS_PER_SESSION",
        "UNSTORED_MB",
        "IDLE_S",
        "EVICTION_GRACE_S",
        "WARM_KERNELS",
        "WARM_TOPOLOGY",
        "WARM_KERAS",
        "PREPARE_DATA_SETS",
        "DEVICES",
        "SESSIONS_PER_GPU",
        "OUTER_SANDBOX",
        "SERVICE_UID",
        "UNTRUSTED_USERS",
        "UNSAFE_RUNNER",
    ]
)
"""The fields of ``RunnerSettings`` except ``limits``, without an import of pydantic; a test compares them."""
_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|TZ|LANG|LC_[A-Z]+|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|PYTHON[A-Z]+|VIRTUAL_ENV"
    r"|(CUDA|NVIDIA|TF)_[A-Z_]+"
)
_LIMITS = re.compile(r"LOCKSTEP_LIMITS(__[A-Z_]+)?", re.IGNORECASE)
_PREFIX = "LOCKSTEP_"
_MISSPELLED = 0.85
"""How similar a name is to a setting's, both without their prefix, where it surely is that one misspelled. Less similar
to one of ours are Compose's ``LOCKSTEP_RUNNER_SESSIONS``, and ``LOCKSTEP_DATABASE_PORT``, which Kubernetes sets where a
service is called ``lockstep-database``."""


def runner_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Choose variables from the environment of a supervisor's parent. Pure."""
    return {name: value for name, value in ours.items() if _is_needed(name)}


def misspelled_setting(variable: str, settings: Iterable[str], similarity: float = _MISSPELLED) -> str | None:
    """The setting whose name an unknown variable surely misspells, or None. Pure.

    With a lower ``similarity`` than the default, it only may be.
    """
    names = {name.removeprefix(_PREFIX): name for name in settings}
    near = difflib.get_close_matches(variable.upper().removeprefix(_PREFIX), names, n=1, cutoff=similarity)
    return names[near[0]] if near else None


def _is_needed(name: str) -> bool:
    prefix, _, setting = name.upper().partition("_")
    return bool(_NEEDED.fullmatch(name) or _LIMITS.fullmatch(name) or (prefix == "LOCKSTEP" and setting in SETTINGS))
