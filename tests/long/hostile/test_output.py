"""Programs with unexpected output: bytes, escapes, displays, and files that are larger than they look."""

from __future__ import annotations

import pytest

from runners.wire.protocol import Outcome
from tests.long.hostile.conftest import Attack

ERROR, OK, TIME, OUTPUT, MEMORY, DISK = (
    Outcome.error,
    Outcome.ok,
    Outcome.timeout,
    Outcome.output,
    Outcome.memory,
    Outcome.disk,
)

BOMB = """
import gzip, io, os, tarfile, zipfile, zlib
MOST = 6 * 10**8
class Zeros(io.RawIOBase):
    left = MOST
    def readable(self): return True
    def readinto(self, b):
        n = min(len(b), self.left)
        self.left -= n
        b[:n] = bytes(n)
        return n
def deflated(wbits=31):
    squeeze = zlib.compressobj(1, zlib.DEFLATED, wbits)
    return b''.join(squeeze.compress(bytes(10**7)) for _ in range(MOST // 10**7)) + squeeze.flush()
"""
PNG = """
import struct, zlib
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def png(width, height, data=b''):
    return (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 1, 0, 0, 0, 0))
            + chunk(b'IDAT', data) + chunk(b'IEND', b''))
picture = png(100_000, 100_000, zlib.compress(bytes(10**6)))
"""

PROGRAMS = {
    "invalid text": ("import sys, os\nsys.stdout.write('a\\0b\\ud800c')\n_ = os.write(1, b'\\xff\\xfe\\0')", {OK}),
    "deep JSON": (
        "from IPython.display import display\nx = []\nfor _ in range(500): x = [x]\n"
        "display({'application/json': x, 'text/plain': 'deep'}, raw=True)",
        {OK},
    ),
    "a display of 98,000 empty objects": (
        "from IPython.display import display\ndisplay({'application/json': [{}] * 98_000}, raw=True)",
        {OK},
    ),
    "displays of 98,000 empty objects": (
        "from IPython.display import display\nx = [{} for _ in range(98_000)]\n"
        "while True: display({'application/json': x}, raw=True)",
        {OUTPUT},
    ),
    "displays of 5,000 empty objects that cannot be shown": (
        "from IPython.display import display\nx = [{} for _ in range(5_000)]\n"
        "while True: display({'application/x-nothing': x}, raw=True)",
        {OUTPUT},
    ),
    "messages without end that show nothing": (
        "k = get_ipython().kernel\n"
        "while True: k.session.send(k.iopub_socket, 'status', {'execution_state': 'busy'}, parent=k.get_parent())",
        {OUTPUT, TIME},
    ),
    "invalid numbers": (
        "from IPython.display import display\n"
        "display({'application/json': {'a': float('nan'), 'b': 10**1000}, 'text/plain': 'n'}, raw=True)",
        {OK, ERROR},
    ),
    "a title, a clipboard and a question for the terminal": (
        "for _ in range(50): print('\\x1b]0;mine\\x07\\x1b]52;c;cm0gLXJm\\x07\\x1b[6n\\x1bPq\\x1b\\\\', end='')",
        {OK},
    ),
    "a zip that swells": (
        BOMB + "with zipfile.ZipFile('bomb.zip', 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as z:\n"
        "    with z.open('x', 'w', force_zip64=True) as f:\n"
        "        for _ in range(MOST // 10**7): f.write(bytes(10**7))\n"
        "assert os.path.getsize('bomb.zip') < 10**7\nzipfile.ZipFile('bomb.zip').extractall('/tmp')",
        {DISK},
    ),
    "a tar that swells": (
        BOMB + "with tarfile.open('bomb.tgz', 'w:gz', compresslevel=1) as t:\n    i = tarfile.TarInfo('x')\n"
        "    i.size = MOST\n    t.addfile(i, io.BufferedReader(Zeros()))\ntarfile.open('bomb.tgz').extractall('/tmp')",
        {DISK},
    ),
    "a gzip that swells": (BOMB + "gzip.decompress(deflated())", {MEMORY}),
    "compressed data that swells in TensorFlow": (
        BOMB + "import tensorflow as tf\ntf.io.decode_compressed(deflated(15), 'ZLIB')",
        {MEMORY},
    ),
    "an array that swells": (
        BOMB + "import numpy as np, struct\n"
        "head = b\"{'descr': '|u1', 'fortran_order': False, 'shape': (600000000,), }\\n\"\n"
        "with zipfile.ZipFile('bomb.npz', 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as z:\n"
        "    with z.open('x.npy', 'w', force_zip64=True) as f:\n"
        "        f.write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(head)) + head)\n"
        "        for _ in range(MOST // 10**7): f.write(bytes(10**7))\nnp.load('bomb.npz')['x'] + 0",
        {MEMORY},
    ),
    "a picture of 10 gigapixels in TensorFlow": (
        PNG + "import tensorflow as tf\ntf.io.decode_png(picture)",
        {ERROR, MEMORY},
    ),
    "a picture of 10 gigapixels in Pillow": (
        PNG + "import io\nfrom PIL import Image\nImage.open(io.BytesIO(picture)).load()",
        {ERROR, MEMORY},
    ),
    "a picture of 10 gigapixels on the page": (
        PNG + "from IPython.display import Image, display\ndisplay(Image(picture))",
        {OK},
    ),
}


@pytest.mark.parametrize(
    ("code", "outcomes"), [pytest.param(code, outcomes, id=name) for name, (code, outcomes) in PROGRAMS.items()]
)
async def test_it_floods_only_itself(attack: Attack, code: str, outcomes: set[Outcome] | None) -> None:
    told = await attack.run(code, timeout_s=1 if outcomes is None or TIME in outcomes else None)
    assert outcomes is None or told.outcome in outcomes, told.events
    for event in told.events:
        assert "\\u0000" not in event.model_dump_json()
        event.model_dump_json().encode()


async def test_characters_in_pieces_arrive_whole_and_broken_ones_stay_in_their_own_run(attack: Attack) -> None:
    told = await attack.run(
        "import os, time\nfor byte in 'é한🎉\\n'.encode():\n    _ = os.write(1, bytes([byte]))\n    time.sleep(0.01)\n"
        "_ = os.write(1, b'a\\0b\\xff\\xc3\\n'), os.write(2, b'\\xed\\xa0\\x80\\n')"
    )
    assert told.outcome == OK
    assert told.stdout == "é한🎉\na␀b��\n"
    assert set(told.stderr) == {"�", "\n"}
    first = await attack.hostile.run("_ = os.write(1, '한'.encode()[:2])")
    second = await attack.hostile.run("_ = os.write(1, b'z')")
    assert first.outcome == second.outcome == OK
    assert "한" not in first.stdout + second.stdout
    assert second.stdout.endswith("z")
