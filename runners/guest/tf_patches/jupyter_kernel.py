"""Declares what the kernel relies on in ipykernel, IPython and jupyter_client: overridden methods, and one patch.

An override of a method that no longer exists is silently never called. Each one is therefore declared here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from runners.guest.tf_patches.registry import Subject

_CODE = "tests/functional/runner/test_code_execution.py::"
_JUPYTER = "tests/functional/runner/test_jupyter.py::"
_DEBUGGER_TEST = f"{_CODE}test_a_kernel_has_no_debugger_and_has_not_looked_at_any_module"

subject = Subject(
    __name__,
    when="every kernel",
    because="a kernel is forked from a warm process, uses sockets that were bound outside, and has no files",
    since="ipykernel 7.4",
    test=f"{_JUPYTER}test_a_kernel_answers_on_every_channel_and_leaves_nothing",
)
output = Subject(
    "kernel_output",
    when="every kernel",
    because="output leaves the kernel in order, complete, and through the journal",
    since="ipykernel 7.4",
    test=f"{_CODE}test_outputs_of_every_origin_come_in_order_and_before_the_end",
)
keyboard = Subject(
    "kernel_keyboard",
    when="every kernel",
    because="a run cannot wait for the keyboard",
    since="ipykernel 7.4",
    test=f"{_CODE}test_asking_for_the_keyboard_ends_with_a_sentence_that_helps",
)


@contextmanager
def hidden_modules() -> Iterator[None]:
    """Hide all modules from ipykernel while a kernel is created."""
    undo = subject.apply()
    try:
        yield
    finally:
        undo()


class _WithoutModules:
    """A stand-in for ``sys`` in code that would read the file name of every module."""

    modules: ClassVar[dict[str, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


@subject.value(
    "ipykernel.ipkernel:sys",
    used_by=("ipykernel.ipkernel:IPythonKernel.__init__",),
    because="its debugger looks at each of 5,000 modules, and each changed reference count copies a page of memory",
    test=_DEBUGGER_TEST,
)
def _hide_modules(_: Any) -> Any:
    return _WithoutModules()


subject.needs(
    "ipykernel.debugger:_is_debugpy_available",
    because="debugpy is left out: its import takes 300 ms",
    test=_DEBUGGER_TEST,
)
subject.needs("ipykernel.heartbeat:Heartbeat._try_bind_socket", relies_on=("(self)",))
for _name, _parameters in {
    "init_crash_handler": "(self)",
    "load_config_file": "(self, ...)",
    "_run_startup_files": "(self)",
    "init_connection_file": "(self)",
    "write_connection_file": "(self, **kwargs)",
    "log_connection_info": "(self)",
    "_bind_socket": "(self, s, port)",
    "init_control": "(self, context)",
    "init_heartbeat": "(self)",
    "init_sockets": "(self)",
    "init_io": "(self)",
    "init_kernel": "(self)",
    "init_path": "(self)",
    "init_shell": "(self)",
}.items():
    subject.needs(f"ipykernel.kernelapp:IPKernelApp.{_name}", relies_on=(_parameters,))

subject.needs("ipykernel.ipkernel:IPythonKernel.do_execute", relies_on=("(self, code, silent, store_history, ...)",))
for _name in ("pre_handler_hook", "post_handler_hook"):
    subject.needs(f"ipykernel.kernelbase:Kernel.{_name}", relies_on=("(self)",))
keyboard.needs("ipykernel.kernelbase:Kernel.raw_input", relies_on=("(self, prompt)",))
keyboard.needs("ipykernel.kernelbase:Kernel.getpass", relies_on=("(self, prompt, stream, ...)",))
subject.needs("ipykernel.zmqshell:ZMQInteractiveShell.enable_gui", relies_on=("(self, gui)",))
subject.needs("ipykernel.zmqshell:ZMQInteractiveShell.ask_exit", relies_on=("(self)",))
subject.needs(
    "ipykernel.zmqshell:ZMQInteractiveShell._showtraceback",
    relies_on=("(self, etype, evalue, stb)", "._last_traceback"),
    because="some errors get a hint, and a script that exits shows no error",
    test=f"{_CODE}test_a_script_may_end_itself",
)

for _name, _parameters in {
    "_setup_stream_redirects": "(self, name)",
    "_schedule_flush": "(self)",
    "_flush": "(self)",
    "_flush_buffers": "(self)",
    "_watch_pipe_fd": "(self)",
    "_is_master_process": "(self)",
    "flush": "(self)",
    "write": "(self, string)",
}.items():
    output.needs(f"ipykernel.iostream:OutStream.{_name}", relies_on=(_parameters,))
for _name in ("_buffer_lock", "_buffers", "_hooks", "_flush_pending", "_should_watch", "watch_fd_thread"):
    output.needs("ipykernel.iostream:OutStream.__init__", relies_on=(f".{_name}",))
output.needs("ipykernel.iostream:IOPubThread.schedule", relies_on=("(self, f)", "._events"))
subject.needs(
    "jupyter_client.session:Session.send",
    relies_on=("(self, stream, msg_or_type, content, parent, ident, buffers, track, header, metadata)",),
    because="every message names its lane",
    test="tests/functional/runner/test_clusters.py::test_every_worker_runs_the_cell_in_its_lane_and_in_order",
)
subject.needs(
    "IPython.core.ultratb:ListTB.structured_traceback",
    because="the middle of a long traceback is omitted, because it would take IPython half a minute",
    test="tests/unit/runners/guest/runtime/test_tracebacks.py"
    "::test_the_formatter_says_what_is_left_out_of_every_error_in_the_chain",
)
