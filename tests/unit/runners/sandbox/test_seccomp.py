"""The filter of system calls as a program for the kernel."""

from __future__ import annotations

from runners.sandbox.seccomp import REFUSED, compile_filter


def test_the_filter_compiles_to_whole_instructions_the_kernel_takes() -> None:
    program = compile_filter()
    assert len(program) % 8 == 0
    assert 20 < len(program) // 8 <= 4096


def test_no_call_is_named_twice() -> None:
    names = REFUSED.split()
    assert len(names) == len(set(names))
