"""The rights that Landlock restricts on old and new kernels."""

from __future__ import annotations

import pytest

from runners.sandbox.landlock import AccessRight, handled_rights


@pytest.mark.parametrize(
    ("abi", "unknown"),
    [
        (2, AccessRight.TRUNCATE | AccessRight.IOCTL_DEV),
        (3, AccessRight.IOCTL_DEV),
        (4, AccessRight.IOCTL_DEV),
        (5, AccessRight(0)),
        (7, AccessRight(0)),
        (99, AccessRight(0)),
    ],
)
def test_only_rights_that_the_kernel_knows_are_handled(abi: int, unknown: AccessRight) -> None:
    assert handled_rights(abi)[0] == ~unknown & ((1 << 16) - 1)


@pytest.mark.parametrize(("abi", "scopes"), [(2, 0), (5, 0), (6, 3), (7, 3)])
def test_signals_and_abstract_sockets_are_kept_inside_where_the_kernel_can(abi: int, scopes: int) -> None:
    assert handled_rights(abi)[1] == scopes
