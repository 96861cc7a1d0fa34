"""No usual mistake passes by chance: each is made often, and ``close`` forgives a hundred times as much.

The main tier makes each of them 25 times, ``tests/long/lessons`` 100 times.

NumPy stands in for the submissions; what TensorFlow computes is judged in ``lockstep lesson check``. Where a lesson
needs no TensorFlow, its own solutions and wrong answers are submitted.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from app.lessons.document import parse_document
from app.lessons.solution_marks import split_marked_code
from runners.checks import CheckFailed, Graph, Work, close
from runners.checks.declare import checks_of
from tests.factories.long_cases import LONG_CASES

LESSONS = Path(__file__).parents[2] / "lessons" / "distributed-tensorflow"
TRIES = 100 if LONG_CASES else 25
LAXER = 100.0
FIRST_MODULE = {
    "gradient-by-hand",
    "distribution-strategies",
    "scaling-the-loss",
    "custom-training-loop",
    "mirrored-strategy",
    "replica-state",
    "batch-size-and-learning-rate",
}
"""Lessons whose diagnoses are compared with one another."""

Answers = Mapping[str, Callable[..., Any]]


CODE = """
def records_of(): return files.interleave()
def begin(): return tf.train.Checkpoint()
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
        return Graph({"CollectiveReduceV2": 2, "AddN": 1}, 1, self.call(name, *args), own)

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


def passes(lesson: str, exercise: str, work: ScriptedWork) -> bool:
    try:
        for check in checks_of(vars(checks_module(lesson)), exercise):
            check(cast(Work, work))
    except CheckFailed:
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


def by_batch(replicas: int, batch: int) -> int:
    return replicas * batch


def plan(steps: Callable[[float], float], base: Callable[[int, int], float] = by_batch) -> Answers:
    def planned(examples: int, replicas: int, batch: int, base_batch: int, rate: float) -> Any:
        size = replicas * batch
        return size, int(steps(examples / size)), rate * base(replicas, batch) / base_batch

    return {"plan": planned}


def mean_of_all(one: Callable[[list[Any]], float]) -> Answers:
    return {"mean_of_all": lambda own: [np.float32(one(own))] * 2}


def largest_rate(formula: Callable[[float, int], float]) -> Answers:
    return {"largest_rate": formula}


def feature_means(counted: Callable[[int, int], int]) -> Answers:
    """``counted`` gets the number of examples and the size of a batch."""
    return {"feature_means": lambda pixels, batch: (pixels.mean(0, dtype="float32"), counted(len(pixels), batch))}


def train_in_parts(divisor: Callable[[int, int, int], float], *, resets: bool = True) -> Answers:
    """``divisor`` gets the size of the part at hand, that of a full part, and that of the batch."""

    def train(inputs: Any, targets: Any, part: int, updates: int, replicas: int = 1) -> Any:
        steps = of_checks("fitting-into-memory", "linear_steps")
        return steps(inputs, targets, part, updates, lambda size: divisor(size, part, len(targets)), resets, replicas)

    return {"train_in_parts": train, "train_in_parts alone": functools.partial(train, replicas=2)}


def input_bound(**ignored: float) -> Answers:
    names = ("batch", "input_ms", "compute_ms", "fixed_ms", "delay_ms", "transfer_ms")

    def first(*machine: float) -> Any:
        return of_checks("cifar-10-practice", "first_slow")(**dict(zip(names, machine, strict=True)) | ignored)

    return {"input_bound_from": first}


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


def resume_training(first: Callable[[int], int], *, weights: bool = True, momentum: bool = True) -> Answers:
    """``first`` gets the step of the restored state, and gives the step with which the second attempt begins."""
    saved: dict[str, tuple[int, Any, Any]] = {}

    def train(
        folder: str, inputs: Any, targets: Any, batch: int, rate: float, every: int, at_step: int | None = None
    ) -> Any:
        steps = of_checks("surviving-failures", "momentum_steps")
        if at_step is not None:
            last = (at_step - 1) // every * every
            saved[folder] = last, *steps(inputs, targets, batch, rate, range(last))
            return None
        last, *state = saved.get(folder, (0, None, None))
        kept = [part if keep else None for part, keep in zip(state, (weights, momentum), strict=True)]
        end, _ = steps(inputs, targets, batch, rate, range(first(last), len(targets) // batch), *kept)
        return [end[:-1, None], end[-1:]]

    return {"train": train}


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
            begin = of_checks("surviving-failures", "momentum_steps")(inputs, targets, batch, rate, range(last))
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


def plan_of_epoch(
    seed: Callable[[int], int] = lambda epoch: epoch,
    batches: Callable[[list[int], int, int], int] = lambda held, worker, size: -(-max(held) // size),
    first: Callable[[int, int], int] = lambda start, size: start,
    *,
    by_file: bool = True,
) -> Answers:
    """``batches`` gets the number of records of all workers, a worker and the size; ``first`` is the first batch."""

    def batches_of(lengths: list[int], epoch: int, start: int, worker: int, workers: int, size: int) -> Any:
        edges = np.cumsum([0, *lengths])
        rng = np.random.default_rng(seed(epoch))
        units = [np.arange(*edge) for edge in itertools.pairwise(edges)] if by_file else np.arange(edges[-1])[:, None]
        order = rng.permutation(len(units))
        shares = [np.concatenate([units[unit] for unit in order[other::workers]]) for other in range(workers)]
        held = [len(share) for share in shares]
        plan = np.full(size * batches(held, worker, size), -1)
        plan[: held[worker]] = shares[worker][: len(plan)]
        return plan.reshape(-1, size)[first(start, size) :]

    return {"batches_of": batches_of}


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


def part_of_gradient(divisor: Callable[[int, int], float], bias_factor: float = 1.0) -> Answers:
    """``divisor`` gets the sizes of the share and the batch."""

    def part(w: Any, b: float, x: Any, y: Any, batch: int) -> Any:
        slopes = 2 * (x @ w + b - y) / divisor(len(x), batch)
        return slopes @ x, slopes.sum() * bias_factor

    return {"part_of_gradient": part}


def whole_gradient(combine: Callable[[Any, Any], Any]) -> Answers:
    """``combine`` gets the means of those that have examples as rows, and the numbers of examples of all."""

    def whole(reports: Any) -> Any:
        return combine(np.stack([mean for mean, count in reports if count]), np.array([count for _, count in reports]))

    return {"whole_gradient": whole}


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


def ring(piece: Callable[[int, int], int], number: Callable[[int], Any] = int, many: type = list) -> Answers:
    """``piece`` gets the device that sends, and the round. A schedule has numbers and sequences of any type."""

    def schedule(devices: int) -> Any:
        return many(
            many(
                (number(device), number((device + 1) % devices), number(piece(device, step) % devices), "add")
                for device in range(devices)
            )
            for step in range(devices - 1)
        )

    return {"reduce_scatter_ring": schedule}


def crossover(**changed: Callable[[int], float]) -> Answers:
    """``changed`` gets the number of devices, and gives what a mistake has in place of a part of the formula."""

    def cross(devices: int, alpha: float, beta: float) -> Any:
        parts = {name: part(devices) for name, part in changed.items()}
        return of_checks("cost-of-collectives", "crossing")(devices, alpha, beta, **parts)

    return {"crossover": cross}


def last_sum(**changed: Any) -> Answers:
    """``changed`` has what a mistake puts in place of a part of the rule."""

    def arrival(buckets: Any, devices: int, alpha: float, beta: float) -> Any:
        parts = {name: part(devices) if name in {"latencies", "values"} else part for name, part in changed.items()}
        return of_checks("buckets-and-overlap", "arrival")(buckets, devices, alpha, beta, **parts)

    return {"last_sum": arrival}


def noise_and_signal(answer: Callable[..., tuple[float, float]]) -> Answers:
    """``answer`` gets the variance, the square of the mean, and the numbers of replicas, examples and weights."""

    def estimate(gradients: np.ndarray, batch: int) -> Any:
        spread, square, replicas = of_checks("batch-size-and-learning-rate", "estimates")(gradients, batch)
        return answer(spread, square, replicas, batch, gradients.shape[1])

    return {"noise_and_signal": estimate}


def stage_bytes(**changed: Any) -> Answers:
    """``changed`` are keywords of ``stage_bytes`` in the checks."""

    def held_and_sent(weights: int, devices: int, stage: int) -> Any:
        return of_checks("sharded-optimizers", "stage_bytes")(weights, devices, stage, **changed)

    return {"bytes_of_stage": held_and_sent}


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


def order_of_stage(first: Callable[[int, int], int]) -> Answers:
    """``first`` gets the stage and the number of stages: how often the stage goes forward before it goes back."""

    def order(stage: int, stages: int, microbatches: int) -> str:
        ahead = min(first(stage, stages), microbatches)
        return str(of_checks("pipelines", "one_f_one_b")(0, ahead, microbatches))

    def gradients(*args: Any) -> list[np.ndarray]:
        return [np.zeros(3)]

    return {"one_f_one_b": order, "gradients_of": gradients, "on_one_device": gradients}


def idle_share(part: Callable[..., float]) -> Answers:
    """``part`` gets ``idle_part`` of the checks, the times of the stages and the number of microbatches."""
    return {"idle_share": lambda times, m: part(of_checks("pipelines", "idle_part"), times, m)}


def two_messages(
    part: Callable[[np.ndarray], np.ndarray] = lambda gradients: gradients.sum(axis=0),
    where: Callable[..., tuple[Any, Any]] | None = None,
    *,
    once: bool = True,
    dense: bool = False,
) -> Answers:
    """``part`` gets the gradients of one row; ``where`` replaces ``place`` of the checks; ``once``: in the request."""
    place = where or of_checks("embedding-tables", "place")

    def per_server(ids: Any, rows: int, servers: int, values: Any) -> list[Any]:
        server, row = place(ids, rows, servers)
        return [(row[server == number], values[server == number]) for number in range(servers)]

    def ask(ids: Any, rows: int, servers: int) -> list[Any]:
        needed = np.unique(ids) if once else ids
        return [row for row, _ in per_server(needed, rows, servers, needed)]

    def send(ids: Any, gradients: Any, rows: int, servers: int) -> list[Any]:
        different = np.arange(rows) if dense else np.unique(ids)
        return per_server(different, rows, servers, np.array([part(gradients[ids == number]) for number in different]))

    return {"ask": ask, "send": send}


def new_numbers(servers_of: Callable[[np.ndarray, int], Any], *, old: bool = False) -> Answers:
    """``servers_of`` gets the counts, most popular first, and the number of servers. old: return the order of rows."""

    def renumber(counts: Any, servers: int) -> Any:
        popular = np.argsort(counts)[::-1]
        rows = popular[np.argsort(servers_of(counts[popular], servers), kind="stable")]
        return rows if old else np.argsort(rows)

    return {"renumber": renumber}


def least_busy(counts: np.ndarray, servers: int, room: bool = True) -> list[int]:
    """For each row the server with the least to do; with ``room``, one whose block is not full."""
    left = of_checks("embedding-tables", "sizes_of")(len(counts), servers)
    load, chosen = [0] * servers, []
    for count in counts:
        server = min((number for number in range(servers) if left[number] or not room), key=load.__getitem__)
        chosen.append(server)
        load[server] += count
        left[server] -= 1
    return chosen


def back_and_forth(counts: np.ndarray, servers: int) -> Any:
    turn = np.arange(len(counts)) % (2 * servers)
    return np.minimum(turn, 2 * servers - 1 - turn)


def pieces_on_mesh(change: Callable[[list[str]], list[str]] = list, **changed: Any) -> Answers:
    """``changed`` are keywords of ``pieces_of`` in the checks; ``change`` gets the names of the axes."""

    def pieces(array: Any, names: list[str], mesh: Any) -> Any:
        return of_checks("dtensor", "pieces_of")(array, change(names), mesh, **changed)

    return {"pieces": pieces}


@functools.cache
def defined(lesson: str, exercise: str, wrong: Path | None) -> Mapping[str, Any]:
    """What the cells that an exercise needs define, and then its solution, or a file with a wrong answer."""
    document = parse_document((LESSONS / lesson / "lesson.md").read_text(encoding="utf-8"), "en")
    cells = {cell.name: cell for cell in document.cells}
    own = wrong.read_text(encoding="utf-8") if wrong else split_marked_code(cells[exercise].code, 1)[0].solution
    names: dict[str, Any] = {"__name__": lesson}
    for code in (*(cells[name].code for name in cells[exercise].needs or ()), own):
        exec(compile(code, lesson, "exec"), names)
    return names


def submitted(lesson: str, exercise: str, *functions: str, wrong: Path | None = None) -> Answers:
    """The functions of a submission, which runs when the first of them is called."""

    def call(name: str, *args: Any) -> Any:
        return defined(lesson, exercise, wrong)[name](*args)

    return {name: functools.partial(call, name) for name in functions}


def case_of_files(lesson: str, exercise: str, *functions: str) -> Iterator[Any]:
    """The solution and the wrong answers of the lesson itself, whose cells must not need TensorFlow."""
    right = submitted(lesson, exercise, *functions)
    yield from case(lesson, exercise, right)
    for file in sorted((LESSONS / lesson / "wrong").glob(f"{exercise}--*.py")):
        wrong = submitted(lesson, exercise, *functions, wrong=file)
        yield pytest.param(lesson, exercise, right, wrong, id=file.stem, marks=pytest.mark.long)


def step_time(waits: str = "warm-up block", *, middle: Callable[..., Any] = np.median, cold: bool = False) -> Answers:
    """``waits``: where the measurement waits. ``cold``: the first steps are measured."""

    def on_virtual_device(launches: list[float], works: list[float], warm_up: int, blocks: int, size: int) -> Any:
        end, skipped = (len(works) - warm_up, 0) if cold else (len(works), warm_up)
        times = of_checks("profiling-a-step", "measured")((launches[:end], works[:end]), skipped, size, waits=waits)
        return [float(middle(times)), max(times)]

    return {"on_virtual_device": on_virtual_device}


def bottleneck(
    chosen: Callable[..., Any] = max, first: int = 1, ratio: float = 1.5, only: str = "device", ignored: str = ""
) -> Answers:
    """``chosen``: of the events that end when another begins. ``only``: for which cause the GPUs are compared."""
    causes = {"load": "input", "python": "host", "tracing": "host", "all-reduce": "communication"}

    def named(rows: list[list[Any]]) -> str:
        work = [row for row in rows if row[2] not in ("next", "wait", ignored)]
        path = [max(work, key=lambda row: row[4])]
        while path[-1][0] >= first and (before := [row for row in work if row[4] == path[-1][3]]):
            path.append(chosen(before, key=lambda row: row[3]))
        totals, computed = Counter[str](), Counter[str]()
        for step, _, name, start, end in path:
            totals[causes.get(name, "device")] += (end - start) * (step >= first)
        for _, line, _, start, end in work:
            computed[line] += (end - start) * line.startswith("GPU")
        (largest, _), *_ = totals.most_common(1)
        unequal = max(computed.values()) >= ratio * min(filter(None, computed.values()))
        return "slow replica" if unequal and only in largest else largest

    return {"named": named}


def largest_total(first: int = 1, waiting: str = "input") -> Answers:
    """``waiting``: the cause that waiting is counted for."""
    causes = {"load": "input", "python": "host", "tracing": "host", "all-reduce": "communication"}

    def named(rows: list[list[Any]]) -> str:
        totals = Counter[str]()
        for step, _, name, start, end in rows:
            cause = waiting if name in ("next", "wait") else causes.get(name, "device")
            totals[cause] += (end - start) * (step >= first)
        return totals.most_common(1)[0][0]

    return {"named": named}


def numbers_held(**changed: Any) -> Answers:
    """``changed`` are keywords of ``numbers_held`` in the checks."""

    def held(variables: Any, rules: Any, mesh: Any) -> Any:
        return of_checks("keras-distribution", "numbers_held")(variables, rules, mesh, **changed)

    return {"held": held}


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
        "distribution-strategies",
        "plan-the-run",
        plan(math.ceil),
        rounded=plan(round),
        rounded_down=plan(math.floor),
        one_more=plan(lambda exact: exact + 1),
        by_replicas=plan(math.ceil, lambda replicas, batch: replicas),
        by_share=plan(math.ceil, lambda replicas, batch: batch),
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
        "parameter-servers",
        "largest-rate",
        largest_rate(lambda c, n: 2 * math.sin(math.pi / (2 * (2 * n - 1))) / c),
        no_sine=largest_rate(lambda c, n: (math.pi / (2 * n - 1) if n > 1 else 2) / c),
        no_curvature=largest_rate(lambda c, n: 2 * math.sin(math.pi / (2 * (2 * n - 1)))),
        divided=largest_rate(lambda c, n: 2 / c / n),
        one_too_old=largest_rate(lambda c, n: 2 * math.sin(math.pi / (2 * (2 * n + 1))) / c),
    )
    yield from case_of_files("parameter-servers", "ages", "ages")
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
        "cifar-10-practice",
        "input-bound",
        input_bound(),
        own_examples=input_bound(global_input=False),
        no_delay=input_bound(delay_ms=0.0),
        no_transfer=input_bound(transfer_ms=0.0),
        no_all_reduce=input_bound(delay_ms=0.0, transfer_ms=0.0),
        nothing_fixed=input_bound(fixed_ms=0.0),
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
        "continue-training",
        continue_training(),
        no_momentum=continue_training(momentum=False),
        no_weights=continue_training(weights=False),
        nothing=continue_training(weights=False, momentum=False),
    )
    yield from case(
        "surviving-failures",
        "resume-training",
        resume_training(lambda saved: saved),
        no_momentum=resume_training(lambda saved: saved, momentum=False),
        no_weights=resume_training(lambda saved: saved, weights=False),
        data_from_the_start=resume_training(lambda saved: 0),
        one_step_less=resume_training(lambda saved: saved + 1),
        one_step_twice=resume_training(lambda saved: max(saved - 1, 0)),
    )
    yield from case(
        "surviving-failures",
        "go-on-with-two",
        go_on_with_two(),
        divided_for_three=go_on_with_two(divisor=lambda share: 3 * share),
        mean_of_means=go_on_with_two(divisor=lambda share: 2 * share),
        own_share=go_on_with_two(divisor=lambda share: share),
        lost_share=go_on_with_two(old_share=True),
        lost_share_divided_for_three=go_on_with_two(old_share=True, divisor=lambda share: 3 * share),
        whole_batch=go_on_with_two(read=lambda number, workers: slice(None)),
        from_the_start=go_on_with_two(lambda saved: 0, weights=False, momentum=False),
        no_momentum=go_on_with_two(momentum=False),
        one_step_twice=go_on_with_two(lambda saved: saved - 1),
        one_step_less=go_on_with_two(lambda saved: saved + 1),
    )
    yield from case(
        "script-to-cluster",
        "own-batches",
        plan_of_epoch(),
        same_files=plan_of_epoch(lambda epoch: 0),
        records=plan_of_epoch(by_file=False),
        own_number=plan_of_epoch(batches=lambda held, worker, size: -(-held[worker] // size)),
        shortest=plan_of_epoch(batches=lambda held, worker, size: -(-min(held) // size)),
        rounded_down=plan_of_epoch(batches=lambda held, worker, size: max(held) // size),
        one_more=plan_of_epoch(batches=lambda held, worker, size: max(held) // size + 2),
        from_the_start=plan_of_epoch(first=lambda start, size: 0),
        one_later=plan_of_epoch(first=lambda start, size: start + 1 if start else 0),
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
        "gradient-by-hand",
        "part-of-gradient",
        part_of_gradient(lambda share, batch: batch),
        own_share=part_of_gradient(lambda share, batch: max(share, 1)),
        no_factor=part_of_gradient(lambda share, batch: 2 * batch),
        summed=part_of_gradient(lambda share, batch: 1),
        wrong_sign=part_of_gradient(lambda share, batch: -batch),
        half_a_bias=part_of_gradient(lambda share, batch: batch, 0.5),
    )
    yield from case(
        "gradient-by-hand",
        "whole-gradient",
        whole_gradient(lambda means, counts: counts[counts > 0] @ means / counts.sum()),
        mean_of_means=whole_gradient(lambda means, counts: means.mean(axis=0)),
        by_workers=whole_gradient(lambda means, counts: counts[counts > 0] @ means / len(counts)),
        summed=whole_gradient(lambda means, counts: counts[counts > 0] @ means),
        sum_of_means=whole_gradient(lambda means, counts: means.sum(axis=0)),
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
        "collectives",
        "reduce-scatter-ring",
        ring(lambda device, step: device - 1 - step),
        next_device=ring(lambda device, step: device - step),
        same_piece=ring(lambda device, step: device),
        backwards=ring(lambda device, step: device - 1 + step),
        one_piece=ring(lambda device, step: step),
    )
    yield from case("collectives", "reduce-scatter-ring", ring(lambda device, step: device - 1 - step, np.array, tuple))
    yield from case(
        "cost-of-collectives",
        "crossover",
        crossover(),
        not_rounded=crossover(levels=math.log2),
        rounded_down=crossover(levels=lambda devices: math.floor(math.log2(devices))),
        natural_logarithm=crossover(levels=math.log),
        one_way=crossover(ways=lambda devices: 1),
        once_around=crossover(
            ring_rounds=lambda devices: devices - 1, ring_values=lambda devices: (devices - 1) / devices
        ),
        whole_values=crossover(ring_values=lambda devices: 2 * (devices - 1)),
        two_values=crossover(ring_values=lambda devices: 2),
        one_round_more=crossover(ring_rounds=lambda devices: 2 * devices),
    )
    yield from case(
        "buckets-and-overlap",
        "last-sum",
        last_sum(),
        first_gradient=last_sum(ready_of=min),
        last_in_the_list=last_sum(ready_of=lambda ready: ready[-1]),
        no_line=last_sum(start_of=lambda free, ready: ready),
        never_waits=last_sum(start_of=lambda free, ready: free),
        waits_twice=last_sum(start_of=lambda free, ready: free + ready),
        without_overlap={"last_sum": of_checks("buckets-and-overlap", "without_overlap")},
        each_tensor=last_sum(singly=True),
        one_latency=last_sum(latencies=lambda devices: 1),
        one_round_more=last_sum(latencies=lambda devices: 2 * devices),
        two_values=last_sum(values=lambda devices: 2),
        once_around=last_sum(latencies=lambda devices: devices - 1, values=lambda devices: (devices - 1) / devices),
        whole_values=last_sum(values=lambda devices: 2 * (devices - 1)),
    )
    yield from case(
        "sharded-optimizers",
        "bytes-of-stage",
        stage_bytes(),
        rounded_down=stage_bytes(padded=False),
        gradients_early=stage_bytes(divided_from=(3, 1, 1)),
        gradients_late=stage_bytes(divided_from=(3, 3, 1)),
        weights_early=stage_bytes(divided_from=(1, 2, 1)),
        weights_late=stage_bytes(divided_from=(4, 2, 1)),
        gathers_once=stage_bytes(gathers_again=False),
        whole_row=stage_bytes(sent_pieces=0),
        two_pieces_less=stage_bytes(sent_pieces=-2),
        four_collectives=stage_bytes(reduces_again=True),
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
        "pipelines",
        "one-f-one-b",
        order_of_stage(lambda stage, stages: stages - stage),
        one_more=order_of_stage(lambda stage, stages: stages - stage + 1),
        one_less=order_of_stage(lambda stage, stages: max(stages - stage - 1, 1)),
        same_on_all=order_of_stage(lambda stage, stages: stages),
        one_at_a_time=order_of_stage(lambda stage, stages: 1),
        reversed=order_of_stage(lambda stage, stages: stage + 1),
        all_forward=order_of_stage(lambda stage, stages: 26),
        four_stages=order_of_stage(lambda stage, stages: max(4 - stage, 1)),
    )
    yield from case(
        "pipelines",
        "idle-share",
        idle_share(lambda idle, times, m: idle(times, m)),
        mean=idle_share(lambda idle, times, m: idle(times, m, pace=sum(times) / len(times))),
        last=idle_share(lambda idle, times, m: idle(times, m, pace=times[-1])),
        first=idle_share(lambda idle, times, m: idle(times, m, pace=times[0])),
        all_as_slow=idle_share(lambda idle, times, m: idle(times, m, first=len(times) * max(times))),
        of_the_work=idle_share(lambda idle, times, m: idle(times, m, ideal=True)),
        busy=idle_share(lambda idle, times, m: 1 - idle(times, m)),
        one_more=idle_share(lambda idle, times, m: idle(times, m + 1)),
        one_less=idle_share(lambda idle, times, m: idle(times, max(m - 1, 1))),
        no_bubble=idle_share(lambda idle, times, m: 1 - sum(times) / len(times) / max(times)),
    )
    yield from case(
        "profiling-a-step",
        "step-time",
        step_time(),
        never_waits=step_time("warm-up"),
        waits_in_each_step=step_time("step"),
        warm_up_in_queue=step_time("block"),
        cold=step_time(cold=True),
        mean=step_time(middle=np.mean),
        slowest=step_time(middle=max),
    )
    yield from case(
        "profiling-a-step",
        "bottleneck",
        bottleneck(),
        first_to_begin=bottleneck(min),
        first_step=bottleneck(first=0),
        never_slow=bottleneck(ratio=1e9),
        hardly_slow=bottleneck(ratio=1.05),
        slow_in_any_case=bottleneck(only=""),
        no_tracing=bottleneck(ignored="tracing"),
        totals=largest_total(),
        totals_with_first_step=largest_total(first=0),
        waiting_is_work=largest_total(waiting="host"),
    )
    yield from case(
        "dtensor",
        "pieces",
        pieces_on_mesh(),
        other_order=pieces_on_mesh(last_first=True),
        axes_swapped=pieces_on_mesh(lambda names: names[::-1]),
        no_copies=pieces_on_mesh(copies=False),
        whole_array=pieces_on_mesh(lambda names: ["unsharded"] * len(names)),
    )
    yield from case_of_files("planning-a-training-run", "diagnose", "diagnosed", "estimate")
    yield from case_of_files("planning-a-training-run", "plan-for-cluster", "planned", "estimate")
    yield from case(
        "keras-distribution",
        "held",
        numbers_held(),
        all_devices=numbers_held(copies=False),
        first_name=numbers_held(every_name=False),
        matched_only=numbers_held(matched_only=True),
        part_of_path=numbers_held(match=re.search),
        beginning_of_path=numbers_held(match=re.match),
        first_pattern=numbers_held(own_key=False),
    )
    yield from case(
        "embedding-tables",
        "touched-rows",
        two_messages(),
        asked_twice=two_messages(once=False),
        mean=two_messages(lambda gradients: gradients.mean(axis=0)),
        first=two_messages(lambda gradients: gradients[0]),
        last=two_messages(lambda gradients: gradients[-1]),
        largest=two_messages(lambda gradients: gradients.max(axis=0)),
        all_rows=two_messages(dense=True),
        dealt_out=two_messages(where=lambda ids, rows, servers: (ids % servers, ids // servers)),
        rows_of_the_table=two_messages(where=lambda ids, rows, servers: (ids // -(-rows // servers), ids)),
        rounded_up=two_messages(where=lambda ids, rows, servers: divmod(ids, -(-rows // servers))),
    )
    yield from case(
        "embedding-tables",
        "renumber",
        new_numbers(least_busy),
        old_rows=new_numbers(least_busy, old=True),
        no_room=new_numbers(lambda counts, servers: least_busy(counts, servers, room=False)),
        in_turn=new_numbers(lambda counts, servers: np.arange(len(counts)) % servers),
        back_and_forth=new_numbers(back_and_forth),
        by_popularity=new_numbers(lambda counts, servers: np.arange(len(counts))),
        random=new_numbers(lambda counts, servers: np.random.default_rng(0).integers(servers, size=len(counts))),
    )
    yield from case(
        "mirrored-strategy",
        "whole-statistics",
        batch_statistics(1),
        own_share=batch_statistics(4),
        pairs=batch_statistics(2),
    )


@pytest.mark.parametrize(("lesson", "exercise", "right", "mistaken"), list(cases()))
def test_no_usual_mistake_passes_by_chance(
    lesson: str, exercise: str, right: Answers, mistaken: Answers | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mistaken is None:
        assert all(passes(lesson, exercise, ScriptedWork(right, right, seed)) for seed in range(TRIES))
        return

    def lax(got: Any, wanted: Any, *, rtol: float = 1e-4, atol: float = 1e-6, **more: Any) -> None:
        close(got, wanted, rtol=rtol * LAXER, atol=atol * LAXER, **more)

    monkeypatch.setattr(checks_module(lesson), "close", lax, raising=False)
    passed = sum(passes(lesson, exercise, ScriptedWork(mistaken, right, seed)) for seed in range(TRIES))
    assert passed == 0


@pytest.mark.parametrize(
    ("lesson", "exercise", "right"),
    [
        pytest.param(*given.values[:3], id=str(given.id).removesuffix("-right"))
        for given in cases()
        if given.values[0] in FIRST_MODULE and given.values[3] is None
    ],
)
def test_no_two_diagnoses_of_an_exercise_are_for_the_same_result(
    lesson: str, exercise: str, right: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compared(got: Any, wanted: Any, *, mistakes: Mapping[str, Any] | None = None, **more: Any) -> None:
        close(got, wanted, **more)
        wrong = {diagnosis: result for diagnosis, result in (mistakes or {}).items() if differ(result, wanted)}
        for pair in itertools.combinations(wrong, 2):
            assert differ(wrong[pair[0]], wrong[pair[1]]), pair

    def differ(result: Any, other: Any) -> bool:
        try:
            close(result, other)
        except CheckFailed:
            return True
        return False

    monkeypatch.setattr(checks_module(lesson), "close", compared)
    assert all(passes(lesson, exercise, ScriptedWork(right, right, seed)) for seed in range(TRIES))


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
    missing = "The factor 2 is missing, and so is the division"
    one_more = "One example has more"
    of_means = "the mean of the replicas' means"
    guessed = "examples that it guesses"
    own_limit = "to its share of the limit"
    rates = "batch-size-and-learning-rate", "noise-and-signal"
    for name, lesson, exercise, mistaken, words in (
        (
            "neither-factor-nor-division",
            "gradient-by-hand",
            "part-of-gradient",
            part_of_gradient(lambda share, batch: 2),
            [missing, missing, ""],
        ),
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
