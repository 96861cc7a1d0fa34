"""Watches Keras train without changes to the learner's code: reports metrics, progress and the step reached.

Keras creates a ``CallbackList`` for every ``fit``, ``evaluate`` and ``predict``. Lockstep's callback is appended to
each new list after Keras has inspected it, so no result, order or traceback changes. Keras 3 reads metrics for its
callbacks anyway, on a separate thread; Keras 2's tensors are read only when they are sent. Nothing here runs an op or
imports Keras: a zygote may call ``watch``.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runners.guest.cluster import training_step
from runners.guest.reporting.metric_reporter import STEPS_PER_S, ProgressReporter, Value, metric_reporter
from runners.guest.tf_patches.registry import Subject

_TESTS = "tests/functional/runner/test_visualizations.py::"
_MADE_UP = re.compile(r"(sequential|functional|model)(_[0-9]+)?")
"""The names that Keras gives models."""

subject = Subject(
    __name__,
    when="every process",
    because="the page shows metrics and progress of training without changes to the learner's code",
    since="Keras 3.15 and TF-Keras 2.21",
    test=f"{_TESTS}test_fit_tells_its_numbers_and_how_far_it_is",
)


@subject.patch(
    "keras.src.callbacks.callback_list:CallbackList.__init__",
    relies_on=("(self, callbacks, ...)", ".callbacks", ".params", ".model"),
    since="Keras 3.15",
)
@subject.patch(
    "tf_keras.src.callbacks:CallbackList.__init__",
    relies_on=(
        "(self, callbacks, ...)",
        ".callbacks",
        ".params",
        ".model",
        "._should_call_train_batch_hooks",
        "._should_call_test_batch_hooks",
        "._should_call_predict_batch_hooks",
    ),
    since="TF-Keras 2.21",
)
def _with_watcher(original: Any, self: Any, callbacks: Any = None, *args: Any, **kwargs: Any) -> None:
    original(self, callbacks, *args, **kwargs)
    with contextlib.suppress(Exception):
        _join(self)


def _join(callbacks: Any) -> None:
    watcher = TrainingCallback(callbacks.params or {}, getattr(callbacks, "model", None))
    callbacks.callbacks.append(watcher)
    if hasattr(callbacks, "_should_call_train_batch_hooks"):  # Keras 2 checks once whether any callback wants batches
        if _is_coordinated(watcher.model):
            return
        callbacks._should_call_train_batch_hooks = True
        callbacks._should_call_test_batch_hooks = True
        callbacks._should_call_predict_batch_hooks = True


def _is_coordinated(model: Any) -> bool:
    """Whether a coordinator schedules the steps: then their results are not numbers yet."""
    return bool(getattr(getattr(model, "distribute_strategy", None), "_should_use_with_coordinator", False))


@subject.patch(
    "keras.src.backend.tensorflow.trainer:TensorFlowTrainer.train_on_batch",
    because="it creates no list of callbacks",
    since="Keras 3.15",
    test=f"{_TESTS}test_steps_per_execution_evaluate_predict_and_single_batches_are_seen_too",
)
@subject.patch(
    "tf_keras.src.engine.training:Model.train_on_batch",
    because="it creates no list of callbacks",
    since="TF-Keras 2.21",
    test=f"{_TESTS}test_steps_per_execution_evaluate_predict_and_single_batches_are_seen_too",
)
def _train_on_batch(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    result = original(self, *args, **kwargs)
    with contextlib.suppress(Exception):
        _take_batch(self, result)
    return result


def _take_batch(model: Any, result: Any) -> None:
    names = _names(model)
    course = _course_of(model)
    course.steps += 1
    training_step.reached(course.steps)
    if isinstance(result, Mapping):
        values = dict(result)
    else:
        listed = list(result) if isinstance(result, list | tuple) else [result]
        if len(listed) != len(names):
            listed, names = listed[:1], ["loss"]
        values = dict(zip(names, listed, strict=True))
    metric_reporter().tell(course.steps, _numbers(values), training=_name_of(model))


def _names(model: Any) -> list[str]:
    """The names of what ``train_on_batch`` returns, in order."""
    if not model.__class__.__module__.startswith("tf_keras") and hasattr(model, "_flatten_metrics_in_order"):
        names: list[str] = []
        for metric in model.metrics:
            within = getattr(metric, "metrics", None) if type(metric).__name__ == "CompileMetrics" else None
            names += [metric.name] if within is None else [each.name for each in within]
        return names
    return list(model.metrics_names)


class _Trained:
    """How far a model has been trained in the current run."""

    def __init__(self) -> None:
        self.run = metric_reporter().run
        self.steps = 0
        self.epochs = 0


_models: weakref.WeakKeyDictionary[Any, _Trained] = weakref.WeakKeyDictionary()


def _course_of(model: Any) -> _Trained:
    """The progress of a model; its second ``fit`` in the same run continues where the first ended."""
    trained = _models.get(model) if model is not None else None
    if trained is None or trained.run != metric_reporter().run:
        trained = _Trained()
        if model is not None:
            _models[model] = trained
    return trained


def _name_of(model: Any) -> str | None:
    """The name that the learner gave the model; None if Keras made it up."""
    name = getattr(model, "name", None)
    return name if isinstance(name, str) and not _MADE_UP.fullmatch(name) else None


def _numbers(logs: Mapping[str, Any] | None) -> dict[str, Value]:
    """The logs that are single numbers, or will be; omits the rest."""
    return dict(_each_number(logs or {}))


def _each_number(logs: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    for name, value in logs.items():
        if isinstance(value, int | float):
            yield str(name), float(value)
        elif isinstance(value, Mapping):
            yield from _each_number(value)
        elif getattr(value, "shape", None) == () and hasattr(value, "dtype"):
            yield str(name), functools.partial(_read, value)


def _workers_added_up(model: Any) -> int:
    """The factor by which the metrics of a step are too large.

    In a cluster, Keras 2 sums over the workers metrics that each has already reduced; those of an epoch are correct.
    """
    trainer = getattr(sys.modules.get("tf_keras.src.engine.training"), "Model", None)
    if trainer is None or not isinstance(model, trainer):
        return 1
    extended = getattr(getattr(model, "distribute_strategy", None), "extended", None)
    return int(getattr(extended, "_num_workers", 1))


def _shares(numbers: dict[str, Value], count: int) -> dict[str, Value]:
    """Divide each number by ``count``."""
    return numbers if count == 1 else {name: functools.partial(_share, value, count) for name, value in numbers.items()}


def _share(value: Value, count: int) -> float | None:
    number = value() if callable(value) else value
    return None if number is None else number / count


def _read(value: Any) -> float | None:
    """Read a number, waiting for its tensor."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _quiet(method: Callable[..., None]) -> Callable[..., None]:
    """Ignore errors of a callback method, so that they never stop the training."""

    @functools.wraps(method)
    def quietly(self: TrainingCallback, *args: Any, **kwargs: Any) -> None:
        with contextlib.suppress(Exception):
            method(self, *args, **kwargs)

    return quietly


class TrainingCallback:
    """A Keras callback, of either Keras.

    Args:
        params: Keras's parameters for callbacks: ``epochs`` and ``steps`` (of one epoch; None if unknown).
        model: the model being trained, if Keras knows it.
    """

    _supports_tf_logs = True
    async_safe = True

    def __init__(self, params: Mapping[str, Any], model: Any) -> None:
        self.params = params
        self.model = model
        self._lock = threading.Lock()
        self._trained = _course_of(model)
        self._course: ProgressReporter | None = None
        self._training = False
        self._epochs_left = 1
        self._first_step = 0
        """The first step of this epoch, among the model's steps in the run."""
        self._done = 0
        """Steps done in this epoch."""
        self._each: int | None = None
        """Steps in an epoch, once one is over."""
        self._latest: Any = None
        """The metrics of the latest step, if they have not been reported."""
        self._next_s = 0.0
        self._begun = 0
        """The model's steps in this run before this ``fit``."""

    def set_params(self, params: Mapping[str, Any] | None) -> None:
        self.params = params or {}

    def set_model(self, model: Any) -> None:
        self.model = model
        self._trained = _course_of(model)

    # --- fit ----------------------------------------------------------------------------------------------------

    @_quiet
    def on_train_begin(self, logs: Any = None) -> None:
        """Report the start: the first step may take half a minute."""
        self._training = True
        self._course = ProgressReporter("fit")
        self._epochs_left = int(self.params.get("epochs") or 1)
        self._begun = self._trained.steps
        self._course.reached(0, self._total())

    @_quiet
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Start counting the epoch's steps."""
        self._epochs_left = max(1, int(self.params.get("epochs") or 1) - epoch)
        self._first_step, self._done = self._trained.steps, 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Note the step on the training thread, so that a pending failure happens before the next one."""
        training_step.reached(self._first_step + batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Note the last batch done, counted from 0. Keras 3 may call this from several threads, out of order.

        A small model makes a thousand steps a second: most of them only store their metrics here.
        """
        with self._lock:
            if batch < self._done:
                return
            self._done = batch + 1
            self._latest = logs
            now = time.monotonic()
            if now >= self._next_s:
                self._next_s = now + 1 / STEPS_PER_S
                self._tell_steps()

    @_quiet
    def _tell_steps(self) -> None:
        """Report the metrics of the latest step."""
        latest, self._latest = self._latest, None
        self._trained.steps = self._first_step + self._done
        if latest is not None:
            numbers = _shares(_numbers(latest), _workers_added_up(self.model))
            metric_reporter().tell(self._trained.steps, numbers, training=_name_of(self.model))
        if self._course is not None:
            self._course.reached(self._trained.steps - self._begun, self._total())

    @_quiet
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Report the metrics of the epoch, including those of validation."""
        if not self._done and (each := self.params.get("steps")):
            self._done = int(each)  # a coordinator does not report single steps
        self._tell_steps()
        self._each = self._done
        training_step.reached(self._trained.steps)
        self._trained.epochs = max(epoch + 1, self._trained.epochs + 1)
        metric_reporter().tell(self._trained.epochs, _numbers(logs), "epoch", _name_of(self.model))

    @_quiet
    def on_train_end(self, logs: Any = None) -> None:
        """Report the last metrics if they have not been sent."""
        self._training = False
        self._tell_steps()
        metric_reporter().flush()
        if self._course is not None:
            done = self._trained.steps - self._begun
            self._course.reached(done, done)
            self._course.end()

    def _total(self) -> int | None:
        """Steps in the whole ``fit``: those done and, if known, those to come."""
        each = self.params.get("steps") or self._each
        return None if each is None else self._first_step - self._begun + int(each) * self._epochs_left

    # --- evaluate and predict; inside fit, only fit reports
    # ---------------------------------------------------------------

    @_quiet
    def on_test_begin(self, logs: Any = None) -> None:
        self._begin_alone("evaluate")

    @_quiet
    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Report progress. A model trained in this run is tested at its last step; others count their own steps."""
        if self._count_alone(batch) and not self._trained.steps:
            metric_reporter().tell(batch + 1, _numbers(_named_test(logs)), training=_name_of(self.model))

    @_quiet
    def on_test_end(self, logs: Any = None) -> None:
        """Report the metrics that ``evaluate`` returns."""
        if not self._training:
            steps = self._trained.steps or self._done
            metric_reporter().tell(steps, _numbers(_named_test(logs)), training=_name_of(self.model))
            self._end_alone()

    @_quiet
    def on_predict_begin(self, logs: Any = None) -> None:
        self._begin_alone("predict")

    @_quiet
    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """Report progress only."""
        self._count_alone(batch)

    @_quiet
    def on_predict_end(self, logs: Any = None) -> None:
        if not self._training:
            self._end_alone()

    def _begin_alone(self, label: str) -> None:
        if not self._training:
            self._done = 0
            self._course = ProgressReporter(label)
            self._course.reached(0, self.params.get("steps") or None)

    def _count_alone(self, batch: int) -> bool:
        with self._lock:
            if self._training or batch + 1 <= self._done:
                return False
            self._done = batch + 1
            if self._course is not None:
                self._course.reached(self._done, self.params.get("steps") or None)
            return True

    def _end_alone(self) -> None:
        metric_reporter().flush()
        if self._course is not None:
            self._course.end()

    # --- other hooks that Keras calls
    # -----------------------------------------------------------------------------------

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    on_batch_begin = on_batch_end = on_test_batch_begin = on_predict_batch_begin = _nothing


def _named_test(logs: Mapping[str, Any] | None) -> dict[str, Any]:
    return {f"test_{name}": value for name, value in (logs or {}).items()}
