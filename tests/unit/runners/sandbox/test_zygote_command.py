"""Which outer sandbox the zygote runs in."""

from __future__ import annotations

import pytest

from runners.config.settings import RunnerSettings
from runners.sandbox.zygote_command import OuterSandboxUnavailable, choose_outer_sandbox, zygote_command

BWRAP = "/usr/bin/bwrap"


@pytest.mark.parametrize(
    ("wanted", "root", "bubblewrap", "outer"),
    [
        ("auto", True, BWRAP, "bubblewrap"),
        ("auto", False, BWRAP, "bubblewrap"),
        ("auto", False, None, "none"),
        ("bubblewrap", False, BWRAP, "bubblewrap"),
        ("bubblewrap", True, BWRAP, "bubblewrap"),
        ("none", False, BWRAP, "none"),
        ("none", False, None, "none"),
    ],
)
def test_the_outer_sandbox_follows_the_setting_and_the_machine(
    wanted: str, root: bool, bubblewrap: str | None, outer: str
) -> None:
    assert choose_outer_sandbox(RunnerSettings(outer_sandbox=wanted), root=root, bubblewrap=bubblewrap) == outer


@pytest.mark.parametrize(
    ("wanted", "root", "bubblewrap", "why"),
    [
        ("none", True, BWRAP, "this is root"),
        ("none", True, None, "this is root"),
        ("auto", True, None, "install the package bubblewrap"),
        ("bubblewrap", True, None, "install the package bubblewrap"),
        ("bubblewrap", False, None, "install the package bubblewrap"),
    ],
)
def test_nothing_starts_if_no_outer_sandbox_is_possible(
    wanted: str, root: bool, bubblewrap: str | None, why: str
) -> None:
    with pytest.raises(OuterSandboxUnavailable, match=why):
        choose_outer_sandbox(RunnerSettings(outer_sandbox=wanted), root=root, bubblewrap=bubblewrap)


def test_what_a_session_may_be_given_the_zygote_has_to_pass_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.sandbox.zygote_command.shutil.which", lambda _: BWRAP)

    command, _ = zygote_command(RunnerSettings(), [], ("accel0",), ("/sys/bus/pci",))

    assert command[(i := command.index("/dev/accel0") - 1) : i + 3] == ["--dev-bind", "/dev/accel0", "/dev/accel0"]
    assert command[(i := command.index("/sys/bus/pci") - 1) : i + 3] == ["--ro-bind", "/sys/bus/pci", "/sys/bus/pci"]


def test_a_checkout_below_tmp_is_not_covered_by_the_outer_sandboxs_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.sandbox.zygote_command.shutil.which", lambda _: BWRAP)
    monkeypatch.setattr("runners.sandbox.zygote_command.python_folders", lambda: ("/tmp/clone/.venv",))

    command, _ = zygote_command(RunnerSettings(), [])

    own_tmp = command.index("--tmpfs")
    assert command[own_tmp + 1] == "/tmp"
    assert own_tmp < command.index("/tmp/clone/.venv")
    assert command.count("/tmp") == 1
