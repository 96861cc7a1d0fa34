"""How our cookies are written: HttpOnly except one, SameSite, and under https bound by name to host and TLS. Pure."""

from __future__ import annotations


def browser_cookie_name(name: str, *, secure: bool) -> str:
    """The name as the browser knows it. ``secure``: learners come by https."""
    return f"__Host-{name}" if secure else name


def set_cookie_value(name: str, value: str, max_age_s: int, *, secure: bool, readable: bool = False) -> str:
    """The value of ``Set-Cookie``; ``max_age_s`` of 0 takes the cookie back. ``readable``: by the pages' script too."""
    attributes = f"Path=/; Max-Age={max_age_s}; SameSite=Lax"
    attributes += ("" if readable else "; HttpOnly") + ("; Secure" if secure else "")
    return f"{browser_cookie_name(name, secure=secure)}={value}; {attributes}"
