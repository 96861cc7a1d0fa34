"""The kernel: ipykernel on sockets that were bound outside the sandbox, in a process forked from a warm one.

The sockets are in a folder of the host that the sandbox cannot see; only their listening descriptors come in. The host
therefore never opens a path that learner code controls.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import secrets
import socket
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import zmq
from ipykernel.control import ControlThread
from ipykernel.heartbeat import Heartbeat
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.shellchannel import ShellChannelThread
from ipykernel.thread import make_selector_io_loop
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.application import BaseIPythonApplication
from IPython.core.error import StdinNotImplementedError
from IPython.utils.path import get_home_dir
from jupyter_client.session import new_id
from tensorflow.python.framework import kernels
from traitlets import Type
from traitlets.config import Config
from zmq.eventloop.zmqstream import ZMQStream

from runners.guest.api import cluster_failures, supplied_modules
from runners.guest.cluster import task_context, training_step
from runners.guest.cluster.task_context import TaskContext
from runners.guest.reporting import lanes, notices, publisher
from runners.guest.runtime import device_setup, instrumentation, interrupts, pip_answers, plain_output, plot_fonts
from runners.guest.runtime.imported_names import imported_names
from runners.guest.runtime.output import WarmStream, encode_message
from runners.guest.runtime.peers import Peers, TaskFailure, summarize_failures
from runners.guest.runtime.stall_detector import StallDetector
from runners.guest.runtime.tracebacks import paths_below_cell, shorten_long_tracebacks
from runners.guest.tf_patches import (
    collectives,
    distributed_datasets,
    graph_errors,
    jupyter_kernel,
    rendezvous,
    server_join,
    tf_print,
)
from runners.wire.error_hints import find_hint
from runners.wire.exit_status import is_clean_exit
from runners.wire.journal import OutputStream
from runners.wire.topology import Topology

_ALLOW_INCOMPLETE_INPUT = 0x4000
"""A flag of ``compile`` for consoles: that a bracket was never closed is then only "incomplete input"."""
CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
"""The order of the listening descriptors; on the host their files end in -1 … -5."""

_FLUSH_S = 0.02
"""How long printed text waits for more before it is sent; ipykernel's own 0.2 s is noticeable."""
STDIN_UNAVAILABLE = "a run cannot wait for the keyboard: put the value in the code, as in name = 'Ada'"


class WarmHeartbeat(Heartbeat):  # type: ignore[misc]
    """A heartbeat on a socket that was bound outside."""

    descriptor = -1

    def _try_bind_socket(self) -> None:
        self.socket.setsockopt(zmq.USE_FD, self.descriptor)
        self.socket.bind("ipc:///heartbeat")


class WarmKernel(IPythonKernel):  # type: ignore[misc]
    """ipykernel's kernel, in which reading from the keyboard raises an error unless its client has one."""

    keyboard = False
    others: Peers | None = None
    """The other processes, if this one is part of a cluster."""
    watch: StallDetector | None = None
    """As ``others``."""

    shell_class = Type("runners.guest.runtime.kernel_app.WarmShell")

    def __init__(self, **kwargs: Any) -> None:
        with jupyter_kernel.hidden_modules():
            super().__init__(**kwargs)

    def pre_handler_hook(self) -> None:
        """Before each request: from now on, SIGINT raises KeyboardInterrupt."""
        interrupts.accept()

    def post_handler_hook(self) -> None:
        """After each request: until the next one, SIGINT is ignored."""
        interrupts.ignore()

    def publish(self, kind: str, content: dict[str, Any], lane: str | None = None) -> None:
        """Send a message of the output channel, from any thread."""
        metadata = {"lockstep": {"lane": lane}} if lane else None
        parent = self.get_parent("shell")
        self.session.send(self.iopub_socket, kind, content, parent=parent, metadata=metadata, ident=self._topic(kind))

    async def do_execute(self, code: str, silent: bool, store_history: bool = True, *more: Any, **named: Any) -> Any:
        """Run a cell, in a cluster in every process; it ends when it has ended in all of them."""
        own = task_context.current_context()
        if own is None or self.others is None or self.watch is None:
            return await super().do_execute(code, silent, store_history, *more, **named)
        self.others.begin(code, store_history)
        with self.watch.cell():
            reply: dict[str, Any] = await super().do_execute(code, silent, store_history, *more, **named)
        ended = time.monotonic()
        failures, interrupted = self.others.finish()
        if reply["status"] == "error" and not is_clean_exit(reply["ename"], reply["evalue"]):
            failures.insert(0, TaskFailure(own.task, reply["ename"], reply["evalue"], ended))
        elif interrupted:
            failures.insert(0, TaskFailure(own.task, "KeyboardInterrupt", ""))
        if failures:
            name, value = summarize_failures(failures)
            reply |= {"status": "error", "ename": name, "evalue": value}
            reply.setdefault("traceback", [])
        return reply

    def do_complete(self, code: str, cursor_pos: int | None) -> Any:
        """Complete code; the modules that it imports count even before it has run."""
        # IPython prints the traceback of what fails meanwhile, or is interrupted: the next run would show it.
        hook, sys.excepthook = sys.excepthook, lambda *_: None
        try:
            with imported_names(code, self.shell.user_ns):
                return super().do_complete(code, cursor_pos)
        finally:
            sys.excepthook = hook

    def do_inspect(self, code: str, cursor_pos: int, *more: Any, **named: Any) -> Any:
        """Describe the name at the cursor, as ``do_complete``."""
        with imported_names(code, self.shell.user_ns):
            return super().do_inspect(code, cursor_pos, *more, **named)

    def raw_input(self, prompt: str = "") -> str:
        if self.keyboard:
            return str(super().raw_input(prompt))
        raise StdinNotImplementedError(STDIN_UNAVAILABLE)

    def getpass(self, prompt: str = "", stream: object = None, **more: Any) -> str:
        if self.keyboard:
            return str(super().getpass(prompt, stream, **more))
        raise StdinNotImplementedError(STDIN_UNAVAILABLE)


class WarmShell(ZMQInteractiveShell):  # type: ignore[misc]
    """A shell that was created before its kernel, in another process."""

    def enable_gui(self, gui: Any = None) -> None:
        """Without a kernel there is no event loop to choose."""
        if self.kernel is not None:
            super().enable_gui(gui)

    def _showtraceback(self, etype: type[BaseException], evalue: BaseException, stb: list[str]) -> None:
        if is_clean_exit(etype.__name__, str(evalue)):
            self._last_traceback: list[str] = []
            return
        super()._showtraceback(etype, evalue, stb)
        files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(evalue.__traceback__)]
        keras = 2 if os.environ.get("TF_USE_LEGACY_KERAS") == "1" else 3
        if hint := find_hint(etype.__name__, str(evalue), files, keras):
            code, values = hint
            notices.notify(code, **values)

    def system(self, cmd: str) -> None:
        """Run a shell command, but answer for pip."""
        if (answer := pip_answers.answer_command(self.var_expand(cmd, depth=1))) is None:
            super().system(cmd)
        else:
            print(answer)

    def ask_exit(self) -> None:
        """Without a kernel, ``exit()`` ends the cell."""
        if self.kernel is None:
            raise SystemExit
        super().ask_exit()

    def move_in(self, kernel: WarmKernel) -> None:
        """Attach to ``kernel``, and recompute what depends on the process and its folders."""
        self.parent = self.kernel = kernel
        self.init_environment()
        self.home_dir = get_home_dir()
        self.starting_dir = str(Path.cwd())
        self.history_manager.dir_hist[:] = [Path.cwd()]


class WarmKernelApp(IPKernelApp):  # type: ignore[misc]
    """ipykernel's application without files: no connection file, no history, no debugger."""

    kernel_class = Type(WarmKernel, klass=IPythonKernel)
    kernel: WarmKernel
    listeners: tuple[int, ...] = ()
    keyboard = False
    """Whether its client is Jupyter's, which uses all five channels. A session uses two, and fewer threads."""

    def init_crash_handler(self) -> None:
        """Do nothing: learners do not need tracebacks of the kernel itself."""

    def load_config_file(self, *_: Any, **__: Any) -> None:
        """Do nothing: a restarted kernel must not read what the previous one has left in its home folder."""

    def _run_startup_files(self) -> None:
        """See load_config_file."""

    def init_connection_file(self) -> None:
        """Do nothing: the connection was set up outside."""

    def write_connection_file(self, **_: Any) -> None:
        """See init_connection_file."""

    def log_connection_info(self) -> None:
        """Record only the channel numbers."""
        self._ports = {name: number for number, name in enumerate(CHANNELS, 1)}

    def open(self) -> None:
        """Become the kernel of this process: the part of ``initialize`` that follows ``build_kernel_app``."""
        self.shell_port, self.iopub_port, self.stdin_port, self.control_port, self.hb_port = 1, 2, 3, 4, 5
        self.transport, self.ip = "ipc", "channel"
        self.init_sockets()
        if self.keyboard:
            self.init_heartbeat()
        self.log_connection_info()
        self.init_io()
        self.init_signal()
        self.init_kernel()
        self.init_path()
        self.init_shell()
        self.shell.move_in(self.kernel)
        sys.stdout.flush()
        sys.stderr.flush()

    def _bind_socket(self, s: zmq.Socket[bytes], port: int) -> int:
        s.setsockopt(zmq.USE_FD, self.listeners[port - 1])
        s.setsockopt(zmq.SNDHWM, 0)  # never drop output; waiting output uses the session's own memory
        s.bind(f"ipc:///channel-{port}")
        return port

    def init_sockets(self) -> None:
        """Create the sockets of the channels, and the thread for output."""
        if self.keyboard:
            super().init_sockets()
            return
        self.context = zmq.Context()
        self.shell_socket = self.context.socket(zmq.ROUTER)
        self._bind_socket(self.shell_socket, self.shell_port)
        self.init_iopub(self.context)

    def init_kernel(self) -> None:
        """Create the kernel. A session's reads the shell channel in its main thread."""
        if self.keyboard:
            super().init_kernel()
            self.kernel.keyboard = True
            return
        self.kernel = WarmKernel.instance(
            parent=self,
            session=self.session,
            shell_stream=ZMQStream(self.shell_socket),
            iopub_thread=self.iopub_thread,
            iopub_socket=self.iopub_socket,
            log=self.log,
            profile_dir=self.profile_dir,
            user_ns=self.user_ns,
        )
        self.displayhook.get_execution_count = lambda: self.kernel.execution_count

    def init_control(self, context: zmq.Context[Any]) -> None:
        """As in ipykernel, but without the debugger's sockets."""
        self.control_socket = context.socket(zmq.ROUTER)
        self.control_socket.linger = 1000
        self._bind_socket(self.control_socket, CHANNELS.index("control") + 1)
        self.control_socket.router_handover = 1
        self.debugpy_socket = context.socket(zmq.STREAM)
        self.debug_shell_socket = context.socket(zmq.DEALER)
        self.control_thread = ControlThread(daemon=True)
        self.shell_channel_thread = ShellChannelThread(context, daemon=True)

    def init_heartbeat(self) -> None:
        """Start the heartbeat, so that Jupyter's client can monitor this kernel."""
        heartbeat = WarmHeartbeat(zmq.Context(), ("ipc", "heartbeat", 5))
        heartbeat.descriptor = self.listeners[4]
        self.heartbeat = heartbeat
        heartbeat.start()


def build_kernel_app(*, ask_for_devices: bool = True) -> WarmKernelApp:
    """Create, in the zygote, the parts of a kernel that need no thread, socket or topology: the application and its
    shell.

    Work done here is done once and shared; every learner waits for the work left to ``prepare_kernel``.

    Args:
        ask_for_devices: whether TensorFlow may list devices here, once for all children.
    """
    with tempfile.TemporaryDirectory() as folder:  # a profile creates its folders at once; a session does not need them
        os.environ["IPYTHONDIR"] = folder
        application: WarmKernelApp = WarmKernelApp.instance(config=_config())
        BaseIPythonApplication.initialize(application, [])
    application.init_pdb()
    application.shell = shell = WarmShell.instance(parent=application, profile_dir=application.profile_dir)
    application.init_extensions()
    application.init_code()
    shell.compile.flags &= ~_ALLOW_INCOMPLETE_INPUT
    shell.run_line_magic("matplotlib", "inline")
    plot_fonts.use_east_asian_font()
    shell.register_magic_function(lambda line: print(pip_answers.answer_pip(line)), "line", "pip")
    shorten_long_tracebacks(shell.InteractiveTB)
    graph_errors.leave_out_frames(paths_below_cell())
    warnings.filterwarnings("ignore", "To exit: use")  # IPython's hint for terminal users
    tf_print.subject.apply()
    collectives.subject.apply()
    distributed_datasets.lifetime.apply()
    instrumentation.watch_cells(shell.events)
    supplied_modules.install()
    _warm_up(application)
    if ask_for_devices:
        tf.config.list_physical_devices()
    return application


def _warm_up(application: WarmKernelApp) -> None:
    """Do once whatever imports, caches or compiles when first used, and leave no other trace."""
    make_selector_io_loop().close()
    application.log.info("rehearsal: %i", 1)
    application.shell.run_cell("None", silent=True)
    try:
        raise ValueError("rehearsal")
    except ValueError as e:  # half a second of imports
        application.shell.InteractiveTB.structured_traceback(type(e), e, e.__traceback__)
    _ = application.session
    kernels.get_registered_kernels_for_op("NoOp")


def prepare_kernel(
    listeners: list[int],
    topology: str,
    key: bytes,
    printed: dict[str, OutputStream],
    keyboard: bool = False,
    own: TaskContext | None = None,
    news: socket.socket | None = None,
) -> WarmKernelApp:
    """Turn this child of a process that called ``build_kernel_app`` into a kernel; it answers once ``start`` is called.

    Args:
        listeners: bound, listening Unix sockets in the order of CHANNELS.
        topology: the machine that TensorFlow sees, such as ``gpu:4``.
        key: signs the messages between this kernel and its client.
        printed: where standard output and error go, by name.
        keyboard: whether ``input()`` may ask that client.
        own: its task, if it is part of a cluster.
        news: the socket on which PID 1 announces the cluster's other processes.
    """
    gc.enable()
    reseed_random()
    join_cluster(own)
    machine = Topology.parse(topology)
    device_setup.set_up_devices(machine)
    instrumentation.install(machine)
    sys.path[:] = [p for p in sys.path if p and Path(p).exists()]
    sys.argv = [""]
    asyncio.set_event_loop(asyncio.new_event_loop())
    application: WarmKernelApp = WarmKernelApp.instance()
    application.listeners = tuple(listeners)
    application.keyboard = keyboard
    WarmStream.streams = printed
    WarmStream.waits = keyboard
    application.session.session = new_id()
    application.session.pid = os.getpid()
    application.session.key = key
    application.session.pack = encode_message
    application.open()
    publish: plain_output.Publish = application.kernel.publish
    if keyboard:  # its client is not ours, and does not understand lanes and reports
        plain_output.label_lanes(application.session)
        publish = plain_output.notices_as_text(publish)
    if own and news:
        lanes.tag_messages(application.session)
        application.kernel.watch = StallDetector(own)
        if machine.kind == "ps":
            application.kernel.watch.look_at_polls()
        application.kernel.others = Peers(own, news, publish)
    publisher.set_sink(publish)
    for stream in (sys.stdout, sys.stderr):
        stream.flush_interval = _FLUSH_S  # type: ignore[union-attr]
    return application


def join_cluster(own: TaskContext | None) -> None:
    """Become the process of a cluster's task, or of no cluster; call before TensorFlow is set up."""
    task_context.set_context(own)
    if own is None:
        lanes.set_lane(secrets.token_hex(4), None)
        return
    lanes.set_lane(own.nonce, own.task.lane)
    own.set_tf_config()
    training_step.attach(own.shared_state, own.number, cluster_failures.apply_pending)
    if own.task.role in ("chief", "worker") and own.topology.kind == "workers":
        rendezvous.install_rendezvous(own)
        server_join.install_server_join(own)


def reseed_random() -> None:
    """Reseed random number generators, because a fork repeats its parent's numbers."""
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
