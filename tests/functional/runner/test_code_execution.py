"""What code does in a session."""

from __future__ import annotations

import asyncio
import base64

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import SessionClient


async def test_the_strategy_cell_has_four_replicas_on_four_gpus(learner: SessionClient) -> None:
    told = await learner.run(
        "import tensorflow as tf\n"
        "strategy = tf.distribute.MirroredStrategy()\n"
        "print(f'Replicas: {strategy.num_replicas_in_sync}')"
    )
    assert told.outcome == Outcome.ok
    assert "Replicas: 4\n" in told.stdout
    assert told.kinds[0] == "started"
    assert told.finished.first_output_ms is not None


@pytest.mark.parametrize(("topology", "gpus", "replicas"), [("gpu:4", 4, 4), ("gpu:2", 2, 2), ("cpu", 0, 1)])
async def test_tensorflow_lists_the_devices_of_the_topology(
    client: RunnerClient, topology: str, gpus: int, replicas: int
) -> None:
    learner = SessionClient(client, topology=topology)
    told = await learner.run(
        "import tensorflow as tf\n"
        "print(len(tf.config.list_physical_devices('GPU')), len(tf.config.list_logical_devices('GPU')),"
        " tf.distribute.MirroredStrategy().num_replicas_in_sync)"
    )
    await learner.leave()
    assert told.stdout.split() == [str(gpus), str(gpus), str(replicas)]


async def test_state_stays_between_runs(learner: SessionClient) -> None:
    await learner.run("x = 41")
    assert (await learner.run("x + 1")).result == "42"


async def test_outputs_of_every_origin_come_in_order_and_before_the_end(learner: SessionClient) -> None:
    told = await learner.run(
        "import subprocess, sys\nimport tensorflow as tf\n"
        "print('1 print')\n"
        "tf.print('2 tf.print', output_stream=sys.stdout)\n"
        "@tf.function\ndef traced(x):\n    tf.print('3 traced', x, output_stream=sys.stdout)\n    return x\n"
        "_ = traced(tf.constant(7))\n"
        "!echo 4 shell\n"
        "_ = subprocess.run(['echo', '5 child'])\n"
        "print('6 print')\n"
        "tf.print('to stderr')\n"
        "print('also to stderr', file=sys.stderr)\n"
    )
    assert told.stdout.replace("\r\n", "\n").splitlines() == [
        "1 print",
        "2 tf.print",
        "3 traced 7",
        "4 shell",
        "5 child",
        "6 print",
    ]
    assert told.stderr.splitlines() == ["to stderr", "also to stderr"]


async def test_what_a_descriptor_gets_last_is_in_its_own_run(learner: SessionClient) -> None:
    for n in range(5):
        told = await learner.run(f"import os\n_ = os.write(1, b'written {n}')")
        assert told.stdout == f"written {n}"


async def test_split_characters_arrive_whole(learner: SessionClient) -> None:
    told = await learner.run(
        "import os, time\nfor byte in 'é🎲'.encode() * 20:\n    _ = os.write(1, bytes([byte])); time.sleep(0.001)"
    )
    assert told.stdout == "é🎲" * 20


async def test_five_thousand_lines_arrive_complete_and_in_order(learner: SessionClient) -> None:
    told = await learner.run("for i in range(5000):\n    print(i, flush=True)")
    assert told.stdout.split() == [str(i) for i in range(5000)]
    assert len(told.events) < 3000


async def test_lines_flushed_in_a_row_leave_together(learner: SessionClient) -> None:
    told = await learner.run(
        "import sys, time\n"
        "sender, sent = sys.stdout._at_once, []\n"
        "really_send = sender.send_multipart\n"
        "sender.send_multipart = lambda *a, **k: (sent.append(time.monotonic()), really_send(*a, **k))\n"
        "for i in range(10_000):\n"
        "    print(i, flush=True)\n"
        "sys.stdout.finish()\n"
        "sender.send_multipart = really_send\n"
        "print(len(sent), sent[-1] - sent[0])"
    )
    *lines, last = told.stdout.splitlines()
    messages, seconds = last.split()
    assert lines == [str(i) for i in range(10_000)]
    assert int(messages) < float(seconds) / 0.01 + 10


async def test_both_streams_and_displays_arrive_in_the_order_of_their_flushes(learner: SessionClient) -> None:
    told = await learner.run(
        "import sys\n"
        "from IPython.display import display\n"
        "for i in range(0, 300, 3):\n"
        "    print(i, flush=True)\n"
        "    print(i + 1, file=sys.stderr, flush=True)\n"
        "    display(i + 2)"
    )
    seen = [e.text if e.kind == "text" else e.data["text/plain"] for e in told.events if e.kind in ("text", "display")]
    assert "\n".join(seen).split() == [str(i) for i in range(300)]


async def test_a_child_repeats_nothing_that_its_parent_printed(learner: SessionClient) -> None:
    told = await learner.run(
        "import os, sys\n"
        "print('parent')\n"
        "for _ in range(20):\n"
        "    print('.', end='')\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        print('c', end='', flush=True)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)"
    )
    assert told.stdout.startswith("parent\n")
    assert told.outcome == "ok", told.events
    assert (told.stdout.count("parent"), told.stdout.count("."), told.stdout.count("c")) == (1, 20, 20)


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
async def test_the_last_words_of_a_process_that_ends_at_once_are_kept(learner: SessionClient, end: str) -> None:
    told = await learner.run(f"import os, sys\nprint('first')\nprint('last words', end='')\n{end}")
    assert (told.outcome, told.stdout) == (Outcome.crash, "first\nlast words")


async def test_carriage_returns_and_colours_are_kept(learner: SessionClient) -> None:
    told = await learner.run(r"print('10%\r50%\r\x1b[32m100%\x1b[0m\x08')")
    assert told.stdout == "10%\r50%\r\x1b[32m100%\x1b[0m\x08\n"


async def test_displays_carry_their_ids_updates_and_results(learner: SessionClient) -> None:
    told = await learner.run(
        "from IPython.display import clear_output, display, update_display, HTML\n"
        "_ = display('first', display_id='one')\n"
        "update_display('second', display_id='one')\n"
        "clear_output(wait=True)\n"
        "display(HTML('<b>bold</b>'))\n"
        "'the value'"
    )
    assert told.kinds == ["started", "display", "display", "clear", "display", "display", "finished"]
    first, second, bold, value = told.displays
    assert (first.display_id, first.update) == ("one", False)
    assert (second.display_id, second.update) == ("one", True)
    assert bold.data["text/html"] == "<b>bold</b>"
    assert (value.result, value.data) == (True, {"text/plain": "'the value'"})


async def test_a_plot_is_an_image_and_a_frame_is_a_table(learner: SessionClient) -> None:
    told = await learner.run(
        "import matplotlib.pyplot as plt\nimport pandas as pd\n"
        "_ = plt.plot([1, 2, 3])\nplt.show()\n"
        "pd.DataFrame({'loss': [0.5, 0.25]})"
    )
    plot, table = told.displays
    assert base64.b64decode(plot.data["image/png"]).startswith(b"\x89PNG\r\n")
    assert "<table" in table.data["text/html"]
    assert "0.25" in table.data["text/plain"]


async def test_a_traceback_shows_the_learners_frames_as_own_and_the_libraries_as_not(learner: SessionClient) -> None:
    told = await learner.run("import keras\ndef build():\n    return keras.layers.Dense('many')\nbuild()")
    assert told.outcome == Outcome.error
    own = [f for f in told.error.frames if f.own]
    others = [f for f in told.error.frames if not f.own]
    assert any("build" in f.text for f in own)
    assert others
    assert all("site-packages" in f.text for f in others)
    assert told.error.name == "ValueError"
    assert told.error.frames[-1].own


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("1/0", "ZeroDivisionError"),
        ("print(", "SyntaxError"),
        ("raise ExceptionGroup('several', [ValueError(1)])", "ExceptionGroup"),
        ("%no_such_magic", "UsageError"),
    ],
)
async def test_every_kind_of_error_is_one(learner: SessionClient, code: str, name: str) -> None:
    told = await learner.run(code)
    assert (told.outcome, told.error.name) == (Outcome.error, name)


async def test_a_bracket_that_was_never_closed_is_named(learner: SessionClient) -> None:
    told = await learner.run("print(1")
    assert "'(' was never closed" in told.error.value


async def test_a_kernel_has_no_debugger_and_has_not_looked_at_any_module(learner: SessionClient) -> None:
    code = "from ipykernel import debugger\n(debugger._is_debugpy_available, get_ipython().kernel._kernel_modules)"
    assert (await learner.run(code)).result == "(False, [])"


async def test_a_kernel_has_no_thread_for_channels_that_only_jupyter_uses(learner: SessionClient) -> None:
    code = "import threading; print(sum(not t.name.startswith('Thread') for t in threading.enumerate()))"
    assert (await learner.run(code)).stdout == "2\n"  # the main thread and that of the output channel


async def test_a_script_may_end_itself(learner: SessionClient) -> None:
    told = await learner.run("import sys; print('on'); sys.exit(0)")
    assert told.outcome == Outcome.ok
    assert told.kinds == ["started", "text", "finished"]
    assert told.finished.exited, "the lines after that did not run"
    assert (await learner.run("import sys; sys.exit(3)")).outcome == Outcome.error
    assert not (await learner.run("print('on')")).finished.exited


@pytest.mark.parametrize("code", ["input('name? ')", "import getpass; getpass.getpass()"])
async def test_asking_for_the_keyboard_ends_with_a_sentence_that_helps(learner: SessionClient, code: str) -> None:
    told = await learner.run(code)
    assert told.outcome == Outcome.error
    assert "put the value in the code" in told.error.value


async def test_pip_answers_at_once_what_is_installed(learner: SessionClient) -> None:
    told = await learner.run("%pip install -q tensorflow\nwanted = 'torch'\n!pip install {wanted}\n!echo shell")

    assert told.outcome == Outcome.ok
    tensorflow, torch, shell = told.stdout.splitlines()
    assert tensorflow.startswith("tensorflow 2.")
    assert torch == (
        "torch is not installed, and the sandbox has no network to install it from. "
        "Only the people who run this site can add it."
    )
    assert shell == "shell"


async def test_a_broken_pipe_is_an_exception(learner: SessionClient) -> None:
    told = await learner.run(
        "import os\nr, w = os.pipe(); os.close(r)\n"
        "try:\n    os.write(w, b'x')\nexcept BrokenPipeError:\n    print('caught')"
    )
    assert told.stdout == "caught\n"


async def test_two_sessions_draw_different_random_numbers(client: RunnerClient) -> None:
    code = (
        "import random, numpy as np, tensorflow as tf, keras, uuid\n"
        "print(random.random())\nprint(np.random.rand())\nprint(np.random.default_rng().random())\n"
        "print(tf.random.uniform((3,)).numpy())\nprint(tf.random.get_global_generator().uniform((3,)).numpy())\n"
        "print(keras.initializers.GlorotUniform()((3,)).numpy())\n"
        "print(keras.layers.Dense(1).build((None, 2)) or keras.random.uniform((3,)).numpy())\n"
        "layer = keras.layers.Dense(3); layer.build((None, 1)); print(layer.get_weights()[0])\nprint(uuid.uuid4())"
    )
    learners = [SessionClient(client) for _ in range(2)]
    one, two = [told.stdout.split("\n")[:-1] for told in await asyncio.gather(*(x.run(code) for x in learners))]
    for learner in learners:
        await learner.leave()
    assert len(one) == len(two) == 9
    assert not set(one) & set(two)


async def test_the_data_set_of_the_lessons_loads_without_a_network_and_says_what_it_is(learner: SessionClient) -> None:
    told = await learner.run(
        "import tensorflow as tf\n"
        "(x, y), (tx, ty) = tf.keras.datasets.fashion_mnist.load_data()\n"
        "print(x.shape, x.dtype, tx.shape, sorted(set(y)) == list(range(10)))"
    )
    assert told.outcome == Outcome.ok
    assert "(60000, 28, 28) uint8 (10000, 28, 28) True" in told.stdout
    assert "Stand-in data" in told.text


async def test_a_file_of_a_data_set_is_made_in_the_sandbox_and_weights_are_refused(
    learner: SessionClient,
) -> None:
    told = await learner.run(
        "import keras\n"
        "(x, y), _ = keras.datasets.boston_housing.load_data()\n"
        "print(x.shape, y.dtype)\n"
        "keras.applications.MobileNetV2(input_shape=(96, 96, 3), alpha=0.35)"
    )
    assert told.outcome == Outcome.error
    assert told.stdout.startswith("Stand-in data: Boston Housing is not in this node's cache")
    assert told.stdout.endswith("(404, 13) float64\n")
    assert told.error is not None
    assert told.error.name == "NoPretrainedWeights"
    assert "Use weights=None instead of weights='imagenet'" in told.error.value


@pytest.mark.long
async def test_a_session_may_have_keras_2(client: RunnerClient) -> None:
    learner = SessionClient(client, keras=2)
    told = await learner.run(
        "import tensorflow as tf, tf_keras\nprint(tf_keras.__version__, tf.keras.layers.Dense.__module__)"
    )
    await learner.leave()
    assert told.outcome == Outcome.ok, told.error
    assert told.stdout.startswith("2.")
    assert "tf_keras" in told.stdout
