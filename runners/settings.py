"""What an operator can set about the runner: ``LOCKSTEP_*`` in the environment of ``python -m runners.server``.

The web application has a class of its own (``app.settings``); under Compose the two live in different containers.
A limit that is text, negative or absurdly large is refused here, before anything starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from runners.devices.topology import Topology

MiB = 1024 * 1024
_DAY_S = 86_400.0


class Limits(BaseModel):
    """What one session or one run may use. Frozen: a session keeps the limits it was born with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_s: Annotated[float, Field(gt=0, le=_DAY_S)] = 600.0
    """Wall clock of one run, in seconds."""
    memory_mb: Annotated[int, Field(ge=256, le=1_048_576)] = 2048
    """Memory of a whole session, tmpfs files included, in MiB."""
    processes: Annotated[int, Field(ge=16, le=32_768)] = 512
    """Processes and threads of a session."""
    output_mb: Annotated[float, Field(gt=0, le=1024)] = 8.0
    """Output of one run, in MiB of text and display data."""
    events: Annotated[int, Field(ge=100, le=1_000_000)] = 20_000
    """Events of one run."""
    disk_mb: Annotated[int, Field(ge=16, le=1_048_576)] = 512
    """The session's temporary folder and its home, each, in MiB; they live in memory and count there too."""
    open_files: Annotated[int, Field(ge=64, le=65_536)] = 1024
    cpu_cores: Annotated[float, Field(gt=0, le=1024)] = 2.0
    """CPU bandwidth of a session, in cores."""
    cpu_s: Annotated[int, Field(gt=0, le=int(_DAY_S))] = 7200
    """CPU time of one process, in seconds."""


class RunnerSettings(BaseSettings):
    """The supervisor's settings; each field is the environment variable ``LOCKSTEP_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="LOCKSTEP_", env_nested_delimiter="__", extra="ignore")

    data_dir: Path = Path("data")
    """Data sets are read from ``datasets/`` below it."""
    limits: Limits = Limits()
    """``LOCKSTEP_LIMITS__MEMORY_MB=4096`` and so on."""
    max_sessions: Annotated[int, Field(ge=1, le=10_000)] = 40
    """Sessions at once on this node; one more waits in the queue."""
    sessions_per_learner: Annotated[int, Field(ge=1, le=1000)] = 3
    """A learner's longest idle session ends when one more is asked for."""
    runs_per_session: Annotated[int, Field(ge=1, le=1000)] = 64
    """Runs that may wait in one session."""
    idle_s: Annotated[float, Field(gt=0, le=7 * _DAY_S)] = 1200.0
    """A session without a run for this long ends."""
    give_way_s: Annotated[float, Field(gt=0, le=7 * _DAY_S)] = 120.0
    """On a full node where others wait, a session without a run for this long ends."""
    warm_kernels: Annotated[int, Field(ge=0, le=100)] = 2
    """Kernels kept ready per topology in use."""
    warm_topology: str = "gpu:4"
    """The topology that is kept ready before anybody asked."""
    outer_wall: Literal["auto", "bubblewrap", "none"] = "auto"
    """The wall around the zygote; ``none`` where a container is that wall already."""
    service_uid: Annotated[int, Field(ge=1, le=2**31 - 2)] = 61_000
    """The plain user the zygote becomes when the supervisor is started as root."""

    @field_validator("warm_topology")
    @classmethod
    def _known(cls, text: str) -> str:
        return str(Topology.parse(text))
