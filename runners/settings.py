"""What an operator can set about the runner: ``LOCKSTEP_*`` in the environment of ``python -m runners.server``.

The web application has a class of its own (``app.settings``); under Compose the two live in different containers.
A number that is text, negative or absurdly large is refused here, before anything starts, in a sentence that says
what is possible.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, field_validator
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from runners.devices.hardware import Mode
from runners.devices.topology import Topology
from runners.messages import MIME_TYPES
from runners.protocol import Keras

MiB = 1024 * 1024
_DAY_S = 86_400.0
_MIME_TYPE = re.compile(r"(application|image|text)/[a-z0-9][a-z0-9.+-]{0,99}")
_NO_TYPE = "must be MIME types of text, images or data such as text/html or image/png, with commas between"
_NO_PROGRAM = "must not hold {mime}: a browser may run it as a program"
_NO_KERAS = "must be 3, 2, or both with a comma between"
_NO_CLUSTER = "must be one machine such as gpu:4, tpu:8 or cpu: clusters are kept ready while they are in use"
_EXECUTABLE = re.compile(r".*(script|wasm|xhtml|xml-dtd|x-shockwave|widget).*|(application|text)/xml(-.*)?")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of a number, and what it counts."""

    least: float
    most: float
    unit: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A number within bounds; anything else is refused in one sentence, the same for every mistake."""
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


def refusals(error: ValidationError) -> Iterator[str]:
    """Each mistake in the settings as ``VARIABLE: what it must be``, without what was written (it may be secret)."""
    for mistake in error.errors(include_url=False, include_input=False):
        variable = f"LOCKSTEP_{'__'.join(map(str, mistake['loc'])).upper()}"
        yield f"{variable}: {_what_it_must_be(variable, mistake)}"


def _what_it_must_be(variable: str, mistake: ErrorDetails) -> str:
    match mistake["type"]:
        case "extra_forbidden":
            return _no_such(variable)
        case "literal_error":
            return f"must be {mistake['ctx']['expected']}"
        case _:
            return mistake["msg"]


def _no_such(variable: str) -> str:
    known = [f"LOCKSTEP_LIMITS__{name.upper()}" for name in Limits.model_fields]
    nearest = difflib.get_close_matches(variable, known, n=1, cutoff=0)
    return f"there is no such setting; the nearest is {nearest[0]}"


ACCEPTANCE = "I accept that strangers can harm this machine"
"""The one value of ``LOCKSTEP_UNSAFE_RUNNER`` that makes an unsafe runner run strangers' code."""
_NOT_IN_EARNEST = f'must be empty, or exactly "{ACCEPTANCE}"'


class Limits(BaseModel):
    """What one session or one run may use. Frozen: a session keeps the limits it was born with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_s: Annotated[float, Bounds(0.1, _DAY_S, "seconds")] = 600.0
    """Wall clock of one run, in seconds."""
    cpu_s: Annotated[int, Bounds(1, int(_DAY_S), "seconds")] = 1200
    """CPU time of one run, in seconds, all processes of the session together."""
    cpu_cores: Annotated[float, Bounds(0.01, 1024, "cores")] = 2.0
    """CPU bandwidth of a session, in cores."""
    memory_mb: Annotated[int, Bounds(256, 1_048_576, "MiB")] = 2048
    """Memory of a whole session, swap and tmpfs files included, in MiB."""
    processes: Annotated[int, Bounds(16, 32_768, "processes and threads")] = 512
    """Processes and threads of a session."""
    disk_mb: Annotated[int, Bounds(16, 1_048_576, "MiB")] = 512
    """The session's temporary folder, its home and its shared memory, each, in MiB; they count as memory too."""
    inodes: Annotated[int, Bounds(1024, 16_777_216, "files")] = 32_768
    """Files and folders in each of the three."""
    file_mb: Annotated[int, Bounds(1, 1_048_576, "MiB")] = 512
    """The largest file, in MiB."""
    open_files: Annotated[int, Bounds(256, 65_536, "files")] = 1024
    """Open files of one process."""
    output_mb: Annotated[float, Bounds(0.01, 1024, "MiB")] = 8.0
    """Output of one run, in MiB of text and display data."""
    output_mb_per_s: Annotated[float, Bounds(0.01, 1024, "MiB")] = 4.0
    """Output within any one second, in MiB."""
    display_mb: Annotated[float, Bounds(0.001, 1024, "MiB")] = 4.0
    """One display, in MiB; a larger one is left out."""
    events: Annotated[int, Bounds(100, 1_000_000, "events")] = 20_000
    """Events of one run; it may send 20 times as many messages, whether or not they make an event."""


class RunnerSettings(BaseSettings):
    """The supervisor's settings; each field is the environment variable ``LOCKSTEP_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="LOCKSTEP_", env_nested_delimiter="__", extra="ignore")

    data_dir: Path = Path("data")
    """Data sets are read from ``datasets/`` below it."""
    limits: Limits = Limits()
    """``LOCKSTEP_LIMITS__MEMORY_MB=4096`` and so on."""
    mime_types: Annotated[tuple[str, ...], NoDecode] = tuple(sorted(MIME_TYPES))
    """What a display may be made of, as MIME types with a comma or a space between; the rest of it is not shown."""
    max_sessions: Annotated[int, Bounds(0, 10_000, "sessions")] = 0
    """Sessions at once on this node; one more waits in the queue. 0, or nothing: see ``runners.seats``."""
    sessions_per_learner: Annotated[int, Bounds(1, 1000, "sessions")] = 3
    """A learner's longest idle session ends when one more is asked for."""
    runs_per_session: Annotated[int, Bounds(1, 1000, "runs")] = 64
    """Runs that may wait in one session."""
    unstored_mb: Annotated[int, Bounds(16, 1_048_576, "MiB")] = 512
    """Code and output of all runs that wait in memory until the app has stored them; past it, no run is taken."""
    idle_s: Annotated[float, Bounds(0.1, 7 * _DAY_S, "seconds")] = 1200.0
    """A session without a run for this long ends."""
    give_way_s: Annotated[float, Bounds(0, 7 * _DAY_S, "seconds")] = 1.5
    """On a full node where somebody waits, a session keeps its place for this long after a run."""
    warm_kernels: Annotated[int, Bounds(0, 100, "kernels")] = 2
    """Kernels kept ready per topology in use."""
    warm_topology: str = "gpu:4"
    """The topology that is kept ready before anybody asked; one machine, for a cluster costs many processes."""
    warm_keras: Annotated[tuple[Keras, ...], NoDecode] = (3,)
    """Versions of Keras whose TensorFlow is imported before anybody asked; another one is when it is first asked for.
    """
    prepare_data_sets: bool = True
    """Unpacks data sets beside the supervisor, so that sessions share their pages; otherwise each unpacks its own."""
    devices: Mode = "auto"
    """``auto``: real GPUs or a TPU where there are some for a session, simulated ones otherwise; ``simulate``: never
    real ones; ``gpu``, ``tpu``: who asks for such gets real ones or a refusal."""
    sessions_per_gpu: Annotated[int, Bounds(1, 64, "sessions")] = 1
    """Sessions that may have the same real GPU; each then has a fixed part of its memory."""
    outer_wall: Literal["auto", "bubblewrap", "none"] = "auto"
    """The wall around the zygote; ``none`` where a container is that wall already."""
    service_uid: Annotated[int, Bounds(1, 2**31 - 2, "a user id")] = 61_000
    """The plain user the zygote becomes when the supervisor is started as root; each session is a user after it."""
    strangers: bool = False
    """People it does not know can reach it: it runs code only where every essential wall is in force."""
    unsafe_runner: str = ""
    """Exactly ``ACCEPTANCE``: it runs their code in any case."""

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

    @field_validator("mime_types", mode="before")
    @classmethod
    def _shown(cls, value: Any) -> Any:
        types = re.split(r"[\s,]+", value.strip().lower()) if isinstance(value, str) else value
        for mime in types:
            if not _MIME_TYPE.fullmatch(mime):
                raise PydanticCustomError("mime_type", _NO_TYPE)
            if _EXECUTABLE.fullmatch(mime):
                raise PydanticCustomError("mime_type", _NO_PROGRAM, {"mime": mime})
        return tuple(dict.fromkeys(types))


def as_variables(settings: RunnerSettings) -> dict[str, str]:
    """Each variable with a value that would set it so.

    Left out is what need not agree between an operator's shell and a runner: where its data is, and who may come, of
    which a runner is told in other ways too.
    """
    elsewhere = {"data_dir", "strangers", "limits"}
    values = {f"LOCKSTEP_{name.upper()}": value for name, value in settings if name not in elsewhere}
    values |= {f"LOCKSTEP_LIMITS__{name.upper()}": value for name, value in settings.limits}
    return {variable: _written(value) for variable, value in values.items()}


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def main() -> None:
    """``python -m runners.settings``: print the settings as JSON, or name those that cannot be used, with status 2."""
    try:
        print(json.dumps(as_variables(RunnerSettings())))
    except ValidationError as e:
        print("\n".join(refusals(e)))
        sys.exit(2)


if __name__ == "__main__":
    main()
