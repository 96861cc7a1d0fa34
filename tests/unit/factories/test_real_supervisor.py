"""Numbers that processes of tests have for themselves."""

from __future__ import annotations

from tests.factories.real_supervisor import claim_number


def test_a_number_that_is_claimed_is_not_given_again() -> None:
    assert claim_number() != claim_number()
