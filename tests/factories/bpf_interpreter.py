"""An interpreter for classic BPF, as far as seccomp uses it, to test filters without a sandbox."""

from __future__ import annotations

import struct

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
X86_64, I386, AARCH64 = 0xC000003E, 0x40000003, 0xC00000B7


def evaluate_filter(program: bytes, architecture: int, call: int, *arguments: int) -> int:
    """The kernel's answer to a system call, such as ``ALLOW`` or ``ERRNO | 1``."""
    data = struct.pack("=iIQ6Q", call, architecture, 0, *(*arguments, *[0] * (6 - len(arguments))))
    instructions = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        code, yes, no, k = instructions[at]
        at += 1
        match code:
            case 0x20:  # load a word of the call
                accumulator = struct.unpack_from("=I", data, k)[0]
            case 0x54:  # and
                accumulator &= k
            case 0x05:  # jump
                at += k
            case 0x15 | 0x25 | 0x35:  # jump if equal, greater, greater or equal
                true = accumulator == k if code == 0x15 else accumulator > k if code == 0x25 else accumulator >= k
                at += yes if true else no
            case 0x06:  # return
                return int(k)
            case _:
                raise ValueError(f"unknown instruction {code:#x}")
