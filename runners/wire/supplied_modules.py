"""Modules that each session has from Lockstep, in place of packages that are not installed."""

from __future__ import annotations

SUPPLIED_MODULES = frozenset(["myst_nb", "portpicker", "tensorflow_hub"])
"""As code imports them. The guest has their contents; a check of lessons and the answer to ``pip`` need only names."""
