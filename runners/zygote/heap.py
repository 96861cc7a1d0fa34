"""Prepares the zygote's memory for sharing: a child shares each page that it does not write to.

Three things write to pages needlessly. Python's garbage collector marks every object that it looks at, so existing
objects are frozen. Python counts references inside objects, so existing objects become immortal where it can leave them
uncounted (PEP 683). And both Python and glibc's ``malloc`` first allocate the holes between old objects, each of which
copies a page, so the holes are filled: a child then allocates memory in its own contiguous pages.

A fork also copies a table entry for every page. A huge page has one entry instead of 512, which halves the time of a
fork. When a child writes to a huge page, it splits into 512 again, and only one of them is copied, so nothing is lost.
Only adjacent memory can be a huge page, so Python takes its memory before libraries are loaded in between.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import sysconfig
from collections.abc import Iterator
from itertools import pairwise, repeat
from pathlib import Path
from types import CodeType

_LARGEST_HOLE = 1 << 16
"""Bytes. glibc returns larger holes to the system itself; multiples of this size are found as well."""
_SMALLEST_HOLE = 24
_HUGE = 1 << 21
_ARENA, _ARENAS = 1 << 20, 128
"""The size of Python's arenas in bytes, and how many of them the imports need."""
_POOL, _ALIGNMENT, _BLOCK = 1 << 14, 16, 512
"""An arena consists of pools, which hold objects of the same size, a multiple of 16 bytes up to 512."""
_IMMORTAL = (1 << 32) - 1
"""The reference count of an immortal object in CPython 3.12 and 3.13: the first eight bytes of every object."""
_MADV_COLLAPSE = 25
"""Since Linux 6.1; not in every ``mmap`` module."""


def prepare_for_forks() -> None:
    """Do all this, once, when everything to be shared exists. The collector stays off until ``gc.enable``."""
    gc.collect()
    gc.disable()
    make_immortal()  # before the next line: ``gc.get_objects`` leaves out what is frozen
    gc.freeze()
    _fillers.extend(fill_pools())
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


def make_immortal() -> int:
    """Make all objects that can be found immortal: they are never freed, and nothing writes to their reference counts.

    Returns how many there were: none before Python 3.12, which knows no immortal objects, and none without the GIL,
    where the count is elsewhere.
    """
    if sys.version_info < (3, 12) or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return 0
    count_at, references = ctypes.c_uint64.from_address, sys.getrefcount
    found, left = 0, gc.get_objects()
    while left:
        subject = left.pop()
        if references(subject) == _IMMORTAL:
            continue
        count_at(id(subject)).value = _IMMORTAL
        found += 1
        if type(subject) is CodeType:  # the collector does not look into it; ``isinstance`` may run an object's code
            left += (subject.co_consts, subject.co_names, subject.co_filename, subject.co_name, subject.co_qualname)
            left += (subject.co_linetable, subject.co_exceptiontable)
        else:
            left += gc.get_referents(subject)
    return found


def fill_pools() -> list[object]:
    """Return objects that fill the holes in Python's arenas: of each size as many as it takes to begin a new pool.

    They never take more than the arenas have: with another allocator, as under ``python -X dev``, no pool would end it.
    """
    fillers: list[object] = []
    left = _ARENAS * _ARENA
    for size in range(_ALIGNMENT, _BLOCK + 1, _ALIGNMENT):
        breaks = _POOL
        while breaks > 4 and left > 0:  # objects lie side by side in a new pool, but for the few that this list takes
            some = [_object_of(size) for _ in repeat(None, _POOL // size)]
            fillers += some
            left -= _POOL
            breaks = sum(id(later) != id(one) + size for one, later in pairwise(some))
    return fillers


_fillers: list[object] = []


def _object_of(size: int) -> object:
    """Return a new object of this many bytes, a multiple of 16."""
    if size >= bytes.__basicsize__:
        return bytes(size - bytes.__basicsize__)
    return int("9" * 10) if size > object.__basicsize__ else object()


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
