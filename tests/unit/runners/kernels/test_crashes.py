"""How the last output of a kernel is parsed, whoever wrote it."""

from __future__ import annotations

from runners.kernels.crashes import StackCall, describe_signal, parse_stack, to_traceback_frames

CELL = "<ipython-input-7-e90c19e44e47>"
BELOW = '  File "/venv/lib/python3.11/site-packages/IPython/core/interactiveshell.py", line 3701 in run_code\n'
MAIN = f"""Thread 0x00007f0000000001 (most recent call first):
  File "/venv/lib/python3.11/site-packages/keras/src/trainers/epoch_iterator.py", line 99 in reset
  File "{CELL}", line 3 in test
  File "<ipython-input-2-0c19e44e47e9>", line 12 in everything
  File "{CELL}", line 5 in <module>
{BELOW}"""
OTHER = """Thread 0x00007f0000000002 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait

"""
HEAD = "Fatal Python error: Segmentation fault\n\n"
END = "\nExtension modules: numpy.linalg._umath_linalg, h5py._errors (total: 2)\n"
CODE = "def test():\n    for model in models:\n        model.evaluate(x)\n\neverything(test)"


def test_a_crash_in_a_thread_of_tensorflows_shows_where_the_cell_was() -> None:
    assert parse_stack(HEAD + OTHER + MAIN + END) == [
        StackCall(CELL, 5, "<module>"),
        StackCall("<ipython-input-2-0c19e44e47e9>", 12, "everything"),
        StackCall(CELL, 3, "test"),
        StackCall("/venv/lib/python3.11/site-packages/keras/src/trainers/epoch_iterator.py", 99, "reset"),
    ]


def test_the_thread_that_crashed_comes_first_if_it_runs_a_cells_code() -> None:
    thread = f'Current thread 0x00007f0000000003 (most recent call first):\n  File "{CELL}", line 8 in work\n\n'
    assert parse_stack(HEAD + thread + OTHER + MAIN) == [StackCall(CELL, 8, "work")]
    assert parse_stack(HEAD + OTHER.replace("Thread", "Current thread", 1) + MAIN)[0] == StackCall(CELL, 5, "<module>")


def test_the_pieces_of_a_traceback_show_the_lines_of_the_cell() -> None:
    assert [(frame.text, frame.own) for frame in to_traceback_frames(parse_stack(HEAD + MAIN), CODE)] == [
        ("This cell, line 5, in <module>\n----> 5 everything(test)", True),
        ("An earlier cell, line 12, in everything", True),
        ("This cell, line 3, in test\n----> 3         model.evaluate(x)", True),
        ("File keras/src/trainers/epoch_iterator.py:99, in reset", False),
    ]


def test_lines_that_the_cell_has_not_are_not_shown() -> None:
    calls = f'  File "{CELL}", line 0 in f\n  File "{CELL}", line 9999999 in <module>\n'
    trace = f"Thread 0x1 (most recent call first):\n{calls}"
    texts = [frame.text for frame in to_traceback_frames(parse_stack(trace), CODE)]
    assert texts == ["This cell, line 9999999, in <module>", "This cell, line 0, in f"]


def test_what_says_nothing_of_a_cell_is_no_stack() -> None:
    headless = MAIN.partition("\n")[2]
    for words in ("", HEAD, HEAD + OTHER, headless, "?" * 16_000, f"Thread 0x1 (most {CELL}", BELOW * 100):
        assert parse_stack(words) == []


def test_of_an_endless_recursion_the_ends_are_kept() -> None:
    calls = "".join(f'  File "{CELL}", line {n} in f\n' for n in range(100))
    stack = parse_stack("Current thread 0x1 (most recent call first):\n" + calls)
    assert [call.line for call in stack] == [*range(99, 79, -1), *range(19, -1, -1)]


def test_a_signal_is_named_as_in_the_manual() -> None:
    assert describe_signal(-11) == ("SIGSEGV", "Segmentation fault")
    assert describe_signal(-6) == ("SIGABRT", "Aborted")
    assert describe_signal(-1000) == ("Crash", "exit status -1000")
