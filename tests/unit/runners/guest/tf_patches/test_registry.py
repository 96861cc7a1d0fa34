"""Patches are put in place, removed again, and reported if their target has moved."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from runners.guest.tf_patches import import_hook, registry
from runners.guest.tf_patches.registry import PatchTargetMoved, Subject

LIBRARY = """
LIMIT = 3
NAMES = ["a"]

def add(left, right=1):
    return left + right

def use():
    return add(2)

class Machine:
    def __init__(self, size):
        self._size = size

    @property
    def size(self):
        return self._size

    @staticmethod
    def read(text):
        return int(text)

    @classmethod
    def parse(cls, text):
        return cls(cls.read(text))

    def grow(self, by):
        self._size += by
        return self._size
"""

MakeSubject = Callable[..., Subject]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a small library, ``patched_library``, that a test may change before it is imported."""
    file = tmp_path / "patched_library.py"
    file.write_text(textwrap.dedent(LIBRARY))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield file
    for name in [name for name in sys.modules if name.partition(".")[0] == "patched_library"]:
        del sys.modules[name]


@pytest.fixture
def make_subject(monkeypatch: pytest.MonkeyPatch, library: Path) -> MakeSubject:
    monkeypatch.setattr(registry, "SUBJECTS", [])

    def make(**options: Any) -> Subject:
        said = {"when": "every kernel", "because": "it must", "since": "Library 1.0", "test": "tests/…::test_it"}
        return Subject("package.sums", **said | options)

    return make


@pytest.fixture
def subject(make_subject: MakeSubject) -> Subject:
    return make_subject()


def imported() -> Any:
    return importlib.import_module("patched_library")


def test_functions_methods_properties_and_values_are_replaced_until_put_back(subject: Subject) -> None:
    @subject.patch("patched_library:add", relies_on=("(left, right)",), used_by=("patched_library:use",))
    @subject.patch("patched_library:Machine.grow", relies_on=("(self, by)", "._size"))
    @subject.patch("patched_library:Machine.read", relies_on=("(text)",), used_by=("patched_library:Machine.parse",))
    @subject.patch("patched_library:Machine.size", relies_on=("(self)",))
    def times_ten(factor: int, original: Any, *args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs) * factor

    @subject.value("patched_library:NAMES")
    def more_names(_: int, names: list[str]) -> list[str]:
        return [*names, "b"]

    @subject.add("patched_library:Machine.maker")
    def maker(factor: int) -> str:
        return f"made by {factor}"

    undo = subject.apply(10)
    library, machine = imported(), imported().Machine.parse("2")
    assert library.use() == 30
    assert machine.size == 200
    assert machine.grow(by=1) == 210
    assert (library.NAMES, library.Machine.maker) == (["a", "b"], "made by 10")
    assert library.add.__name__ == "add"

    undo()
    machine = library.Machine.parse("2")
    assert (library.use(), machine.size, machine.grow(1), library.NAMES) == (3, 2, 3, ["a"])
    assert not hasattr(library.Machine, "maker")


def test_other_names_of_the_same_object_are_replaced_too(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    library = imported()
    public, other = ModuleType("patched_library.public"), ModuleType("patched_library.other")
    vars(public)["plus"] = vars(other)["add"] = library.add
    monkeypatch.setitem(sys.modules, "patched_library.public", public)
    monkeypatch.setitem(sys.modules, "patched_library.other", other)

    @subject.patch("patched_library:add", also=("patched_library.public:plus",), everywhere=True)
    def nothing(original: Any, *args: Any) -> int:
        return 0

    undo = subject.apply()
    assert (library.add(1), public.plus(1), other.add(1)) == (0, 0, 0)
    undo()
    assert (library.add(1), public.plus(1), other.add(1)) == (2, 2, 2)


MOVED = [
    ("def add(", "def plus(", "patched_library:add: it does not exist"),
    ("right=1", "second=1", "patched_library:add: it takes (left, second) instead of (left, right)"),
    (
        "def use",
        "add = max\n\ndef use",
        "patched_library:add: its parameters cannot be read, and should be (left, right)",
    ),
    (
        "def use",
        "add = 3\n\ndef use",
        "patched_library:add: its parameters cannot be read, and should be (left, right)",
    ),
    ("LIMIT", "MOST", "patched_library:add: patched_library has no LIMIT"),
    ("_size", "_length", "patched_library:add: Machine has no _size"),
    ("return add(2)", "return 2 + 1", "patched_library:add: patched_library:use does not use add"),
    ("class Machine", "class Engine", "patched_library:add: there is no Machine in patched_library"),
]


@pytest.mark.parametrize(("before", "after", "sentence"), MOVED)
def test_a_target_that_has_moved_is_named_with_its_patch(
    subject: Subject, library: Path, before: str, after: str, sentence: str
) -> None:
    subject.patch(
        "patched_library:add",
        relies_on=("(left, right)", ".LIMIT", "patched_library:Machine._size"),
        used_by=("patched_library:use",),
    )(lambda original, *_: 0)
    library.write_text(library.read_text().replace(before, after))
    importlib.invalidate_caches()

    (state,) = [patch.state() for patch in subject.patches]

    assert state["state"] == "moved"
    assert state["problem"] == f"{sentence}. The patch 'sums' was written for Library 1.0."


def test_a_module_that_is_gone_and_a_name_that_now_exists_are_named(subject: Subject) -> None:
    subject.needs("patched_library.inner:part")
    subject.add("patched_library:LIMIT")(lambda: 1)

    problems = [patch.problem() for patch in subject.patches]

    assert problems[0].startswith("patched_library.inner:part: there is no module patched_library.inner.")
    assert problems[1].startswith("patched_library:LIMIT: it already exists.")


def test_a_subject_whose_target_has_moved_is_left_out_or_refused_if_it_is_essential(
    make_subject: MakeSubject,
) -> None:
    for essential in (False, True):
        subject = make_subject(essential=essential)
        subject.patch("patched_library:add")(lambda original, *_: 0)
        subject.patch("patched_library:subtract")(lambda original, *_: 0)
        if essential:
            with pytest.raises(PatchTargetMoved, match="patched_library:subtract: it does not exist"):
                subject.apply()
        else:
            with pytest.warns(UserWarning, match="patched_library:subtract: it does not exist"):
                undo = subject.apply()
            undo()
        assert imported().use() == 3


@pytest.fixture
def _imported_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_IMPORTED_LATER", ("patched_library",))
    monkeypatch.setattr(import_hook._waiting, "changes", {})
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))


@pytest.mark.usefixtures("_imported_later")
def test_a_library_that_is_imported_later_is_patched_right_after_its_import(subject: Subject) -> None:
    subject.patch("patched_library:add")(lambda factor, original, *args: factor * original(*args))

    subject.apply(10)
    assert [patch.state()["state"] for patch in subject.patches] == ["not loaded"]
    assert "patched_library" not in sys.modules

    assert imported().use() == 30
    assert [patch.state()["state"] for patch in subject.patches] == ["found"]


@pytest.mark.usefixtures("_imported_later")
def test_a_library_that_is_imported_later_and_has_changed_is_left_alone(subject: Subject, library: Path) -> None:
    subject.patch("patched_library:add")(lambda original, *args: 0)
    library.write_text("def plus(left, right=1): return left + right\n")

    subject.apply()
    with pytest.warns(UserWarning, match="patched_library:add: it does not exist"):
        assert imported().plus(1) == 2


@pytest.mark.usefixtures("_imported_later")
def test_a_patch_that_is_taken_out_soon_does_not_wait_for_an_import(subject: Subject) -> None:
    subject.patch("patched_library:add")(lambda original, *args: 0)
    subject.apply(wait_for_imports=False)()
    assert imported().use() == 3
