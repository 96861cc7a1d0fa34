"""The kernel: ipykernel on sockets that were bound outside, in a process forked from a warm one.

The sockets' files lie in a folder of the host that the sandbox cannot see; their listening descriptors come in. So
the host never opens a path that learner code controls.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import zmq
from ipykernel.control import ControlThread
from ipykernel.heartbeat import Heartbeat
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.shellchannel import ShellChannelThread
from IPython.core.error import StdinNotImplementedError
from traitlets import Type
from traitlets.config import Config

from runners.devices import gpu
from runners.devices.topology import Topology
from runners.kernel.errors import show_only_the_ends
from runners.kernel.output import WarmStream, pack

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
"""The order of the listening descriptors; on the host their files end in -1 … -5."""

_FLUSH_S = 0.02
"""How long printed text waits for more before it is sent; ipykernel's own 0.2 s is felt."""
_NO_KEYBOARD = "a run cannot wait for the keyboard: put the value into the code, as in name = 'Ada'"


class WarmHeartbeat(Heartbeat):  # type: ignore[misc]
    """A heartbeat on a socket that was bound outside."""

    descriptor = -1

    def _try_bind_socket(self) -> None:
        self.socket.setsockopt(zmq.USE_FD, self.descriptor)
        self.socket.bind("ipc:///heartbeat")


class WarmKernel(IPythonKernel):  # type: ignore[misc]
    """ipykernel's kernel, but what asks for the keyboard is told that there is none, unless there is one."""

    keyboard = False

    def raw_input(self, prompt: str = "") -> str:
        """``input()`` ends here."""
        if self.keyboard:
            return str(super().raw_input(prompt))
        raise StdinNotImplementedError(_NO_KEYBOARD)

    def getpass(self, prompt: str = "", stream: object = None, **more: Any) -> str:
        """``getpass.getpass()`` ends here."""
        if self.keyboard:
            return str(super().getpass(prompt, stream, **more))
        raise StdinNotImplementedError(_NO_KEYBOARD)


class WarmKernelApp(IPKernelApp):  # type: ignore[misc]
    """ipykernel's application without files: no connection file, no history, no debugger."""

    kernel_class = Type(WarmKernel, klass=IPythonKernel)
    listeners: tuple[int, ...] = ()

    def init_crash_handler(self) -> None:
        """Tracebacks of the kernel itself are nobody's business inside."""

    def load_config_file(self, *_: Any, **__: Any) -> None:
        """A restarted kernel reads nothing that the one before has left in its home."""

    def _run_startup_files(self) -> None:
        """See load_config_file."""

    def init_connection_file(self) -> None:
        """The connection was agreed outside."""

    def write_connection_file(self, **_: Any) -> None:
        """See init_connection_file."""

    def log_connection_info(self) -> None:
        """Only record the channel numbers."""
        self._ports = {name: number for number, name in enumerate(CHANNELS, 1)}

    def _bind_socket(self, s: zmq.Socket[bytes], port: int) -> int:
        s.setsockopt(zmq.USE_FD, self.listeners[port - 1])
        s.setsockopt(zmq.SNDHWM, 0)  # never drop output; what waits is the session's own memory
        s.bind(f"ipc:///channel-{port}")
        return port

    def init_control(self, context: zmq.Context[Any]) -> None:
        """As in ipykernel, without the debugger's sockets."""
        self.control_socket = context.socket(zmq.ROUTER)
        self.control_socket.linger = 1000
        self._bind_socket(self.control_socket, CHANNELS.index("control") + 1)
        self.control_socket.router_handover = 1
        self.debugpy_socket = context.socket(zmq.STREAM)
        self.debug_shell_socket = context.socket(zmq.DEALER)
        self.control_thread = ControlThread(daemon=True)
        self.shell_channel_thread = ShellChannelThread(context, daemon=True)

    def init_heartbeat(self) -> None:
        """Beat, so that any Jupyter client can watch this kernel."""
        heartbeat = WarmHeartbeat(zmq.Context(), ("ipc", "heartbeat", 5))
        heartbeat.descriptor = self.listeners[4]
        self.heartbeat = heartbeat
        heartbeat.start()


def prepare(listeners: list[int], topology: str, key: bytes, keyboard: bool = False) -> WarmKernelApp:
    """Make this process a kernel that answers once ``start`` is called on it.

    Args:
        listeners: bound, listening Unix sockets in the order of CHANNELS.
        topology: what TensorFlow shall see, e.g. ``gpu:4``.
        key: signs the messages between this kernel and its client.
        keyboard: whether ``input()`` may ask that client.
    """
    gc.enable()
    reseed()
    gpu.simulate(Topology.parse(topology))
    sys.path[:] = [p for p in sys.path if p and Path(p).exists()]
    sys.argv = [""]
    asyncio.set_event_loop(asyncio.new_event_loop())
    application: WarmKernelApp = WarmKernelApp.instance(config=_config())
    application.listeners = tuple(listeners)
    application.shell_port, application.iopub_port, application.stdin_port, application.control_port = 1, 2, 3, 4
    application.hb_port = 5
    application.transport, application.ip = "ipc", "channel"
    application.session.key = key
    application.session.pack = pack
    application.initialize([])
    application.kernel.keyboard = keyboard
    application.shell.run_line_magic("matplotlib", "inline")
    show_only_the_ends(application.shell.InteractiveTB)
    for stream in (sys.stdout, sys.stderr):
        stream.flush_interval = _FLUSH_S  # type: ignore[union-attr]
    return application


def reseed() -> None:
    """A fork repeats its parent's random numbers: draw new ones."""
    random.seed()
    np.random.seed()


def _config() -> Config:
    config = Config()
    config.WarmKernelApp.log_level = 50
    config.WarmKernelApp.no_stdout = False
    config.WarmKernelApp.outstream_class = f"{WarmStream.__module__}.{WarmStream.__name__}"
    config.IPKernelApp.quiet = True
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "linux"
    config.InteractiveShell.xmode = "Context"
    config.IPythonKernel.debug_just_my_code = True
    config.IPCompleter.use_jedi = False
    return config
