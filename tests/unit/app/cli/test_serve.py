"""When ``lockstep serve`` shows its address."""

from __future__ import annotations

import socket
import threading

import pytest

from app.cli.serve import call_when_ready

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def listening(host: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_an_address_is_shown_after_its_first_response(host: str) -> None:
    order: list[str] = []
    with listening(host) as listener:
        herald = call_when_ready(listener, lambda: order.append("told"))
        connection, _ = listener.accept()
        with connection:
            connection.recv(10_000)
            order.append("answered")
            connection.sendall(ANSWER)
        herald.join(30)

    assert order == ["answered", "told"]


def test_an_address_that_never_responds_is_not_shown() -> None:
    told = threading.Event()
    with listening("127.0.0.1") as listener:
        herald = call_when_ready(listener, told.set)
        connection, _ = listener.accept()
        connection.close()
        herald.join(30)

    assert not herald.is_alive()
    assert not told.is_set()
