"""The runbook names alerts and log lines that exist, and answers the same questions about each emergency."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

_TEXT = Path("docs/operate/runbook.md").read_text()
_SECTIONS = re.split(r"^## ", _TEXT, flags=re.MULTILINE)[1:]
_LOG_LINES = re.findall(r"`((?!docker|lockstep)[a-z]+(?: [a-z:]+){2,})`", _TEXT)
_SOURCE = "\n".join(path.read_text() for folder in ("app", "runners") for path in Path(folder).rglob("*.py"))


def test_the_alerts_that_it_names_exist() -> None:
    rules = yaml.safe_load(Path("docs/operate/prometheus/alerts.yml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    named = set(re.findall(r"`(Lockstep[A-Z]\w+)`", _TEXT))

    assert named
    assert named <= alerts


def test_it_names_some_log_lines() -> None:
    assert len(_LOG_LINES) >= 4


@pytest.mark.parametrize("line", sorted(set(_LOG_LINES)))
def test_the_log_has_a_line_that_it_names(line: str) -> None:
    assert line in _SOURCE


@pytest.mark.parametrize("section", _SECTIONS, ids=lambda section: section.partition("\n")[0])
def test_each_emergency_has_signs_commands_an_end_and_an_afterward(section: str) -> None:
    assert "**How you notice.**" in section
    assert "**What to do.**" in section
    assert "```sh\n" in section
    assert "**It is over** when" in section
    assert "**Afterward.**" in section
