"""Prepares the zygote's memory for sharing: a child shares each page that it does not write to.

Two things write to pages needlessly. Python's garbage collector marks every object it looks at, so existing objects are
frozen. And glibc's ``malloc`` first allocates the holes between old objects, each of which copies a page, so the holes
are filled: a child then allocates memory in its own contiguous pages.

A fork also copies a table entry for every page. A huge page has one entry instead of 512, which halves the time of a
fork. When a child writes to a huge page, it splits into 512 again, and only one of them is copied, so nothing is lost.
Only adjacent memory can be a huge page, so Python takes its memory before libraries are loaded in between.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path

_LARGEST_HOLE = 1 << 16
"""Bytes. glibc returns larger holes to the system itself; multiples of this size are found as well."""
_SMALLEST_HOLE = 24
_HUGE = 1 << 21
_ARENA, _ARENAS = 1 << 20, 128
"""The size of Python's arenas in bytes, and how many of them the imports need."""
_BLOCK = 512
"""Bytes of the largest object in an arena."""
_MADV_COLLAPSE = 25
"""Since Linux 6.1; not in every ``mmap`` module."""


def prepare_for_forks() -> None:
    """Do all three, once, when everything to be shared exists. The collector stays off until ``gc.enable``."""
    gc.collect()
    gc.disable()
    gc.freeze()
    fill_holes()
    with contextlib.suppress(OSError):
        collapse_huge_pages()


@contextlib.contextmanager
def adjacent_arenas() -> Iterator[None]:
    """Let Python keep its objects in adjacent arenas: fill them all, and keep only a few objects in each meanwhile."""
    blocks = [b""] * (_ARENAS * _ARENA // _BLOCK)  # a list that grew would leave gaps between the arenas
    for number in range(len(blocks)):
        blocks[number] = bytes(_BLOCK - bytes.__basicsize__)
    blocks = blocks[:: _ARENA // _BLOCK // 2]
    yield


def collapse_huge_pages() -> None:
    """Turn the heap and Python's arenas into huge pages, if the kernel can."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, *_, file = [*line.split(maxsplit=5), ""][:6]
        if rights == "rw-p" and file in ("", "[heap]"):
            first, end = (int(address, 16) for address in addresses.split("-"))
            for page in range(-(-first // _HUGE) * _HUGE, end // _HUGE * _HUGE, _HUGE):
                advise(page, _HUGE, _MADV_COLLAPSE)  # one at a time: after a failure, it ignores the rest


def fill_holes() -> int:
    """Allocate the free holes in glibc's main heap; returns how many there were.

    With another C library, do nothing.
    """
    libc = ctypes.CDLL(None)
    try:
        heap_information, malloc, free, break_ = libc.mallinfo2, libc.malloc, libc.free, libc.sbrk
    except AttributeError:
        return 0
    heap_information.restype, break_.restype, malloc.restype = _HeapInformation, ctypes.c_void_p, ctypes.c_void_p
    malloc.argtypes, free.argtypes, break_.argtypes = [ctypes.c_size_t], [ctypes.c_void_p], [ctypes.c_ssize_t]
    filled, size = 0, _LARGEST_HOLE
    while size >= _SMALLEST_HOLE:
        top = break_(0) - heap_information().keepcost
        while (hole := malloc(size)) and hole < top:
            filled += 1
        free(hole)
        size = size * 3 // 4
    return filled


class _HeapInformation(ctypes.Structure):
    """``struct mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )
