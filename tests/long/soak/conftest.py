"""How long the tests run: short by default; `tests/long/hostile/README.md` has the commands for long ones."""

from __future__ import annotations

import os

SESSIONS = int(os.environ.get("LOCKSTEP_TEST_SOAK_SESSIONS", "20"))
"""Sessions in a row."""
CHAOS_S = float(os.environ.get("LOCKSTEP_TEST_CHAOS_S", "10"))
"""Seconds in which processes are killed."""
SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", "20261121"))
"""What is drawn by chance is drawn the same again with the same number."""
