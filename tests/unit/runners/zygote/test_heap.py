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
