"""Turning site switches on and off, with an entry in the audit log."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from app.admin.audit import Actor, AuditAction, record_action
from app.site_switches import Switch, turn

_ACTIONS = {
    (Switch.maintenance, True): AuditAction.maintenance_on,
    (Switch.maintenance, False): AuditAction.maintenance_off,
    (Switch.drain, True): AuditAction.drain_on,
    (Switch.drain, False): AuditAction.drain_off,
}


async def turn_switch(session: AsyncSession, actor: Actor, switch: Switch, *, on: bool) -> None:
    """Turn a switch on or off; there is no entry if it was so already."""
    if await turn(session, switch, on=on):
        await record_action(session, actor, _ACTIONS[switch, on])
