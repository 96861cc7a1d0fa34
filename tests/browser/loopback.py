"""A network for the browser and its sites alone: nothing but a loopback interface.

Chromium aborts what it loads with ERR_NETWORK_CHANGED whenever an interface of its network comes or goes, as when
somebody starts a container beside the tests. It has no switch for that. In a network of its own, nothing changes.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET"""
_SET_FLAGS = 0x8914
"""SIOCSIFFLAGS"""
_UP = 0x1
_THIS = "/proc/thread-self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True)


class Loopback:
    """Sockets that are made, and processes that are started, inside ``entered`` belong to it.

    Only root may make one; for anybody else it is the machine's network.
    """

    def __init__(self) -> None:
        self._namespace: int | None = None
        if os.geteuid() == 0:
            maker = threading.Thread(target=self._make)  # a thread can leave its network for good
            maker.start()
            maker.join()

    @property
    def own(self) -> bool:
        """Whether it is separate from the machine's network."""
        return self._namespace is not None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Whether the current thread is inside."""
        if self._namespace is None:
            yield
            return
        before = os.open(_THIS, os.O_RDONLY)
        try:
            _checked(_libc.setns(self._namespace, _NEW_NETWORK))
            yield
        finally:
            _checked(_libc.setns(before, _NEW_NETWORK))
            os.close(before)

    def close(self) -> None:
        """Release it; it disappears with its last process and socket."""
        if self._namespace is not None:
            os.close(self._namespace)
            self._namespace = None

    def _make(self) -> None:
        if _libc.unshare(_NEW_NETWORK) != 0:
            return  # a container without the right to: the tests share its network
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
        self._namespace = os.open(_THIS, os.O_RDONLY)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
