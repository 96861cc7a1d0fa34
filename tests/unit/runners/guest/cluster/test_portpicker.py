"""The ports for clusters in one process."""

from __future__ import annotations

import socket

import pytest

from runners.guest.cluster import portpicker


def test_no_port_is_given_twice_although_nobody_listens_yet() -> None:
    ports = [portpicker.pick_unused_port() for _ in range(1_000)]
    assert len(set(ports)) == len(ports)
    assert max(ports) <= 20_000, "the system may give others to connections, and task processes listen on others"


def test_a_port_on_which_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(portpicker, "_PORTS", [port, portpicker.pick_unused_port()])
        monkeypatch.setattr(portpicker, "_given", set())
        assert portpicker.pick_unused_port() != port
