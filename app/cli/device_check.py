"""Checks that an operator's real devices work: ``lockstep doctor --devices`` runs sessions on them.

Sessions are requested like learners' sessions, with the same isolation and one device each, until a session gets no
real device. While all of them live, each multiplies matrices, runs a step of its strategy, and asks the driver which
devices it can open: no two may open the same one. The last session gets all devices together. A TPU goes whole to one
session: a second session that asks for it meanwhile must not get it, and a third one must get it once the first has
ended.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from runners.wire.client import RunnerClient, RunnerError
from runners.wire.protocol import (
    FinishedEvent,
    NoticeEvent,
    RunRequest,
    SessionInfo,
    SessionSpec,
    SessionState,
    TextEvent,
)

_MAX_DEVICES = 16
"""The most devices to try; trying more would show nothing new."""
_MAX_DEVICES_PER_SESSION = 8
"""The most devices of one topology."""
_QUEUE_TIMEOUT_S = 10.0
"""How long a session may wait for its seat; an idle session of a learner is evicted sooner."""
_NO_FREE_SESSION = (
    "The runner has no free seat for another session. Try again when it is less busy, or raise LOCKSTEP_MAX_SESSIONS."
)
_RESULT_PREFIX = "lockstep-result "
_DRIVER_PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
count, device, uuid = ctypes.c_int(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
    sys.exit("the driver is not responding")
for number in range(count.value):
    cuda.cuDeviceGet(ctypes.byref(device), number)
    cuda.cuDeviceGetUuid_v2(uuid, device)
    print(bytes(uuid).hex())
"""
"""Asks the driver, not TensorFlow, which devices this sandbox can open, without the variable that hides devices."""
_TRAINING_PROGRAM = """
import glob, json, os, subprocess, sys
import tensorflow as tf
kind = {kind!r}
def opened():
    free = {{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}}
    said = subprocess.run([sys.executable, "-c", {driver!r}], env=free, capture_output=True, text=True)
    return said.stdout.split() if not said.returncode else [said.stderr[-300:]]
names = [str(tf.config.experimental.get_device_details(d).get("device_name", d.name))
         for d in tf.config.list_physical_devices(kind)]
if kind == "TPU":
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
else:
    strategy = tf.distribute.MirroredStrategy()
with tf.device(f"/{{kind}}:0"):
    product = tf.linalg.matmul(tf.ones((512, 512)), tf.ones((512, 512)))
with strategy.scope():
    weight = tf.Variable(1.0)
@tf.function
def step():
    def replica():
        context = tf.distribute.get_replica_context()
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(1.0))
        weight.assign_add(total)
        return total
    return strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(replica), axis=None)
total = float(step())
print({mark!r} + json.dumps({{
    "names": names,
    "device": product.device,
    "right": bool(tf.reduce_all(product == 512.0)) and total == strategy.num_replicas_in_sync,
    "replicas": strategy.num_replicas_in_sync,
    "opened": opened() if kind == "GPU" else glob.glob("/dev/accel*") + glob.glob("/dev/vfio/*"),
}}))
"""


@dataclass(frozen=True, slots=True)
class DeviceTrial:
    """One session on real devices, and the output of its program."""

    topology: str
    output: dict[str, object] = field(default_factory=dict)
    error: str = ""

    @property
    def opened(self) -> tuple[str, ...]:
        """The devices that its sandbox can open, according to the driver."""
        said = self.output.get("opened")
        return tuple(map(str, said)) if isinstance(said, list) else ()

    @property
    def names(self) -> tuple[str, ...]:
        said = self.output.get("names")
        return tuple(map(str, said)) if isinstance(said, list) else ()

    def failure(self) -> str:
        """Describe what is wrong; empty if nothing is."""
        kind, _, count = self.topology.partition(":")
        if self.error:
            return self.error
        if f"device:{kind.upper()}:" not in str(self.output.get("device", "")):
            return f"the matrices were multiplied on {self.output.get('device')}"
        if self.output.get("right") is not True:
            return "it computed a wrong result"
        if self.output.get("replicas") != int(count):
            return f"its strategy has {self.output.get('replicas')} replicas"
        return ""


@dataclass(frozen=True, slots=True)
class DeviceCheckResult:
    """All trials, or the reason why there are none."""

    trials: tuple[DeviceTrial, ...]
    why_no_devices: str = ""
    untested: str = ""
    """Why some devices may not have been tried."""

    @property
    def passed(self) -> bool:
        """Whether there is a real device, all trials succeeded, and no two concurrent ones shared a device."""
        return bool(self.trials) and not any(trial.failure() for trial in self.trials) and not self.shared

    @property
    def shared(self) -> tuple[str, ...]:
        """Devices that several sessions could open, although each session must have its own."""
        alone = (trial for trial in self.trials if trial.topology.endswith(":1") or trial.topology.startswith("tpu"))
        seen = [device for trial in alone for device in trial.opened]
        return tuple(sorted({device for device in seen if seen.count(device) > 1}))

    def to_text(self) -> Iterator[str]:
        if not self.trials:
            yield f"No real device was found. {self.why_no_devices}"
            return
        for trial in self.trials:
            names = ", ".join(trial.names) or "no device"
            wrong = trial.failure()
            yield f"{'failed' if wrong else 'ok':8}{trial.topology:8}{names}{f': {wrong}' if wrong else ''}"
        for device in self.shared:
            yield f"failed  two sessions could open {device} at the same time"
        if self.untested:
            yield f"There may be more devices. {self.untested}"
        yield (
            "All devices are real, and no session could see another's."
            if self.passed
            else "The check failed: see above."
        )


async def check_devices(client: RunnerClient) -> DeviceCheckResult:
    """Try every real device of the runner, GPUs and TPU. Ends every session that it started."""
    begun: list[str] = []
    trials: list[DeviceTrial] = []
    why, untested = "The runner has only simulated devices; see 'accelerators' in lockstep doctor.", ""
    try:
        for _ in range(_MAX_DEVICES):
            trial, refusal = await _run_trial(client, "gpu:1", begun)
            why = refusal or why
            if trial is None:
                untested = refusal if refusal == _NO_FREE_SESSION else ""
                break
            trials.append(trial)
        await _end_sessions(client, begun)
        if len(trials) > 1:
            together, _ = await _run_trial(client, f"gpu:{min(len(trials), _MAX_DEVICES_PER_SESSION)}", begun)
            trials += [together] if together else []
            await _end_sessions(client, begun)
        for cores in (8, 4, 1) if not trials else ():
            tried, refusal = await _run_tpu_trials(client, f"tpu:{cores}", begun)
            trials += tried
            why = refusal or why
    finally:
        await _end_sessions(client, begun)
    return DeviceCheckResult(tuple(trials), why, untested)


async def _run_tpu_trials(client: RunnerClient, topology: str, begun: list[str]) -> tuple[list[DeviceTrial], str]:
    """Try the TPU in one session, in a second one at the same time, and in a third one after both."""
    first, refusal = await _run_trial(client, topology, begun)
    if first is None:
        return [], refusal
    second, _ = await _run_trial(client, topology, begun)
    await _end_sessions(client, begun)
    third, _ = await _run_trial(client, topology, begun)
    await _end_sessions(client, begun)
    if third is None or third.failure():
        after = third.failure() if third else "it is not real"
        third = DeviceTrial(topology, error=f"in the next session after the first one ended: {after}")
        return [first, *([second] if second else []), third], ""
    return [first, *([second] if second else [])], ""


async def _end_sessions(client: RunnerClient, begun: list[str]) -> None:
    while begun:
        with suppress(RunnerError):
            await client.end(begun.pop())


async def _run_trial(client: RunnerClient, topology: str, begun: list[str]) -> tuple[DeviceTrial | None, str]:
    """Run one session. If its devices are not real, return None, and the reason if there is one."""
    name = secrets.token_hex(16)
    kind = topology.partition(":")[0].upper()
    spec = SessionSpec(owner=name, topology=topology)
    begun.append(name)
    request = RunRequest(id=name, session=name, spec=spec, code="pass")
    await client.submit(request)
    if not await _leaves_queue(client, name):
        return None, _NO_FREE_SESSION
    first = await _follow_run(client, name)
    info = await _session_info(client, name)
    if info is None or not info.real:
        return None, first.error
    code = _TRAINING_PROGRAM.format(kind=kind, mark=_RESULT_PREFIX, driver=_DRIVER_PROGRAM)
    request = RunRequest(id=secrets.token_hex(16), session=name, spec=spec, code=code)
    await client.submit(request)
    said = await _follow_run(client, request.id)
    if said.error:
        return DeviceTrial(topology, error=said.error), ""
    line = next((line for line in said.text.splitlines() if line.startswith(_RESULT_PREFIX)), _RESULT_PREFIX + "{}")
    return DeviceTrial(topology, json.loads(line.removeprefix(_RESULT_PREFIX))), ""


async def _leaves_queue(client: RunnerClient, session: str) -> bool:
    """Wait for the session to leave the runner's queue; returns whether it did in time."""
    end = monotonic() + _QUEUE_TIMEOUT_S
    while (info := await _session_info(client, session)) is not None and info.state is SessionState.queued:
        if monotonic() > end:
            return False
        await asyncio.sleep(0.1)
    return True


@dataclass(slots=True)
class _ProgramOutput:
    text: str = ""
    error: str = ""


async def _session_info(client: RunnerClient, session: str) -> SessionInfo | None:
    with suppress(RunnerError):
        return await client.session(session)
    return None


async def _follow_run(client: RunnerClient, run: str) -> _ProgramOutput:
    """Follow a run to its end; ``error`` says how it failed."""
    said = _ProgramOutput()
    async for event in client.events(run):
        match event:
            case TextEvent(stream="stdout", text=text):
                said.text += text
            case NoticeEvent(code="session-failed", text=text):
                said.error = text
            case FinishedEvent(outcome=outcome) if outcome != "ok":
                said.error = said.error or f"the program ended with {outcome}"
    return said
