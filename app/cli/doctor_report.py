"""Formats the findings of ``lockstep doctor`` as text for people or as JSON for programs. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.console import USAGE_ERROR
from runners.wire.protocol import Capability, Health, LibraryPatches, Safeguard

if TYPE_CHECKING:  # an invalid setting is reported before a database is loaded
    from app.health.checks import HealthCheck

NOT_WORKING, NOT_SAFE = 1, 3
_WIDTH = 80
_INDENT = 30
_RUNNING_NOTE = (
    "These are the limits of the runner that is already running at {}. "
    "Settings of this shell take effect the next time you start it from here."
)
_DIFFERING_NOTE = " It has {}."


@dataclass(frozen=True, slots=True)
class DoctorReport:
    settings: dict[str, str]
    checks: list[HealthCheck]
    capabilities: list[Capability]
    health: Health | None
    running: Path | None = None
    """The socket of the runner, if it was already running."""
    unusable: tuple[str, ...] = ()
    """A sentence about each invalid setting of this shell; if there are any, nothing was checked."""
    differing: tuple[str, ...] = ()
    """Settings of the running runner that differ from this shell's, each with both values."""
    patches: LibraryPatches = LibraryPatches()  # noqa: RUF009 - it never changes

    operation: tuple[HealthCheck, ...] = ()
    """What an operator has to keep an eye on; it does not change the status."""

    @property
    def safeguards(self) -> list[Safeguard]:
        """Isolation layers and limits; empty if no sandbox was created."""
        return self.health.safeguards if self.health else []

    @property
    def missing(self) -> list[str]:
        """Parts without which Lockstep does not work."""
        return [check.name for check in self.checks if not check.ok] + (["patches"] if self.patches.moved else [])

    @property
    def gaps(self) -> list[str]:
        """Isolation layers and limits without which untrusted code is not safe to run."""
        return [safeguard.name for safeguard in self.safeguards if safeguard.is_gap]

    @property
    def status(self) -> int:
        if self.unusable:
            return USAGE_ERROR
        if self.missing:
            return NOT_WORKING
        return NOT_SAFE if self.gaps else 0


def to_json(findings: DoctorReport) -> str:
    """Everything as one JSON object."""
    health = findings.health
    told = {
        "status": findings.status,
        "safe": bool(health and health.safe),
        "untrusted_users": bool(health and health.untrusted_users),
        "refuses": health.refuses if health else "",
        "settings": findings.settings,
        "unusable_settings": findings.unusable,
        "runner_already_running": findings.running is not None,
        "differing_settings": findings.differing,
        "checks": [asdict(check) for check in findings.checks],
        "operation": [asdict(check) for check in findings.operation],
        "machine": [capability.model_dump() for capability in findings.capabilities],
        "safeguards": [safeguard.model_dump() for safeguard in findings.safeguards],
        "patches": [patch.model_dump() for patch in findings.patches.patches],
    }
    return json.dumps(told, indent=2)


def to_text(findings: DoctorReport) -> Iterator[str]:
    """Everything as lines of at most 80 characters, except long paths and settings."""
    if findings.unusable:
        yield from ("Invalid settings:", *findings.unusable)
        return
    yield "This installation"
    for name, value in findings.settings.items():
        yield from _row("", name, value)
    yield from ("", "The machine")
    for capability in findings.capabilities:
        yield from _row(
            "ok" if capability.good else "no",
            capability.name,
            capability.detail,
            "" if capability.good else capability.means,
        )
    if not findings.capabilities:
        yield "  Unknown: this part of Lockstep is not installed here."
    for kind, title in (("isolation", "Isolation layers around learners' code"), ("limit", "Limits on learners' code")):
        yield from ("", title)
        for safeguard in (safeguard for safeguard in findings.safeguards if safeguard.kind == kind):
            mark = "on" if safeguard.in_force else "missing" if safeguard.essential and kind == "isolation" else "off"
            yield from _row(mark, safeguard.name, safeguard.detail, "" if safeguard.in_force else safeguard.means)
        if not findings.safeguards:
            yield "  Unknown: no sandbox was created."
    yield from ("", "Patches of TensorFlow and other libraries")
    yield from _patches(findings.patches)
    if findings.running is not None:
        others = _DIFFERING_NOTE.format(", ".join(findings.differing)) if findings.differing else ""
        yield from ("", *textwrap.wrap(_RUNNING_NOTE.format(findings.running) + others, _WIDTH, break_long_words=False))
    yield from ("", "Components")
    for check in findings.checks:
        yield from _row("ok" if check.ok else "missing", check.name, check.detail)
    if findings.operation:
        yield from ("", "Operation")
    for check in findings.operation:
        yield from _row("ok" if check.ok else "look", check.name, check.detail)
    yield from ("", *textwrap.wrap(_verdict(findings), _WIDTH))


def _patches(patches: LibraryPatches) -> Iterator[str]:
    """A row for each subject: when it applies and what it replaces, or which targets have moved."""
    for subject in dict.fromkeys(patch.subject for patch in patches.patches):
        of_subject = [patch for patch in patches.patches if patch.subject == subject]
        replaced = dict.fromkeys(_short(patch.target) for patch in of_subject if patch.changes)
        detail = f"{of_subject[0].when}: {', '.join(replaced) or 'nothing replaced, only relied on'}"
        problems = " ".join(patch.problem for patch in of_subject if patch.problem)
        loaded = any(patch.state != "not loaded" for patch in of_subject)
        yield from _row("moved" if problems else "ok" if loaded else "later", subject, detail, problems)
    if not patches.patches:
        yield "  Unknown: no zygote was started."


def _short(target: str) -> str:
    """A target without its module, and without its class if both do not fit in the last column."""
    name = target.partition(":")[2]
    return name if len(name) < _WIDTH - _INDENT else name.rpartition(".")[2]


def _verdict(findings: DoctorReport) -> str:
    if findings.missing:
        return f"Lockstep does not work in this state. Missing: {', '.join(findings.missing)}."
    if findings.gaps:
        refused = "refuses to run it" if findings.health and findings.health.refuses else "is only for people you trust"
        missing = ", ".join(findings.gaps)
        return f"Code from untrusted users is not safe here, and this runner {refused}. Missing: {missing}."
    return "All is well. Every isolation layer and limit that untrusted code needs is in force."


def _row(mark: str, name: str, detail: str, means: str = "") -> Iterator[str]:
    """A line of three columns; long text wraps in the third one."""
    column = textwrap.TextWrapper(_WIDTH - _INDENT, break_long_words=False, break_on_hyphens=False)
    lines = [*column.wrap(detail), *column.wrap(means)] or [""]
    yield f"  {mark:<8}{name:<{_INDENT - 10}}{lines[0]}".rstrip()
    yield from (" " * _INDENT + line for line in lines[1:])
