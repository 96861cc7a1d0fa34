"""What Landlock is asked for on kernels old and new."""

from __future__ import annotations

import pytest

from runners.sandbox.landlock import Right, handled


@pytest.mark.parametrize(
    ("abi", "unknown"),
    [
        (2, Right.TRUNCATE | Right.IOCTL_DEV),
        (3, Right.IOCTL_DEV),
        (4, Right.IOCTL_DEV),
        (5, Right(0)),
        (7, Right(0)),
        (99, Right(0)),
    ],
)
def test_only_rights_that_the_kernel_knows_are_handled(abi: int, unknown: Right) -> None:
    assert handled(abi)[0] == ~unknown & ((1 << 16) - 1)


@pytest.mark.parametrize(("abi", "scopes"), [(2, 0), (5, 0), (6, 3), (7, 3)])
def test_signals_and_abstract_sockets_are_kept_inside_where_the_kernel_can(abi: int, scopes: int) -> None:
    assert handled(abi)[1] == scopes
