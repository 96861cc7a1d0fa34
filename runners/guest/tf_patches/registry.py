"""The registry of patches: every place where Lockstep changes another library, and what each change relies on.

Each other module of this package covers one subject. It declares its patches with the decorators of a ``Subject`` and
puts them in place with ``Subject.apply``. ``verify`` compares every declaration with the installed libraries, so that a
moved target is reported by name instead of being ignored. Nothing here imports TensorFlow.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, NotRequired, TypedDict, TypeVar, Unpack

from runners.guest import tf_patches
from runners.guest.tf_patches import expectations
from runners.guest.tf_patches.expectations import MISSING, Moved, find
from runners.guest.tf_patches.import_hook import call_after_import

When = Literal[
    "every process",
    "every kernel",
    "Keras 2",
    "Keras 3",
    "gpu",
    "gpu and tpu",
    "shared gpu",
    "tpu",
    "no tpu",
    "workers",
    "ps",
    "replay",
]
"""Which processes have the patches of a subject: all that a zygote forks, all kernels and cluster processes, those of
one Keras or one kind of machine, or those in which ``lockstep.replay`` waits for a step."""
State = Literal["found", "moved", "not loaded"]
Replacement = TypeVar("Replacement", bound=Callable[..., Any])

_IMPORTED_LATER = ("keras", "tf_keras", "altair", "tensorboard", "tensorflow_datasets", "tqdm")
"""Packages that a process may import later or never."""


class PatchTargetMoved(RuntimeError):
    """A library no longer has what a patch changes or relies on. ``str()`` has a sentence for each such target."""


class Declaration(TypedDict):
    """What a declaration says about a patch, apart from its target.

    Keys:
        relies_on: ``(self, name, ...)`` for the parameters of the target, ``.name`` for an attribute of the class or
            module that holds it, and ``module:name`` for anything else. A class has an attribute if its code mentions
            it.
        used_by: functions, as ``module:name``, that look the target up by its name whenever they run. If one of them
            bound it earlier, it would never call the replacement.
        also: other places, as ``module:name``, that hold the same object and get the replacement as well.
        everywhere: whether every module of the target's package that holds the same object gets it as well.
        because: why the patch exists. This key and the next three default to those of the subject.
        since: the first release that needs it, such as ``TensorFlow 2.21``.
        upstream: an issue or a pull request about it, such as ``keras-team/keras#23085``.
        test: the test that fails when it stops working, as ``tests/….py::test_…``.
    """

    relies_on: NotRequired[tuple[str, ...]]
    used_by: NotRequired[tuple[str, ...]]
    also: NotRequired[tuple[str, ...]]
    everywhere: NotRequired[bool]
    because: NotRequired[str]
    since: NotRequired[str]
    upstream: NotRequired[str | None]
    test: NotRequired[str]


class PatchState(TypedDict):
    """The result of ``verify`` for one patch."""

    subject: str
    when: When
    target: str
    changes: bool
    """Whether the target is replaced; otherwise Lockstep's own code relies on it as it is."""
    because: str
    since: str
    upstream: str | None
    test: str
    state: State
    problem: str
    """One sentence about what has moved; empty if nothing has."""


class Subject:
    """The patches of one module, which are applied together.

    Args:
        name: the name of that module within the package.
        when: see ``When``.
        essential: whether a process must not run without these patches, for instance because they simulate a machine.
        because, since, upstream, test: as in ``Declaration``, for each patch that does not say otherwise.
    """

    def __init__(
        self,
        name: str,
        *,
        when: When,
        because: str,
        since: str,
        test: str,
        upstream: str | None = None,
        essential: bool = False,
    ) -> None:
        self.name = name.rpartition(".")[2]
        self.essential = essential
        self.when: When = when
        self.because, self.since, self.upstream, self.test = because, since, upstream, test
        self.patches: list[Patch] = []
        SUBJECTS.append(self)

    def patch(self, target: str, **declared: Unpack[Declaration]) -> Callable[[Replacement], Replacement]:
        """Declare that the decorated function replaces ``target``, a function, method or property.

        It is called with the state passed to ``apply``, the original, and the arguments of the call.
        """
        return self._declare(target, _around, declared)

    def value(self, target: str, **declared: Unpack[Declaration]) -> Callable[[Replacement], Replacement]:
        """Declare that the decorated function makes the new value of ``target`` from the state and the old value."""
        return self._declare(target, _made_from, declared)

    def add(self, target: str, **declared: Unpack[Declaration]) -> Callable[[Replacement], Replacement]:
        """Declare that the decorated function makes, from the state, the missing object ``target``."""
        return self._declare(target, _made, declared)

    def needs(self, target: str, **declared: Unpack[Declaration]) -> None:
        """Declare that Lockstep's own code relies on ``target``, without changing it."""
        self.patches.append(Patch(self, target, declared))

    def _declare(
        self, target: str, make: Callable[..., Any], declared: Declaration
    ) -> Callable[[Replacement], Replacement]:
        def decorate(replacement: Replacement) -> Replacement:
            self.patches.append(Patch(self, target, declared, make, replacement))
            return replacement

        return decorate

    def apply(self, *state: Any, wait_for_imports: bool = True) -> Callable[[], None]:
        """Put all patches of the subject in place.

        Args:
            state: the first arguments of each replacement.
            wait_for_imports: whether patches of modules that are not imported yet are applied when they are.

        Returns:
            A function that removes the patches that are in place now.

        If a target has moved, none of the patches is put in place, and a warning says why.

        Raises:
            PatchTargetMoved: the same, where the patches are essential.
        """
        patches = [patch for patch in self.patches if patch.make is not None]
        now = [patch for patch in patches if not patch.waits]
        if problems := [problem for patch in self.patches if (problem := patch.problem())]:
            if self.essential:
                raise PatchTargetMoved(" ".join(problems))
            warnings.warn(" ".join(problems), stacklevel=2)
            return _nothing
        for patch in patches if wait_for_imports else ():
            if patch.waits:
                call_after_import(patch.module, functools.partial(_put_or_warn, patch, state))
        with contextlib.ExitStack() as undo:
            for patch in now:
                undo.callback(patch.put(*state))
            return undo.pop_all().close


SUBJECTS: list[Subject] = []
"""All declared patches, in the order in which their modules were imported."""


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """One declared patch. ``make`` makes the new object from the original and the replacement; None for a need."""

    subject: Subject
    target: str
    declared: Declaration
    make: Callable[..., Any] | None = None
    replacement: Callable[..., Any] | None = None

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    @property
    def waits(self) -> bool:
        """Whether its module has not been imported yet, and may never be."""
        return self.module.partition(".")[0] in _IMPORTED_LATER and self.module not in sys.modules

    def problem(self) -> str:
        """What has moved, in one sentence; empty if nothing has, or if the package is not imported."""
        if self in _problems:
            return _problems[self]
        if self.waits and self.module.partition(".")[0] not in sys.modules:
            return ""
        try:
            expectations.check(
                self.target,
                self.declared.get("relies_on", ()),
                self.declared.get("used_by", ()),
                adds=self.make is _made,
                may_wait=self.waits,
            )
            problem = ""
        except Moved as e:
            problem = f"{self.target}: {e}. The patch '{self.subject.name}' was written for {self.since}."
        if not self.waits:
            _problems[self] = problem
        return problem

    @property
    def since(self) -> str:
        """The first release that needs it."""
        return self.declared.get("since", self.subject.since)

    def state(self) -> PatchState:
        """The state of this patch, as ``verify`` reports it."""
        problem = self.problem()
        return PatchState(
            subject=self.subject.name,
            when=self.subject.when,
            target=self.target,
            changes=self.make is not None,
            because=self.declared.get("because", self.subject.because),
            since=self.since,
            upstream=self.declared.get("upstream", self.subject.upstream),
            test=self.declared.get("test", self.subject.test),
            state="moved" if problem else "not loaded" if self.waits else "found",
            problem=problem,
        )

    def put(self, *state: Any) -> Callable[[], None]:
        """Put the replacement in place; returns a function that removes it."""
        assert self.make
        assert self.replacement
        owner, name, original = find(self.target)
        ours = self.make(original, functools.partial(self.replacement, *state))
        places = [(owner, name), *(find(place)[:2] for place in self.declared.get("also", ()))]
        if self.declared.get("everywhere"):
            places += _holders(self.module, name, original)
        with contextlib.ExitStack() as undo:
            for place in places:
                undo.callback(_set(*place, ours))
            return undo.pop_all().close


_problems: dict[Patch, str] = {}
"""The result for each verified patch; a fork inherits them and does not verify again."""


def verify() -> list[PatchState]:
    """Verify every patch. Call it before the first one is applied; it imports this package's modules."""
    for module in pkgutil.iter_modules(tf_patches.__path__):
        importlib.import_module(f"{tf_patches.__name__}.{module.name}")
    return [patch.state() for subject in SUBJECTS for patch in subject.patches]


def _nothing() -> None:
    """Remove nothing: no patch is in place."""


def _around(original: Any, replacement: Callable[..., Any]) -> Any:
    match original:
        case staticmethod():
            return staticmethod(_around(original.__func__, replacement))
        case property():
            return property(_around(original.fget, replacement), original.fset, original.fdel, original.__doc__)
    call = functools.partial(replacement, original)

    @functools.wraps(original)
    def patched(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return patched


def _made_from(original: Any, make: Callable[..., Any]) -> Any:
    return make(original)


def _made(_: Any, make: Callable[..., Any]) -> Any:
    return make()


def _put_or_warn(patch: Patch, state: tuple[Any, ...], _: ModuleType) -> None:
    """Apply a patch after a late import. A failure is only a warning, or else the learner's ``import`` would fail."""
    if problem := patch.problem():
        warnings.warn(problem, stacklevel=2)
    else:
        patch.put(*state)


def _holders(module: str, name: str, held: Any) -> list[tuple[Any, str]]:
    """The imported modules of the same package that hold an object under the same name."""
    package = module.partition(".")[0]
    return [
        (other, name)
        for other_name, other in list(sys.modules.items())
        if other_name.partition(".")[0] == package and isinstance(other, ModuleType) and vars(other).get(name) is held
    ]


def _set(owner: Any, name: str, value: Any) -> Callable[[], None]:
    before = vars(owner).get(name, MISSING)
    setattr(owner, name, value)
    return (
        functools.partial(delattr, owner, name)
        if before is MISSING
        else functools.partial(setattr, owner, name, before)
    )
