"""Learner code that says ``load_data()`` gets arrays without a network, in both Kerases, or a refusal by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from runners.datasets.cache import Cache, DamagedDataSet
from runners.datasets.inside import load
from runners.datasets.prepared import prepare

LINE = (
    "Stand-in data: Fashion-MNIST is not in this node's cache, so these are drawn shapes of the same size and type. "
    "An operator can get the real one with: lockstep datasets fetch fashion_mnist\n"
)


def _learner(code: str, cache: Path, **environment: str) -> dict:
    """Run ``code`` where data sets are installed and every connection fails; returns what it put into ``told``."""
    script = textwrap.dedent(
        """
        import io, json, os, socket, sys, contextlib
        from pathlib import Path
        import tensorflow as tf
        from runners.datasets.inside import install

        def refuse(*_, **__):
            raise AssertionError("the network was tried")

        socket.socket.connect = socket.getaddrinfo = refuse
        threads = len(os.listdir("/proc/self/task"))
        install(Path(sys.argv[1]))
        told = {"threads": len(os.listdir("/proc/self/task")) - threads}

        def output(call):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                result = call()
            return printed.getvalue(), result

        def form(result):
            return [[[list(array.shape), str(array.dtype)] for array in part] for part in result]
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script + textwrap.dedent(code) + "\nprint(json.dumps(told))", str(cache)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OPENBLAS_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


FORM = [
    [[[60000, 28, 28], "uint8"], [[60000], "uint8"]],
    [[[10000, 28, 28], "uint8"], [[10000], "uint8"]],
]


def test_keras_3_and_a_later_import_of_tf_keras_get_the_stand_in_and_say_so(tmp_path: Path):
    told = _learner(
        """
        told["line"], result = output(tf.keras.datasets.fashion_mnist.load_data)
        told["form"] = form(result)
        import keras
        from keras.datasets.fashion_mnist import load_data
        told["same"] = load_data is keras.datasets.fashion_mnist.load_data is tf.keras.datasets.fashion_mnist.load_data
        told["doc"] = "Fashion-MNIST" in load_data.__doc__
        try:
            load_data("surplus")
        except TypeError as e:
            told["surplus"] = str(e)
        told["early"] = "tf_keras" in sys.modules
        import tf_keras
        told["legacy"], again = output(lambda: tf_keras.datasets.fashion_mnist.load_data(cache_dir="/nowhere"))
        told["equal"] = bool((again[0][0] == result[0][0]).all())
        result[0][0][0] = 7
        told["loader"] = type(sys.modules["tf_keras.src.datasets.fashion_mnist"].__loader__).__name__
        """,
        tmp_path,
    )
    assert told == {
        "threads": 0,
        "line": LINE,
        "form": FORM,
        "same": True,
        "doc": True,
        "surplus": "too many positional arguments",
        "early": False,
        "legacy": LINE,
        "equal": True,
        "loader": "SourceFileLoader",
    }


def test_legacy_keras_as_tf_keras_gets_it_too_and_damage_is_refused(tmp_path: Path):
    told = _learner(
        """
        told["line"], result = output(tf.keras.datasets.fashion_mnist.load_data)
        told["form"] = form(result)
        folder = Path(sys.argv[1]) / "fashion_mnist"
        folder.mkdir()
        (folder / "train-images-idx3-ubyte.gz").write_bytes(b"half")
        try:
            tf.keras.datasets.fashion_mnist.load_data()
        except Exception as e:
            told["refusal"] = [type(e).__name__, str(e)]
        """,
        tmp_path,
        TF_USE_LEGACY_KERAS="1",
    )
    assert told["threads"] == 0
    assert told["line"] == LINE
    assert told["form"] == FORM
    assert told["refusal"] == [
        "DamagedDataSet",
        "Fashion-MNIST: the file fashion_mnist/train-images-idx3-ubyte.gz in this node's cache is refused: it has 4 "
        "bytes instead of 26,421,880. Nothing of it was used. "
        "An operator can replace it with: lockstep datasets fetch fashion_mnist",
    ]


@pytest.mark.parametrize("prepared", [True, False])
def test_the_real_data_set_is_loaded_where_it_is(tmp_path: Path, tiny, prepared: bool):
    tiny.put(tmp_path / "fashion_mnist")
    if prepared:
        prepare(tmp_path, {"fashion_mnist": tiny.data_set})
    arrays, real = load(Cache(tmp_path), tiny.data_set)
    assert real
    for name, array in tiny.arrays.items():
        assert np.array_equal(arrays[name], array)


@pytest.mark.parametrize("prepared", [True, False])
def test_a_file_damaged_after_preparation_is_refused_and_no_stand_in_takes_its_place(
    tmp_path: Path, tiny, prepared: bool
):
    path = tiny.put(tmp_path / "fashion_mnist") / "x_test.gz"
    if prepared:
        prepare(tmp_path, {"fashion_mnist": tiny.data_set})
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DamagedDataSet, match=r"x_test\.gz .* it has 100 bytes instead of"):
        load(Cache(tmp_path), tiny.data_set)


def test_the_stand_in_is_said_to_be_none_of_the_real_data(tmp_path: Path, tiny):
    assert load(Cache(tmp_path), tiny.data_set)[1] is False
