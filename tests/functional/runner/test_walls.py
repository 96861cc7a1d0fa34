"""Which walls a real supervisor finds around its sandboxes, and what it refuses where one is missing."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.client import Refused, RunnerClient
from runners.protocol import Health, Outcome
from runners.settings import ACCEPTANCE
from tests.factories.node import Learner, Node
from tests.factories.plain import as_plain_user

UID = 62_000 + os.getpid() % 900
MakeNode = Callable[..., Node]


@pytest.fixture
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeNode]:
    """Makes nodes that a plain user starts; ``tools`` is the only folder where programs are found."""
    made = []

    def make(tools: Path, before: tuple[str, ...] = (), **settings: Any) -> Node:
        node = Node((*before, *as_plain_user(UID), "env", f"PATH={tools}"), **({"warm_kernels": 0} | settings))
        if os.geteuid() == 0:
            for folder in (node.folder, node.data, node.temporary):
                os.chown(folder, UID, UID)
        made.append(node)
        return node

    yield make
    for node in made:
        node.remove()


@pytest.fixture
def tools() -> Iterator[Path]:
    """A folder with bubblewrap in it, and nothing else."""
    bubblewrap = shutil.which("bwrap")
    if not bubblewrap:
        pytest.skip("bubblewrap is not here")
    with tempfile.TemporaryDirectory(prefix="ls-tools-") as folder:
        Path(folder).chmod(0o755)
        Path(folder, "bwrap").symlink_to(bubblewrap)
        yield Path(folder)


TWICE_THE_LIMIT = """
import os
held = []
piece = bytes(8 << 20)
for i in range(16):
    held.append(os.memfd_create(str(i)))
    for _ in range(1024 // 16 // 8):
        os.write(held[-1], piece)
print(sum(os.fstat(fd).st_size for fd in held) >> 20, "MiB held")
for fd in held:
    os.close(fd)
"""


def seen(node: Node) -> Health:
    return Health.model_validate(node.health())


def off(node: Node) -> set[str]:
    return {wall.name for wall in seen(node).walls if not wall.in_force}


def test_every_essential_wall_is_seen_around_a_real_sandbox(node: Node) -> None:
    health = seen(node)

    assert health.safe
    assert off(node) <= {"Landlock", "CPU share", "own /proc"}
    assert {wall.kind for wall in health.walls} == {"wall", "limit"}
    assert (health.strangers, health.refuses) == (False, "")


def test_without_cgroups_and_with_a_covered_proc_it_says_what_holds_instead(bare: Node) -> None:
    walls = {wall.name: wall for wall in seen(bare).walls}

    assert not seen(bare).safe
    assert off(bare) - {"Landlock"} == {"own /proc", "memory", "CPU share"}
    assert walls["processes"].detail == "128 in a session; RLIMIT_NPROC"
    assert walls["memory"].detail == "only watched; memfd, sockets and page tables escape"
    warnings = [line for line in bare.log.read_text().splitlines() if "limit missing: memory" in line]
    assert len(warnings) == 1


async def test_where_memory_is_only_watched_memory_in_a_memfd_is_not_counted_and_strangers_code_runs(
    bare: Node,
) -> None:
    async with RunnerClient(bare.socket, strangers=True) as web:
        learner = Learner(web)
        told = await learner.run(TWICE_THE_LIMIT)
        await learner.leave()

    assert (told.outcome, told.stdout) == (Outcome.ok, "1024 MiB held\n")  # of 512; with a cgroup it ends with memory
    assert seen(bare).strangers
    assert seen(bare).refuses == ""


def test_a_plain_user_has_the_same_walls(plain: MakeNode, tools: Path) -> None:
    node = plain(tools).start()

    assert seen(node).safe is ("memory" not in off(node))
    assert off(node) <= {"Landlock", "memory", "CPU share", "own /proc"}


async def test_it_says_what_its_machine_offers(node: Node) -> None:
    async with node.client() as client:
        offers = {offer.name: offer for offer in (await client.machine()).offers}

    assert offers["kernel"].good
    assert offers["user namespaces"].good
    assert "tensorflow 2" in offers["Python"].detail


async def test_strangers_code_is_refused_without_the_outer_wall(plain: MakeNode, tools: Path) -> None:
    (tools / "bwrap").unlink()
    node = plain(tools, strangers=1, warm_kernels=1).start(warm=False)
    async with node.client() as client:
        learner = Learner(client)
        with pytest.raises(Refused) as run:
            await learner.run("print(1)")
        with pytest.raises(Refused) as session:
            await client.ask_session(learner.session, learner.spec)

    assert [(e.value.status, e.value.refusal.code) for e in (run, session)] == [(403, "unsafe")] * 2
    assert not seen(node).safe
    assert seen(node).refuses.endswith("Missing: outer wall.")
    log = node.log.read_text()
    assert "apt-get install bubblewrap" in log
    assert "pool cannot be filled" not in log
    assert node.folders() == [folder for folder in node.folders() if not list(folder.iterdir())]


async def test_who_tells_of_strangers_makes_it_as_strict_as_one_started_so(plain: MakeNode, tools: Path) -> None:
    (tools / "bwrap").unlink()
    node = plain(tools, warm_kernels=1).start()
    async with node.client() as trusted, RunnerClient(node.socket, strangers=True) as web:
        mine = Learner(trusted)
        assert (await mine.run("print(1)")).outcome == Outcome.ok
        for learner in (Learner(web), mine):
            with pytest.raises(Refused) as run:
                await learner.run("print(1)")
            assert (run.value.status, run.value.refusal.code) == (403, "unsafe")

    assert seen(node).strangers
    assert seen(node).refuses.endswith("Missing: outer wall.")
    assert "learners' code is refused" in node.log.read_text()


async def test_it_hears_of_strangers_while_it_starts(plain: MakeNode, tools: Path) -> None:
    (tools / "bwrap").unlink()
    node = plain(tools)
    node.launch()
    async with RunnerClient(node.socket, strangers=True) as web:
        node.wait(node.health)
        outcome = None
        with contextlib.suppress(Refused):  # or it is taken, before anybody has looked at the walls, and does not run
            outcome = (await Learner(web).run("print(1)")).outcome

    assert outcome != Outcome.ok
    assert seen(node).refuses


async def test_people_one_trusts_run_code_without_the_outer_wall(plain: MakeNode, tools: Path) -> None:
    (tools / "bwrap").unlink()
    node = plain(tools).start()
    async with node.client() as client:
        assert (await Learner(client).run("print(1)")).stdout == "1\n"


async def test_who_accepts_it_in_so_many_words_runs_strangers_code(plain: MakeNode, tools: Path) -> None:
    (tools / "bwrap").unlink()
    node = plain(tools, strangers=1, unsafe_runner=ACCEPTANCE).start()
    async with node.client() as client:
        assert (await Learner(client).run("print(1)")).outcome == Outcome.ok

    assert not seen(node).safe


async def test_a_new_zygote_is_looked_at_anew(plain: MakeNode, tools: Path) -> None:
    node = plain(tools, strangers=1).start()
    bubblewrap = (tools / "bwrap").readlink()

    def replace_zygote() -> None:
        before = [zygote.pid for zygote in node.zygotes()]
        node.zygotes()[0].kill()
        node.wait(lambda: seen(node).status == "ready" and [z.pid for z in node.zygotes()] not in ([], before))

    async with node.client() as client:
        assert (await Learner(client).run("print(1)")).outcome == Outcome.ok
        (tools / "bwrap").unlink()
        replace_zygote()
        with pytest.raises(Refused):
            await Learner(client).run("print(1)")
        (tools / "bwrap").symlink_to(bubblewrap)
        replace_zygote()
        assert (await Learner(client).run("print(1)")).outcome == Outcome.ok


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


async def test_descriptors_that_a_session_leaves_under_way_do_not_keep_a_plain_users_supervisor_from_sending_its_own(
    plain: MakeNode, tools: Path
) -> None:
    if not shutil.which("prlimit"):
        pytest.skip("prlimit is not here")
    node = plain(tools, ("prlimit", "--nofile=1024:16384")).start()
    async with node.client() as client:
        greedy, neighbour = Learner(client), Learner(client)

        assert (await greedy.run(UNDER_WAY)).stdout == "True\n"  # ETOOMANYREFS: no more for it
        assert (await neighbour.run("1 + 1")).result == "2"  # a new sandbox: its descriptors come in a message
        assert seen(node).status == "ready"
