"""When a pool of kernels calls its machine broken."""

from __future__ import annotations

import pytest

from runners.kernels import Pool
from runners.sandbox.host import Sandbox
from runners.settings import Limits
from runners.zygotes import NoZygote


class NoMachine:
    """A zygote that refuses."""

    limits = Limits()

    async def spawn(self) -> Sandbox:
        """Refuse."""
        raise NoZygote("no room")


async def test_one_kernel_that_cannot_be_made_does_not_make_the_node_broken_but_several_in_a_row_do() -> None:
    pool = Pool(0, lambda _: NoMachine(), ("cpu", 3))

    troubles = []
    for _ in range(3):
        with pytest.raises(NoZygote):
            await pool.take("cpu", 3)
        troubles.append(pool.trouble)

    assert troubles == [None, None, "no room"]
