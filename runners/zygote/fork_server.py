"""The zygote: a single-threaded process that has imported TensorFlow and forks sandboxes from itself.

A cold zygote has not: its kernels import TensorFlow themselves, because libtpu drives a TPU from the process that
imports it.

It never runs an op, lists logical devices, or starts a thread, because a child of such a process would hang. It talks
to the supervisor over one SEQPACKET socket (whose file descriptor is given on the command line):

    supervisor -> zygote   {"policy": …, "user": N or null}  with the descriptors a sandbox's PID 1 serves: control,
                           the memory of ``runners.wire.journal``, then kernel sockets
    zygote -> supervisor   {"ready": true, "patches": [{…}, …]} once, after the imports; of the patches, see
                           ``runners.guest.tf_patches.registry.PatchState``
                           {"pid": N, "landlock": N}, the first as the zygote sees it, with a pidfd, or {"error": "why"}
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from runners.guest.tf_patches.registry import PatchState, verify
from runners.sandbox import linux
from runners.sandbox.layout import DATASETS
from runners.sandbox.policy import SandboxPolicy
from runners.sandbox.seccomp import compile_deny_rules, deny_other_users
from runners.sandbox.setup import enter, hand_over_folders
from runners.zygote import heap

_LARGEST_REQUEST = 1 << 18
_MAY_CHANGE_USER = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID."""
_DESCRIPTORS = 7
"""The control socket, the memory for output, and the kernel's shell, iopub, stdin, control and heartbeat listeners."""


def main() -> None:
    """Run as
    ``python -m runners.zygote.fork_server --socket FD --keras 2|3 [--hardware] [--cold] [--become UID --users A-B]``.
    """
    parser = argparse.ArgumentParser(description="Lockstep's zygote (started by the supervisor)")
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--keras", type=int, choices=(2, 3), default=3)
    parser.add_argument("--hardware", action="store_true", help="this machine has real accelerators")
    parser.add_argument("--cold", action="store_true", help="leave the import of TensorFlow to each kernel")
    parser.add_argument("--become", type=int, default=0)
    parser.add_argument("--users", default="")
    arguments = parser.parse_args()
    if arguments.become:
        first, last = map(int, arguments.users.split("-"))
        drop_root(arguments.become, range(first, last + 1))
    linux.die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    linux.become_subreaper()
    supervisor = socket.socket(fileno=arguments.socket)
    set_up_environment(arguments.keras)
    import_late = partial(import_in_kernel, arguments.keras)
    gc.disable()  # imports produce hardly any garbage, and collecting it takes a fifth of their time
    ready: dict[str, Any] = {"ready": True}
    if not arguments.cold:
        with heap.adjacent_arenas(), ending_with(supervisor), silence_gpu_warnings():
            ready["patches"] = import_tensorflow(arguments.keras, hardware=arguments.hardware)
        heap.prepare_for_forks()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the supervisor may have ended meanwhile
        supervisor.send(json.dumps(ready).encode())
        serve(supervisor, import_late if arguments.cold else no_preparation)


@contextlib.contextmanager
def ending_with(supervisor: socket.socket) -> Iterator[None]:
    """End at once if the supervisor closes its end, instead of when the next request is read.

    That the parent has ended is no signal to a process of another user: Linux sends it with the parent's rights.
    """
    flags = fcntl.fcntl(supervisor, fcntl.F_GETFL)
    fcntl.fcntl(supervisor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(supervisor, fcntl.F_SETFL, flags | os.O_ASYNC)  # SIGIO ends a process that does not handle it
    poll = select.poll()
    poll.register(supervisor, 0)
    if poll.poll(0):  # it was closed before
        signal.raise_signal(signal.SIGIO)
    try:
        yield
    finally:
        fcntl.fcntl(supervisor, fcntl.F_SETFL, flags)


@contextlib.contextmanager
def silence_gpu_warnings() -> Iterator[None]:
    """Keep TensorFlow's messages about missing GPUs out of the log, unless the import fails."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except BaseException:
            said.seek(0)
            os.write(kept, said.read()[-10_000:])
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def drop_root(user: int, users: range) -> None:
    """Drop root permanently: become ``user``, with the right to become one of ``users``, and no other, in a child.

    Raises:
        OSError: a step failed, or the filter that keeps it from all other users is not in force.
    """
    os.setgroups([])
    linux.switch_user(user, _MAY_CHANGE_USER)
    linux.no_new_privileges()
    linux.install_seccomp(compile_deny_rules(deny_other_users(users)))
    try:
        os.setuid(user)  # harmless, because it is that user already; only the filter refuses it
    except PermissionError:
        return
    raise OSError("the zygote's filter is not in force: it may become any user again")


def set_up_environment(keras: int) -> None:
    """Set the environment variables that TensorFlow reads when it is imported."""
    os.environ.update(
        TF_CPP_MIN_LOG_LEVEL="2",
        TF_GRPC_WORKER_CACHE_QUEUES="2",  # one thread each, in every server of a cluster; the default is 64
        TF_USE_LEGACY_KERAS="1" if keras == 2 else "0",
        KERAS_BACKEND="tensorflow",
        OPENBLAS_NUM_THREADS="1",
        OMP_NUM_THREADS="1",
        CUDA_VISIBLE_DEVICES="-1",
        TPU_LOAD_LIBRARY="0",  # libtpu takes the TPU and starts threads: only a kernel that has the TPU loads it
        MPLBACKEND="agg",
        MPLCONFIGDIR="/tmp/.matplotlib",  # noqa: S108
        HOME="/tmp",  # noqa: S108
    )


def import_tensorflow(keras: int, *, hardware: bool = False) -> list[PatchState]:
    """Import everything that a session is likely to use, so that its pages are shared and nobody waits for it.

    Returns the state of every patch to these libraries, before the first one was applied.

    With ``hardware``, TensorFlow is not asked for devices: a process that has asked CUDA once and found none keeps that
    answer forever, and so do its children.
    """
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # 300 ms of import that no learner needs
    for name in (
        "numpy",
        "tensorflow",
        "keras" if keras == 3 else "tf_keras",
        "matplotlib.pyplot",
        "matplotlib_inline.backend_inline",
        "pandas",
        "PIL.Image",
        "ipykernel.ipkernel",
        "ipykernel.kernelapp",
        "ipykernel.zmqshell",
        "IPython.core.interactiveshell",
        "runners.guest.pid1.init",
        "runners.guest.runtime.kernel_app",
        "runners.guest.pid1.cluster_manager",
        "runners.checks",
        "runners.guest.judging.judge",
        "runners.guest.judging.submission",
        "runners.guest.tf_patches.gpu",
        "runners.guest.tf_patches.keras_datasets",
        "runners.guest.tf_patches.notebook_libraries",
        "runners.guest.tf_patches.tfds_datasets",
    ):
        importlib.import_module(name)
    import tensorflow as tf

    from runners.guest.runtime import kernel_app
    from runners.guest.tf_patches import eager_ops, keras_datasets, notebook_libraries, placement_log, tfds_datasets

    _ = tf.keras.layers, tf.distribute.MirroredStrategy, tf.keras.optimizers, tf.keras.datasets
    patches = verify()
    eager_ops.subject.apply()
    placement_log.subject.apply()
    keras_datasets.install(Path(DATASETS))
    tfds_datasets.install(Path(DATASETS))
    notebook_libraries.subject.apply()
    kernel_app.build_kernel_app(ask_for_devices=not hardware)
    if keras == 2:
        from runners.guest.tf_patches import keras2

        keras2.install()
    else:
        from runners.guest.tf_patches import keras3

        keras3.subject.apply()
    return patches


def import_in_kernel(keras: int) -> None:
    """Call ``import_tensorflow`` in a kernel, keeping the sandbox's environment as it is."""
    environment = dict(os.environ)
    import_tensorflow(keras, hardware=True)
    os.environ.clear()
    os.environ.update(environment)


def no_preparation() -> None:
    """Do nothing: a kernel's first step if everything is already imported."""


def serve(supervisor: socket.socket, first: Callable[[], None] = no_preparation) -> None:
    """Fork a sandbox for each request until the supervisor is gone; ``first`` is called at the start of each kernel."""
    poll = select.poll()
    poll.register(supervisor, select.POLLIN)
    while True:
        if poll.poll(1000):
            data, descriptors, _, _ = socket.recv_fds(supervisor, _LARGEST_REQUEST, _DESCRIPTORS)
            if not data:
                return
            _answer(supervisor, data, descriptors, first)
        reap_children()


def reap_children() -> None:
    """Reap children that have ended; the supervisor watches them by their pidfd."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(supervisor: socket.socket, data: bytes, descriptors: list[int], first: Callable[[], None]) -> None:
    pidfd = None
    try:
        request = json.loads(data)
        policy = SandboxPolicy.from_json(request["policy"])
        pid, pidfd, landlock = fork_sandbox(policy, request["user"], descriptors, supervisor, first)
        socket.send_fds(supervisor, [json.dumps({"pid": pid, "landlock": landlock}).encode()], [pidfd])
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as e:
        supervisor.send(json.dumps({"error": str(e) or repr(e)}).encode())
    finally:
        for fd in (*descriptors, *([pidfd] if pidfd is not None else [])):
            os.close(fd)


def fork_sandbox(
    policy: SandboxPolicy,
    user: int | None,
    descriptors: list[int],
    supervisor: socket.socket,
    first: Callable[[], None],
) -> tuple[int, int, int]:
    """Fork a sandbox whose PID 1 serves ``descriptors``, as ``user`` or as the zygote's own user.

    Returns:
        Its process ID in the zygote's PID namespace, a pidfd, and the Landlock version in force in it.

    Raises:
        RuntimeError: a step failed in the child (the message names it), or this process has more than one thread.
    """
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        raise RuntimeError(f"the zygote has {threads} threads; a fork would hang")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        middle = linux.fork_quietly()
        if not middle:
            ours.close()
            supervisor.close()
            _child(policy, user, theirs, descriptors, first)
        theirs.close()
        try:
            pid, landlock = read_report(ours)
        finally:
            os.waitpid(middle, 0)
    return pid, os.pidfd_open(pid), landlock


def _child(
    policy: SandboxPolicy, user: int | None, report: socket.socket, descriptors: list[int], first: Callable[[], None]
) -> None:
    from runners.guest.pid1.init import Init

    if user is not None:
        try:
            linux.switch_user(user)
        except OSError as e:
            report.send(f"!user {user}: {e}".encode())
            os._exit(1)
    control, (printed, *listeners) = socket.socket(fileno=descriptors[0]), descriptors[1:]

    def serve(score: int | None) -> None:
        Init(control, printed, listeners, first, score).serve()

    enter(policy, report, serve, lambda: hand_over_folders(control))


def read_report(report: socket.socket) -> tuple[int, int]:
    """Read PID 1's process ID, from its parent, and the Landlock version, from PID 1, in either order.

    Both close the other end afterward.

    Raises:
        RuntimeError: one of them failed (the message says how), or ended without a message.
    """
    words = sorted(iter(lambda: report.recv(4096).decode(), ""))
    match words:
        case [complaint, *_] if complaint.startswith("!"):
            raise RuntimeError(complaint[1:])
        case [pid, ready] if pid.isdigit() and ready.startswith("ready "):
            return int(pid), int(ready.removeprefix("ready "))
        case _:
            raise RuntimeError("the child ended without a message")


if __name__ == "__main__":
    main()
