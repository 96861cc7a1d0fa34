"""No usual mistake passes by chance, or is taken for another: each is made often, with other random numbers.

The main tier makes each of them 10 or 25 times, ``tests/long/lessons`` 100 times.

Where an exercise needs no TensorFlow, its own files are submitted. Otherwise NumPy stands in for the submissions;
what TensorFlow computes is judged in ``lockstep lesson check``.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from app.cli.exercise_check import sample_errors, samples_of
from app.cli.submission_runner import JudgedSubmission
from app.lessons.judgements import judgement_of
from app.lessons.model import Cell, Exercise, Lesson
from runners.checks import CheckFailed, Graph, InProcessWork, Work, close, equal
from runners.checks.declare import checks_of
from runners.checks.results import run_check
from runners.checks.work import SubmissionFailed
from runners.wire.protocol import CheckEvent, Outcome
from tests.factories.long_cases import LONG_CASES
from tests.factories.shipped_lessons import shipped_catalog

LESSONS = Path(__file__).parents[2] / "lessons" / "distributed-tensorflow"
TRIES = 100 if LONG_CASES else 25
TRIES_OF_FILES = 100 if LONG_CASES else 10
TRIES_OF_COSTLY_FILES = 5
LAXER = 100.0
TENSORFLOW = re.compile(r"\b(tf|tensorflow|keras)\b")
STAND_INS = {
    "held": "import math, re",
    "one-f-one-b": """
import string
import numpy as np
def gradients_of(*given): return [np.zeros(3)]
def on_one_device(*given): return [np.zeros(3)]
def draw(orders): pass
""",
    "pieces": """
import types
import numpy as np
WHOLE, dtensor = "unsharded", types.SimpleNamespace(unpack=lambda placed: [])
def place(array, *names): pass
""",
    "schedule": """
STEPS, BASE_RATE, REPLICAS = 128, 0.04, 8
def train(rates): return 0.9, []
""",
    "waits-of-steps": "reads, steps = [0.1] * 4, [0.2] * 4",
}
"""By exercise, what its files use of cells that need TensorFlow."""
COSTLY = {
    *("bottleneck", "diagnose", "hierarchical", "pieces", "plan-for-cluster"),
    *("schedule", "step-time", "within-budget"),
}
"""Exercises whose files take long to judge, and are only judged in the long tests."""

Answers = Mapping[str, Callable[..., Any]]


CODE = """
def records_of(): return files.interleave()
def begin(): return tf.train.Checkpoint()
def pipeline(): return numbers.cache()
"""


class ScriptedWork:
    """A submission whose functions are given; its code has what checks look for."""

    source = CODE
    output = ""
    tree = ast.parse(CODE)

    def __init__(self, answers: Answers, right: Answers, seed: int) -> None:
        self._answers, self._right = answers, right
        self.rng = np.random.default_rng(seed)

    def call(self, name: str, *args: Any, kill: str | None = None, at_step: int | None = None) -> Any:
        more = {} if kill is None else {"at_step": at_step}
        return self._answers[name](*args, **more)

    def graph(self, name: str, *args: Any, alone: bool = False) -> Graph:
        own = self._answers[f"{name} alone"](*args) if alone else None
        counted = f"{name} collectives"
        exchanges = self._answers[counted](*args) if counted in self._answers else 2
        return Graph({"CollectiveReduceV2": exchanges, "AddN": 1}, 1, self.call(name, *args), own)

    def per_task(self, name: str, *args: Any, own: Any = None) -> list[Any]:
        result: list[Any] = self._answers[name](*args, own)
        return result

    def reference(self, name: str, *args: Any, topology: str | None = None) -> Any:
        return self._right[name](*args)

    def fresh(self) -> ScriptedWork:
        return self


@functools.cache
def checks_module(lesson: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"checks_of_{lesson}", LESSONS / lesson / "checks.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def passes(lesson: str, exercise: str, work: Work) -> bool:
    try:
        for check in checks_of(vars(checks_module(lesson)), exercise):
            check(work)
    except (CheckFailed, SubmissionFailed):
        return False
    return True


# --- what submissions answer ------------------------------------------------------------------------------------


def of_checks(lesson: str, name: str) -> Any:
    """A function of a ``checks.py``, looked up when it is called."""
    return lambda *args, **kwargs: getattr(checks_module(lesson), name)(*args, **kwargs)


def divide_the_loss(divisor: Callable[[int, int], float], penalty_share: float = 0.5) -> Answers:
    """``divisor`` gets the size of the share and that of the batch."""

    def one_step(w: Any, whole: Any, cut: int, rate: Any, strength: Any) -> Any:
        shares = np.split(whole, [cut])
        slope = sum(np.sum(2 * share * (w * share - 1)) / divisor(len(share), len(whole)) for share in shares)
        return np.float32(w - rate * (slope + 2 * penalty_share * 2 * strength * w))

    def loss_of(losses: Any, penalty: Any, batch: int) -> Any:
        return np.float32(losses.sum() / divisor(len(losses), batch) + penalty)

    return {"one_step": one_step, "loss_of": loss_of}


def weighted_mean(part: Callable[..., float]) -> Answers:
    """``part`` gets the losses and weights of its share, and those of the batch."""

    def weighted_parts(losses: Any, weights: Any, cut: int) -> Any:
        shares = zip(np.split(losses, [cut]), np.split(weights, [cut]), strict=True)
        return [np.float32(part(*share, losses, weights)) for share in shares]

    def alone(losses: Any, weights: Any, cut: int) -> Any:
        shares = zip(np.split(losses, [cut]), np.split(weights, [cut]), strict=True)
        return [np.float32(part(*share, losses[:cut], weights[:cut])) for share in shares]

    return {"weighted_parts": weighted_parts, "weighted_parts alone": alone}


def largest_scale(rounded: Callable[[float], float], largest_number: float = 65504.0) -> Answers:
    def scale(gradients: Any) -> float:
        return float(2.0 ** rounded(math.log2(largest_number / max(float(np.abs(g).max()) for g in gradients))))

    return {"largest_scale": scale}


def verdict(finite: Callable[[Any], list[bool]]) -> Answers:
    """``finite`` gets the two shares."""

    def agree(shares: Any, scale: Any) -> Any:
        verdicts = finite(shares)
        total = shares.astype("float32").sum(axis=0) / scale
        sums = [total if fine else np.zeros_like(total) for fine in verdicts]
        return [*sums, *(np.asarray(fine) for fine in verdicts)]

    def alone(shares: Any, scale: Any) -> Any:
        return agree(np.stack([shares[0], np.zeros_like(shares[1])]), scale)

    return {"agree": agree, "agree alone": alone}


def mean_of_all(one: Callable[[list[Any]], float]) -> Answers:
    return {"mean_of_all": lambda own: [np.float32(one(own))] * 2}


def feature_means(counted: Callable[[int, int], int]) -> Answers:
    """``counted`` gets the number of examples and the size of a batch."""
    return {"feature_means": lambda pixels, batch: (pixels.mean(0, dtype="float32"), counted(len(pixels), batch))}


def train_in_parts(divisor: Callable[[int, int, int], float], *, resets: bool = True) -> Answers:
    """``divisor`` gets the size of the part at hand, that of a full part, and that of the batch."""

    def train(inputs: Any, targets: Any, part: int, updates: int, replicas: int = 1) -> Any:
        steps = of_checks("fitting-into-memory", "linear_steps")
        return steps(inputs, targets, part, updates, lambda size: divisor(size, part, len(targets)), resets, replicas)

    return {"train_in_parts": train, "train_in_parts alone": functools.partial(train, replicas=2)}


def descend(rate_of: Callable[[list[float], int], float], factor: float = 1.0) -> Answers:
    def descended(start: float, rates: list[float]) -> Any:
        used = [rate_of(rates, number) for number in range(len(rates))]
        return of_checks("tpu-strategy", "descended")(start, used, factor), 1

    return {"descend": descended}


def train_on(factor: float) -> Answers:
    def train(name: str, inputs: Any, targets: Any, batch: int, rate: float) -> Any:
        weights = of_checks("one-place-one-device", "linear_epoch")(inputs, targets, batch, rate, factor)
        return weights, len(targets) // batch

    return {"train_on": train}


def handed_over(total: Callable[[Any, float], Any]) -> Answers:
    """``total`` gets the gradients of the replicas and the limit."""

    def hand_over(gradients: Any, limit: Any) -> Any:
        return [total(gradients, float(limit)) / 4] * 4

    first = np.array([[1], [0], [0], [0]], "float32")
    return {"handed_over": hand_over, "handed_over alone": lambda *given: hand_over(first * given[0], given[1])}


def batch_statistics(groups: int) -> Answers:
    def normalize_batch(batch: Any) -> Any:
        normalize = of_checks("mirrored-strategy", "normalize")
        shares = np.split(batch, groups)
        means = [0.1 * share.mean(axis=0) for share in shares for _ in range(4 // groups)]
        return [np.concatenate([normalize(share) for share in shares]), np.stack(means)]

    def alone(batch: Any) -> Any:
        return [batch - np.split(batch, 4)[0].mean(axis=0), None]

    return {"normalize_batch": normalize_batch, "normalize_batch alone": alone}


def records(read: Callable[[list[list[int]]], list[int]], own: bool = True) -> Answers:
    """``read`` gets the files of a worker, or all files, of whose records it then keeps its share."""

    def record_ids(files: list[list[int]], workers: int, worker: int) -> list[int]:
        return read(files[worker::workers]) if own else read(files)[worker::workers]

    return {"record_ids": record_ids}


def dealt(worker_of: Callable[[int, int, int], int], few: Callable[[int, int], int] | None = None) -> Answers:
    """``worker_of`` gets the number of a file, or of a record if ``few`` does and there are few, epoch and workers."""

    def record_ids(files: list[list[int]], workers: int, worker: int, epoch: int) -> list[int]:
        if few and len(files) < workers:
            together = [number for file in files for number in file]
            return [number for place, number in enumerate(together) if few(place, workers) == worker]
        return [id_ for place, file in enumerate(files) for id_ in file if worker_of(place, epoch, workers) == worker]

    return {"record_ids": record_ids}


def padded_batches(steps: Callable[[list[int], int, int], int], weight: float = 0.0) -> Answers:
    """``steps`` gets the numbers of records of all workers, that of one, and the size. ``weight``: of padding."""

    def batches(size: int, own: list[list[int]]) -> Any:
        results = []
        for share in own:
            places = size * steps([len(part) for part in own], len(share), size)
            ids = np.resize(np.array([*share, 0]), places)
            weights = np.where(np.arange(places) < len(share), 1.0, weight)
            results.append((ids.reshape(-1, size), weights.reshape(-1, size)))
        return results

    return {"padded_batches": batches}


def interleaved(files: list[list[int]], cycle: int, block: int = 1) -> list[int]:
    waiting, result = [list(file) for file in files], []
    opened, waiting = waiting[:cycle], waiting[cycle:]
    while opened:
        for slot, file in enumerate(opened):
            result += file[:block]
            del file[:block]
            if not file and waiting:
                opened[slot] = waiting.pop(0)
        opened = [file for file in opened if file]
    return result


def resume_training(
    first: Callable[[int], int], *, weights: bool = True, momentum: bool = True, alone: bool = False
) -> Answers:
    """``first`` gets the step of the restored state, and gives the step with which the second attempt begins.

    ``alone``: only the chief restores.
    """
    saved: dict[str, tuple[int, Any, Any]] = {}

    def train(
        folder: str, inputs: Any, targets: Any, batch: int, rate: float, every: int, at_step: int | None = None
    ) -> Any:
        steps = of_checks("checkpoints", "momentum_steps")
        if at_step is not None:
            last = (at_step - 1) // every * every
            saved[folder] = last, *steps(inputs, targets, batch, rate, range(last))
            return None
        last, *state = saved.get(folder, (0, None, None))
        kept = [part if keep else None for part, keep in zip(state, (weights, momentum), strict=True)]
        if alone and last:
            end = of_checks("checkpoints", "apart")(inputs, targets, batch, rate, len(targets) // batch, last, *kept)
        else:
            end, _ = steps(inputs, targets, batch, rate, range(first(last), len(targets) // batch), *kept)
        return [end[:-1, None], end[-1:]]

    return {"train": train}


def leave_together(heard: Callable[[list[bool]], bool]) -> Answers:
    """``heard`` gets who has been warned, and says whether all of them leave."""

    def train_until_warned(steps: int, own: list[int]) -> list[int]:
        made = (step - 1 for step in range(1, steps + 1) if heard([step >= warned for warned in own]))
        return [next(made, steps)] * len(own)

    return {"train_until_warned": train_until_warned}


def train_and_count(
    traces: Callable[[list[float]], float] = lambda rates: 1.0, rate: Callable[[list[float], int], float] | None = None
) -> Answers:
    """``traces`` gets the rates, and ``rate`` gets them with the number of the step."""

    def train(features: Any, targets: Any, batch: int, rates: list[float]) -> Any:
        used = [rate(rates, step) if rate else rates[step] for step in range(len(rates))]
        weights = of_checks("custom-training-loop", "with_rates")(features, targets, batch, used)
        return [weights[:-1, None], weights[-1:]], float(traces(rates))

    return {"train_and_count": train}


def go_on_with_two(
    first: Callable[[int], int] = lambda saved: saved,
    *,
    weights: bool = True,
    momentum: bool = True,
    old_share: bool = False,
    **changed: Any,
) -> Answers:
    """The mistakes are made when two are left.

    ``first`` is as for ``resume_training``; ``changed`` are keywords of ``shared_steps`` in the checks.
    """
    saved: dict[str, tuple[int, Any, Any]] = {}

    def train(
        folder: str,
        left: list[int],
        batch: int,
        rate: float,
        every: int,
        targets: Any,
        inputs: Any,
        at_step: int | None = None,
    ) -> Any:
        if at_step is not None:
            last = (at_step - 1) // every * every
            begin = of_checks("surviving-failures", "shared_steps")([inputs], targets, batch, rate, range(last))
            saved[folder] = last, *begin
            return None
        last, *state = saved.get(folder, (0, None, None))
        kept = [part if keep else None for part, keep in zip(state, (weights, momentum), strict=True)]
        own, steps = [inputs[worker] for worker in left], range(first(last) if last else 0, len(targets) // batch)
        read = {"read": lambda number, workers: slice(left[number], None, 3)} if old_share else {}
        mistakes = read | changed if len(left) == 2 else {}
        end, _ = of_checks("surviving-failures", "shared_steps")(own, targets, batch, rate, steps, *kept, **mistakes)
        return [[end[:-1, None], end[-1:]] if worker in left else None for worker in range(3)]

    return {"train": train}


def quiet_step(totals: Callable[[Any, int], Any] = lambda rows, batch: rows, **changed: Any) -> Answers:
    """``totals`` gets the right rows of the replicas and the batch, ``changed`` are keywords of ``classify``."""
    classify = of_checks("script-to-cluster", "classify")

    def train_steps(*case: Any) -> Any:
        weights, rows = classify(*case, **changed)
        return [*weights, totals(rows, case[3])]

    def alone(*case: Any) -> Any:
        weights, rows = classify(*case, **changed, replicas=[0])
        return [*weights, totals(rows, case[3])]

    return {"train_steps": train_steps, "train_steps alone": alone}


def recover(first: Callable[[int], int], *, kept: tuple[bool, bool, bool] = (True, True, True)) -> Answers:
    """``first`` is as for ``resume_training``; ``kept``: whether weights, momentum and total are."""
    saved: dict[str, tuple[int, Any, Any, float]] = {}

    def train(folder: str, inputs: Any, targets: Any, rate: float, every: int, at_step: int | None = None) -> Any:
        descend = of_checks("script-to-cluster", "descend")
        if at_step is not None:
            last = (at_step - 1) // every * every
            saved[folder] = last, *descend(inputs, targets, rate, range(last))
            return None
        last, *state = saved.get(folder, (0, None, None, 0.0))
        empty = None, None, 0.0
        begin = [part if keep else none for part, keep, none in zip(state, kept, empty, strict=True)]
        end = descend(inputs, targets, rate, range(first(last), inputs.shape[0] * inputs.shape[1]), *begin)
        return of_checks("script-to-cluster", "answer")(inputs, end)

    return {"train": train}


def continue_training(*, weights: bool = True, momentum: bool = True) -> Answers:
    saved: dict[str, tuple[Any, Any]] = {}

    def begin(folder: str, inputs: Any, targets: Any, rate: float, steps: int) -> Any:
        saved[folder] = of_checks("custom-training-loop", "momentum_steps")(inputs, targets, rate, steps)
        return [saved[folder][0][:-1, None], saved[folder][0][-1:]]

    def go_on(folder: str, inputs: Any, targets: Any, rate: float, steps: int) -> Any:
        kept = [part if keep else None for part, keep in zip(saved[folder], (weights, momentum), strict=True)]
        end, _ = of_checks("custom-training-loop", "momentum_steps")(inputs, targets, rate, steps, *kept)
        return [end[:-1, None], end[-1:]]

    def rename(old: str, new: str) -> None:
        saved[new] = saved.pop(old)

    def write(state: Any, path: str) -> None:
        saved[path.rpartition("/")[0]] = state

    return {
        "begin": begin,
        "go_on": go_on,
        "np.fromfile": lambda path, dtype: saved[path.rpartition("/")[0]],
        "np.ndarray.tofile": write,
        "tf.io.gfile.exists": saved.__contains__,
        "tf.io.gfile.glob": lambda patterns: [patterns[0].replace("*", "state")],
        "tf.io.gfile.isdir": lambda path: False,
        "tf.io.gfile.makedirs": lambda path: None,
        "tf.io.gfile.rename": rename,
    }


def train_one_epoch(divisor: Callable[[int, int], float], one_loss: Callable[..., float]) -> Answers:
    """``divisor`` gets the sizes of the share and the batch, ``one_loss`` the losses of both shares and the size."""

    def train(features: Any, labels: Any, batch_size: int, replicas: tuple[int, ...] = (0, 1)) -> Any:
        descend_to = of_checks("custom-training-loop", "softmax_regression")
        losses = []
        for start in range(0, len(labels), batch_size):
            seen = features[:start], labels[:start], batch_size
            _, (kernel, bias) = descend_to(*seen, lambda share: divisor(share, batch_size), replicas)
            here = slice(start, start + batch_size)
            logits = features[here] @ kernel + bias
            each = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), labels[here]]
            losses.append(np.float32(one_loss(each[::2], each[1::2], batch_size)))
        _, weights = descend_to(features, labels, batch_size, lambda share: divisor(share, batch_size), replicas)
        return [*losses, *weights]

    return {"train_one_epoch": train, "train_one_epoch alone": functools.partial(train, replicas=(0,))}


def moments_of_all(variance: Callable[[Any, Any], Any], mean: Callable[[Any], Any] | None = None) -> Answers:
    """``variance`` gets the shares and the mean of all, ``mean`` the shares."""

    def statistics(values: Any, cuts: Any) -> Any:
        shares = [share for share in np.split(values, cuts[1:-1]) if len(share)]
        of_all = values.mean(axis=0) if mean is None else mean(shares)
        return [of_all] * 4 + [variance(shares, of_all)] * 4

    return {"statistics": statistics, "statistics alone": lambda values, cuts: [values[0]] * 8}


def drop(seed: Callable[[int, int, int], list[int]], kept: Callable[[float], float] = lambda rate: 1 - rate) -> Answers:
    """``seed`` gets the step, the number of the share's first example, and that of an example."""

    def dropped(share: Any, first: int, step: int, rate: float) -> Any:
        numbers = [
            np.random.default_rng(seed(step, first, first + row)).uniform(size=share.shape[1])
            for row in range(len(share))
        ]
        return np.where(np.array(numbers) >= rate, share / kept(rate), 0).astype("float32")

    return {"drop": dropped}


def noise_and_signal(answer: Callable[..., tuple[float, float]]) -> Answers:
    """``answer`` gets the variance, the square of the mean, and the numbers of replicas, examples and weights."""

    def estimate(gradients: np.ndarray, batch: int) -> Any:
        spread, square, replicas = of_checks("batch-size-and-learning-rate", "estimates")(gradients, batch)
        return answer(spread, square, replicas, batch, gradients.shape[1])

    return {"noise_and_signal": estimate}


def sharded_step(*, alone: str = "whole", **changed: Any) -> Answers:
    """``changed`` are keywords of ``after_step`` in the checks; ``alone`` is how the first replica clips by itself."""
    after_step = of_checks("sharded-optimizers", "after_step")

    def weights_after(*case: Any) -> Any:
        return np.tile(after_step(case, **changed)[0], (4, 1))

    def moments_after(*case: Any) -> Any:
        return list(after_step(case, **changed)[1:])

    def moments_alone(*case: Any) -> Any:
        return list(after_step(case, **{"clipping": alone} | changed, only_first=True)[1:])

    return {"weights_after": weights_after, "moments_after": moments_after, "moments_after alone": moments_alone}


def split_block(answer: Callable[..., Any], alone: Callable[..., Any] | None = None) -> Answers:
    """``answer`` gets the partial sums of both replicas and the second bias."""

    def with_bias(part: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arrays: part(*of_checks("tensor-parallelism", "partial_sums")(*arrays), arrays[-1])

    return {
        "output_of": with_bias(answer),
        "output_of alone": with_bias(alone or (lambda first, second, bias: first + bias)),
    }


def in_order(order: Callable[[int, np.random.Generator], Any], *, frozen: str = "", batches: bool = False) -> Answers:
    """``order`` gives places in an epoch of so many numbers. ``frozen``: the order, or the chance, is never new."""

    def run_epochs(numbers: Any, size: int, epochs: int) -> Any:
        rng, result = np.random.default_rng(numbers), []
        places, chance = list(order(len(numbers), rng)), rng.uniform(size=len(numbers))
        for _ in range(epochs):
            if frozen != "order":
                places = list(order(len(numbers), rng))
            if frozen != "chance":
                chance = rng.uniform(size=len(numbers))
            values = (numbers + chance)[places]
            cut = np.split(values, range(size, len(values), size))
            result.append([cut[number] for number in rng.permutation(len(cut) - 1)] + cut[-1:] if batches else cut)
        return result, len(numbers)

    return {"run_epochs": run_epochs}


def shuffled(count: int, rng: np.random.Generator, buffer: int | None = None) -> Iterator[int]:
    """As ``tf.data`` shuffles: a number is drawn from the buffer, and the next one takes its place."""
    held: list[int] = []
    for number in range(count):
        if len(held) == buffer:
            drawn = int(rng.integers(buffer))
            yield held[drawn]
            held[drawn] = number
        else:
            held.append(number)
    yield from rng.permutation(held)


def added_up(buckets: Any, gradients: Any) -> list[Any]:
    return [gradient.sum(axis=0) for gradient in gradients]


def in_buckets(
    add_up: Callable[[Any, Any], list[Any]] = added_up,
    exchanges: Callable[[int, int], int] = lambda buckets, gradients: buckets,
    **filling: Any,
) -> Answers:
    """``exchanges`` gets the numbers of buckets and gradients; ``filling`` are keywords of ``buckets_of``."""
    return {
        "fill": lambda sizes, limit: of_checks("buckets-and-overlap", "buckets_of")(sizes, limit, **filling),
        "sums": lambda buckets, *gradients: add_up(buckets, gradients),
        "sums alone": lambda buckets, *gradients: [gradient[0] for gradient in gradients],
        "sums collectives": lambda buckets, *gradients: 4 * exchanges(len(buckets), len(gradients)),
    }


def low_rank(wrong: str | None = None, exchanges: int = 2) -> Answers:
    """``wrong`` begins the diagnosis of a mistake."""

    def approximate(matrices: Any, q: Any) -> Any:
        mean, unit = matrices.mean(axis=0), of_checks("sending-less", "unit")
        if wrong:
            mistakes = of_checks("sending-less", "low_rank_mistakes")(matrices, q)
            return next(answer for diagnosis, answer in mistakes.items() if diagnosis.startswith(wrong))
        p = unit(mean @ q)
        return of_checks("sending-less", "approximation")(p, mean.T @ p)

    def alone(matrices: Any, q: Any) -> Any:
        return approximate(np.concatenate([matrices[:1], np.zeros_like(matrices[1:])]), q)

    return {
        "approximate": approximate,
        "approximate alone": alone,
        "approximate collectives": lambda *given: 4 * exchanges,
    }


def packed(add_up: Callable[[Any], Any] = lambda tensor: tensor.sum(axis=0), *, exchanged: bool = True) -> Answers:
    """``add_up`` gets a tensor with a row for each replica."""

    def sums(*tensors: Any) -> Any:
        return [add_up(tensor) for tensor in tensors]

    def alone(*tensors: Any) -> Any:
        return [tensor[0] for tensor in tensors] if exchanged else sums(*tensors)

    return {"sums_of_rows": sums, "sums_of_rows alone": alone}


def padded(
    mean: Callable[[Any, int], float] = lambda values, batch: values.mean(dtype="float64"),
    counted: Callable[[int, int], int] = lambda count, batch: count,
    shapes: Callable[[int], Any] = lambda batch: [[batch], [batch]],
) -> Answers:
    """``counted`` gets the numbers of values and of those in a batch."""

    def contents(values: Any, batch: int) -> Any:
        full = np.resize(values, -(-len(values) // batch) * batch)
        weights = np.arange(len(full)) < len(values)
        return list(zip(full.reshape(-1, batch), weights.reshape(-1, batch).astype("float32"), strict=True))

    return {
        "promised": lambda values, batch: shapes(batch),
        "mean_of": lambda values, batch: [mean(values, batch), float(counted(len(values), batch))],
        "contents": contents,
    }


def case(lesson: str, exercise: str, right: Answers, **mistakes: Answers) -> Iterator[Any]:
    """The right answers have to pass, the mistakes must not."""
    yield pytest.param(lesson, exercise, right, None, id=f"{exercise}-right")
    for name, answers in mistakes.items():
        yield pytest.param(lesson, exercise, right, answers, id=f"{exercise}-{name}")


def cases() -> Iterator[Any]:
    yield from case(
        "scaling-the-loss",
        "divide-the-loss",
        divide_the_loss(lambda share, batch: batch),
        own_share=divide_the_loss(lambda share, batch: share),
        mean_of_means=divide_the_loss(lambda share, batch: 2 * share),
        summed=divide_the_loss(lambda share, batch: 1),
        divided_twice=divide_the_loss(lambda share, batch: 2 * batch),
        whole_penalty=divide_the_loss(lambda share, batch: batch, 1.0),
        no_penalty=divide_the_loss(lambda share, batch: batch, 0.0),
    )
    yield from case(
        "scaling-the-loss",
        "weighted-mean",
        weighted_mean(lambda loss, w, losses, weights: (loss * w).sum() / weights.sum()),
        own_weights=weighted_mean(lambda loss, w, losses, weights: (loss * w).sum() / max(w.sum(), 1e-9)),
        mean_of_means=weighted_mean(lambda loss, w, losses, weights: (loss * w).sum() / max(w.sum(), 1e-9) / 2),
        by_count=weighted_mean(lambda loss, w, losses, weights: (loss * w).sum() / len(losses)),
        whole=weighted_mean(lambda loss, w, losses, weights: (losses * weights).sum() / weights.sum()),
        half_each=weighted_mean(lambda loss, w, losses, weights: (losses * weights).sum() / weights.sum() / 2),
        no_weights=weighted_mean(lambda loss, w, losses, weights: loss.sum() / len(losses)),
    )
    yield from case(
        "mixed-precision",
        "largest-scale",
        largest_scale(math.floor),
        rounded=largest_scale(round),
        rounded_up=largest_scale(math.ceil),
        power_of_two=largest_scale(math.floor, 65536.0),
    )
    yield from case(
        "mixed-precision",
        "one-verdict",
        verdict(lambda shares: [bool(np.isfinite(shares).all())] * 2),
        first_replica=verdict(lambda shares: [bool(np.isfinite(shares[0]).all())] * 2),
        second_replica=verdict(lambda shares: [bool(np.isfinite(shares[1]).all())] * 2),
        first_number=verdict(lambda shares: [bool(np.isfinite(shares[:, 0]).all())] * 2),
        first_half=verdict(lambda shares: [bool(np.isfinite(shares[:, :2]).all())] * 2),
        not_a_number=verdict(lambda shares: [not np.isnan(shares).any()] * 2),
        infinite=verdict(lambda shares: [not np.isinf(shares).any()] * 2),
    )
    yield from case(
        "multi-worker",
        "mean-over-workers",
        mean_of_all(lambda own: float(np.concatenate(own).mean())),
        mean_of_means=mean_of_all(lambda own: float(np.mean([part.mean() for part in own]))),
        of_the_first=mean_of_all(lambda own: own[0].mean()),
        by_own_count=mean_of_all(lambda own: np.concatenate(own).sum() / len(own[0])),
        median=mean_of_all(lambda own: float(np.median(np.concatenate(own)))),
    )
    yield from case(
        "one-place-one-device",
        "mean-in-one-place",
        feature_means(lambda count, batch: count),
        batches=feature_means(lambda count, batch: -(-count // batch)),
        calls=feature_means(lambda count, batch: 4 * -(-count // batch)),
        whole_batches=feature_means(lambda count, batch: -(-count // batch) * batch),
    )
    yield from case(
        "one-place-one-device",
        "any-strategy",
        train_on(1.0),
        own_share=train_on(4.0),
        divided_twice=train_on(0.25),
    )
    yield from case(
        "fitting-into-memory",
        "accumulate-parts",
        train_in_parts(lambda size, part, whole: whole),
        by_the_part=train_in_parts(lambda size, part, whole: part),
        by_its_size=train_in_parts(lambda size, part, whole: size),
        mean_of_means=train_in_parts(lambda size, part, whole: size * -(-whole // part)),
        divided_twice=train_in_parts(lambda size, part, whole: 2 * whole),
        summed=train_in_parts(lambda size, part, whole: 1),
        no_reset=train_in_parts(lambda size, part, whole: whole, resets=False),
    )
    yield from case(
        "tpu-strategy",
        "compile-once",
        descend(lambda rates, number: rates[number]),
        first_rate=descend(lambda rates, number: rates[0]),
        last_rate=descend(lambda rates, number: rates[-1]),
        one_late=descend(lambda rates, number: rates[max(number - 1, 0)]),
        mean_rate=descend(lambda rates, number: sum(rates) / len(rates)),
        twice=descend(lambda rates, number: rates[number], 2.0),
    )
    clip = of_checks("mirrored-strategy", "clip")
    yield from case(
        "mirrored-strategy",
        "clip-the-sum",
        handed_over(lambda gradients, limit: clip(gradients.sum(axis=0), limit)),
        own=handed_over(lambda gradients, limit: sum(clip(gradient, limit) for gradient in gradients)),
        mean=handed_over(lambda gradients, limit: clip(gradients.mean(axis=0), limit)),
        mean_four_times=handed_over(lambda gradients, limit: 4 * clip(gradients.mean(axis=0), limit)),
        never=handed_over(lambda gradients, limit: gradients.sum(axis=0)),
        always=handed_over(
            lambda gradients, limit: gradients.sum(axis=0) * limit / np.linalg.norm(gradients.sum(axis=0))
        ),
    )
    yield from case(
        "input-pipelines",
        "share-the-files",
        records(lambda files: interleaved(files, len(files))),
        one_by_one=records(lambda files: interleaved(files, 1)),
        two_at_a_time=records(lambda files: interleaved(files, 2)),
        two_records=records(lambda files: interleaved(files, len(files), 2)),
        backwards=records(lambda files: interleaved(files[::-1], len(files))),
        records=records(lambda files: interleaved(files, len(files)), own=False),
        records_one_by_one=records(lambda files: interleaved(files, 1), own=False),
    )
    yield from case(
        "input-pipelines",
        "order-the-steps",
        in_order(shuffled),
        no_shuffle=in_order(lambda count, rng: range(count)),
        buffer_of_ten=in_order(functools.partial(shuffled, buffer=10)),
        buffer_of_hundred=in_order(functools.partial(shuffled, buffer=100)),
        shuffled_before_cache=in_order(shuffled, frozen="order"),
        augmented_before_cache=in_order(shuffled, frozen="chance"),
        shuffled_batches=in_order(lambda count, rng: range(count), batches=True),
    )
    in_order_of_buckets = in_buckets(
        lambda buckets, gradients: [gradients[position].sum(axis=0) for bucket in buckets for position in bucket]
    )
    yield from case(
        "buckets-and-overlap",
        "in-buckets",
        in_buckets(),
        first_gradient_first=in_buckets(backwards=False),
        with_the_next=in_buckets(is_full=lambda filled, size: filled >= 3000),
        order_of_buckets=in_order_of_buckets,
        mean=in_buckets(lambda buckets, gradients: [gradient.mean(axis=0) for gradient in gradients]),
        own=in_buckets(lambda buckets, gradients: [gradient[0] for gradient in gradients]),
        one_for_each=in_buckets(exchanges=lambda buckets, gradients: gradients),
        one_for_all=in_buckets(exchanges=lambda buckets, gradients: 1),
        always_four=in_buckets(exchanges=lambda buckets, gradients: 4),
        always_five=in_buckets(exchanges=lambda buckets, gradients: 5),
    )
    yield from case(
        "sending-less",
        "low-rank",
        low_rank(),
        own=low_rank("Nothing is exchanged"),
        own_p=low_rank("Each replica has its own p"),
        own_q=low_rank("The new q is that of replica 0"),
        not_scaled=low_rank("p has to have length 1"),
        scaled_before=low_rank("Scale p after the all-reduce: a mean of vectors"),
        scaled_twice=low_rank("Scale p after the all-reduce: a mean of scaled"),
        sums=low_rank("These are sums"),
        whole_matrix=low_rank(exchanges=1),
    )
    yield from case(
        "mirrored-strategy",
        "pack-tensors",
        packed(),
        own=packed(lambda tensor: tensor[0]),
        mean=packed(lambda tensor: tensor.mean(axis=0)),
        idle_reduction=packed(exchanged=False),
    )
    yield from case(
        "tpu-strategy",
        "pad-the-batch",
        padded(),
        filling_counts=padded(counted=lambda count, batch: -(-count // batch) * batch),
        last_batch_missing=padded(counted=lambda count, batch: count // batch * batch),
        zeros_in_the_mean=padded(lambda values, batch: values.sum() / (-(-len(values) // batch) * batch)),
        mean_of_means=padded(
            lambda values, batch: float(
                np.mean([values[start : start + batch].mean() for start in range(0, len(values), batch)])
            )
        ),
        no_shape=padded(shapes=lambda batch: [[None], [None]]),
    )
    yield from case(
        "sharding-data",
        "deal-the-files",
        dealt(lambda file, epoch, workers: (file + epoch) % workers, lambda record, workers: record % workers),
        always_files=dealt(lambda file, epoch, workers: (file + epoch) % workers),
        same_deal=dealt(lambda file, epoch, workers: file % workers, lambda record, workers: record % workers),
        in_blocks=dealt(
            lambda file, epoch, workers: (file + epoch) % workers, lambda record, workers: min(record // 2, workers - 1)
        ),
        last_idle=dealt(
            lambda file, epoch, workers: (file + epoch) % (workers - 1), lambda record, workers: record % workers
        ),
        one_file_less=dealt(
            lambda file, epoch, workers: (file + epoch) % workers if file else -1,
            lambda record, workers: record % workers,
        ),
    )
    yield from case(
        "sharding-data",
        "same-steps",
        padded_batches(lambda all_, own, size: -(-max(all_) // size)),
        own_number=padded_batches(lambda all_, own, size: -(-own // size)),
        rounded_down=padded_batches(lambda all_, own, size: max(all_) // size),
        shortest=padded_batches(lambda all_, own, size: -(-min(all_) // size)),
        together=padded_batches(lambda all_, own, size: -(-sum(all_) // size)),
        one_more=padded_batches(lambda all_, own, size: max(all_) // size + 2),
        fills_count=padded_batches(lambda all_, own, size: -(-max(all_) // size), 1.0),
        fills_half=padded_batches(lambda all_, own, size: -(-max(all_) // size), 0.5),
    )
    yield from case(
        "custom-training-loop",
        "write-the-step",
        train_one_epoch(lambda share, batch: batch, lambda a, b, batch: (a.sum() + b.sum()) / batch),
        own_share=train_one_epoch(lambda share, batch: share, lambda a, b, batch: (a.sum() + b.sum()) / batch),
        equal_shares=train_one_epoch(lambda share, batch: 2 * share, lambda a, b, batch: (a.sum() + b.sum()) / batch),
        own_count=train_one_epoch(
            lambda share, batch: batch, lambda a, b, batch: (a.sum() + b.sum()) / (len(a) + len(b))
        ),
        mean_of_means=train_one_epoch(lambda share, batch: batch, lambda a, b, batch: (a.mean() + b.mean()) / 2),
        first_share=train_one_epoch(lambda share, batch: batch, lambda a, b, batch: a.sum() / batch),
        first_mean=train_one_epoch(lambda share, batch: batch, lambda a, b, batch: a.mean()),
    )
    yield from case(
        "custom-training-loop",
        "trace-once",
        train_and_count(),
        first_rate=train_and_count(rate=lambda rates, step: rates[0]),
        last_rate=train_and_count(rate=lambda rates, step: rates[-1]),
        one_late=train_and_count(rate=lambda rates, step: rates[max(step - 1, 0)]),
        short_batch=train_and_count(lambda rates: 2),
        every_rate=train_and_count(lambda rates: len(set(rates))),
        every_kind=train_and_count(lambda rates: len(set(rates)) + 1),
        every_step=train_and_count(len),
    )
    yield from case(
        "custom-training-loop",
        "continue-training",
        continue_training(),
        no_momentum=continue_training(momentum=False),
        no_weights=continue_training(weights=False),
        nothing=continue_training(weights=False, momentum=False),
    )
    yield from case(
        "checkpoints",
        "resume-training",
        resume_training(lambda saved: saved),
        no_momentum=resume_training(lambda saved: saved, momentum=False),
        no_weights=resume_training(lambda saved: saved, weights=False),
        data_from_the_start=resume_training(lambda saved: 0),
        chief_alone=resume_training(lambda saved: saved, alone=True),
        one_step_less=resume_training(lambda saved: saved + 1),
        one_step_twice=resume_training(lambda saved: max(saved - 1, 0)),
    )
    yield from case(
        "surviving-failures",
        "leave-together",
        leave_together(any),
        all_warned=leave_together(all),
        most_warned=leave_together(lambda warned: sum(warned) > 1),
        worker_0=leave_together(lambda warned: warned[0]),
        worker_1=leave_together(lambda warned: warned[1]),
        worker_2=leave_together(lambda warned: warned[2]),
        never=leave_together(lambda warned: False),
        always=leave_together(lambda warned: True),
    )
    yield from case(
        "surviving-failures",
        "go-on-with-two",
        go_on_with_two(),
        divided_for_three=go_on_with_two(divisor=lambda share: 3 * share),
        mean_of_means=go_on_with_two(divisor=lambda share: 2 * share),
        own_share=go_on_with_two(divisor=lambda share: share),
        lost_share=go_on_with_two(old_share=True),
        whole_batch=go_on_with_two(read=lambda number, workers: slice(None)),
        from_the_start=go_on_with_two(lambda saved: 0, weights=False, momentum=False),
        no_momentum=go_on_with_two(momentum=False),
        one_step_twice=go_on_with_two(lambda saved: saved - 1),
        one_step_less=go_on_with_two(lambda saved: saved + 1),
    )
    yield from case(
        "script-to-cluster",
        "quiet-step",
        quiet_step(),
        own_share=quiet_step(divisor=len),
        real_examples=quiet_step(divisor=lambda own: max(4 * own.sum(), 1)),
        filler_counts=quiet_step(unweighted=True),
        divided_twice=quiet_step(divisor=lambda own: 16 * len(own)),
        of_all=quiet_step(lambda rows, batch: np.tile(rows.sum(axis=0), (4, 1))),
        mean_of_all=quiet_step(lambda rows, batch: np.tile(rows.mean(axis=0), (4, 1))),
        loss_divided=quiet_step(lambda rows, batch: rows / [batch, 1, 1]),
    )
    yield from case(
        "script-to-cluster",
        "recover",
        recover(lambda saved: saved),
        no_momentum=recover(lambda saved: saved, kept=(True, False, True)),
        no_weights=recover(lambda saved: saved, kept=(False, True, True)),
        no_total=recover(lambda saved: saved, kept=(True, True, False)),
        data_from_the_start=recover(lambda saved: 0),
        one_step_twice=recover(lambda saved: max(saved - 1, 0)),
        one_step_less=recover(lambda saved: saved + 1),
    )
    yield from case(
        "replica-state",
        "moments-of-all",
        moments_of_all(lambda shares, mean: ((np.concatenate(shares).astype("float64") - mean) ** 2).mean(axis=0)),
        mean_of_variances=moments_of_all(lambda shares, mean: np.mean([share.var(axis=0) for share in shares], axis=0)),
        own_means=moments_of_all(
            lambda shares, mean: sum(len(share) * share.var(axis=0) for share in shares) / sum(map(len, shares))
        ),
        mean_of_means=moments_of_all(
            lambda shares, mean: np.concatenate(shares).var(axis=0),
            lambda shares: np.mean([share.mean(axis=0) for share in shares], axis=0),
        ),
        digits_lost=moments_of_all(
            lambda shares, mean: (np.concatenate(shares).astype("float32") ** 2).mean(axis=0) - mean.astype("f4") ** 2
        ),
    )
    yield from case(
        "replica-state",
        "mask-for-each-example",
        drop(lambda step, first, number: [step, number]),
        same_on_replicas=drop(lambda step, first, number: [step, number - first]),
        by_replica=drop(lambda step, first, number: [step, first, number - first]),
        one_mask=drop(lambda step, first, number: [step]),
        no_step=drop(lambda step, first, number: [number]),
        added=drop(lambda step, first, number: [step + number]),
        not_scaled=drop(lambda step, first, number: [step, number], lambda rate: 1.0),
        rate_turned=drop(lambda step, first, number: [step, number], lambda rate: rate),
    )
    yield from case(
        "sharded-optimizers",
        "sharded-step",
        sharded_step(),
        not_clipped=sharded_step(clipping="none"),
        own_length=sharded_step(clipping="pieces"),
        lengths_added=sharded_step(clipping="lengths"),
        clipped_before=sharded_step(clipping="before"),
        clipped_before_by_all=sharded_step(clipping="before, by all"),
        clipped_before_by_lengths=sharded_step(clipping="before, by lengths"),
        averaged=sharded_step(mean=True),
        whole_sum=sharded_step(alone="all of the sum"),
    )
    yield from case(
        "batch-size-and-learning-rate",
        "noise-and-signal",
        noise_and_signal(lambda spread, square, n, batch, weights: (batch * spread, square - spread / n)),
        own_share=noise_and_signal(lambda spread, square, n, batch, weights: (spread, square - spread / n)),
        noisy_square=noise_and_signal(lambda spread, square, n, batch, weights: (batch * spread, square)),
        one_replica=noise_and_signal(lambda spread, square, n, batch, weights: (batch * spread, square - spread)),
        all_examples=noise_and_signal(
            lambda spread, square, n, batch, weights: (n * batch * spread, square - spread / n)
        ),
        divided_by_n=noise_and_signal(
            lambda spread, square, n, batch, weights: (
                batch * spread * (n - 1) / n,
                square - spread * (n - 1) / n**2,
            )
        ),
        mean_over_weights=noise_and_signal(
            lambda spread, square, n, batch, weights: (batch * spread / weights, square - spread / n)
        ),
    )
    yield from case(
        "tensor-parallelism",
        "split-block",
        split_block(lambda first, second, bias: first + second + bias),
        bias_twice=split_block(lambda first, second, bias: first + second + 2 * bias),
        no_bias=split_block(lambda first, second, bias: first + second),
        one_part=split_block(lambda first, second, bias: first + bias),
        rows_first={
            "output_of": lambda *arrays: of_checks("tensor-parallelism", "rows_first")(*arrays) + arrays[-1],
            "output_of alone": lambda *arrays: arrays[-1],
        },
        whole_and_divided=split_block(
            lambda first, second, bias: first + second + bias, lambda first, second, bias: (first + second) / 2 + bias
        ),
        all_divided=split_block(
            lambda first, second, bias: first + second + bias, lambda first, second, bias: (first + second + bias) / 2
        ),
        by_itself=split_block(
            lambda first, second, bias: first + second + bias, lambda first, second, bias: first + second + bias
        ),
    )
    for part in (1 / 2, 0):  # of the second bias, which the first replica adds before the sum
        yield from case(
            "tensor-parallelism",
            "split-block",
            split_block(
                lambda first, second, bias: first + second + bias,
                lambda first, second, bias, part=part: first + part * bias,
            ),
        )
    yield from case(
        "mirrored-strategy",
        "whole-statistics",
        batch_statistics(1),
        own_share=batch_statistics(4),
        pairs=batch_statistics(2),
    )


# --- the files of exercises that need no TensorFlow ---------------------------------------------------------------


def code_of_needs(lesson: Lesson, cell: Cell) -> tuple[str, ...]:
    if cell.name in STAND_INS:
        return (STAND_INS[cell.name],)
    return tuple(needed.code for needed in judgement_of(lesson, cell).needs)


def exercises_without_tensorflow() -> Iterator[tuple[Lesson, Cell]]:
    for lesson in shipped_catalog().every():
        for cell in lesson.exercises if lesson.language == "en" else ():
            code = *code_of_needs(lesson, cell), *(sample.code for sample in samples_of(lesson, cell))
            if not TENSORFLOW.search("\n".join(code)):
                yield lesson, cell


def submitted(lesson: Lesson, cell: Cell, code: str) -> InProcessWork:
    seeded = "import random\nrandom.seed(0)"  # as the judge does for what a needed cell draws
    return InProcessWork(code, exercise_of(cell).solution, (seeded, *code_of_needs(lesson, cell)))


def with_seed(work: InProcessWork, seed: int) -> InProcessWork:
    work.rng = np.random.default_rng(seed)
    return work


def seeds(exercise: str) -> range:
    return range(TRIES_OF_COSTLY_FILES if exercise in COSTLY else TRIES_OF_FILES)


def exercise_of(cell: Cell) -> Exercise:
    assert cell.exercise
    return cell.exercise


def judged(lesson: Lesson, cell: Cell, work: Work) -> JudgedSubmission:
    results = [run_check(check, work) for check in checks_of(vars(checks_module(lesson.slug)), cell.name)]
    events = tuple(CheckEvent(seq=number, at_ms=0, **asdict(result)) for number, result in enumerate(results, start=1))
    return JudgedSubmission(Outcome.ok, events, ())


WITHOUT_TENSORFLOW = {cell.name: (lesson, cell) for lesson, cell in exercises_without_tensorflow()}
OF_FILES = [
    pytest.param(*case, id=name, marks=pytest.mark.long if name in COSTLY else ())
    for name, case in WITHOUT_TENSORFLOW.items()
]
CHANGES = (
    ("plan-the-run", "-(-examples // global_batch)", "round(examples / global_batch)"),
    ("plan-the-run", "-(-examples // global_batch)", "examples // global_batch + 1"),
    ("plan-the-run", "global_batch / base_batch", "batch_per_replica / base_batch"),
    ("largest-rate", "2 * math.sin(math.pi / (2 * (2 * age + 1)))", "(math.pi / (2 * age + 1) if age else 2)"),
    ("own-batches", "-(-max(len(share) for share in shares) // size)", "max(map(len, shares)) // size + 2"),
    ("own-batches", "[start:]", "[start + 1 if start else 0 :]"),
    ("reduce-scatter-ring", "(device - 1 - step)", "(device - 1 + step)"),
    ("reduce-scatter-ring", "(device - 1 - step)", "step"),
    ("crossover", "devices - 1 - levels", "devices - levels"),
    ("last-sum", "max(ready for ready, _ in bucket)", "bucket[0][0]"),
    ("last-sum", "2 * (devices - 1) * (", "2 * devices * ("),
    ("last-sum", "(devices - 1) * (alpha + beta * size / devices)", "(devices - 1) * alpha + 2 * beta * size"),
    ("bytes-of-stage", "(devices - 1)", "(devices - 2)"),
    ("one-f-one-b", "min(stages - stage, microbatches)", "min(max(4 - stage, 1), microbatches)"),
    ("idle-share", "max(times)", "times[0]"),
    ("idle-share", "    step = 3", "    microbatches += 1\n    step = 3"),
    ("idle-share", "    step = 3", "    microbatches = max(microbatches - 1, 1)\n    step = 3"),
    ("idle-share", "1 - work / (len(times) * step)", "1 - sum(times) / len(times) / max(times)"),
    ("step-time", "np.median(times)", "max(times)"),
    ("bottleneck", "1.5 *", "1.05 *"),
    ("touched-rows", "np.add.at(sums, position.ravel(), gradients)", "sums[position.ravel()[::-1]] = gradients[::-1]"),
    ("touched-rows", "np.add.at", "np.maximum.at"),
    ("touched-rows", "place(", "(lambda ids, rows, servers: np.divmod(ids, -(-rows // servers)))("),
    ("renumber", "key=load.__getitem__", "key=int"),
    ("waits-of-steps", "taken_at[-1] - asked_at", "ready_at - asked_at"),
    ("waits-of-steps", "taken_at[-1] + step", "asked_at + step"),
    ("waits-of-steps", "max(ready_at, free_at) + read", "max(ready_at + read, free_at)"),
)
"""Mistakes without a diagnosis of their own: what of the solution they change."""
ANY_TYPES = """
lists = reduce_scatter_ring
def reduce_scatter_ring(devices):
    return tuple(
        tuple((np.array(source), target, np.int64(piece), how) for source, target, piece, how in messages)
        for messages in lists(devices)
    )
"""


def lax(got: Any, wanted: Any, *, rtol: float = 1e-4, atol: float = 1e-6, **more: Any) -> None:
    close(got, wanted, rtol=rtol * LAXER, atol=atol * LAXER, **more)


ONLY_WITH_TENSORFLOW = {"add-without-loss", "build-in-scope", "choose-layouts", "rules", "split-heads"}
"""Exercises that only ``lockstep lesson check`` judges, and only once each time.

Two of them leave nothing to chance: the answers are layouts, and the same for every hidden problem.
"""


def test_every_exercise_is_judged_many_times_or_known_not_to_be() -> None:
    lessons = [lesson for lesson in shipped_catalog().every() if lesson.language == "en"]
    exercises = {cell.name for lesson in lessons for cell in lesson.cells if cell.exercise}
    assert exercises - {case.values[1] for case in cases()} - WITHOUT_TENSORFLOW.keys() == ONLY_WITH_TENSORFLOW


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("lesson", "cell"), OF_FILES)
def test_each_file_of_an_exercise_always_gets_its_verdict(lesson: Lesson, cell: Cell) -> None:
    for sample in samples_of(lesson, cell):
        work = submitted(lesson, cell, sample.code)
        for seed in seeds(cell.name):
            assert sample_errors(sample, judged(lesson, cell, with_seed(work, seed)), cell) == [], seed


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("lesson", "cell"), OF_FILES)
def test_no_wrong_answer_passes_by_chance(lesson: Lesson, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    solution, wrong = exercise_of(cell).solution, []
    if hasattr(checks_module(lesson.slug), "close"):  # otherwise, the files have the same verdict as above
        monkeypatch.setattr(checks_module(lesson.slug), "close", lax)
        wrong = [sample.code for sample in samples_of(lesson, cell) if not sample.passes]
    for _, old, new in (change for change in CHANGES if change[0] == cell.name):
        assert old in solution
        wrong.append(solution.replace(old, new))
    for code in wrong:
        work = submitted(lesson, cell, code)
        assert not any(passes(lesson.slug, cell.name, with_seed(work, seed)) for seed in seeds(cell.name)), code


def test_a_schedule_may_have_numbers_and_sequences_of_any_type() -> None:
    lesson, cell = WITHOUT_TENSORFLOW["reduce-scatter-ring"]
    work = submitted(lesson, cell, exercise_of(cell).solution + ANY_TYPES)
    assert all(passes(lesson.slug, cell.name, with_seed(work, seed)) for seed in seeds(cell.name))


# --- mistakes in the other exercises, and diagnoses in all --------------------------------------------------------


@pytest.mark.parametrize(
    ("lesson", "exercise", "right", "mistaken"), [given for given in cases() if given.values[3] is not None]
)
def test_no_usual_mistake_passes_by_chance(
    lesson: str, exercise: str, right: Answers, mistaken: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks_module(lesson), "close", lax, raising=False)
    passed = sum(passes(lesson, exercise, cast(Work, ScriptedWork(mistaken, right, seed))) for seed in range(TRIES))
    assert passed == 0


def right_answers() -> Iterator[Any]:
    """A lesson, an exercise, and a right answer to it with any seed."""
    for given in cases():
        lesson, exercise, right, mistaken = given.values
        if mistaken is None:
            yield pytest.param(lesson, exercise, functools.partial(ScriptedWork, right, right), id=cast(str, exercise))
    for name, (lesson, cell) in WITHOUT_TENSORFLOW.items():
        work = functools.partial(with_seed, submitted(lesson, cell, exercise_of(cell).solution))
        yield pytest.param(lesson.slug, name, work, id=name, marks=pytest.mark.long if name in COSTLY else ())


OF_SMALL_DIFFERENCES = {
    "The sum is computed in float16, and loses digits.",
    "The first number is not the expected one.",
    "The first number is right, but the second is not the expected one.",
}


class Diagnoses:
    """Stands in for ``close`` or ``equal``. Diagnoses have to be for results that differ; ``seen`` has those in use."""

    def __init__(self, by: Callable[..., None], **tolerance: float) -> None:
        self._by, self._tolerance = by, tolerance
        self.seen: set[str] = set()
        self.shown: set[str] = set()

    def __call__(self, got: Any, wanted: Any, *, mistakes: Mapping[str, Any] | None = None, **more: Any) -> None:
        self._by(got, wanted, **more)
        how = self._tolerance | more
        wrong = {text: result for text, result in (mistakes or {}).items() if differ(close, result, wanted, **how)}
        for pair in itertools.combinations(wrong, 2):
            assert differ(close, wrong[pair[0]], wrong[pair[1]], **how), pair
        self.seen |= set(mistakes or {})
        self.shown |= {text for text, result in wrong.items() if differ(lax, result, wanted, **how)}


def differ(by: Callable[..., None], result: Any, other: Any, **how: Any) -> bool:
    try:
        by(result, other, **how)
    except CheckFailed:
        return True
    return False


@pytest.mark.parametrize(("lesson", "exercise", "work"), list(right_answers()))
def test_no_two_diagnoses_of_an_exercise_are_for_the_same_result(
    lesson: str, exercise: str, work: Callable[[int], Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds(exercise):
        both = Diagnoses(close), Diagnoses(equal, rtol=0.0, atol=0.0)
        for name, by in zip(("close", "equal"), both, strict=True):
            monkeypatch.setattr(checks_module(lesson), name, by, raising=False)
        assert passes(lesson, exercise, work(seed)), seed
        assert set().union(*(by.seen - by.shown for by in both)) <= OF_SMALL_DIFFERENCES, seed


def messages_of(lesson: str, exercise: str, work: ScriptedWork) -> list[str]:
    """What a learner reads, check by check; an empty text if one passes."""
    messages = []
    for check in checks_of(vars(checks_module(lesson)), exercise):
        try:
            check(cast(Work, work))
            messages.append("")
        except CheckFailed as failed:
            messages.append(failed.message)
    return messages


def means_of_shares() -> Answers:
    """Mean and variance as means over the replicas, each from its share."""

    def statistics(values: Any, cuts: Any) -> Any:
        shares = [share.astype("float64") for share in np.split(values, cuts[1:-1]) if len(share)]
        mean = np.mean([share.mean(axis=0) for share in shares], axis=0)
        variance = np.mean([((share - mean) ** 2).mean(axis=0) for share in shares], axis=0)
        return [mean.astype("float32")] * 4 + [variance.astype("float32")] * 4

    return {"statistics": statistics, "statistics alone": lambda values, cuts: [values[0]] * 8}


def diagnosed() -> Iterator[Any]:
    """A mistake, and for each check words of its message, or nothing where the check passes."""
    one_more = "One example has more"
    of_means = "the mean of the replicas' means"
    guessed = "examples that it guesses"
    own_limit = "to its share of the limit"
    rates = "batch-size-and-learning-rate", "noise-and-signal"
    for name, lesson, exercise, mistaken, words in (
        (
            "noise-of-a-share",
            *rates,
            noise_and_signal(lambda spread, square, n, batch, weights: (spread, square)),
            [one_more, one_more],
        ),
        (
            "sum-of-squares",
            *rates,
            noise_and_signal(lambda spread, square, n, batch, weights: (batch * spread * (n - 1), square)),
            ["is not divided by N - 1"] * 2,
        ),
        (
            "second-number",
            *rates,
            noise_and_signal(lambda spread, square, n, batch, weights: (batch * spread, square / 3)),
            ["The first number is right"] * 2,
        ),
        ("means-of-shares", "replica-state", "moments-of-all", means_of_shares(), [of_means] * 3),
        (
            "guessed-size",
            "scaling-the-loss",
            "weighted-mean",
            weighted_mean(lambda loss, w, losses, weights: (loss * w).sum() / max(2 * len(w), 1)),
            [guessed] * 3,
        ),
        (
            "share-of-the-limit",
            "mirrored-strategy",
            "clip-the-sum",
            handed_over(
                lambda gradients, limit: sum(
                    of_checks("mirrored-strategy", "clip")(gradient, limit / 4) for gradient in gradients
                )
            ),
            [own_limit] * 2,
        ),
        (
            "wrong-step",
            "custom-training-loop",
            "write-the-step",
            train_one_epoch(lambda share, batch: share, lambda a, b, batch: a.mean() + b.mean()),
            ["divides by the size of its own share", "look at the message of the first check"],
        ),
    ):
        yield pytest.param(lesson, exercise, mistaken, words, id=name)


@pytest.mark.parametrize(("lesson", "exercise", "mistaken", "words"), list(diagnosed()))
def test_a_usual_mistake_is_called_by_its_name(lesson: str, exercise: str, mistaken: Answers, words: list[str]) -> None:
    right = next(given.values[2] for given in cases() if given.values[:2] == (lesson, exercise))
    for seed in range(TRIES):
        messages = messages_of(lesson, exercise, ScriptedWork(mistaken, cast(Answers, right), seed))
        assert all(
            part in message and bool(part) == bool(message) for part, message in zip(words, messages, strict=True)
        )


def test_a_schedule_is_judged_where_small_batches_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([np.array([1.0, np.nan]), np.ones(2)])

    class Problems:
        def __init__(self, rng: np.random.Generator) -> None:
            self._losses = next(drawn)

        def losses(self, rates: list[float], batch: int) -> np.ndarray:
            return self._losses

    module = checks_module("batch-size-and-learning-rate")
    monkeypatch.setattr(module, "Trainings", Problems)
    answers = {"schedule": lambda steps, base_rate, factor: steps * [base_rate]}
    module.compare_losses(ScriptedWork(answers, {}, 0), base_rate=0.04, factor=8, epochs=4, most=1.25)
    assert next(drawn, None) is None


@pytest.mark.parametrize(("diverged", "passed"), [(0, True), (2, True), (3, False)])
def test_a_schedule_may_diverge_on_two_problems_of_ten(
    diverged: int, passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = np.ones(10)
    large[:diverged] = np.nan
    drawn = iter([np.ones(10), large])

    class Problems:
        def __init__(self, rng: np.random.Generator) -> None: ...

        def losses(self, rates: list[float], batch: int) -> np.ndarray:
            return next(drawn)

    module = checks_module("batch-size-and-learning-rate")
    monkeypatch.setattr(module, "Trainings", Problems)
    work = ScriptedWork({"schedule": lambda steps, base_rate, factor: steps * [base_rate]}, {}, 0)
    judge = functools.partial(module.compare_losses, work, base_rate=0.04, factor=8, epochs=4, most=1.25)
    if passed:
        judge()
    else:
        with pytest.raises(CheckFailed, match="diverge"):
            judge()
