"""No usual mistake passes by chance: each is made often, and ``close`` forgives a hundred times as much.

The main tier makes each of them 25 times, ``tests/long/lessons`` 100 times.

NumPy stands in for the submissions; what TensorFlow computes is judged in ``lockstep lesson check``.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from runners.checks import CheckFailed, Graph, Work, close
from runners.checks.declare import checks_of
from tests.factories.long_cases import LONG_CASES

LESSONS = Path(__file__).parents[2] / "lessons" / "distributed-tensorflow"
TRIES = 100 if LONG_CASES else 25
LAXER = 100.0

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
        result: list[Any] = self._answers[name](own)
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


def ring(piece: Callable[[int, int], int]) -> Answers:
    """``piece`` gets the device that sends, and the round."""

    def schedule(devices: int) -> Any:
        return [
            [(device, (device + 1) % devices, piece(device, step) % devices, "add") for device in range(devices)]
            for step in range(devices - 1)
        ]

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
    )
    yield from case(
        "sharded-optimizers",
        "sharded-step",
        sharded_step(),
        not_clipped=sharded_step(clipping="none"),
        own_length=sharded_step(clipping="pieces"),
        clipped_before=sharded_step(clipping="before"),
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
