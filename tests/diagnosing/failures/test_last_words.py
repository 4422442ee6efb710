"""The line that matters of what a failed script wrote, and the place in the user's own code."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnosing.failures import known, last_words

SITE = "/usr/lib/python3.9/site-packages"


def read(text: str) -> last_words.LastWords:
    found = last_words.read(text.strip("\n").splitlines())
    assert found is not None
    return found


def test_an_exception_and_where_it_came_from():
    found = read(f"""
step 1
Traceback (most recent call last):
  File "/code/train.py", line 80, in <module>
    main()
  File "/code/train.py", line 41, in main
    table = tf.get_variable(name)
  File "{SITE}/tensorflow/python/ops/variable_scope.py", line 1500, in get_variable
    return get_variable_scope().get_variable(
ValueError: Variable table already exists, disallowed.
W0000 00:00:17 local_rendezvous.cc:412] Local rendezvous is aborting
""")
    assert found.line == "ValueError: Variable table already exists, disallowed."
    assert found.exception == "ValueError"
    assert str(found.place) == "/code/train.py:41  table = tf.get_variable(name)"


def test_of_several_exceptions_the_last_one():
    found = read("""
Traceback (most recent call last):
  File "/code/a.py", line 1, in read
    open("x")
FileNotFoundError: [Errno 2] No such file or directory: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/code/b.py", line 2, in <module>
    read()
my.package.DataError: no data
""")
    assert found.line == "my.package.DataError: no data"
    assert str(found.place) == "/code/b.py:2  read()"


def test_errors_of_tensorflow_name_the_operation():
    found = read("""
Traceback (most recent call last):
  File "/code/train.py", line 9, in <module>
    session.run(train)
tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:

Detected at node 'MatMul' defined at (most recent call last):
    File "/code/train.py", line 5, in <module>
      tf.matmul(x, w)
Node: 'MatMul'
Matrix size-incompatible: In[0]: [16,8], In[1]: [4,1]
\t [[{{node MatMul}}]]
""")
    assert found.exception == "InvalidArgumentError"
    assert found.more[:2] == ("Node: 'MatMul'", "Matrix size-incompatible: In[0]: [16,8], In[1]: [4,1]")
    assert found.place is not None
    assert found.place.line == 9


def test_what_another_process_said_comes_after_its_name():
    found = read("""
Traceback (most recent call last):
  File "/code/train.py", line 9, in <module>
    session.run(train)
tensorflow.python.framework.errors_impl.UnavailableError: From /job:ps/replica:0/task:1:
Socket closed
Additional GRPC error information:
""")
    assert found.more[0] == "Socket closed"
    assert known.find(found) is not None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("python: can't open file '/code/trian.py': [Errno 2] No such file or directory", None),
        ("train.sh: line 3: pyhton: command not found", None),
        ("train.py: error: unrecognized arguments: --stpes 5", None),
        ("Fatal Python error: Segmentation fault", None),
        ("terminate called after throwing an instance of 'X'\n  what():  bad_alloc", "what():  bad_alloc"),
        ("hello\nIllegal instruction (core dumped)", "Illegal instruction (core dumped)"),
        ("KeyboardInterrupt", None),
        ("panic: no column clicked\n\ngoroutine 1 [running]:\nmain.main()", "panic: no column clicked"),
    ],
)  # fmt: skip
def test_where_there_is_no_traceback(text, line):
    assert read(text).line == (line or text)


FAILED = """\
Traceback (most recent call last):
  File "/code/train.py", line 7, in <module>
    read(rows)
ValueError: no rows"""


@pytest.mark.parametrize(
    "prefix",
    [
        "[1,3]<stderr>:", "worker-1 | ", "INFO|2018-11-19T02:05:{second}|/opt/launcher.py|27| ",
        "(trainer pid=41{second}) ", "2026-11-27 10:00:{second},120 ERROR ",
    ],
)  # fmt: skip
def test_what_a_launcher_writes_in_front_of_each_line(prefix):
    lines = ["starting", FAILED.splitlines()[0], *FAILED.splitlines()[1:]]
    found = last_words.read([prefix.format(second=10 + at) + line for at, line in enumerate(lines)])
    assert found is not None
    assert found.line == "ValueError: no rows"
    assert str(found.place) == "/code/train.py:7  read(rows)"


def test_a_traceback_on_one_line_of_a_log():
    found = read('{"level": "error", "message": "' + FAILED.replace("\n", "\\n").replace('"', "'") + '\\n"}')
    assert found.line == "ValueError: no rows"


def test_a_traceback_in_a_log_of_json():
    found = read(json.dumps({"level": "error", "exc_info": f"{FAILED}", "host": "a"}))
    assert found.line == "ValueError: no rows"
    assert str(found.place) == "/code/train.py:7  read(rows)"


BOXED = """\
╭──────────── Traceback (most recent call last) ────────────╮
│ /code/train.py:6 in <module>                              │
│                                                           │
│   5 │   return rate['lr']                                 │
│ ❱ 6 train()                                               │
│                                                           │
│ /usr/lib/python3.9/site-packages/my/reader.py:5 in read   │
│ ╭─ locals ──╮                                             │
│ │ rate = {} │                                             │
│ ╰───────────╯                                             │
╰───────────────────────────────────────────────────────────╯
BadRow: 3
"""
#: As IPython writes it, and what runs notebooks.
OF_A_CELL = f"""\
---------------------------------------------------------------------------
BadRow                                    Traceback (most recent call last)
File /code/train.py:6, in <module>
      4 def train():
----> 6     read()

File {SITE}/my/reader.py:5, in read()
----> 5     raise BadRow(3)

BadRow: 3
"""


@pytest.mark.parametrize("text", [BOXED, OF_A_CELL], ids=["rich", "ipython"])
def test_a_traceback_in_a_form_of_its_own(text):
    found = read(text)
    assert found.line == "BadRow: 3"
    assert str(found.place) == "/code/train.py:6"


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("ValueError: wrong:\nlr must be > 0\n\nbatch too\n", ("lr must be > 0", "batch too")),
        (
            'yaml.scanner.ScannerError: not allowed here\n  in "a.yaml", line 1, column 5:\n    a: b: c\nbye',
            ('in "a.yaml", line 1, column 5:', "a: b: c"),
        ),
        ("pydantic.ValidationError: 1 validation error for Settings\nlr\n  missing", ("lr", "missing")),
        ("ValueError: no rows\nbye\n  3 left\n", ()),
    ],
)
def test_a_message_of_several_lines(text, more):
    assert read(text).more == more


@pytest.mark.parametrize(
    ("text", "line", "more"),
    [
        ("step 1\nno column clicked\n", "step 1", ("no column clicked",)),
        ("1\n2\n\n3\n4\n", "2", ("3", "4")),
        ("ERROR:root:no column\n1\n2\n3\n4", "ERROR:root:no column", ("2", "3", "4")),
        ("10:00:00,120 - train - CRITICAL - no\n1", "10:00:00,120 - train - CRITICAL - no", ("1",)),
        ("2026-11-27 10:00:00 [error    ] no\n1", "2026-11-27 10:00:00 [error    ] no", ("1",)),
        ('{"msg": "no", "level": "error"}\n1', '{"msg": "no", "level": "error"}', ("1",)),
        ("E1127 10:00:00.1 17 train.py:3] no\n1", "E1127 10:00:00.1 17 train.py:3] no", ("1",)),
        ("2026-11-27 10:00:00.1: E tensorflow/cuda.cc:3] no\n1\n2\n3", "1", ("2", "3")),
    ],
)  # fmt: skip
def test_what_was_written_last_where_no_line_says_why(text, line, more):
    assert last_words.read(text.splitlines()) is None
    found = last_words.closing(text.splitlines())
    assert found == last_words.LastWords(line=line, more=more, is_reason=False)


def test_of_an_empty_output_nothing_is_quoted():
    assert last_words.closing(["", "  "]) is None


def test_colours_are_no_part_of_a_line():
    found = read(FAILED.replace("ValueError", "\x1b[1;31mValueError\x1b[0m"))
    assert found.line == "ValueError: no rows"


@pytest.mark.parametrize(
    "last",
    [
        "queue.Empty", "socket.timeout: timed out", "socket.gaierror: [Errno -2] Name or service not known",
        "subprocess.TimeoutExpired: Command 'x' timed out after 5 seconds", "zlib.error: Error -3",
        "pyarrow.lib.ArrowInvalid: CSV parse error",
    ],
)  # fmt: skip
def test_what_ends_a_traceback_is_the_exception_whatever_its_name(last):
    found = read(FAILED.replace("ValueError: no rows", last) + "\nbye: 3\n")
    assert found.line == last
    assert found.place is not None


@pytest.mark.parametrize(
    "after",
    [
        "Exception ignored in: <bound method BaseSession.__del__ of <Session object>>\n"
        'Traceback (most recent call last):\n  File "/code/s.py", line 1, in __del__\n'
        "TypeError: 'NoneType' object is not callable",
        "Exception in thread Thread-3:\nTraceback (most recent call last):\n"
        '  File "/code/s.py", line 1, in f\n    get()\nEOFError',
        "Error in atexit._run_exitfuncs:\nTraceback (most recent call last):\n"
        '  File "/code/s.py", line 1, in close\nOSError: closed',
        'Traceback (most recent call last):\n  File "/code/launch.py", line 1, in <module>\n'
        "    run(check=True)\nsubprocess.CalledProcessError: Command 'python train.py' returned 1.",
    ],
    ids=["thrown away", "thread", "at exit", "launcher"],
)  # fmt: skip
def test_what_follows_from_a_failure_is_not_the_failure(after):
    assert read(f"{FAILED}\n{after}").line == "ValueError: no rows"
    # Where there is nothing else, it is.
    assert read(after).line == after.splitlines()[-1]


def test_an_error_within_a_function_of_tensorflow():
    found = read(f"""
Traceback (most recent call last):
  File "/code/train.py", line 90, in <module>
    model.fit(data)
  File "{SITE}/keras/utils/traceback_utils.py", line 70, in error_handler
    raise e.with_traceback(filtered_tb) from None
  File "/tmp/__autograph_generated_filexk3.py", line 15, in tf__train_function
    retval_ = ag__.converted_call(ag__.ld(step_function), (ag__.ld(self),), None, fscope)
ValueError: in user code:

    File "{SITE}/keras/engine/training.py", line 1284, in train_function  *
        return step_function(self, iterator)
    File "/code/model.py", line 31, in call  *
        return self.tower(features)

    ValueError: Input 0 of layer "tower" is incompatible with the layer: expected axis -1

    Call arguments received by layer "model" (type Clicks):
      x: 3
""")
    assert found.line.startswith('ValueError: Input 0 of layer "tower"')
    assert str(found.place) == "/code/model.py:31  return self.tower(features)"


@pytest.mark.parametrize("words", ["in user code:", "in converted code:"])
def test_an_error_within_a_function_of_an_older_tensorflow(words):
    found = read(f"""
Traceback (most recent call last):
  File "/code/train.py", line 90, in <module>
    step(batch)
TypeError: {words}

    /code/train.py:12 step  *
        return tf.matmul(batch, weights)
    {SITE}/tensorflow/python/util/dispatch.py:201 wrapper  **
        return target(*args, **kwargs)

    TypeError: Input 'b' of 'MatMul' Op has type float32 that does not match type int32 of argument 'a'.
""")
    assert found.line.startswith("TypeError: Input 'b'")
    assert str(found.place) == "/code/train.py:12  return tf.matmul(batch, weights)"


def test_what_a_layer_was_called_with_is_said_below_its_error():
    found = read(
        FAILED.replace("no rows", "Exception encountered when calling Sequential.call().")
        + "\n\n\x1b[1mCannot take the length of shape with unknown rank.\x1b[0m\n"
    )
    assert found.more[0] == "Cannot take the length of shape with unknown rank."


def test_several_exceptions_of_a_group():
    found = read("""
  + Exception Group Traceback (most recent call last):
  |   File "/code/train.py", line 3, in <module>
  |     asyncio.run(main())
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/code/train.py", line 9, in read
    |     open(part)
    | FileNotFoundError: [Errno 2] No such file or directory: 'part-1'
    +---------------- 2 ----------------
    | OSError: part-2 is closed
    +------------------------------------
""")
    assert found.line == "OSError: part-2 is closed"
    assert str(found.place) == "/code/train.py:9  open(part)"


def test_an_exception_that_came_from_another_process():
    found = read("""
multiprocessing.pool.RemoteTraceback:
\"\"\"
Traceback (most recent call last):
  File "/code/train.py", line 3, in read
    return 1 / rows
ZeroDivisionError: division by zero
\"\"\"

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/code/train.py", line 6, in <module>
    pool.map(read, parts)
ZeroDivisionError: division by zero
""")
    assert str(found.place) == "/code/train.py:3  return 1 / rows"


@pytest.mark.parametrize(
    ("end", "line"),
    [
        (
            "2026-11-27 10:00:00.123456: F tensorflow/core/util/tensor.cc:120] Check failed: a == b\n"
            "Fatal Python error: Aborted",
            0,
        ),
        ("terminate called after throwing a 'X'\n  what():  bad_alloc\nFatal Python error: Aborted", 1),
        ("Fatal Python error: Segmentation fault", 0),
    ],
)  # fmt: skip
def test_a_crash_after_errors_that_were_handled(end, line):
    found = read(f"""{FAILED}
{end}

Thread 0x00007f1 (most recent call first):
  File "/code/other.py", line 1, in wait

Current thread 0x00007f2 (most recent call first):
  File "{SITE}/tensorflow/python/client/session.py", line 1443 in _call_tf_sessionrun
  File "/code/train.py", line 55 in step
  File "/code/train.py", line 80 in <module>

Segmentation fault (core dumped)
""")
    assert found.line == end.splitlines()[line].strip()
    assert found.exception is None
    assert str(found.place) == "/code/train.py:55"


@pytest.mark.parametrize("text", ["", "step 1\nstep 2", "Error rate: 0.5", "an Error: not at the beginning"])
def test_nothing_is_made_up(text):
    assert last_words.read(text.splitlines()) is None


PIECES = (
    "Traceback (most recent call last):", '  File "x.py", line 3, in f', "    f()", "ValueError: no",
    "Node: 'x'", "From /job:ps/replica:0/task:1:", "ValueError: in user code:", "    ValueError: no",
    "    /x.py:3 f", "Fatal Python error: Aborted", "Current thread 0x1 (most recent call first):",
    "Exception ignored in: <x>", "a | Traceback (most recent call last):", "a | KeyError: 1",
    "╭── Traceback (most recent call last) ──╮", "│ /x.py:3 in f │", "File /x.py:3, in f", "ERROR: no",
)  # fmt: skip


@given(lines=st.lists(st.text(max_size=200) | st.sampled_from(PIECES), max_size=40))
def test_any_output_is_read(lines):
    for read in (last_words.read, last_words.closing):
        found = read(lines)
        if found is not None:
            known.find(found)
            assert any(found.line in line for line in lines)


def test_a_log_of_one_endless_line_is_read_at_once():
    found = last_words.read(["ValueError: " + "a" * 10_000_000])
    assert found is not None
    assert len(found.line) == last_words.CHARACTERS


def test_a_place_is_never_that_of_a_library_or_of_the_instrumentation():
    found = read(f"""
Traceback (most recent call last):
  File "{SITE}/absl/app.py", line 300, in run
    _run_main(main, args)
  File "/run/instrumentation/paceline_instrumentation/sessions.py", line 90, in _do_run
    found = original(session)
  File "<frozen importlib._bootstrap>", line 1, in load
ModuleNotFoundError: No module named 'pandas'
""")
    assert found.place is None
