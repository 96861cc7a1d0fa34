"""What a cell's code does: only what was certainly executed, and only TensorFlow's own names."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.progress.code_analysis import STRATEGY_CLASSES, is_unchanged, scales_loss, used_strategies
from tests.factories.shipped_lessons import shipped_catalog


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("strategy = tf.distribute.MirroredStrategy()", ["MirroredStrategy"]),
        ("import tensorflow\ntensorflow.distribute.TPUStrategy(r)", ["TPUStrategy"]),
        ("from tensorflow import distribute as d\nd.OneDeviceStrategy('x')", ["OneDeviceStrategy"]),
        ("from tensorflow.distribute import MirroredStrategy as M\nM()", ["MirroredStrategy"]),
        ("import tensorflow.distribute as d\nd.MirroredStrategy()", ["MirroredStrategy"]),
        ("s = tf.distribute.experimental.CentralStorageStrategy()", ["CentralStorageStrategy"]),
        ("with tf.distribute.MirroredStrategy().scope():\n    pass", ["MirroredStrategy"]),
        ("for s in (tf.distribute.MirroredStrategy(),):\n    print(s)", ["MirroredStrategy"]),
        ("%time\n!ls\ntf.distribute.MirroredStrategy()", ["MirroredStrategy"]),
        ("tf.distribute.MirroredStrategy", []),
        ("print('tf.distribute.MirroredStrategy()')", []),
        ("# tf.distribute.MirroredStrategy()", []),
        ("def f():\n    return tf.distribute.MirroredStrategy()", []),
        ("f = lambda: tf.distribute.MirroredStrategy()", []),
        ("if False:\n    tf.distribute.MirroredStrategy()", []),
        ("s = False and tf.distribute.MirroredStrategy()", []),
        ("for _ in []:\n    tf.distribute.MirroredStrategy()", []),
        ("x = [tf.distribute.MirroredStrategy() for _ in []]", []),
        ("try:\n    tf.distribute.TPUStrategy()\nexcept ValueError:\n    tf.distribute.MirroredStrategy()", []),
        ("from mine import MirroredStrategy\nMirroredStrategy()", []),
        ("class MirroredStrategy: pass\nMirroredStrategy()", []),
        ("tf = mine\ntf.distribute.MirroredStrategy()", []),
        ("class tf: pass\ntf.distribute.MirroredStrategy()", []),
        ("import mine as tf\ntf.distribute.MirroredStrategy()", []),
        ("tf.distribute.NoSuchStrategy()", []),
        ("match 0:\n    case 1:\n        tf.distribute.MirroredStrategy()", []),
        ("match (0, 1):\n    case (2, x) if tf.distribute.MirroredStrategy():\n        pass", []),
        ("try:\n    0 / 0\n    tf.distribute.MirroredStrategy()\nexcept* ZeroDivisionError:\n    pass", []),
        ("with suppress(ZeroDivisionError):\n    0 / 0\n    tf.distribute.MirroredStrategy()", []),
        ("with suppress(ZeroDivisionError), (0 / 0), tf.distribute.MirroredStrategy().scope():\n    pass", []),
        ("async with suppresses():\n    tf.distribute.MirroredStrategy()", []),
        ("async with tf.distribute.MirroredStrategy():\n    pass", ["MirroredStrategy"]),
        ("assert True, tf.distribute.MirroredStrategy()", []),
        ("assert tf.distribute.MirroredStrategy()", ["MirroredStrategy"]),
        ("1 > 2 > tf.distribute.MirroredStrategy()", []),
        ("1 > tf.distribute.MirroredStrategy() > 3", ["MirroredStrategy"]),
        ("from __future__ import annotations\nx: tf.distribute.MirroredStrategy() = 1", []),
        ("x: object = tf.distribute.MirroredStrategy()", ["MirroredStrategy"]),
        ("x: tf.distribute.MirroredStrategy()", []),
        ("tf.distribute.MirroredStrategy() or 1", ["MirroredStrategy"]),
        ("x = 1 if tf.distribute.MirroredStrategy() else 2", ["MirroredStrategy"]),
        ("class A:\n    s = tf.distribute.MirroredStrategy()", ["MirroredStrategy"]),
        ("x = f'{[*tf.distribute.MirroredStrategy().x][0]}'", ["MirroredStrategy"]),
        ("x = {'s': (y := -tf.distribute.MirroredStrategy())}", ["MirroredStrategy"]),
        ("def M(): pass\nif 0:\n    from tensorflow.distribute import MirroredStrategy as M\nM()", []),
        ("from .distribute import MirroredStrategy\nMirroredStrategy()", []),
        ("\n%%script true\ntf.distribute.MirroredStrategy()", []),
        (" \t\f\r\n  %%script true\n  tf.distribute.MirroredStrategy()", []),
        ("!true \\\ntf.distribute.MirroredStrategy()", []),
        ("!true \\\n\\\n\ntf.distribute.MirroredStrategy()", ["MirroredStrategy"]),
        ("x = '''\n!'''\ny = '''\ntf.distribute.MirroredStrategy()\nz = '''\n!'''\n'''\n'''", []),
        ("with tf.device('cpu'):\n    s = tf.distribute.MirroredStrategy()", ["MirroredStrategy"]),
        ("with open('x') as f, tf.distribute.MirroredStrategy().scope():\n    pass", ["MirroredStrategy"]),
        ("with strategy.scope():\n    tf.distribute.OneDeviceStrategy('x')", ["OneDeviceStrategy"]),
        ("s = tf.distribute.OneDeviceStrategy('x')\nwith s.scope():\n    M()", ["OneDeviceStrategy"]),
        (
            "with tf.distribute.OneDeviceStrategy('x').scope():\n    tf.distribute.MirroredStrategy()",
            ["MirroredStrategy", "OneDeviceStrategy"],
        ),
        ("import contextlib\nwith contextlib.suppress(E):\n    tf.distribute.MirroredStrategy()", []),
        ("with tf.device('cpu'), suppress(E):\n    tf.distribute.MirroredStrategy()", []),
        ("with suppress(E), tf.device('cpu'):\n    tf.distribute.MirroredStrategy()", []),
        ("class strategy: pass\nwith strategy.scope():\n    tf.distribute.MirroredStrategy()", []),
        ("with hides() as strategy, strategy.scope():\n    tf.distribute.MirroredStrategy()", []),
        ("with a.b.scope():\n    tf.distribute.MirroredStrategy()", []),
        ("def open(x): return hides\nwith open('x'):\n    tf.distribute.MirroredStrategy()", []),
        ("tf.device = hides\nwith tf.device('x'):\n    tf.distribute.MirroredStrategy()", []),
        ("match hides:\n    case open: pass\nwith open('x'):\n    tf.distribute.MirroredStrategy()", []),
        ("match fake:\n    case tf: pass\ntf.distribute.MirroredStrategy()", []),
        (
            "try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\ntf.distribute.MirroredStrategy()",
            ["MirroredStrategy"],
        ),
        ("tf = None or fake\ntf.distribute.MirroredStrategy()", []),
        ("tf, x = None, 1\ntf.distribute.MirroredStrategy()", []),
        ("this is no Python", []),
        ("%%bash\ntf.distribute.MirroredStrategy()", []),
        ("x" * 30_000, []),
    ],
)
def test_only_strategies_that_were_certainly_made_count(text: str, made: list[str]) -> None:
    assert used_strategies(text) == made


def test_every_strategy_is_made_by_some_cell_of_the_course() -> None:
    lessons = shipped_catalog().every()

    assert {name for lesson in lessons for cell in lesson.cells for name in used_strategies(cell.code)} == set(
        STRATEGY_CLASSES
    )


@pytest.mark.parametrize(
    ("text", "scales"),
    [
        ("def loss(x):\n    return tf.nn.compute_average_loss(x, global_batch_size=GLOBAL)", True),
        ("from tensorflow.nn import compute_average_loss as mean\nmean(x, global_batch_size=4)", True),
        ("tf.nn.compute_average_loss(x)", False),
        ("tf.nn.compute_average_loss(x, global_batch_size=None)", False),
        ("mine.compute_average_loss(x, global_batch_size=4)", False),
        ("# tf.nn.compute_average_loss(x, global_batch_size=4)", False),
    ],
)
def test_a_loss_is_scaled_where_the_global_batch_is_named(text: str, scales: bool) -> None:
    assert scales_loss(text) is scales


def test_comments_and_layout_make_no_difference() -> None:
    assert is_unchanged("x = 1", "x  =  1  # one")
    assert not is_unchanged("x = 1", "x = 2")
    assert is_unchanged("this is no Python", "x = 1"), "what cannot be read is nobody's own"


@given(st.text())
def test_no_text_is_too_strange_to_look_at(text: str) -> None:
    assert used_strategies(text) == []
    assert not scales_loss(text)
    assert is_unchanged(text, text)


@pytest.mark.parametrize("piece", ["(", "-", "not ", "a.", "lambda:", "f()(", "{[", "f'{"])
def test_no_depth_breaks_it(piece: str) -> None:
    deep = (piece * 20_000)[:19_000] + "1"

    assert used_strategies(deep) == []
    assert is_unchanged(deep, "x")


@pytest.mark.parametrize("blank", ["\n", " \n", "\t", "\r\n", "\f\n", "%\\\n", "!\\", "%\n"])
def test_emptiness_is_looked_through_quickly(blank: str) -> None:
    text = blank * (20_000 // len(blank))
    began = time.process_time()
    assert used_strategies(text) == []
    assert not scales_loss(text)
    assert time.process_time() - began < 1
