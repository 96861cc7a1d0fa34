"""Notices code that chooses Keras 2 by ``TF_USE_LEGACY_KERAS``, which has no effect once TensorFlow is imported.

A session's kernel is forked from a process that has imported it, so the choice is the session's. Programs that a cell
starts get the variable.
"""

from __future__ import annotations

import re
import sys

from runners.guest.reporting import notices

_CHOICE = re.compile(
    r"""^(?!\s*[!#]).*TF_USE_LEGACY_KERAS["']?\]?\s*[=,:]?\s*["']?(1|[Tt]rue)\b""",
    re.MULTILINE,
)
_FOR_OTHERS = re.compile(r"\s*%%(?!time\b|timeit\b|capture\b)")
"""Magics of cells whose code does not run here."""


def chooses_keras_2(code: str) -> bool:
    """Whether code sets the variable for this process."""
    return "TF_USE_LEGACY_KERAS" in code and not _FOR_OTHERS.match(code) and bool(_CHOICE.search(code))


def offer_keras_2(code: str) -> None:
    """Say how to get Keras 2 if ``code`` asks for it and this session has Keras 3."""
    if "tf_keras" not in sys.modules and chooses_keras_2(code):
        notices.notify_once("keras-2-chosen")
