"""How many learners may come from one network address."""

from __future__ import annotations

import pytest

from app.runs.errors import AddressLimitReached
from app.runs.ip_limits import ACTIVE_LEARNER_S, AddressLimiter
from app.web.client_network import client_network

SCHOOL, OTHER = "8.8.8.8", "8.8.4.4"


def test_one_learner_too_many_from_an_address_is_refused_and_the_others_go_on() -> None:
    addresses = AddressLimiter(2)
    for visitor in ("a", "b", "a"):
        addresses.admit(SCHOOL, visitor, 0)
    with pytest.raises(AddressLimitReached) as refused:
        addresses.admit(SCHOOL, "c", 1)
    addresses.admit(SCHOOL, "b", 1)
    addresses.admit(OTHER, "c", 1)

    assert "2" in refused.value.localized_message()
    assert refused.value.status == 429


def test_who_has_not_come_for_long_makes_room() -> None:
    addresses = AddressLimiter(2)
    addresses.admit(SCHOOL, "a", 0)
    addresses.admit(SCHOOL, "b", 30)
    addresses.admit(SCHOOL, "c", ACTIVE_LEARNER_S + 1)
    with pytest.raises(AddressLimitReached):
        addresses.admit(SCHOOL, "a", ACTIVE_LEARNER_S + 2)


def test_nobody_is_counted_where_it_is_off_or_the_address_is_not_of_the_internet() -> None:
    for most, address in ((0, SCHOOL), (1, "127.0.0.1"), (1, "172.18.0.1"), (1, None)):
        addresses = AddressLimiter(most)
        for visitor in "abc":
            addresses.admit(address, visitor, 0)


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("8.8.8.8", "8.8.8.8"),
        ("::ffff:8.8.8.8", "8.8.8.8"),
        ("2001:4860:1:2:3:4:5:6", "2001:4860:1:2::/64"),
        ("2001:4860:1:2::9", "2001:4860:1:2::/64"),
        ("192.168.1.7", None),
        ("::1", None),
        ("fe80::1%eth0", None),
        ("::ffff:10.0.0.1", None),
        ("testclient", None),
        ("", None),
        (None, None),
    ],
)
def test_an_address_counts_as_its_network(address: str | None, place: str | None) -> None:
    assert client_network(address) == place
