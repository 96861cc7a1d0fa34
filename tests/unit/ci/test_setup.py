"""Setup: what it skips, what it repeats, and its message if it cannot continue."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / ".ci" / "setup.py"


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script as a module, working in an empty folder."""
    spec = importlib.util.spec_from_file_location("lockstep_setup", SCRIPT)
    assert spec
    assert spec.loader
    module = sys.modules["lockstep_setup"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    notes = tmp_path / ".venv" / "lockstep"
    notes.mkdir(parents=True)
    for name, path in {"ROOT": tmp_path, "VENV": tmp_path / ".venv", "NOTES": notes}.items():
        monkeypatch.setattr(module, name, path)
    yield module
    del sys.modules["lockstep_setup"]


def steps_taken(setup: ModuleType, stamp: str, *, made: Path | None = None) -> int:
    with setup.once("step", stamp, made=made or setup.VENV) as needed:
        return int(needed)


def test_a_step_is_taken_once_while_its_inputs_stay(setup: ModuleType) -> None:
    assert [steps_taken(setup, stamp) for stamp in ("a", "a", "b", "b", "a")] == [1, 0, 1, 0, 1]


def test_a_step_that_failed_is_taken_again_even_if_an_older_stamp_would_fit(setup: ModuleType) -> None:
    steps_taken(setup, "a")
    with pytest.raises(RuntimeError), setup.once("step", "b"):
        raise RuntimeError
    assert steps_taken(setup, "a") == 1


def test_a_step_is_taken_again_when_what_it_made_is_gone(setup: ModuleType, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "file").touch()
    assert [steps_taken(setup, "a", made=made) for _ in range(2)] == [1, 0]
    shutil.rmtree(made)
    assert steps_taken(setup, "a", made=made) == 1


def test_a_digest_changes_with_a_files_name_and_content(setup: ModuleType, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("x")
    before = setup.digest([one])
    shutil.copy(one, two)
    assert setup.digest([two]) != before
    one.write_text("y")
    assert setup.digest([one]) != before


@pytest.mark.parametrize("version", [(3, 10), (3, 14), (2, 7)])
def test_a_python_that_does_not_fit_is_named(setup: ModuleType, version: tuple[int, int]) -> None:
    with pytest.raises(setup.Trouble, match=rf"this is Python {version[0]}\.{version[1]}; Lockstep needs 3\.11"):
        setup.check_python(version)


def test_a_full_disk_is_noticed_before_anything_is_fetched(setup: ModuleType) -> None:
    setup.check_room(6 * 10**9)
    with pytest.raises(setup.Trouble, match=r"only 0\.3 GB are free"):
        setup.check_room(3 * 10**8)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("npm error code ENOSPC", "disk is full"),
        ("NewConnectionError: Failed to establish a new connection: [Errno -3]", "cannot be reached"),
        ("Temporary failure in name resolution", "cannot be reached"),
        ("npm error code EAI_AGAIN", "cannot be reached"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "does not match the lock file"),
        ("ERROR: No matching distribution found for tensorflow==2.21.0", "no build of a locked package"),
        ("Segmentation fault", ""),
    ],
)
def test_the_likely_cause_of_a_failure_is_a_sentence(setup: ModuleType, log: str, words: str) -> None:
    sentence = setup.cause(f"Collecting a\n{log}\n")
    assert words in sentence
    assert bool(sentence) == bool(words)


def test_a_tool_that_fails_shows_the_end_of_its_log_and_the_cause(setup: ModuleType) -> None:
    program = "import sys; print('lines before'); sys.exit('Network is unreachable')"
    with pytest.raises(setup.Trouble) as trouble:
        setup.run("step", [sys.executable, "-c", program], lambda _: "")
    assert "lines before" in str(trouble.value)
    assert "cannot be reached" in str(trouble.value)
    assert str(setup.NOTES / "step.log") in str(trouble.value)


def test_a_slow_tool_is_seen_to_go_on(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "PATIENCE_S", 0.5)
    program = "import time; print('one\\ntwo', flush=True); time.sleep(1.5)"
    setup.run("step", [sys.executable, "-c", program], lambda log: f"{len(log.splitlines())} of 3 lines")
    assert re.search(r"^ +2 of 3 lines, \d+ s$", capsys.readouterr().out, re.MULTILINE)


def test_on_a_terminal_it_is_one_line_that_changes_and_is_gone_in_the_end(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    setup.run("step", [sys.executable, "-c", "import time; time.sleep(1.5)"], lambda _: "half of it")
    shown = capsys.readouterr().out
    assert "half of it" in shown
    assert "\n" not in shown
    assert shown.split("\r")[-1].strip() == "\x1b[K"


LOCK = "a==1 \\\n    --hash=sha256:0\nb==2 ; sys_platform == 'win32' \\\n    --hash=sha256:0\nc==3 \\\nd==4 \\\n"


@pytest.mark.parametrize(
    ("log", "new", "words"),
    [
        ("", 0, "0 of 4 packages fetched"),
        ("Ignoring b: markers 'sys_platform' don't match\nCollecting a==1\n", 0, "1 of 3 packages fetched"),
        ("Ignoring b: markers\nRequirement already satisfied: a==1\nCollecting c==3\n", 0, "2 of 3 packages fetched"),
        ("Collecting a==1\nInstalling collected packages: a, c, d\n", 2, "2 of 3 packages unpacked"),
    ],
)
def test_the_progress_of_pip_is_shown_in_packages(setup: ModuleType, log: str, new: int, words: str) -> None:
    assert setup.pip_progress(log, LOCK, new) == words


def test_a_package_counts_as_unpacked_when_pip_has_signed_it(setup: ModuleType) -> None:
    began = time.time() - 1
    for name in ("old-1", "new-1", "half-1"):
        folder = setup.VENV / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").touch()
        if name != "half-1":
            (folder / "INSTALLER").write_text("pip\n")
    os.utime(setup.VENV / "lib/python3.11/site-packages/old-1.dist-info/INSTALLER", (began - 60, began - 60))
    assert setup.unpacked(began) == 1


@pytest.fixture
def installed(setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """What pip and npm were asked to install, in a checkout with both lock files."""
    asked: list[tuple[str, ...]] = []
    (tmp_path / "locks").mkdir()
    for name in ("locks/serve.txt", "locks/dev.txt", "locks/science.txt", "package.json", "package-lock.json"):
        (tmp_path / name).write_text(f"a==1 # {name}\n")
    (tmp_path / "node_modules" / "one").mkdir(parents=True)
    monkeypatch.setattr(setup, "put_node_into_environment", lambda: None)
    monkeypatch.setattr(setup, "check_room", lambda _: None)
    monkeypatch.setattr(setup, "pip", lambda _step, _lock, *arguments: asked.append((Path(arguments[-1]).name,)))
    monkeypatch.setattr(setup, "npm", lambda _step, *arguments: asked.append(arguments[:2]))
    return asked


def test_serving_gets_what_it_needs_and_testing_adds_the_rest_each_once(
    setup: ModuleType, installed: list[tuple[str, ...]], tmp_path: Path
) -> None:
    def set_up(tests: bool) -> list[tuple[str, ...]]:
        installed.clear()
        setup.install_packages(tests)
        setup.install_node_modules(tests)
        return list(installed)

    serving = [("serve.txt",), ("ci", "--omit=dev")]
    testing = [("dev.txt",), ("ci", "--ignore-scripts")]
    assert [set_up(tests) for tests in (False, False, True, True, False)] == [serving, [], testing, [], []]

    before = {name: (tmp_path / name).read_text() for name in ("locks/dev.txt", "package.json")}
    for name in before:
        (tmp_path / name).write_text("b==2\n")
    assert set_up(False) == serving
    for name, text in before.items():
        (tmp_path / name).write_text(text)
    assert set_up(True) == testing, "serving took the place of what testing had"


def test_the_science_packages_are_installed_if_asked_for_and_follow_their_lock(
    setup: ModuleType, installed: list[tuple[str, ...]], tmp_path: Path
) -> None:
    def set_up(science: bool) -> list[tuple[str, ...]]:
        installed.clear()
        setup.install_science(science)
        return list(installed)

    assert [set_up(science) for science in (False, True, True, False)] == [[], [("science.txt",)], [], []]
    (tmp_path / "locks" / "science.txt").write_text("a==2\n")
    assert set_up(False) == [("science.txt",)]


@pytest.mark.long
def test_an_environment_that_was_moved_here_is_not_trusted(setup: ModuleType, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    subprocess.run([sys.executable, "-m", "venv", elsewhere], check=True)
    assert setup.environment_works(elsewhere)
    moved = elsewhere.rename(tmp_path / "moved")
    assert not setup.environment_works(moved)
    assert not setup.environment_works(tmp_path / "none")


def test_without_the_right_to_install_a_missing_package_is_named_with_what_is_lost(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "can_install", lambda: False)
    monkeypatch.delenv("CI", raising=False)
    setup.bring_system_packages(
        [setup.Need(lambda: False, "moat", "dragons walk in"), setup.Need(lambda: True, "door", "it is cold")]
    )
    assert capsys.readouterr().out.split(maxsplit=1)[1] == (
        "moat is missing, so dragons walk in; as root: apt-get install moat\n"
    )


def test_a_stand_in_does_where_the_better_package_cannot_be_installed(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(package: str) -> None:
        raise setup.Trouble(f"there is no package {package}")

    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(setup, "can_install", lambda: True)
    monkeypatch.setattr(setup, "apt_install", refuse)
    need = setup.Need(lambda: False, "moat", "dragons walk in", stand_in=lambda: True)
    monkeypatch.setattr(setup, "NEEDS", [need])
    setup.bring_system_packages([need])
    assert setup.missing_packages(tests=False) == []
    assert "dragons" not in capsys.readouterr().out


def test_in_ci_a_missing_package_stops_the_setup(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "can_install", lambda: False)
    monkeypatch.setenv("CI", "true")
    setup.bring_system_packages([setup.Need(lambda: True, "door", "it is cold")])
    with pytest.raises(setup.Trouble, match=r"may be missing\. As root: apt-get install moat tent$"):
        setup.bring_system_packages([setup.Need(lambda: False, name, "dragons walk in") for name in ("moat", "tent")])


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not here")
def test_without_user_namespaces_the_setting_that_allows_them_is_named(setup: ModuleType, tmp_path: Path) -> None:
    setup.check_namespaces()
    program = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import setup; setup.check_namespaces()"
    walled = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--disable-userns", sys.executable, "-c", program]
    ran = subprocess.run(walled, capture_output=True, text=True, check=False)
    assert "setup.Trouble: this machine does not allow user namespaces" in ran.stderr
    assert "sysctl kernel.apparmor_restrict_unprivileged_userns=0" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "can_make", "words"),
    [
        (["--missing"], True, "moat\n"),
        (["--missing", "--tests"], True, "moat\ntent\n"),
        (["--missing"], False, rf"moat\npython3\.{sys.version_info[1]}-venv\n"),
    ],
)
def test_the_missing_packages_are_printed_for_an_administrator_to_install(
    setup: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    can_make: bool,
    words: str,
) -> None:
    needs = [setup.Need(lambda: False, "moat", ""), setup.Need(lambda: True, "door", "")]
    monkeypatch.setattr(setup, "NEEDS", [*needs, setup.Need(lambda: False, "tent", "", True)])
    monkeypatch.setattr(setup, "can_make_environments", lambda: can_make)
    assert setup.main(arguments) == 0
    assert re.fullmatch(words, capsys.readouterr().out)


def test_without_the_venv_module_the_package_that_has_it_is_named(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "can_install", lambda: False)
    monkeypatch.setattr(setup, "can_make_environments", lambda: False)
    with pytest.raises(setup.Trouble, match=r"no venv module.*apt-get install python3\.1\d-venv"):
        setup.make_environment()


def test_a_second_set_up_of_a_checkout_says_that_it_waits(
    setup: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    door = tmp_path / "door"
    door.touch()
    with door.open() as first, door.open() as second:
        setup.take_turn(first)
        assert capsys.readouterr().out == ""
        waiting = threading.Thread(target=setup.take_turn, args=[second])
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        fcntl.flock(first, fcntl.LOCK_UN)
        waiting.join(10)
        assert not waiting.is_alive()
    assert "waiting for another setup of this checkout to finish" in capsys.readouterr().out


def test_a_program_that_only_tests_start_is_found_where_its_package_was_unpacked(setup: ModuleType) -> None:
    assert setup.find_program("a-proxy") is None
    unpacked = setup.VENV / "programs" / "usr" / "sbin" / "a-proxy"
    unpacked.parent.mkdir(parents=True)
    unpacked.touch(0o755)
    assert setup.find_program("a-proxy") == str(unpacked)


@pytest.mark.parametrize("in_ci", [False, True])
def test_a_program_that_cannot_be_unpacked_skips_its_tests_but_stops_ci(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], in_ci: bool
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(setup, "PROGRAMS", ("a-proxy",))
    monkeypatch.setenv("CI", "1" if in_ci else "")
    if in_ci:
        with pytest.raises(setup.Trouble, match="no program may be missing: a-proxy"):
            setup.unpack_programs()
    else:
        setup.unpack_programs()
    assert "a-proxy is missing, so its tests are skipped; this machine has no apt-get" in capsys.readouterr().out


def test_the_missing_libraries_of_a_program_are_unpacked_with_it_but_no_scripts(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt_get = tmp_path / "bin" / "apt-get"
    apt_get.parent.mkdir()
    apt_get.write_text("#!/bin/sh\nprintf 'Inst %s (1-1 Debian:12)\\n' libcares2 libjs-d3 fonts-noto a-proxy\n")
    apt_get.chmod(0o755)
    monkeypatch.setenv("PATH", str(apt_get.parent), prepend=os.pathsep)
    assert setup.missing_libraries("a-proxy") == ["libcares2"]


def test_the_project_is_installed_again_for_a_new_tag(setup: ModuleType, tmp_path: Path) -> None:
    assert setup.newest_tag() == ""
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message=x"], ["tag", "v1.4.0"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    assert setup.newest_tag() == "v1.4.0"
