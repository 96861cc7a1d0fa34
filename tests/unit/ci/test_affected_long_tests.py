"""Which long tests a change requires."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.factories.shipped_lessons import EACH_MACHINE, VARIABLE

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / ".ci" / "affected_long_tests.py"


def loaded() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("lockstep_parts", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


parts = loaded()
IDENTITY = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
LESSON = """---
title: One
topology: cpu
---

Words of the lesson.

```{predict} How many?
:name: lines
```

```{code-cell} python
:name: one
:expect: '1'

print(1)
```

````{quiz} One and one?
:name: sum

- [x] two
````
"""


@pytest.mark.parametrize(
    ("paths", "called_for"),
    [
        ([], []),
        (["README.md", "docs/learn/training-output.md", "tests/unit/test_docs.py"], []),
        (["lessons/distributed-tensorflow/mixed-precision/lesson.md"], ["wheel", "lessons", "browser", "load"]),
        (["app/lessons/routes.py"], ["wheel", "lessons", "functional", "browser", "soak", "fuzz", "load"]),
        (
            ["app/runs/follower_pool.py", "docs/learn/strategies.md"],
            ["wheel", "functional", "browser", "runner", "matrix", "soak", "fuzz", "load"],
        ),
        (["runners/guest/api/cluster_failures.py"], list(parts.ALL)),
        (["tests/long/soak/soak_programs.py", "README.md"], ["soak"]),
        (
            ["tests/factories/sandbox_escapes.py"],
            ["functional", "browser", "hostile", "runner", "notebooks", "matrix", "soak", "fuzz", "load"],
        ),
        (["locks/web.txt"], []),
        (["locks/science.txt"], ["lessons"]),
        (["locks/dev.txt"], list(parts.ALL)),
        ([".ci/setup.py"], list(parts.ALL)),
        ([".ci/affected_long_tests.py"], list(parts.ALL)),
        ([".ci/run"], list(parts.ALL)),
        (["tests/__init__.py"], list(parts.ALL)),
        ([".ci/long-tests-passed-at"], []),
    ],
)
def test_a_change_calls_for_the_parts_that_it_can_have_broken(paths: list[str], called_for: list[str]) -> None:
    assert parts.parts_of(paths) == called_for


@pytest.mark.parametrize(
    ("paths", "called_for"),
    [
        (["lessons/distributed-tensorflow/dtensor/wrong/pieces--whole.py"], ["dtensor"]),
        (["lessons/distributed-tensorflow/dtensor/lesson.ko.md"], ["each-machine"]),
        (["lessons/distributed-tensorflow/dtensor/assets/mesh.svg"], ["each-machine"]),
        (
            ["lessons/distributed-tensorflow/pipelines/checks.py", "lessons/distributed-tensorflow/dtensor/checks.py"],
            ["dtensor", "pipelines"],
        ),
        (["lessons/distributed-tensorflow/a-lesson-that-was-deleted/lesson.md"], ["each-machine"]),
        (["lessons/distributed-tensorflow/course.toml"], ["each-machine"]),
        (["app/lessons/markdown.py", "lessons/distributed-tensorflow/dtensor/checks.py"], ["dtensor", "each-machine"]),
        (["runners/guest/api/cluster_failures.py"], ["each-machine"]),
        (["locks/dev.txt", "locks/runner.txt", "lessons/distributed-tensorflow/dtensor/checks.py"], []),
        (["locks/dev.txt", "tests/long/lessons/test_cells.py"], ["each-machine"]),
        (["README.md", "app/runs/follower_pool.py"], ["each-machine"]),
    ],
)
def test_a_change_calls_for_the_lessons_whose_cells_it_can_have_broken(paths: list[str], called_for: list[str]) -> None:
    assert parts.lessons_of(paths) == called_for


@pytest.mark.parametrize(
    ("old", "new", "called_for"),
    [
        ("Words of the lesson.", "Other words.", "each-machine"),
        ("- [x] two", "- [x] three", "each-machine"),
        ("title: One", "title: 'A longer\n  title'\nminutes: 20", "each-machine"),
        ("print(1)", "print(2)", "one"),
        (":expect: '1'", ":expect: '2'", "one"),
        ("topology: cpu", "topology: gpu:2", "one"),
        ("How many?", "How many lines?", "one"),
    ],
)
def test_a_lesson_runs_again_if_what_runs_has_changed(
    old: str, new: str, called_for: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lessons" / "course" / "one" / "lesson.md"
    file.parent.mkdir(parents=True)
    file.write_text(LESSON)
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "One"]):
        subprocess.run(["git", *IDENTITY, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    assert old in LESSON

    file.write_text(LESSON.replace(old, new))

    assert parts.lessons_of(["lessons/course/one/lesson.md"]) == [called_for]


def test_the_names_of_parts_and_lessons_are_those_that_make_and_the_tests_read() -> None:
    assert parts.EACH_MACHINE == EACH_MACHINE
    command = ["make", "-np", "test-long", "PART=lessons soak", "LESSONS=each-machine"]
    dry_run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "tests/long/lessons tests/long/soak" in dry_run.stdout
    assert f"test-long: {VARIABLE} = $(LESSONS)" in dry_run.stdout.splitlines()


def test_every_folder_of_long_tests_is_a_part_and_the_other_way_round() -> None:
    folders = {path.name for path in (ROOT / "tests" / "long").iterdir() if any(path.glob("test_*.py"))}
    assert folders == set(parts.ALL)


def test_every_cause_that_is_named_exists() -> None:
    assert [start for start in parts.CAUSES if not (ROOT / start).exists()] == []


def test_without_a_base_every_part_is_called_for() -> None:
    for arguments in ([], [""], ["no-such-branch"], ["HEAD"]):
        done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout == f"PART={' '.join(parts.ALL)}\n"


def test_what_changed_is_counted_from_where_the_branch_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *IDENTITY, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    def commit(path: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
        git("add", path)
        git("commit", "-m", path)

    def parts_since_last_pass() -> list[str]:
        assert parts.main(["--since-last-pass"]) == 0
        return capsys.readouterr().out.removeprefix("PART=").split()

    git("init")
    commit("first")
    git("switch", "-c", "change")
    commit("tests/long/soak/mine")
    git("switch", "main")
    commit("theirs")
    git("switch", "change")
    (tmp_path / "first").write_text("not committed")
    (tmp_path / "new").touch()
    monkeypatch.setattr(parts, "ROOT", tmp_path)

    assert parts.changed_since("main") == ["first", "tests/long/soak/mine", "new"]

    passed = tmp_path / ".ci" / "long-tests-passed-at"
    passed.parent.mkdir()
    passed.write_text(git("rev-parse", "change~1"))
    assert parts_since_last_pass() == ["soak"]
    passed.write_text(git("rev-parse", "main"))
    assert parts_since_last_pass() == list(parts.ALL), "HEAD does not descend from it"


def test_the_commit_where_all_long_tests_passed_is_named_by_its_hash() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}\n", (ROOT / ".ci" / "long-tests-passed-at").read_text())
