"""``lockstep.shards``: which examples went to which replica."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from runners.guest.api import display
from runners.guest.api.pictures import MAX_EXAMPLES, ReplicaExamples, shards_picture

_MOST_BATCHES = 100
_MOST_SHOWN_WHOLE = 4


def shards(data: Any, strategy: Any = None, batches: int = 1) -> None:
    """Show which examples of the next batches go to which replica.

        lockstep.shards(dataset, strategy)
        lockstep.shards(next(iter(strategy.experimental_distribute_dataset(dataset))))

    An example is shown by its number if the data set is numbered (`dataset.enumerate()` before `batch`), otherwise by
    its value or the mean of its values; its label follows the arrow. With several workers, each shows its own examples.

    Args:
        data: a data set, a distributed one, an iterator (the batches shown are taken from it), or one batch of a
            distributed data set.
        strategy: the strategy that distributes a plain data set; may be omitted inside `strategy.scope()`.
        batches: how many batches, 1 to 100.

    Raises:
        TypeError, ValueError: an argument is invalid; the message names it.
    """
    if isinstance(batches, bool) or not isinstance(batches, int) or not 1 <= batches <= _MOST_BATCHES:
        raise ValueError(f"batches must be a whole number from 1 to {_MOST_BATCHES}, not {batches!r}")
    if strategy is None:
        strategy = getattr(data, "_strategy", None) or tf.distribute.get_strategy()
    elif not isinstance(strategy, tf.distribute.Strategy):
        raise TypeError(f"strategy must be a tf.distribute strategy, not {type(strategy).__name__}")
    taken = list(_batches(data, strategy, batches))
    if not taken:
        raise ValueError("data has no batches left")
    display.show_picture(shards_picture(_shares(taken, _lane(strategy)), len(taken)))


def _batches(data: Any, strategy: Any, count: int) -> Iterator[Any]:
    if isinstance(data, tf.data.Dataset):
        data = _distributed(data, strategy)
    if hasattr(data, "__next__") or (hasattr(data, "__iter__") and not _is_batch(data)):
        for _, batch in zip(range(count), data, strict=False):
            yield batch
    elif _is_batch(data):
        yield data
    else:
        raise TypeError(
            f"data must be a data set, an iterator, or a batch of a distributed data set, not {type(data).__name__}"
        )


def _distributed(data: Any, strategy: Any) -> Any:
    if not tf.distribute.has_strategy() and strategy is tf.distribute.get_strategy():
        raise TypeError(
            "strategy is missing: to show how a plain data set is distributed, call lockstep.shards(dataset, strategy)"
        )
    if getattr(strategy, "_should_use_with_coordinator", False):
        raise ValueError(
            "with parameter servers, each worker creates its own data set in its own process: "
            "lockstep.shards cannot see it from the coordinator"
        )
    return strategy.experimental_distribute_dataset(data)


def _is_batch(data: Any) -> bool:
    """Whether this is an element of an iterator: a structure of tensors or per-replica values."""
    return all(tf.is_tensor(leaf) or hasattr(leaf, "values") for leaf in _leaves(data)) and not hasattr(
        data, "__next__"
    )


def _leaves(data: Any) -> list[Any]:
    if isinstance(data, Mapping):
        return [leaf for value in data.values() for leaf in _leaves(value)]
    if isinstance(data, list | tuple):
        return [leaf for value in data for leaf in _leaves(value)]
    return [data]


def _shares(taken: list[Any], lane: str) -> list[ReplicaExamples]:
    replicas = max(len(_copies(leaf)) for batch in taken for leaf in _leaves(batch))
    shares = []
    for replica in range(replicas):
        examples: list[str] = []
        count, device = 0, ""
        for batch in taken:
            local = _of_replica(batch, replica)
            first = _leaves(local)[0]
            device = device or str(getattr(first, "device", ""))
            size = _size(first)
            examples += _examples(local, min(size, MAX_EXAMPLES - len(examples)))
            count += size
        shares.append(ReplicaExamples(lane.format(replica), display.replica_name(device), tuple(examples), count))
    return shares


def _copies(leaf: Any) -> tuple[Any, ...]:
    values = getattr(leaf, "values", None)
    return values if isinstance(values, tuple) else (leaf,)


def _of_replica(batch: Any, replica: int) -> Any:
    if isinstance(batch, Mapping):
        return {name: _of_replica(value, replica) for name, value in batch.items()}
    if isinstance(batch, list | tuple):
        return tuple(_of_replica(value, replica) for value in batch)
    copies = _copies(batch)
    return copies[min(replica, len(copies) - 1)]


def _size(first: Any) -> int:
    """The number of examples in a replica's batch, which may be empty at the end of a data set."""
    return int(first.shape[0]) if len(first.shape) else 1


def _examples(batch: Any, most: int) -> list[str]:
    number, content = None, batch
    if isinstance(batch, tuple) and len(batch) == 2 and isinstance(batch[1], tuple | Mapping):
        number, content = batch  # the data set is numbered
    label = content[1] if isinstance(content, tuple) and len(content) > 1 and tf.is_tensor(content[1]) else None
    what = _leaves(content)[0]
    texts = []
    for i in range(most):
        text = _text(what, i) if number is None else f"#{_text(number, i)}"
        named = _text(label, i) if label is not None and _is_single(label) else None
        texts.append(text if named is None else f"{text} → {named}")
    return texts


def _is_single(tensor: Any) -> bool:
    """Whether each example is a single value."""
    return all(size == 1 for size in tensor.shape[1:])


def _text(tensor: Any, i: int) -> str:
    value = np.asarray(tensor[i] if len(tensor.shape) else tensor)
    if value.dtype.kind in "OS":
        word = value.ravel()[0]
        return repr(word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word))[:40]
    if value.size <= _MOST_SHOWN_WHOLE:
        return " ".join(f"{number:.4g}" if value.dtype.kind == "f" else f"{number}" for number in value.ravel())
    return f"mean {value.astype('float64').mean():.4g}"


def _lane(strategy: Any) -> str:
    """The lane of this process's replicas, as a template with a placeholder for the number."""
    resolver = getattr(strategy, "cluster_resolver", None) if os.environ.get("TF_CONFIG") else None
    if resolver is None or getattr(resolver, "task_type", None) not in ("worker", "chief"):
        return "replica {}"
    who = "chief" if resolver.task_type == "chief" else f"worker {resolver.task_id}"
    return who + ", replica {}"
