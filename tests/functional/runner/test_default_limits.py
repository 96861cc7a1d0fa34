"""Ordinary programs that need a lot at once, on a node with the default limits: no false alarms."""

from __future__ import annotations

import pytest

from runners.wire.protocol import ReachedLimit
from tests.factories.real_supervisor import SessionClient

BURSTS = {
    "3 MB of text": "for _ in range(30_000): print('x' * 99)",
    "20 plots": (
        "import matplotlib.pyplot as plt\n"
        "for n in range(20):\n    plt.plot(range(n + 2)); plt.title(str(n)); plt.show()"
    ),
    "a large picture": (
        "import os, base64\nfrom IPython.display import Image, display\n"
        "display({'image/png': base64.b64encode(os.urandom(2_500_000)).decode()}, raw=True)"
    ),
    "900 open files": "kept = [open('/dev/null') for _ in range(900)]",
    "400 sockets": (
        "import socket\nserver = socket.create_server(('127.0.0.1', 0))\nkept = []\n"
        "for _ in range(200): kept += [socket.create_connection(server.getsockname()), server.accept()]\n"
        "kept += [socket.socketpair() for _ in range(250)]"
    ),
    "400 threads": (
        "import threading\ngo = threading.Event()\n"
        "kept = [threading.Thread(target=go.wait) for _ in range(400)]\n"
        "for t in kept: t.start()\ngo.set()\nfor t in kept: t.join()"
    ),
    "30,000 files": "for n in range(30_000): open(f'/tmp/{n}', 'w').close()",
    "a file of 500 MB": "with open('/tmp/x', 'wb') as f:\n    for _ in range(500): f.write(bytes(2**20))",
    "1.2 GB of memory": "import numpy as np\nx = np.ones(150_000_000)",
}


@pytest.mark.long
@pytest.mark.parametrize("code", BURSTS.values(), ids=BURSTS)
async def test_a_burst_below_the_limit_is_no_alarm(learner: SessionClient, code: str) -> None:
    told = await learner.run(code)
    assert (told.outcome, told.finished.limit) == ("ok", None), told.events[-2:]
    assert not [e for e in told.events if e.kind == "notice"]


UNCOUNTED = {
    "answers of netlink that nobody reads": """
import socket, struct
for number in range(700):
    one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); kept.append(one)
    one.send(struct.pack('IHHII', 1016, 0x7FF0, 1, 1, 0) + bytes(1000))
""",
    "sent packets with the time, in sockets of no table": """
import ctypes, socket, struct
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); receiver.bind(('127.0.0.1', 0))
for number in range(700):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); kept.append(one)
    one.sendmsg([bytes(1000)], [(socket.SOL_SOCKET, 37, struct.pack('I', 2))], 0, receiver.getsockname())
    ctypes.CDLL(None).connect(one.fileno(), bytes(16), 16)
""",
    "sockets among Unix sockets whose names look like many": """
import os, socket
for number in range(20):
    one = socket.socket(socket.AF_UNIX); kept.append(one); one.bind((b"\\0%d" % number).ljust(108, b"\\n"))
kept += [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) for number in range(700)]
""",
    "connections that nobody accepts": """
import socket
server = socket.create_server(('127.0.0.1', 0), backlog=1000)
for number in range(700): socket.create_connection(server.getsockname()).close()
""",
}


@pytest.mark.parametrize("code", UNCOUNTED.values(), ids=UNCOUNTED)
async def test_sockets_whose_content_is_in_nobodys_memory_are_limited(learner: SessionClient, code: str) -> None:
    told = await learner.run(f"kept = []{code}import time; time.sleep(50)")
    assert told.finished.limit == ReachedLimit(name="sockets", value=512, unit="count"), told.text
    assert told.outcome == "files"
