"""How TensorFlow runs an op outside of a function.

It would wrap each op in a function of its own, and optimise that: 3 to 15 ms for every op's first time, 36 ms for a
MirroredStrategy. The other way, TensorFlow's own too, hands the op to its kernel: the same kernel, the same result.
"""

from __future__ import annotations

from typing import Any

from tensorflow.python import pywrap_tfe


def run_ops_directly() -> None:
    """Choose the other way for this process and its children. Call before any op ran."""
    choose = pywrap_tfe.TFE_ContextOptionsSetRunEagerOpAsFunction

    def choose_ops(options: Any, _: bool) -> None:
        choose(options, False)

    pywrap_tfe.TFE_ContextOptionsSetRunEagerOpAsFunction = choose_ops
