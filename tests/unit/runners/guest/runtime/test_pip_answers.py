"""What pip answers in a sandbox."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from runners.guest.runtime.pip_answers import answer_command, answer_pip

NUMPY = version("numpy")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("install numpy", f"numpy {NUMPY} is installed."),
        ("install -q --upgrade 'numpy>=1.2'", f"numpy {NUMPY} is installed."),
        (
            "install numpy==0.1",
            f"numpy {NUMPY} is installed, and the sandbox has no network to install another version from.",
        ),
        ("install -i https://example.org/simple no-such", "no-such is not installed, and the sandbox has no network"),
        ("install tensorflow-hub", "tensorflow-hub: Lockstep's own version is installed."),
        ("install ./here", "./here cannot be installed: the sandbox has no network to install it from."),
        ("install git+https://example.org/x", "git+https://example.org/x cannot be installed: the sandbox has no"),
        ("install tensorflow-gpu", f"tensorflow-gpu {version('tensorflow')} is installed."),
        ("install", "The sandbox has no pip, because the sandbox has no network to install packages from."),
        ("list", "The sandbox has no pip"),
        ("", "The sandbox has no pip"),
        ("install 'numpy", "pip: No closing quotation"),
    ],
)
def test_pip_says_at_once_what_is_installed(arguments: str, answer: str) -> None:
    assert answer_pip(arguments).startswith(answer)


def test_each_package_has_a_line() -> None:
    first, second = answer_pip("install numpy[all] no-such").splitlines()
    assert first == f"numpy {NUMPY} is installed."
    assert second.startswith("no-such is not installed")


@pytest.mark.parametrize("command", ["pip install numpy", " pip3 install numpy", "python3 -m pip install numpy"])
def test_pip_in_a_shell_command_is_answered(command: str) -> None:
    assert answer_command(command) == f"numpy {NUMPY} is installed."


@pytest.mark.parametrize("command", ["pip install numpy && ls", "pip install $(cat x)", "ls", "echo pip", "pipe x"])
def test_a_shell_command_that_does_more_than_pip_is_left_alone(command: str) -> None:
    assert answer_command(command) is None
