"""The typed wire between the web application and the supervisor: requests in, events out.

The supervisor speaks HTTP over a Unix socket. Bodies are JSON of the models below; an event stream has one JSON object
per line (empty lines keep the connection alive).

========  ===============================  =========================================================
method    path                             meaning
========  ===============================  =========================================================
GET       /health                          Health
GET       /host                            HostSurvey
GET       /sessions                        OwnedSessions; all sessions of learners; ?measured=1 adds memory
GET       /owners/{id}/sessions            OwnersSessions; those of one owner, ended ones too for an hour
PUT       /sessions/{id}                   SessionSpec -> SessionInfo; requests a session, idempotent
GET       /sessions/{id}                   SessionInfo
POST      /sessions/{id}/interrupt         interrupts the run in progress, drops those behind it
POST      /sessions/{id}/restart           a fresh kernel; runs in progress or queued end ``interrupted``
POST      /sessions/{id}/keep              SessionInfo; the learner is still there: the idle time restarts
GET       /sessions/{id}/gone              SessionInfo once the session is gone; empty lines until then
POST      /sessions/{id}/failures          InjectedFailure -> SessionInfo; for one process of the cluster,
                                           now, at a step, or to cancel it; answers once it is done
POST      /sessions/{id}/introspect        IntrospectionRequest -> Introspection; only an idle kernel is asked
DELETE    /sessions/{id}                   ends it
POST      /runs                            RunRequest -> RunAccepted; idempotent by id
GET       /runs/{id}/events?after=N        events N+1, N+2, … as they happen, up to ``finished``
POST      /runs/{id}/ack                   Ack: events up to ``through`` are stored, forget them
POST      /runs/{id}/stop                  interrupts this run, or takes it out of the queue
POST      /kernels                         LeaseRequest -> KernelLease; a bare kernel for a Jupyter client on this host
                                           (403 where untrusted users can reach the runner)
POST      /kernels/{id}/restart            LeaseRequest -> KernelLease; a fresh kernel in the same sandbox
POST      /kernels/{id}/signal             KernelSignal
GET       /kernels/{id}/exit               KernelExit once the kernel has ended; this stream holds the lease
DELETE    /kernels/{id}                    ends it
========  ===============================  =========================================================

An error is a Refusal with a 4xx status.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    field_validator,
    model_serializer,
)

from runners.wire.topology import POSSIBLE_TOPOLOGIES, TOPOLOGY_FORMS, TooLargeTopology, Topology, UnknownTopology

__all__ = [
    "POSSIBLE_TOPOLOGIES",
    "TOPOLOGY_FORMS",
    "TooLargeTopology",
    "Topology",
    "UnknownTopology",
]  # and every model below

UNTRUSTED_USERS_HEADER = "lockstep-untrusted-users"
"""A header of any request: untrusted users can reach the web application. Its value does not matter."""
MAX_CODE_BYTES = 100_000
"""The longest code of one run, in bytes of UTF-8."""
MAX_JUDGED_SECONDS = 300.0
"""The longest that a submitted cell, or one call of it, may take."""

KerasVersion = Literal[2, 3]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class WireModel(BaseModel):
    """A message: unknown fields are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Outcome(StrEnum):
    """How a run ended."""

    ok = "ok"
    error = "error"
    interrupted = "interrupted"
    timeout = "timeout"
    cpu = "cpu"
    memory = "memory"
    output = "output"
    processes = "processes"
    disk = "disk"
    files = "files"
    crash = "crash"
    lost = "lost"


class SessionState(StrEnum):
    queued = "queued"
    starting = "starting"
    idle = "idle"
    busy = "busy"
    gone = "gone"


# --- requests ---------------------------------------------------------------------------------------------------


class SessionSpec(WireModel):
    """The requested machine, and its owner. ``owner`` is the web application's id of a learner, opaque here."""

    owner: Identifier
    topology: str = "gpu:4"
    keras: KerasVersion = 3

    @field_validator("topology")
    @classmethod
    def _known(cls, text: str) -> str:
        return str(Topology.parse(text))


class LeaseRequest(WireModel):
    """A kernel for a Jupyter client on this machine, which talks to it directly."""

    topology: str = "gpu:4"
    keras: KerasVersion = 3
    key: Annotated[str, Field(min_length=16, max_length=200)]
    """Signs the messages between that client and the kernel."""

    @field_validator("topology")
    @classmethod
    def _known(cls, text: str) -> str:
        return str(Topology.parse(text))


class InjectedFailure(WireModel):
    """A failure of one process of a cluster, injected to see how the strategy copes."""

    task: Annotated[str, Field(pattern=r"^(coordinator|chief|evaluator|worker [0-9]|ps [0-9])$")]
    action: Literal["kill", "pause", "resume", "slow", "restart", "cancel"]
    """``slow`` takes most of its time away until ``resume``; ``restart`` starts a killed process; ``cancel`` cancels a
    pending failure."""
    at_step: int | None = Field(default=None, ge=0, le=1_000_000_000)
    """Wait until that process has reached this step; None: do it now."""


class IntrospectionRequest(WireModel):
    """What can be written at a place in the code, or what stands there."""

    kind: Literal["complete", "inspect"]
    code: Annotated[str, AfterValidator(lambda code: _short_enough(code))]
    cursor: int = Field(ge=0, le=MAX_CODE_BYTES)
    """Characters before it."""


class KernelSignal(WireModel):
    """A signal for a leased kernel."""

    signum: int = Field(ge=1, le=64)


def _short_enough(code: str) -> str:
    size = len(code.encode("utf-8", "surrogatepass"))
    if size > MAX_CODE_BYTES:
        raise ValueError(f"the code has {size:,} bytes; the limit is {MAX_CODE_BYTES:,}")
    return code


Code = Annotated[str, AfterValidator(_short_enough)]


class NeededCell(WireModel):
    """A cell of the lesson that runs before a submission, and before the solution."""

    name: str
    code: Code


class Judgement(WireModel):
    """What a submission is judged by. None of it but the needed cells reaches the sandbox that runs the submission."""

    exercise: str
    """The name of the exercise's cell."""
    needs: tuple[NeededCell, ...] = ()
    """In the order in which they run."""
    solution: Code
    checks: Code
    """The source of ``checks.py``."""
    seconds: Annotated[float, Field(gt=0, le=MAX_JUDGED_SECONDS)] = 30.0
    """How long the submitted cell, and each call of it, may take."""


TraceContext = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})?$")]
"""A ``traceparent`` of W3C Trace Context."""


class RunRequest(WireModel):
    """One execution of one cell. The session is created from ``spec`` if it does not exist."""

    id: Identifier
    session: Identifier
    """With a judgement, a session for it alone, which ends with it: the id of the run will do."""
    spec: SessionSpec
    code: Code
    timeout_s: float | None = Field(default=None, gt=0)
    """A wall-clock limit shorter than the node's own, in seconds."""
    judgement: Judgement | None = None
    """The code is a submission, and is judged instead of just run."""
    trace_context: TraceContext = ""
    """The trace that it is part of; empty if it is not traced."""


class Ack(WireModel):
    """The app has stored every event up to and including ``through``."""

    through: int = Field(ge=0)


# --- answers ----------------------------------------------------------------------------------------------------


class PendingFailure(WireModel):
    """A failure that waits until its process reaches a step."""

    action: Literal["kill", "pause", "slow"]
    at_step: int = Field(ge=0, le=1_000_000_000)


class ClusterMember(WireModel):
    """One process of a session's cluster; ``task`` is its lane."""

    task: str
    state: Literal["starting", "running", "paused", "slow", "ended"]
    address: str = ""
    """Its address for the others, ``127.0.0.1:PORT``; empty if it serves nobody."""
    step: int | None = None
    """The last known step that its training has reached in the current run; None before the first."""
    scheduled: PendingFailure | None = None
    """Its pending failure, if any."""
    serves: bool = False
    """Whether it runs no cells, only work that a coordinator sends, and counts no steps."""
    restarted: bool = False
    """Whether it was restarted after it had ended, while the others went on."""


class SessionInfo(WireModel):
    id: str
    state: SessionState
    topology: str
    keras: KerasVersion
    position: int | None = None
    """Its position in the node's queue, counted from 1; None if it is not queued."""
    wait_s: float | None = Field(default=None, ge=0)
    """Estimated seconds until it gets a seat, based on recent runs; None if it is not queued for a run, or if
    unknown."""
    idle_s: float = 0.0
    """Seconds since the last run ended or the session was created; 0 while busy."""
    ends_in_s: float | None = None
    """Seconds until it ends if nothing runs, unless it is evicted before; None while busy or queued."""
    generation: int = 0
    """How many times the kernel was restarted."""
    kernel_id: str = ""
    """A unique name of its current kernel; empty while it has none. Variables live as long as their kernel."""
    runs: int = 0
    """Runs that its kernel has executed; if there are none, there is nothing to lose."""
    gone_because: str | None = None
    """``idle``, ``evicted``, ``ended``, ``replaced``, ``failed`` or ``supervisor-stopped`` once state is gone."""
    members: tuple[ClusterMember, ...] = ()
    """The processes of its cluster, in the order of their lanes; empty if there is no cluster or no kernel yet."""
    real: bool = False
    """Whether its accelerators are real."""


class CompletionMatch(WireModel):
    """A text that could stand there, and what it is, such as ``function``; empty if unknown."""

    text: str
    kind: str = ""


class Introspection(WireModel):
    """What the kernel knows. It is a program of the learner's, so all of it is plain text, and may be wrong."""

    state: Literal["answered", "busy"]
    """``busy``: it is running a cell or answering another question, or did not answer in time."""
    start: int = Field(default=0, ge=0)
    """Characters before what the matches would replace, up to the cursor."""
    matches: tuple[CompletionMatch, ...] = ()
    text: str = ""
    """The signature and documentation; empty if there are none."""


class OwnedSession(WireModel):
    """A session, and the ``owner`` of its ``SessionSpec``."""

    id: str
    owner: str
    state: SessionState
    topology: str = ""
    keras: KerasVersion = 3
    age_s: float = 0.0
    """Seconds since it was requested."""
    idle_s: float = 0.0
    """Seconds since its last run ended; 0 while busy."""
    position: int | None = None
    """Its position in the node's queue, counted from 1; None if it is not queued."""
    memory_bytes: int | None = None
    """Its memory, without what it shares with others; None if it was not asked for, or the session has no sandbox."""


class OwnedSessions(WireModel):
    sessions: tuple[OwnedSession, ...]


class OwnersSessions(WireModel):
    """All sessions of one owner."""

    sessions: tuple[SessionInfo, ...]


class RunAccepted(WireModel):
    """The run is accepted. ``ahead`` runs of the same session come first."""

    id: str
    session: SessionInfo
    ahead: int = 0


class KernelLease(WireModel):
    """A kernel and how to reach it: ``ip`` and ``ports`` as in a Jupyter connection file with ``transport: ipc``."""

    id: str
    ip: str
    ports: tuple[int, int, int, int, int]
    """Shell, iopub, stdin, control, heartbeat."""


class KernelExit(WireModel):
    """A leased kernel has ended; the status is negative for a signal."""

    status: int
    reached: LimitName | None = None
    """The limit of its sandbox that it reached, if that is why it ended."""


class Safeguard(WireModel):
    """One layer of isolation or one limit: what it is, whether it is in force, and what that means."""

    kind: Literal["isolation", "limit"] = "isolation"
    name: str
    in_force: bool
    detail: str
    """What was found on this machine."""
    essential: bool = False
    """Without it, untrusted code is not safe, and a runner that untrusted users can reach runs no code."""
    means: str = ""
    """The consequence if it is not in force, and what to do about it."""

    @property
    def is_gap(self) -> bool:
        """Whether it makes untrusted code unsafe."""
        return self.essential and not self.in_force


class Capability(WireModel):
    """A feature of the machine on which isolation layers and limits depend."""

    name: str
    good: bool
    detail: str
    means: str = ""
    """The consequence if it is missing, and what to do about it."""


class HostSurvey(WireModel):
    """The features of the supervisor's machine, whether or not they are used."""

    capabilities: list[Capability]


PatchState = Literal["found", "moved", "not loaded"]
_WEIGHT: dict[PatchState, int] = {"not loaded": 0, "found": 1, "moved": 2}


class LibraryPatch(WireModel):
    """One patch to TensorFlow or another library in sessions, or one private part that they rely on."""

    subject: str
    """The subject: the group of patches to which it belongs."""
    when: str
    """Which processes have it, such as ``gpu``."""
    target: str
    """The target as ``module:attribute``."""
    changes: bool
    """Whether the target is replaced; otherwise code only relies on it."""
    because: str
    since: str
    """The first release that needs it, such as ``TensorFlow 2.21``."""
    upstream: str | None = None
    """An issue or a pull request about it."""
    test: str
    """The test that fails when it stops working."""
    state: PatchState
    problem: str = ""
    """What has moved, in one sentence; empty if nothing has."""


class LibraryPatches(WireModel):
    """All patches, as the zygotes found them when they started; empty until one has."""

    patches: list[LibraryPatch] = []

    @classmethod
    def merged(cls, reports: Iterable[Iterable[LibraryPatch]]) -> LibraryPatches:
        """Merge reports: a patch counts as moved if any report says so, otherwise as found if any report says so."""
        known: dict[tuple[str, str], LibraryPatch] = {}
        for patch in (patch for report in reports for patch in report):
            key = patch.subject, patch.target
            if key not in known or _WEIGHT[patch.state] > _WEIGHT[known[key].state]:
                known[key] = patch
        return cls(patches=list(known.values()))

    @property
    def moved(self) -> list[LibraryPatch]:
        """The patches whose target is no longer as expected."""
        return [patch for patch in self.patches if patch.state == "moved"]


class Health(WireModel):
    status: Literal["starting", "ready", "broken"]
    detail: str = ""
    sessions: int = 0
    max_sessions: int = 0
    queued: int = 0
    warm_kernels: int = 0
    longest_wait_s: float = 0.0
    """How long the run that waits longest for a session has waited."""
    memory_kills: int = 0
    """Runs that were ended for the memory they took since the supervisor started."""
    dropped_messages: int = 0
    """Invalid messages from kernels since the supervisor started."""
    safeguards: list[Safeguard] = []
    """The safeguards as last observed around a sandbox; empty until one has been created."""
    untrusted_users: bool = False
    """Whether untrusted users can reach it."""
    refuses: str = ""
    """Why no code is run, in a sentence for the operator; empty if code is run."""
    settings: dict[str, str] = {}
    """The runner's settings in force: each variable with the value that would set it."""

    @property
    def safe(self) -> bool:
        """Whether untrusted code is safe: isolation layers were observed, and there is no gap."""
        return bool(self.safeguards) and not any(safeguard.is_gap for safeguard in self.safeguards)


LimitName = Literal[
    "time",
    "cpu",
    "memory",
    "processes",
    "disk",
    "inodes",
    "file_size",
    "open_files",
    "sockets",
    "output",
    "output_rate",
    "events",
    "display",
    "stored",
    "sessions_per_learner",
    "runs_per_session",
    "sessions",
]


class ReachedLimit(WireModel):
    name: LimitName
    value: float
    unit: Literal["s", "bytes", "bytes/s", "count"]


class Refusal(WireModel):
    """Why a request was not carried out. ``code`` is stable, ``message`` is for people."""

    code: str
    message: str
    limit: ReachedLimit | None = None


# --- events -----------------------------------------------------------------------------------------------------


class EventBase(WireModel):
    """One numbered fact of a run."""

    seq: int = Field(ge=1)
    """1, 2, 3, … without a gap within a run."""
    at_ms: int = Field(ge=0)
    """Milliseconds since the supervisor accepted the run."""


class StartedEvent(EventBase):
    """The code was sent to the kernel; until then the run was queued."""

    kind: Literal["started"] = "started"
    kernel_id: str = ""
    """The ``kernel_id`` of the session at that moment; empty in events of older versions."""


class TextEvent(EventBase):
    """A piece of standard output or error, unprocessed: with ANSI colors, carriage returns and backspaces."""

    kind: Literal["text"] = "text"
    stream: Literal["stdout", "stderr"]
    text: str
    lane: str | None = None
    """The worker or replica it comes from, such as ``worker 1`` or ``replica 0``; None for the cell itself."""


class DisplayEvent(EventBase):
    """A rich output. ``update`` replaces an earlier display of the same ``display_id`` in place."""

    kind: Literal["display"] = "display"
    data: dict[str, Any]
    """MIME type to content; images are base64 text, JSON types are objects, the rest text."""
    metadata: dict[str, Any] = {}
    display_id: str | None = None
    update: bool = False
    result: bool = False
    """True for the value of the cell's last expression."""
    lane: str | None = None


class ClearEvent(EventBase):
    """A request to clear the output so far; with ``wait``, only when the next output comes."""

    kind: Literal["clear"] = "clear"
    wait: bool = False
    lane: str | None = None


class TracebackFrame(WireModel):
    """One piece of a traceback as colored text; ``own`` if it shows the learner's code (or the error itself)."""

    text: str
    own: bool


class ErrorEvent(EventBase):
    """An exception left the cell."""

    kind: Literal["error"] = "error"
    name: str
    value: str
    frames: list[TracebackFrame]
    lane: str | None = None


class MetricEvent(EventBase):
    """Metrics of one training step or epoch, for a chart."""

    kind: Literal["metric"] = "metric"
    step: int = Field(ge=0)
    per: Literal["step", "epoch"] = "step"
    values: dict[str, float | Literal["nan", "inf", "-inf"]]
    """Name to number, such as ``loss``, ``val_loss`` or ``accuracy``. Numbers that JSON does not have are words."""
    lane: str | None = None
    training: str | None = None
    """The name that the learner gave the model that is trained."""


class ProgressEvent(EventBase):
    """The progress of a task; each event replaces earlier ones with the same ``label``."""

    kind: Literal["progress"] = "progress"
    label: str
    """The name of the task, such as ``fit``; shown as it is."""
    done: int = Field(ge=0)
    total: int | None = Field(default=None, ge=0)
    unit: Literal["step", "epoch", "item"] = "step"
    left_s: float | None = Field(default=None, ge=0)
    """Estimated seconds until it is done."""
    lane: str | None = None


class NoticeEvent(EventBase):
    """A message from Lockstep itself. ``code`` is stable, ``values`` fill in its text.

    Code inside the sandbox can send only the sentences in ``runners.wire.reports``, never free text.
    """

    kind: Literal["notice"] = "notice"
    code: str
    values: dict[str, str | int | float] = {}
    text: str
    """The English text."""
    limit: ReachedLimit | None = None
    """The limit behind it, if any: the run continues, but something was omitted."""
    lane: str | None = None


CheckOutcome = Literal["passed", "failed", "error", "not-reached", "too-slow", "fault"]


class CheckEvent(EventBase):
    """One check of an exercise was judged. Each check of a judgement has exactly one, in the order of ``checks.py``."""

    kind: Literal["check"] = "check"
    name: str
    outcome: CheckOutcome
    """``error``: the submission raised, ended or gave no plain data. ``fault``: the check or Lockstep failed."""
    message: str = ""
    """A template in English, the author's or one of ``runners.wire.check_messages``; empty if it was passed."""
    values: dict[str, str] = {}
    """For ``check_messages.fill``, after translation."""
    got: str | None = None
    """As text, if it may be shown."""
    wanted: str | None = None
    detail: str = ""
    """Of a fault, the traceback: for instructors only."""


class RunTrace(WireModel):
    """The times of a traced run, for the web application, because a runner has no network to send spans."""

    context: TraceContext
    accepted_at: float
    """Seconds since 1970, by the supervisor's clock."""
    admitted_ms: int | None = None
    """From accepting the run to the moment at which its session had a place; None if it never had."""
    started_ms: int | None = None
    """From accepting the run to the start of its code; None if it never started."""


class FinishedEvent(EventBase):
    kind: Literal["finished"] = "finished"
    outcome: Outcome
    duration_ms: int = 0
    """From ``started`` to the end; 0 if it never started."""
    first_output_ms: int | None = None
    """From the supervisor accepting the run to its first text, display or error."""
    peak_bytes: int | None = None
    """The most memory the session used during the run, if the machine can tell."""
    limit: ReachedLimit | None = None
    exited: bool = False
    """Whether the program ended itself with SystemExit: then the lines after that did not run."""
    runs_before: int | None = None
    """Runs that the same kernel had executed before; None if this one never started."""
    trace: RunTrace | None = None
    """Of a traced run. It is not stored."""

    @model_serializer(mode="wrap")
    def _without_empty_trace(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        if self.trace is None:
            fields.pop("trace", None)
        return fields


SubmissionVerdict = Literal["passed", "failed", "fault", "lost"]


def submission_verdict(outcome: Outcome, checks: Iterable[CheckOutcome]) -> SubmissionVerdict:
    """What the end of a judgement means: only what the submission did itself is a failed try.

    Args:
        outcome: of the run: that of the submitted cell, or how the judgement as a whole ended.
        checks: of all check events of the run.
    """
    judged = list(checks)
    if outcome in (Outcome.lost, Outcome.interrupted):
        return "lost"
    if "fault" in judged or not judged:  # whatever the submission does, the judge tells its checks
        return "fault"
    return "passed" if outcome == Outcome.ok and all(one == "passed" for one in judged) else "failed"


Event = Annotated[
    StartedEvent
    | TextEvent
    | DisplayEvent
    | ClearEvent
    | ErrorEvent
    | MetricEvent
    | ProgressEvent
    | NoticeEvent
    | CheckEvent
    | FinishedEvent,
    Field(discriminator="kind"),
]
EVENT_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)
