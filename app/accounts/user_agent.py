"""A readable name for a browser, from its User-Agent header. Pure."""

from __future__ import annotations

from app.i18n import gettext

_BROWSERS = (("Edg", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
"""In this order: the User-Agent of each may also contain the marks of those after it."""
_OPERATING_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def describe_browser(agent: str) -> str:
    """``Firefox on Linux``; the start of the header if the browser is unknown."""
    browser = next((name for sign, name in _BROWSERS if sign in agent), "")
    system = next((name for sign, name in _OPERATING_SYSTEMS if sign in agent), "")
    if browser and system:
        return gettext("{browser} on {system}").format(browser=browser, system=system)
    return browser or agent[:60] or gettext("Unknown browser")
