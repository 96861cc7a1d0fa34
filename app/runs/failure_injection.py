"""Failure injection: what a learner can do to a process of a cluster. Pure, except for ``inject_failure``."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from app.i18n import N_, gettext, number
from app.runs.machines import Machine
from app.runs.service import session_id
from app.web.topology_icon import lane_color
from runners.wire.client import RequestRefused, ResourceNotFound, RunnerClient, RunnerUnavailable
from runners.wire.protocol import ClusterMember, InjectedFailure, SessionInfo, SessionState, Topology

ProcessAction = Literal["kill", "pause", "resume", "slow", "restart", "cancel"]

_ACTIONS_BY_STATE: dict[str, tuple[ProcessAction, ...]] = {
    "starting": (),
    "running": ("kill", "pause", "slow"),
    "paused": ("kill", "resume"),
    "slow": ("kill", "resume"),
    "ended": ("restart", "kill", "pause", "slow"),
}
"""Actions by the member's state, including those that need a step of the next run (see ``ActionButton``)."""
_BUTTON_LABELS: dict[ProcessAction, str] = {
    "kill": N_("Kill"),
    "pause": N_("Pause"),
    "resume": N_("Resume"),
    "slow": N_("Slow"),
    "restart": N_("Start again"),
    "cancel": N_("Cancel"),
}
_IMMEDIATE_LABELS: dict[ProcessAction, str] = {
    "kill": N_("Kill now"),
    "pause": N_("Pause now"),
    "slow": N_("Slow down now"),
}
"""Offered instead, if the step will never be reached."""
_PENDING_MESSAGES: dict[ProcessAction, str] = {
    "kill": N_("Will be killed at step {step}."),
    "pause": N_("Will be paused at step {step}."),
    "slow": N_("Will be slowed down at step {step}."),
}
_STEPS_NOT_COUNTED = N_("No steps counted yet: only fit, train_on_batch, and lockstep.log count steps.")
_STEPS_OF_NEXT_RUN = N_("The steps of the next run count: those of fit, train_on_batch, and lockstep.log.")
_STEPS_AFTER_START = N_("It has ended. The next run starts it again; the steps of that run count.")
_STATE_LABELS = {
    "starting": N_("starting"),
    "running": N_("running"),
    "paused": N_("paused"),
    "slow": N_("slowed down"),
    "ended": N_("ended"),
}
_REFUSAL_MESSAGES = {
    "no-cluster": N_(
        "This machine is a single process. You can kill, pause, or slow down only the processes of a cluster."
    ),
    "unknown-task": N_("This machine has no such process."),
    "not-started": N_("{task} does not exist yet; run a cell first."),
    "own-process": N_("{task} is the session's own process. Restart the session instead."),
    "still-running": N_("{task} has not ended."),
    "has-ended": N_("{task} has ended. Start it again, or enter a step of the next run."),
    "counts-no-steps": N_("{task} serves the coordinator and counts no steps, so it never reaches that step."),
    "step-passed": N_("{task} has already passed that step. Choose a later step."),
    "not-scheduled": N_("There is nothing to cancel: {task} reached that step, or this was canceled before."),
}
"""By the supervisor's refusal code."""
_UNREACHABLE_STEP_CODES = ("counts-no-steps", "step-passed")
_DONE_MESSAGES: dict[ProcessAction, str] = {
    "kill": N_("{task} was killed."),
    "pause": N_("{task} was paused."),
    "resume": N_("{task} continues."),
    "slow": N_("{task} was slowed down to a tenth of its speed."),
    "restart": N_("{task} was started again."),
    "cancel": N_("Canceled: nothing will happen to {task}."),
}
_SCHEDULED_MESSAGES: dict[ProcessAction, str] = {
    "kill": N_("{task} will be killed at step {step}."),
    "pause": N_("{task} will be paused at step {step}."),
    "slow": N_("{task} will be slowed down at step {step}."),
}
"""The actions that can wait for a step. The others act on stopped processes, which reach no step."""


@dataclass(frozen=True, slots=True)
class ActionButton:
    action: ProcessAction
    words: str
    label: str
    """``words`` with the name of the process."""
    needs_step: bool = False
    """Whether it needs a step of the next run, because the process has ended."""


@dataclass(frozen=True, slots=True)
class PendingFailureView:
    """A failure that waits for a step of a process."""

    words: str
    progress: str
    """The step that the process has reached."""
    buttons: tuple[ActionButton, ...]
    """To inject the failure now, or to cancel it."""
    chip: ActionButton
    """The whole failure in a sentence; pressing it cancels the failure."""


@dataclass(frozen=True, slots=True)
class ClusterMemberView:
    """A process of a cluster, on the session panel."""

    task: str
    color: str
    """The CSS class of its lane's color."""
    state: str
    words: str
    address: str
    buttons: tuple[ActionButton, ...]
    scheduled: PendingFailureView | None = None

    @property
    def is_worker(self) -> bool:
        """Whether it trains as one of the workers, of which one may be the chief."""
        return self.task.startswith(("worker", "chief"))


@dataclass(frozen=True, slots=True)
class InjectionResult:
    """The result of a failure that a learner injected."""

    said: str
    key: str = ""
    """The session's ``state_key`` afterwards. Once the panel has another key, the message is out of date."""
    now: ActionButton | None = None
    """If the step will never be reached: a button to inject the failure now."""


def state_key(info: SessionInfo) -> str:
    """Changes whenever the visible state of a session's processes changes, except for their steps."""
    members = (f"{each.task} {each.state} {each.scheduled}" for each in info.members)
    return sha256("\n".join((str(info.generation), *members)).encode()).hexdigest()[:12]


def cluster_members(info: SessionInfo) -> tuple[ClusterMemberView, ...]:
    """The processes of a session's cluster, for the panel."""
    topology, alive = Topology.parse(info.topology), info.state in (SessionState.idle, SessionState.busy)
    busy = info.state is SessionState.busy
    return tuple(_member_view(topology, member, busy=busy) for member in info.members) if alive else ()


def _member_view(topology: Topology, member: ClusterMember, *, busy: bool) -> ClusterMemberView:
    ended = member.state == "ended"
    own = topology.tasks[:1] and member.task == topology.tasks[0].lane  # only restarting the session restarts it
    actions = () if ended and own else _ACTIONS_BY_STATE[member.state]
    buttons = [_action_button(action, member.task, needs_step=ended and action != "restart") for action in actions]
    return ClusterMemberView(
        task=member.task,
        color=lane_color(topology, member.task),
        state=member.state,
        words=gettext(_STATE_LABELS[member.state]),
        address=member.address,
        buttons=tuple(button for button in buttons if not (button.needs_step and member.serves)),
        scheduled=_pending_failure_view(member, busy=busy),
    )


def _pending_failure_view(member: ClusterMember, *, busy: bool) -> PendingFailureView | None:
    if member.scheduled is None:
        return None
    at_step = number(member.scheduled.at_step)
    cancel = _action_button("cancel", member.task)
    sentence = gettext(_SCHEDULED_MESSAGES[member.scheduled.action]).format(task=member.task, step=at_step)
    return PendingFailureView(
        words=gettext(_PENDING_MESSAGES[member.scheduled.action]).format(step=at_step),
        progress=_step_sentence(member, busy=busy),
        buttons=(cancel,)
        if member.state == "ended"
        else (_immediate_button(member.scheduled.action, member.task), cancel),
        chip=ActionButton("cancel", sentence, f"{cancel.words}: {sentence}"),
    )


def _step_sentence(member: ClusterMember, *, busy: bool) -> str:
    """How far the process is from the step that a failure waits for."""
    if member.state == "ended":
        return gettext(_STEPS_AFTER_START)
    if member.step is None:
        return gettext(_STEPS_NOT_COUNTED if busy else _STEPS_OF_NEXT_RUN)
    return gettext("It is now at step {step}.").format(step=number(member.step))


def _immediate_button(action: ProcessAction, task: str) -> ActionButton:
    words = gettext(_IMMEDIATE_LABELS[action])
    return ActionButton(action, words, f"{words}: {task}")


def _action_button(action: ProcessAction, task: str, *, needs_step: bool = False) -> ActionButton:
    words = gettext(_BUTTON_LABELS[action])
    return ActionButton(action, words, f"{words}: {task}", needs_step)


async def inject_failure(
    runner: RunnerClient, learner: str | None, lesson: str, machine: Machine, failure: InjectedFailure
) -> InjectionResult:
    """Inject a failure into the learner's session on that machine. Returns what was done, or why not."""
    if failure.action not in _SCHEDULED_MESSAGES:
        failure = failure.model_copy(update={"at_step": None})
    try:
        info = await runner.inject_failure(session_id(learner or "", lesson, machine), failure)
    except ResourceNotFound:
        return InjectionResult(gettext("This session no longer exists."))
    except RequestRefused as e:
        words = _REFUSAL_MESSAGES.get(e.refusal.code, N_("This failed: {reason}"))
        said = gettext(words).format(task=failure.task, reason=e.refusal.message)
        return InjectionResult(
            said,
            now=_immediate_button(failure.action, failure.task) if e.refusal.code in _UNREACHABLE_STEP_CODES else None,
        )
    except RunnerUnavailable:
        return InjectionResult(
            gettext("The runner is starting or cannot be reached. Nothing was changed. Try again in a moment.")
        )
    if failure.at_step is not None:
        said = gettext(_SCHEDULED_MESSAGES[failure.action]).format(task=failure.task, step=number(failure.at_step))
    else:
        said = gettext(_DONE_MESSAGES[failure.action]).format(task=failure.task)
    return InjectionResult(said, state_key(info))
