"""What a learner may do to one process of a session's cluster, and the words for it. Pure but for ``inject``."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from app.i18n import N_, gettext, number
from app.runs.machines import Machine
from app.runs.service import session_id
from app.web.drawing import lane_colour
from runners.client import NotKnown, Refused, RunnerClient, RunnerUnavailable
from runners.protocol import Fault, Member, SessionInfo, SessionState, Topology

Action = Literal["kill", "pause", "resume", "slow", "restart", "disarm"]

_ACTIONS: dict[str, tuple[Action, ...]] = {
    "starting": (),
    "running": ("kill", "pause", "slow"),
    "paused": ("kill", "resume"),
    "slow": ("kill", "resume"),
    "ended": ("restart",),
}
"""By a member's state."""
_BUTTONS: dict[Action, str] = {
    "kill": N_("Kill"),
    "pause": N_("Pause"),
    "resume": N_("Resume"),
    "slow": N_("Slow"),
    "restart": N_("Start again"),
    "disarm": N_("Take back"),
}
_NOW: dict[Action, str] = {
    "kill": N_("Kill now"),
    "pause": N_("Pause now"),
    "slow": N_("Slow down now"),
}
"""In place of a step that never comes."""
_ARMED: dict[Action, str] = {
    "kill": N_("Will be killed at step {step}."),
    "pause": N_("Will be paused at step {step}."),
    "slow": N_("Will be slowed down at step {step}."),
}
_UNCOUNTED = N_("No step is counted yet: only fit, train_on_batch and lockstep.log count steps.")
_STATES = {
    "starting": N_("starting"),
    "running": N_("running"),
    "paused": N_("paused"),
    "slow": N_("slowed down"),
    "ended": N_("ended"),
}
_REFUSALS = {
    "no-cluster": N_("This machine is one process; only those of a cluster can be killed, paused or slowed down."),
    "unknown-task": N_("There is no such process on this machine."),
    "not-started": N_("{task} is not there yet; run a cell first."),
    "own-process": N_("{task} is the process of the page itself: restart the session."),
    "still-running": N_("{task} has not ended."),
    "has-ended": N_("{task} has ended; start it again first."),
    "counts-no-steps": N_("{task} serves the coordinator and counts no steps, so that step never comes."),
    "step-passed": N_("{task} is past that step already. Choose a later step."),
    "not-armed": N_("There is nothing to take back: {task} reached that step, or it was taken back before."),
}
"""By the supervisor's code."""
_NEVER_COMES = ("counts-no-steps", "step-passed")
_DONE: dict[Action, str] = {
    "kill": N_("{task} was killed."),
    "pause": N_("{task} was paused."),
    "resume": N_("{task} goes on."),
    "slow": N_("{task} was slowed down."),
    "restart": N_("{task} starts again."),
    "disarm": N_("Taken back: {task} goes on undisturbed."),
}
_TO_COME: dict[Action, str] = {
    "kill": N_("{task} will be killed at step {step}."),
    "pause": N_("{task} will be paused at step {step}."),
    "slow": N_("{task} will be slowed down at step {step}."),
}
"""What can wait for a step: one that stands still reaches none."""


@dataclass(frozen=True, slots=True)
class Button:
    """One thing that may be done."""

    action: Action
    words: str
    label: str
    """The same with the name of the process."""


@dataclass(frozen=True, slots=True)
class ArmedView:
    """What waits for a step of a process."""

    words: str
    progress: str
    """How far the process is."""
    buttons: tuple[Button, ...]
    """To do it now, and to take it back."""


@dataclass(frozen=True, slots=True)
class MemberView:
    """One process of a cluster on the session panel."""

    task: str
    colour: str
    """The class of its lane's colour."""
    state: str
    words: str
    address: str
    buttons: tuple[Button, ...]
    armed: ArmedView | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a fault that a learner asked for."""

    said: str
    key: str = ""
    """``key_of`` the session as the fault left it: once the panel has another one, the answer is of the past."""
    now: Button | None = None
    """Where a step never comes: to do it at once instead."""


def key_of(info: SessionInfo) -> str:
    """Changes with every change of a session's processes that a learner can see, apart from their steps."""
    members = (f"{each.task} {each.state} {each.armed}" for each in info.members)
    return sha256("\n".join((str(info.generation), *members)).encode()).hexdigest()[:12]


def members_of(info: SessionInfo) -> tuple[MemberView, ...]:
    """The processes of a session's cluster, as the panel lists them."""
    topology, alive = Topology.parse(info.topology), info.state in (SessionState.idle, SessionState.busy)
    return tuple(_member(topology, member) for member in info.members) if alive else ()


def _member(topology: Topology, member: Member) -> MemberView:
    own = topology.tasks[:1] and member.task == topology.tasks[0].lane  # restarting the session starts it again
    actions = [action for action in _ACTIONS[member.state] if not (own and action == "restart")]
    return MemberView(
        task=member.task,
        colour=lane_colour(topology, member.task),
        state=member.state,
        words=gettext(_STATES[member.state]),
        address=member.address,
        buttons=tuple(_button(action, member.task) for action in actions),
        armed=_armed(member),
    )


def _armed(member: Member) -> ArmedView | None:
    if member.armed is None:
        return None
    step = member.step
    return ArmedView(
        words=gettext(_ARMED[member.armed.action]).format(step=number(member.armed.at_step)),
        progress=gettext(_UNCOUNTED) if step is None else gettext("It is at step {step}.").format(step=number(step)),
        buttons=(_now(member.armed.action, member.task), _button("disarm", member.task)),
    )


def _now(action: Action, task: str) -> Button:
    words = gettext(_NOW[action])
    return Button(action, words, f"{words}: {task}")


def _button(action: Action, task: str) -> Button:
    words = gettext(_BUTTONS[action])
    return Button(action, words, f"{words}: {task}")


async def inject(runner: RunnerClient, learner: str | None, lesson: str, machine: Machine, fault: Fault) -> Answer:
    """Do it to the learner's own session on that machine; the answer says what was done, or why it was not."""
    if fault.action not in _TO_COME:
        fault = fault.model_copy(update={"at_step": None})
    try:
        info = await runner.fault(session_id(learner or "", lesson, machine), fault)
    except NotKnown:
        return Answer(gettext("There is no such session any more."))
    except Refused as e:
        words = _REFUSALS.get(e.refusal.code, N_("This was not done: {reason}"))
        said = gettext(words).format(task=fault.task, reason=e.refusal.message)
        return Answer(said, now=_now(fault.action, fault.task) if e.refusal.code in _NEVER_COMES else None)
    except RunnerUnavailable:
        return Answer(gettext("The runner is starting or not reachable. Nothing was done; try again in a moment."))
    if fault.at_step is not None:
        said = gettext(_TO_COME[fault.action]).format(task=fault.task, step=number(fault.at_step))
    else:
        said = gettext(_DONE[fault.action]).format(task=fault.task)
    return Answer(said, key_of(info))
