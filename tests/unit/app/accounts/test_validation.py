"""Valid email addresses and names."""

from __future__ import annotations

import pytest

from app.accounts.validation import email_key, normalize_email, normalize_name


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (" ada@example.org ", "ada@example.org"),
        ("Ada@EXAMPLE.org", "Ada@example.org"),
        ("ada@b\u00fccher.example", "ada@xn--bcher-kva.example"),
        ("\ud55c\uae00@example.org", None),
        ("ada", None),
        ("", None),
        ("ada@@example.org", None),
        ("ada@example.org\0", None),
        ("ada@example.org\nbcc: eve@example.org", None),
        ("a" * 400 + "@example.org", None),
    ],
)
def test_an_address_is_read_as_mail_reads_it(typed: str, read: str | None) -> None:
    assert normalize_email(typed) == read


def test_a_text_as_long_as_a_form_may_be_is_no_address_and_never_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("app.accounts.validation.validate_email")  # it takes seconds for this
    assert normalize_email("\u0301" * 400_000 + "@example.org") is None


def test_an_address_has_one_key_however_it_is_written() -> None:
    assert email_key("Ada@Example.ORG") == email_key("ada@example.org")


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("  Ada   Byron ", "Ada Byron"),
        ("김하나", "김하나"),
        ("", None),
        ("...", None),
        ("a\u202eb", None),
        ("a\0b", None),
        ("Nguy\u1ec5n V\u0103n \u00c1nh", "Nguy\u1ec5n V\u0103n \u00c1nh"),
        ("a" + "\u0335" * 5, None),
        ("\u3164", None),
        ("Ada\u115f\u1160", None),
        ("Ada\U000e0041", None),
        ("Ada\u00ad", None),
    ],
)
def test_a_name_is_one_readable_line(typed: str, read: str | None) -> None:
    assert normalize_name(typed) == read
    assert normalize_name("x" * 81) is None
    assert normalize_name(f"Ada{' ' * 900}Lovelace") == "Ada Lovelace"


def test_a_very_long_name_is_refused_as_it_was_typed() -> None:
    """Normalizing a megabyte takes a tenth of a second, in which nobody else is served."""
    assert normalize_name(f"Ada{' ' * 1000}Lovelace") is None
