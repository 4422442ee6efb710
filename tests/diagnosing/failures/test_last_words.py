"""The line that matters of what a failed script wrote, and the place in the user's own code."""

from __future__ import annotations

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
    ],
)  # fmt: skip
def test_where_there_is_no_traceback(text, line):
    assert read(text).line == (line or text)


@pytest.mark.parametrize("text", ["", "step 1\nstep 2", "Error rate: 0.5", "an Error: not at the beginning"])
def test_nothing_is_made_up(text):
    assert last_words.read(text.splitlines()) is None


PIECES = (
    "Traceback (most recent call last):", '  File "x.py", line 3, in f', "    f()", "ValueError: no",
    "Node: 'x'", "From /job:ps/replica:0/task:1:",
)  # fmt: skip


@given(lines=st.lists(st.text(max_size=200) | st.sampled_from(PIECES), max_size=40))
def test_any_output_is_read(lines):
    found = last_words.read(lines)
    if found is not None:
        known.find(found)
        assert found.line.strip() in {line.rstrip().strip() for line in lines}


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
