"""Lets one session make several strategies, as who runs an edited cell again does.

TensorFlow numbers the groups of devices that add up tensors from 1 for each strategy, but remembers for the whole
process which shapes a group's sums have. So a second strategy whose model differs from the first one's fails with
"Shape mismatch in the collective instance", on real GPUs too, until the program is restarted. Here each strategy of
one process numbers its groups from where no other does. Where several workers add up, all have to use the same
numbers: there it is left as it is.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.python.distribute import collective_all_reduce_strategy, mirrored_strategy

_APART = 1_000
"""Groups of devices that one strategy may have."""


def keep_apart() -> None:
    """Do so in this process; runs no op."""
    bases = itertools.count(_APART, _APART)
    _renumber(mirrored_strategy.MirroredExtended, "_make_collective_ops_with_fallbacks", bases)
    _renumber(collective_all_reduce_strategy.CollectiveAllReduceExtended, "_initialize_local", bases)


def _renumber(owner: Any, name: str, bases: Iterator[int]) -> None:
    """Change where a strategy's numbers begin, before ``owner.name`` takes them."""
    make: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(make)
    def make_apart(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._collective_key_base += next(bases)
        return make(self, *args, **kwargs)

    setattr(owner, name, make_apart)
