"""The runner's settings: ``LOCKSTEP_*`` in the environment of ``python -m runners.supervisor.server``.

The web application has a class of its own (``app.settings``); under Compose the two live in different containers.
An invalid value (text for a number, a negative or absurdly large number) is rejected here, before anything starts, with
a message that states the allowed range.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, field_validator
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from runners.devices.allocation import DeviceMode
from runners.wire.environment import SETTINGS, misspelled_setting
from runners.wire.protocol import KerasVersion
from runners.wire.topology import Topology

MiB = 1024 * 1024
_DAY_S = 86_400.0
_NO_KERAS = "must be 3, 2, or both, separated by a comma"
_NO_CLUSTER = "must be one machine such as gpu:4, tpu:8 or cpu: clusters are kept ready while they are in use"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The smallest and largest allowed value of a number, and its unit."""

    least: float
    most: float
    unit: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A number within bounds; every invalid value gets the same one-sentence error."""
        whole = "a whole number" if source is int else "a number"

        def check(value: Any, read: core_schema.ValidatorFunctionWrapHandler) -> Any:
            try:
                number = read(value)
            except ValidationError:
                number = None
            if number is None or not self.least <= number <= self.most:
                raise PydanticCustomError("bounds", self._sentence(whole))
            return number

        return core_schema.no_info_wrap_validator_function(check, handler(source))

    def _sentence(self, whole: str) -> str:
        return f"must be {whole} from {self.least:,.12g} to {self.most:,.12g} ({self.unit})"


def describe_errors(error: ValidationError) -> Iterator[str]:
    """Each error in the settings as ``VARIABLE: what it must be``, without the value (it may be secret)."""
    for mistake in error.errors(include_url=False, include_input=False):
        variable = f"LOCKSTEP_{'__'.join(map(str, mistake['loc'])).upper()}"
        yield f"{variable}: {_what_it_must_be(variable, mistake)}"


def _what_it_must_be(variable: str, mistake: ErrorDetails) -> str:
    match mistake["type"]:
        case "extra_forbidden":
            return _no_such(variable)
        case "literal_error":
            return f"must be {mistake['ctx']['expected']}"
        case "bool_parsing":
            return "must be true or false"
        case _:
            return mistake["msg"].removeprefix("Value error, ")


def _no_such(variable: str) -> str:
    known = [f"LOCKSTEP_LIMITS__{name.upper()}" for name in Limits.model_fields]
    nearest = difflib.get_close_matches(variable, known, n=1, cutoff=0)
    return _no_setting_but(nearest[0])


def _no_setting_but(meant: str) -> str:
    return f"there is no such setting; did you mean {meant}"


ACCEPTANCE = "I accept that untrusted users can harm this machine"
"""The one value of ``LOCKSTEP_UNSAFE_RUNNER`` that makes an unsafe runner run untrusted code."""
_NOT_IN_EARNEST = f'must be empty, or exactly "{ACCEPTANCE}"'


class Limits(BaseModel):
    """What one session or one run may use. Frozen: a session keeps the limits it was created with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_s: Annotated[float, Bounds(0.1, _DAY_S, "seconds")] = 600.0
    """Wall-clock time of one run."""
    cpu_s: Annotated[int, Bounds(1, int(_DAY_S), "seconds")] = 1200
    """CPU time of one run, all its processes together."""
    cpu_cores: Annotated[float, Bounds(0.01, 1024, "cores")] = 2.0
    """CPU bandwidth of a session, where the runner can write to a cgroup."""
    memory_mb: Annotated[int, Bounds(256, 1_048_576, "MiB")] = 3072
    """Memory of a whole session, swap and the files in its temporary folders included. TensorFlow's tutorial on several
    workers trains in two processes beside its own, with all of MNIST, which takes 2.4 GiB."""
    processes: Annotated[int, Bounds(16, 32_768, "processes and threads")] = 512
    """Processes and threads of a session, counted together."""
    disk_mb: Annotated[int, Bounds(16, 1_048_576, "MiB")] = 512
    """Size of ``/tmp``, of the home folder, and of ``/dev/shm`` of a session, each. They count as memory too."""
    inodes: Annotated[int, Bounds(1024, 16_777_216, "files")] = 32_768
    """Files and folders in each of those three."""
    file_mb: Annotated[int, Bounds(1, 1_048_576, "MiB")] = 512
    """The largest file."""
    open_files: Annotated[int, Bounds(256, 65_536, "files")] = 1024
    """Open files of one process."""
    sockets: Annotated[int, Bounds(64, 65_536, "sockets")] = 512
    """TCP, UDP and netlink sockets of a session, with connections that nobody has accepted. Part of what waits in them
    is in nobody's memory. A cluster of eight workers has about 60."""
    output_mb: Annotated[float, Bounds(0.01, 1024, "MiB")] = 8.0
    """Output of one run, text and display data. In JSON each object and list counts 256 bytes, and each value 32
    bytes more."""
    output_mb_per_s: Annotated[float, Bounds(0.01, 1024, "MiB")] = 4.0
    """Output within any one second."""
    display_mb: Annotated[float, Bounds(0.001, 1024, "MiB")] = 4.0
    """The largest display. A larger one is left out, and the run continues."""
    events: Annotated[int, Bounds(100, 1_000_000, "events")] = 20_000
    """Events of one run. A run may send 20 times as many messages, and fewer if they create no event."""


class InvalidRunnerSettings(Exception):
    """Settings have invalid values or misspelled names. ``str()`` has a line about each."""


class RunnerSettings(BaseSettings):
    """The supervisor's settings; each field is the environment variable ``LOCKSTEP_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="LOCKSTEP_", env_nested_delimiter="__", extra="ignore")

    data_dir: Path = Path("data")
    """Data sets are read from ``datasets`` below this directory. The web application reads the same variable."""
    limits: Limits = Limits()
    """``LOCKSTEP_LIMITS__MEMORY_MB=4096`` and so on."""
    max_sessions: Annotated[int, Bounds(0, 10_000, "sessions")] = 0
    """Sessions at once; further ones wait in the queue. 0 for one session per 256 MiB of memory beyond 1.25 GiB, from
    2 to 200, but no more than the process limit allows."""
    sessions_per_learner: Annotated[int, Bounds(1, 1000, "sessions")] = 3
    """Sessions one learner may have. When the learner asks for one more, the one idle longest ends."""
    runs_per_session: Annotated[int, Bounds(1, 1000, "runs")] = 64
    """Runs that may wait in one session."""
    max_judgements: Annotated[int, Bounds(1, 1000, "judgements")] = 4
    """Submissions judged at once; further ones wait in the queue. Each uses up to three sandboxes and counts as one
    session."""
    unstored_mb: Annotated[int, Bounds(16, 1_048_576, "MiB")] = 512
    """Code and output of all runs that may wait in the runner's memory until the web application has stored them.
    Beyond that, runs are refused."""
    idle_s: Annotated[float, Bounds(0.1, 7 * _DAY_S, "seconds")] = 1200.0
    """How long a session may be without a run before it ends."""
    eviction_grace_s: Annotated[float, Bounds(0, 7 * _DAY_S, "seconds")] = 1.5
    """On a full node with a queue, how long a session keeps its seat after a run. The longest idle session is evicted
    first."""
    warm_kernels: Annotated[int, Bounds(0, 100, "kernels")] = 2
    """Kernels kept ready for each topology in use."""
    warm_topology: str = "gpu:4"
    """The topology that is kept ready before anyone asks for it. It has to be one machine. Of a cluster that was
    used, one is kept ready for ten minutes."""
    warm_keras: Annotated[tuple[KerasVersion, ...], NoDecode] = (3,)
    """The versions of Keras that start with the runner: ``3``, ``2`` or ``3,2``. The first one gets the warm
    topology. Another version starts when someone first asks for it."""
    prepare_data_sets: bool = True
    """``1``: the runner unpacks the data sets of ``keras.datasets`` after it starts, which takes 475 MB in the data
    directory, and sessions share them. ``0``: each session unpacks what it loads."""
    devices: DeviceMode = "auto"
    """``auto``: real GPUs or a TPU while some are free for a session, simulated ones otherwise. ``simulate``: never
    real ones. ``gpu``, ``tpu``: a session that asks for such a device gets a real one or a refusal."""
    sessions_per_gpu: Annotated[int, Bounds(1, 64, "sessions")] = 1
    """Sessions that may share one real GPU. If there are several, each has a fixed part of its memory."""
    outer_sandbox: Literal["auto", "bubblewrap", "none"] = "auto"
    """The isolation around all sessions together. ``none`` declares that a container provides it. A runner that
    starts as root requires bubblewrap and refuses ``none``."""
    service_uid: Annotated[int, Bounds(1, 2**31 - 2, "a user id")] = 61_000
    """The unprivileged user that the runner becomes when it is started as root. The next one is that of the processes
    from which sandboxes are made, and each session is one of those after it: the number of sessions,
    3 × ``LOCKSTEP_WARM_KERNELS`` and 64 more. Nothing else may use these users. If systemd reserves some of them, an
    account of the machine has one of those after the first (``/etc/passwd``, ``group``, ``subuid``, ``subgid``), or
    another runner has them, the next free range is taken."""
    untrusted_users: bool = False
    """Untrusted users can reach the runner, so it runs code only while every required layer of isolation and every
    required limit is in force."""
    unsafe_runner: str = ""
    """``ACCEPTANCE``, word for word, makes the runner run untrusted code without the required isolation."""

    @field_validator("max_sessions", mode="before")
    @classmethod
    def _automatic(cls, value: Any) -> Any:
        return 0 if value == "" else value

    @field_validator("unsafe_runner")
    @classmethod
    def _in_earnest(cls, text: str) -> str:
        if text not in ("", ACCEPTANCE):
            raise PydanticCustomError("acceptance", _NOT_IN_EARNEST)
        return text

    @field_validator("warm_topology")
    @classmethod
    def _known(cls, text: str) -> str:
        topology = Topology.parse(text)
        if topology.cluster:
            raise PydanticCustomError("one_machine", _NO_CLUSTER)
        return str(topology)

    @field_validator("warm_keras", mode="before")
    @classmethod
    def _versions(cls, value: Any) -> Any:
        words = re.split(r"[\s,]+", value.strip()) if isinstance(value, str) else [str(each) for each in value]
        if not words or not set(words) <= {"2", "3"}:
            raise PydanticCustomError("keras", _NO_KERAS)
        return tuple(dict.fromkeys(map(int, words)))

    @classmethod
    def read(cls) -> RunnerSettings:
        """Read the environment.

        Raises:
            InvalidRunnerSettings: with one line for each mistake.
        """
        mistakes = list(_misspelled(os.environ))
        try:
            settings = cls()
        except ValidationError as e:
            mistakes += describe_errors(e)
        if mistakes:
            raise InvalidRunnerSettings("\n".join(mistakes))
        return settings


def _misspelled(environment: Mapping[str, str]) -> Iterator[str]:
    """A line about each variable that sets nothing because its name is not quite a setting's. Pure."""
    known = {f"LOCKSTEP_{name}" for name in SETTINGS | {"LIMITS"}}
    limits = [f"LOCKSTEP_LIMITS__{name.upper()}" for name in Limits.model_fields]
    for name in sorted(environment):
        ours = name.upper()
        if not ours.startswith("LOCKSTEP_") or ours in known or ours.startswith("LOCKSTEP_LIMITS__"):
            continue
        if meant := misspelled_setting(ours, [*sorted(known), *limits]):
            yield f"{name}: {_no_setting_but(meant)}"


def to_environment(settings: RunnerSettings) -> dict[str, str]:
    """Each variable with a value that would set it so.

    Settings that may differ between an operator's shell and a runner are left out: the data directory, and whether
    users are untrusted, which a runner learns in other ways too.
    """
    elsewhere = {"data_dir", "untrusted_users", "limits"}
    values = {f"LOCKSTEP_{name.upper()}": value for name, value in settings if name not in elsewhere}
    values |= {f"LOCKSTEP_LIMITS__{name.upper()}": value for name, value in settings.limits}
    return {variable: _written(value) for variable, value in values.items()}


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def main() -> None:
    """``python -m runners.config.settings``: print the settings as JSON, or exit with 2 and the unusable ones."""
    try:
        print(json.dumps(to_environment(RunnerSettings.read())))
    except InvalidRunnerSettings as e:
        print(e)
        sys.exit(2)


if __name__ == "__main__":
    main()
