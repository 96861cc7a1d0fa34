"""Which isolation layers a real supervisor finds around its sandboxes, and what it refuses if one is missing."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.config.settings import ACCEPTANCE
from runners.wire.client import RequestRefused, RunnerClient
from runners.wire.protocol import Health, Outcome
from tests.factories.real_supervisor import RealSupervisor, SessionClient
from tests.factories.unprivileged_user import delegated_cgroups, unprivileged_command

UID = 62_000 + os.getpid() % 600
MakeNode = Callable[..., RealSupervisor]


def plain_node(tools: Path, before: tuple[str, ...] = (), **settings: Any) -> RealSupervisor:
    """A node that an unprivileged user starts; programs are found only in the folder ``tools``."""
    node = RealSupervisor(
        (*before, *unprivileged_command(UID), "env", f"PATH={tools}"), **({"warm_kernels": 0} | settings)
    )
    if os.geteuid() == 0:
        for folder in (node.folder, node.data, node.temporary):
            os.chown(folder, UID, UID)
    return node


@pytest.fixture
def plain() -> Iterator[MakeNode]:
    """Creates nodes started by an unprivileged user without the outer sandbox, because no program is found."""
    made = []

    def make(**settings: Any) -> RealSupervisor:
        made.append(plain_node(Path("/nothing"), **settings))
        return made[-1]

    yield make
    for node in made:
        node.remove()


@pytest.fixture(scope="module")
def strict() -> Iterator[tuple[RealSupervisor, Path]]:
    """A node that an unprivileged user starts for untrusted users, and the link by which it finds bubblewrap."""
    bubblewrap, prlimit = shutil.which("bwrap"), shutil.which("prlimit")
    if not bubblewrap or not prlimit:
        pytest.skip("bubblewrap or prlimit is not here")
    with tempfile.TemporaryDirectory(prefix="ls-tools-") as folder:
        Path(folder).chmod(0o755)
        link = Path(folder, "bwrap")
        link.symlink_to(bubblewrap)
        with delegated_cgroups(UID) as delegated:
            node = plain_node(Path(folder), (*delegated, prlimit, "--nofile=1024:16384"), untrusted_users=1)
            yield node.start(), link
            node.remove()


def seen(node: RealSupervisor) -> Health:
    return Health.model_validate(node.health())


def off(node: RealSupervisor) -> set[str]:
    return {safeguard.name for safeguard in seen(node).safeguards if not safeguard.in_force}


def test_every_essential_layer_is_observed_around_a_real_sandbox(node: RealSupervisor) -> None:
    health = seen(node)

    assert health.safe
    assert off(node) <= {"Landlock", "CPU share", "own /proc"}
    assert {safeguard.kind for safeguard in health.safeguards} == {"isolation", "limit"}
    assert (health.untrusted_users, health.refuses) == (False, "")


async def test_it_says_what_its_machine_offers(node: RealSupervisor) -> None:
    async with node.client() as client:
        capabilities = {capability.name: capability for capability in (await client.machine()).capabilities}

    assert capabilities["kernel"].good
    assert capabilities["user namespaces"].good
    assert re.search(r"tensorflow(-cpu)? 2", capabilities["Python"].detail)


async def test_untrusted_code_is_refused_without_the_outer_sandbox(plain: MakeNode) -> None:
    node = plain(untrusted_users=1, warm_kernels=1).start(warm=False)
    async with node.client() as client:
        learner = SessionClient(client)
        with pytest.raises(RequestRefused) as run:
            await learner.run("print(1)")
        with pytest.raises(RequestRefused) as session:
            await client.request_session(learner.session, learner.spec)

    assert [(e.value.status, e.value.refusal.code) for e in (run, session)] == [(403, "unsafe")] * 2
    assert not seen(node).safe
    assert "Missing: outer sandbox" in seen(node).refuses
    log = node.log.read_text()
    assert "apt-get install bubblewrap" in log
    assert "pool cannot be filled" not in log
    assert node.folders() == [folder for folder in node.folders() if not list(folder.iterdir())]


async def test_who_tells_of_untrusted_users_makes_it_as_strict_as_one_started_so(plain: MakeNode) -> None:
    node = plain(warm_kernels=1).start()
    async with node.client() as trusted, RunnerClient(node.socket, untrusted_users=True) as web:
        mine = SessionClient(trusted)
        assert (await mine.run("print(1)")).stdout == "1\n"  # people one trusts need no outer sandbox
        for learner in (SessionClient(web), mine):
            with pytest.raises(RequestRefused) as run:
                await learner.run("print(1)")
            assert (run.value.status, run.value.refusal.code) == (403, "unsafe")

    assert seen(node).untrusted_users
    assert "Missing: outer sandbox" in seen(node).refuses
    assert "learners' code is refused" in node.log.read_text()


async def test_it_hears_of_untrusted_users_while_it_starts(plain: MakeNode) -> None:
    node = plain()
    node.launch()
    async with RunnerClient(node.socket, untrusted_users=True) as web:
        node.wait(node.health)
        outcome = None
        with contextlib.suppress(
            RequestRefused
        ):  # or it is taken, before anybody has looked at the isolation layers, and does not run
            outcome = (await SessionClient(web).run("print(1)")).outcome

    assert outcome != Outcome.ok
    assert seen(node).refuses


async def test_an_operator_who_accepts_the_risk_literally_runs_untrusted_code(plain: MakeNode) -> None:
    node = plain(untrusted_users=1, unsafe_runner=ACCEPTANCE).start()
    async with node.client() as client:
        assert (await SessionClient(client).run("print(1)")).outcome == Outcome.ok

    assert not seen(node).safe


def test_a_plain_user_has_the_same_walls(strict: tuple[RealSupervisor, Path]) -> None:
    node, _ = strict

    assert seen(node).safe
    assert off(node) <= {"Landlock", "own /proc"}


UNDER_WAY = """
import array, os, socket
pairs, files = [], array.array('i', [os.open('/dev/null', os.O_RDONLY)] * 250)
try:
    while True:
        pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        for _ in range(5): pairs[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
except OSError as e:
    print(e.errno == 109)
"""


async def test_descriptors_that_a_session_leaves_under_way_stop_no_plain_users_supervisor(
    strict: tuple[RealSupervisor, Path],
) -> None:
    node, _ = strict
    async with node.client() as client:
        greedy, neighbour = SessionClient(client), SessionClient(client)

        assert (await greedy.run(UNDER_WAY)).stdout == "True\n"  # ETOOMANYREFS: no more for it
        assert (await neighbour.run("1 + 1")).result == "2"  # a new sandbox: its descriptors come in a message
        assert seen(node).status == "ready"


async def test_each_new_zygote_is_inspected_again(strict: tuple[RealSupervisor, Path]) -> None:
    node, link = strict
    bubblewrap = link.readlink()

    def replace_zygote() -> None:
        before = [zygote.pid for zygote in node.zygotes()]
        node.zygotes()[0].kill()
        node.wait(lambda: seen(node).status == "ready" and [z.pid for z in node.zygotes()] not in ([], before))

    async with node.client() as client:
        assert (await SessionClient(client).run("print(1)")).outcome == Outcome.ok
        link.unlink()
        replace_zygote()
        with pytest.raises(RequestRefused):
            await SessionClient(client).run("print(1)")
        link.symlink_to(bubblewrap)
        replace_zygote()
        assert (await SessionClient(client).run("print(1)")).outcome == Outcome.ok
