import subprocess
import sys

PROGRAM = """
import ctypes
from runners.zygote import heap

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [libc.malloc(size) for size in (40, 700, 5000, 60_000) * 300]
for block in blocks[::2]:
    libc.free(block)
assert heap.fill_holes() > 0
print(heap.fill_holes())
"""


def test_a_heap_whose_holes_were_filled_has_none_to_speak_of() -> None:
    second = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(second.stdout) < 100


def test_memory_whose_pages_were_joined_is_as_it_was() -> None:
    program = "from runners.zygote import heap; x = list(range(1_000_000)); heap.prepare_for_forks(); print(sum(x))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 499_999_500_000


def test_objects_that_are_made_while_libraries_load_lie_side_by_side() -> None:
    program = """
import mmap
from pathlib import Path
from runners.zygote import heap

objects, others = [], []
with heap.adjacent_arenas():
    for _ in range(100):
        objects += [bytes(400) for _ in range(2000)]
        others.append(mmap.mmap(-1, 1 << 16, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    spans = [[int(end, 16) for end in addresses.split("-")] for addresses, rights, *_ in lines if rights == "rw-p"]
    within = [sum(first <= id(each) < end for each in objects) for first, end in spans]
    print(max(within) / len(objects))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 0.9
