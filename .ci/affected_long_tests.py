#!/usr/bin/env python3
"""Prints what `make test-long` has to run of `tests/long` after a change, as its variables: nothing if it is nothing.

PART names the folders, and LESSONS the lessons whose cells run; without it, those of every lesson do.

.ci/affected_long_tests.py BASE                compares the working tree with the commit where HEAD branched off BASE
.ci/affected_long_tests.py --since-last-pass   compares it with the commit in .ci/long-tests-passed-at
.ci/affected_long_tests.py                     names every part and no lessons
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ALL = ("wheel", "lessons", "functional", "browser", "hostile", "runner", "notebooks", "matrix", "soak", "fuzz", "load")
"""Every part, in the order in which they run: those most likely to fail first."""
CAUSES: dict[str, tuple[str, ...]] = {
    "lessons/": ("wheel", "lessons", "browser", "load"),
    "app/lessons/": ("wheel", "lessons", "functional", "browser", "soak", "fuzz", "load"),
    "app/imports/": ("wheel", "lessons", "functional", "browser", "soak", "fuzz", "load"),
    "app/cli/": ("wheel", "lessons", "functional", "browser", "runner", "soak", "fuzz", "load"),
    "app/runs/": ("wheel", "functional", "browser", "runner", "soak", "fuzz", "load"),
    "app/": ("wheel", "functional", "browser", "soak", "fuzz", "load"),
    "package.json": ("wheel", "browser"),
    "package-lock.json": ("wheel", "browser"),
    "hatch_build.py": ("wheel",),
    "docs/learn/strategies.md": ("matrix",),
    "docker/Caddyfile": ("soak",),
    "migrations/": ("wheel", "functional", "load"),
    "benchmarks/": ("load",),
    "runners/": ALL,
    "locks/dev.txt": ALL,
    "locks/science.txt": ("lessons",),
    "pyproject.toml": ALL,
    ".ci/": ALL,
    ".ci/long-tests-passed-at": (),
    "Makefile": ALL,
    "tests/__init__.py": ALL,
    "tests/conftest.py": ALL,
    "tests/factories/": ("functional", "browser", "hostile", "runner", "notebooks", "matrix", "soak", "fuzz", "load"),
    "tests/unit/app/": ("functional",),
    "tests/unit/app/imports/published/": ("lessons",),
    "tests/functional/": ("functional",),
    "tests/functional/programs/": ("functional", "runner"),
    "tests/functional/runner/": ("runner",),
    "tests/functional/test_reverse_proxies.py": ("functional", "soak"),
    "tests/functional/test_several_web_processes.py": ("functional", "soak"),
    "tests/browser/": ("browser",),
    "tests/lessons/": ("lessons",),
    "tests/browser/site.py": ("browser", "load"),
    **{f"tests/long/{part}/": (part,) for part in ALL},
}
"""The parts that paths with a prefix can break. The longest prefix counts; other paths break nothing."""

EACH_MACHINE = "each-machine"
"""In LESSONS: the first lesson on each kind of machine."""
EVERY_LESSON = ("locks/runner.txt", "locks/tensorflow-cpu.txt")
"""What cells import, in the versions of ``locks/dev.txt``: a change may break the cells of any lesson."""

PROSE = re.compile(r"/assets/|\.(ko|zh)\.(md|toml)$|/cover[^/]*\.png$")
"""Files of a lesson that hold no code: drawings and translations."""
RUNS = re.compile(r"\A---\n.*?^---$|^(`{3,})(?!\{quiz\}).*?^\1$", re.MULTILINE | re.DOTALL)
FOR_READERS = re.compile(r"^(title|summary|tags|minutes|requires):.*\n([ -].*\n)*", re.MULTILINE)
"""Keys of the front matter that change nothing about how cells run."""


def parts_of(paths: Iterable[str]) -> list[str]:
    """The parts that changes to ``paths`` (relative to the repository) may break."""
    found: set[str] = set()
    for path in paths:
        causes = [start for start in CAUSES if path.startswith(start)]
        found.update(CAUSES[max(causes, key=len)] if causes else ())
    return [part for part in ALL if part in found]


def lessons_of(paths: Iterable[str], fork: str = "HEAD") -> list[str]:
    """The lessons whose cells the changes to ``paths`` since ``fork`` may break: none if it may be those of every one.

    A lesson's own code breaks its own cells. For everything else, one lesson on each kind of machine shows it.
    """
    found: set[str] = set()
    for path in paths:
        if path.startswith(EVERY_LESSON):
            return []
        if lesson := re.match(r"lessons/[^/]+/([^/]+)/", path):
            if (ROOT / lesson.group() / "lesson.md").exists() and not _is_prose(path, fork):
                found.add(lesson.group(1))
        elif "lessons" in parts_of([path]):
            found.add(EACH_MACHINE)
    return sorted(found) or [EACH_MACHINE]


def _is_prose(path: str, fork: str) -> bool:
    """Whether a change to a file of a lesson, since ``fork``, leaves what runs as it was."""
    if PROSE.search(path):
        return True
    if not path.endswith("/lesson.md"):
        return False
    try:
        before = _git("show", f"{fork}:{path}")
    except subprocess.CalledProcessError:
        return False
    return _what_runs(before) == _what_runs((ROOT / path).read_text(encoding="utf-8"))


def _what_runs(lesson: str) -> list[str]:
    """What the front matter says of the machine, and all blocks of a lesson between fences but its quizzes."""
    blocks = [block.group() for block in RUNS.finditer(lesson)]
    return [FOR_READERS.sub("", block) if block.startswith("---") else block for block in blocks]


def last_pass() -> str:
    """The commit where every long test has passed; empty if HEAD does not descend from it."""
    commit = (ROOT / ".ci" / "long-tests-passed-at").read_text().strip()
    try:
        _git("merge-base", "--is-ancestor", commit, "HEAD")
    except subprocess.CalledProcessError:
        return ""
    return commit


def changed_since(base: str) -> list[str] | None:
    """The paths changed since HEAD branched off ``base``; ``None`` if that is HEAD itself or unknown."""
    try:
        fork = _git("merge-base", base, "HEAD")
        if fork == _git("rev-parse", "HEAD"):
            return None
        changed = _git("diff", "--name-only", "--no-renames", fork)
        return [*changed.splitlines(), *_git("ls-files", "--others", "--exclude-standard").splitlines()]
    except subprocess.CalledProcessError:
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    """Print the variables of `make test-long`. Returns the exit status."""
    if len(arguments) > 1:
        print(f"usage: {Path(sys.argv[0]).name} [BASE | --since-last-pass]", file=sys.stderr)
        return 2
    base = last_pass() if arguments == ["--since-last-pass"] else "".join(arguments)
    changed = changed_since(base) if base else None
    parts = ALL if changed is None else parts_of(changed)
    lessons = (
        lessons_of(changed, _git("merge-base", base, "HEAD")) if changed is not None and "lessons" in parts else ()
    )
    for name, values in (("PART", parts), ("LESSONS", lessons)):
        if values:
            print(f"{name}={' '.join(values)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
