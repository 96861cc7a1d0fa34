"""The typed wire between the web application and the supervisor: requests in, events out.

The supervisor speaks HTTP over a Unix socket; bodies are JSON of the models below, an event stream is one JSON
object a line (empty lines keep the connection alive).

========  ===============================  =========================================================
method    path                             meaning
========  ===============================  =========================================================
GET       /health                          Health
PUT       /sessions/{id}                   SessionSpec -> SessionInfo; asks for a session, idempotent
GET       /sessions/{id}                   SessionInfo
POST      /sessions/{id}/interrupt         interrupts the run in progress, drops those behind it
POST      /sessions/{id}/restart           a fresh kernel; runs in progress or queued end ``interrupted``
DELETE    /sessions/{id}                   ends it
POST      /runs                            RunRequest -> RunAccepted; idempotent by id
GET       /runs/{id}/events?after=N        events N+1, N+2, … as they happen, up to ``finished``
POST      /runs/{id}/ack                   Ack: events up to ``through`` are stored, forget them
POST      /runs/{id}/stop                  interrupts this run, or takes it out of the queue
========  ===============================  =========================================================

An error is a Refusal with a 4xx status.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from runners.devices.topology import POSSIBLE, Topology, UnknownTopology

__all__ = ["POSSIBLE", "Topology", "UnknownTopology"]  # and every model below

MOST_CODE_BYTES = 100_000
"""The longest code one run may carry, in bytes of UTF-8."""

Keras = Literal[2, 3]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class Wire(BaseModel):
    """A message: unknown fields are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Outcome(StrEnum):
    """How a run ended."""

    ok = "ok"
    error = "error"
    interrupted = "interrupted"
    timeout = "timeout"
    memory = "memory"
    output = "output"
    processes = "processes"
    disk = "disk"
    crash = "crash"
    lost = "lost"


class SessionState(StrEnum):
    """Where a session is in its life."""

    queued = "queued"
    starting = "starting"
    idle = "idle"
    busy = "busy"
    gone = "gone"


# --- requests ---------------------------------------------------------------------------------------------------


class SessionSpec(Wire):
    """The machine asked for, and for whom. ``owner`` is opaque here: the app's word for one learner."""

    owner: Identifier
    topology: str = "gpu:4"
    keras: Keras = 3

    @field_validator("topology")
    @classmethod
    def _known(cls, text: str) -> str:
        return str(Topology.parse(text))


class RunRequest(Wire):
    """One execution of one cell. The session is made from ``spec`` if there is none of that id."""

    id: Identifier
    session: Identifier
    spec: SessionSpec
    code: str
    timeout_s: float | None = Field(default=None, gt=0)
    """A shorter wall-clock limit than the node's own, in seconds."""

    @field_validator("code")
    @classmethod
    def _short_enough(cls, code: str) -> str:
        size = len(code.encode("utf-8", "surrogatepass"))
        if size > MOST_CODE_BYTES:
            raise ValueError(f"the code has {size:,} bytes; at most {MOST_CODE_BYTES:,} can be run at once")
        return code


class Ack(Wire):
    """The app has stored every event up to and including ``through``."""

    through: int = Field(ge=0)


# --- answers ----------------------------------------------------------------------------------------------------


class SessionInfo(Wire):
    """A session as it is now."""

    id: str
    state: SessionState
    topology: str
    keras: Keras
    position: int | None = None
    """Place in the node's queue, from 1; None once it is not queued."""
    idle_s: float = 0.0
    """Seconds since the last run ended or the session was made; 0 while busy."""
    ends_in_s: float | None = None
    """Seconds until idle shutdown; None while busy or queued."""
    generation: int = 0
    """How often the kernel was restarted."""
    gone_because: str | None = None
    """``idle``, ``ended``, ``crash``, ``memory``, … once state is gone."""


class RunAccepted(Wire):
    """The run is known. ``ahead`` runs of the same session come first."""

    id: str
    session: SessionInfo
    ahead: int = 0


class Wall(Wire):
    """One layer of isolation or one limit: what it is, whether it is in force, and what that means."""

    name: str
    in_force: bool
    detail: str


class Health(Wire):
    """The supervisor's own account of itself."""

    status: Literal["starting", "ready", "broken"]
    detail: str = ""
    sessions: int = 0
    most_sessions: int = 0
    queued: int = 0
    warm_kernels: int = 0
    walls: list[Wall] = []


class Refusal(Wire):
    """Why a request was not carried out. ``code`` is stable, ``message`` is for people."""

    code: str
    message: str


# --- events -----------------------------------------------------------------------------------------------------


class EventBase(Wire):
    """One numbered fact of a run."""

    seq: int = Field(ge=1)
    """1, 2, 3, … without a gap within a run."""
    at_ms: int = Field(ge=0)
    """Milliseconds since the supervisor accepted the run."""


class Started(EventBase):
    """The code was handed to the kernel; before that the run was queued."""

    kind: Literal["started"] = "started"


class Text(EventBase):
    """A piece of standard output or error, raw: ANSI colours, carriage returns and backspaces included."""

    kind: Literal["text"] = "text"
    stream: Literal["stdout", "stderr"]
    text: str


class Display(EventBase):
    """A rich output. ``update`` replaces an earlier display of the same ``display_id`` in place."""

    kind: Literal["display"] = "display"
    data: dict[str, Any]
    """MIME type to content; images are base64 text, JSON types are objects, the rest text."""
    metadata: dict[str, Any] = {}
    display_id: str | None = None
    update: bool = False
    result: bool = False
    """True for the value of the cell's last expression."""


class Clear(EventBase):
    """Output so far is to be cleared; with ``wait`` only when the next output comes."""

    kind: Literal["clear"] = "clear"
    wait: bool = False


class Frame(Wire):
    """One piece of a traceback as coloured text; ``own`` if it shows the learner's code (or the error itself)."""

    text: str
    own: bool


class Error(EventBase):
    """An exception left the cell."""

    kind: Literal["error"] = "error"
    name: str
    value: str
    frames: list[Frame]


class Notice(EventBase):
    """A word from Lockstep itself, never from the learner's code. ``code`` is stable, ``values`` fill its text."""

    kind: Literal["notice"] = "notice"
    code: str
    values: dict[str, str | int | float] = {}
    text: str
    """The same in English."""


class Limit(Wire):
    """The limit a run met."""

    name: str
    """``time``, ``memory``, ``output``, ``processes``, ``disk``."""
    value: float
    unit: Literal["s", "bytes", "count"]


class Finished(EventBase):
    """The last event of every run."""

    kind: Literal["finished"] = "finished"
    outcome: Outcome
    duration_ms: int = 0
    """From ``started`` to the end; 0 if it never started."""
    first_output_ms: int | None = None
    """From the supervisor accepting the run to its first text, display or error."""
    peak_bytes: int | None = None
    """The most memory the session held during the run, where the machine can tell."""
    limit: Limit | None = None


Event = Annotated[Started | Text | Display | Clear | Error | Notice | Finished, Field(discriminator="kind")]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
