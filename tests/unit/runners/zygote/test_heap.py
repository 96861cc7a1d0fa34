import os
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


def test_references_to_immortal_objects_are_not_counted() -> None:
    program = """
import sys
from runners.zygote import heap

def function(argument: float = 2.5) -> tuple[object, ...]:
    return argument, "a text of several words", {"key": [b"bytes"]}

subjects = [function, function.__code__, *function.__code__.co_consts, *function.__defaults__, *function()[2]["key"]]
heap.make_immortal()
before = [sys.getrefcount(each) for each in subjects]
others = [list(subjects) for _ in range(3)]
print(before == [sys.getrefcount(each) for each in subjects])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(sys.version_info >= (3, 12))]


def test_no_object_that_the_collector_knows_is_counted_afterwards() -> None:
    program = """
import asyncio, gc, json, sys
from runners.zygote import heap

heap.prepare_for_forks()
gc.unfreeze()
counted = sum(sys.getrefcount(each) < 2**31 for each in gc.get_objects())
print(counted if sys.version_info >= (3, 12) else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50  # what was made since


def test_a_program_works_after_its_objects_became_immortal() -> None:
    program = """
import asyncio, collections, concurrent.futures, gc, json, re, weakref
from runners.zygote import heap

heap.prepare_for_forks()
gc.enable()
records = [json.loads(json.dumps({"number": n, "words": re.split(" ", f"{n} a b")})) for n in range(3000)]
async def total() -> int:
    return sum(await asyncio.gather(*(asyncio.sleep(0, record["number"]) for record in records)))
class Node: pass
node = Node()
gone = weakref.ref(node)
del node
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    print(asyncio.run(total()), gone(), gc.collect() >= 0, sum(pool.map(len, (record["words"] for record in records))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4498500", "None", "True", "9000"]
    assert not done.stderr


def test_holes_between_objects_are_filled_once() -> None:
    program = """
from runners.zygote import heap

objects = [bytes(number % 400) for number in range(200_000)]
del objects[::3]
first = heap.fill_pools()
print(len(first), len(heap.fill_pools()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, second = map(int, done.stdout.split())
    assert first > 50_000
    assert second < 9_000  # in each of the 32 sizes, at most two pools


def test_the_holes_of_another_allocator_are_left_alone_after_a_while() -> None:
    program = "from runners.zygote import heap; print(len(heap.fill_pools()) > 0)"
    environment = os.environ | {"PYTHONMALLOC": "malloc"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "True\n"
