"""What failures of TensorFlow scripts mean, and what helps."""

from __future__ import annotations

import pytest

from paceline.diagnosing.failures import known, last_words

#: What a script wrote, and a word of what is said of it.
FAILURES = {
    "paceline.training.errors.InputError: a.csv:3: column 'x' holds 'two', not a number": "data",
    "paceline.training.errors.SettingsError: two numbers have the name 'x'": "settings",
    "AttributeError: module 'tensorflow' has no attribute 'contrib'": "tf.contrib",
    "ModuleNotFoundError: No module named 'tensorflow.contrib'": "tf.contrib",
    "ModuleNotFoundError: No module named 'tensorflow.examples.tutorials'": "tensorflow.examples",
    "AttributeError: module 'tensorflow' has no attribute 'estimator'": "tf.estimator",
    "AttributeError: `dense` is not available with Keras 3.": "Keras 3",
    "ImportError: Keras cannot be imported. No module named 'tf_keras'": "tf_keras",
    "RuntimeError: tf.placeholder() is not compatible with eager execution.": "TensorFlow 1",
    "RuntimeError: The Session graph is empty. Add operations before calling run().": "TensorFlow 1",
    "AttributeError: module 'tensorflow' has no attribute 'placeholder'": "no placeholder",
    "AttributeError: module 'tensorflow.compat.v2' has no attribute 'Session'": "no Session",
    "TypeError: Descriptors cannot not be created directly.": "protobuf",
    "AttributeError: module 'numpy' has no attribute 'bool'.": "NumPy",
    "ImportError: numpy.core.multiarray failed to import": "NumPy",
    "ImportError: libcudart.so.10.0: cannot open shared object file: No such file": "shared library",
    "ImportError: /lib/libm.so.6: version `GLIBC_2.29' not found": "shared library",
    "Illegal instruction (core dumped)": "instructions",
    "ModuleNotFoundError: No module named 'pandas'": "module pandas",
    "ImportError: cannot import name 'feature_column' from 'my'": "no feature_column",
    "python: can't open file '/code/trian.py': [Errno 2] No such file or directory": "script /code/trian.py",
    "train.sh: line 3: pyhton: command not found": "program pyhton",
    "train.py: error: unrecognized arguments: --stpes 5": "arguments",
    "absl.flags._exceptions.UnrecognizedFlagError: Unknown command line flag 'job_nam'": "arguments",
    "SyntaxError: invalid syntax": "no Python",
    "tf.errors.UnknownError: Could not start gRPC server": "port",
    "OSError: [Errno 98] Address already in use": "port",
    "OSError: [Errno 99] Cannot assign requested address": "address",
    'ValueError: Task 2 was not defined in job "worker"': "job that the cluster",
    "tf.errors.InvalidArgumentError: Cannot assign a device for operation x": "device",
    "KeyError: 'TF_CONFIG'": "TF_CONFIG",
    "tf.errors.AbortedError: Session handle is not found: 41. Possibly this worker just restarted.": "again",
    "AttributeError: partially initialized module 'tensorflow' has no attribute 'Session'": "own is called",
    "ValueError: decay is deprecated in the new Keras optimizer, please check": "2.11",
    "ValueError: When using `ParameterServerStrategy`, `x` must be a `DatasetCreator`.": "DatasetCreator",
    "ValueError: The `steps_per_epoch` argument must be specified": "steps_per_epoch",
    "ValueError: Trying to create optimizer slot variable under the scope for tf.distribute.": "scope",
    "ModuleNotFoundError: No module named 'distutils'": "older than this Python",
    "tf.errors.NotFoundError: Op type not registered 'Zero' in binary running on ps-0.": "operation Zero",
    "tf.errors.UnimplementedError: File system scheme 'hdfs' not implemented (file: 'hdfs://x')": "hdfs://",
    "Error: No such option: --stpes": "arguments",
    "FATAL Flags parsing error: flag --job_name=None: Flag --job_name must": "arguments",
    "tf.errors.ResourceExhaustedError: Received message larger than max (9 vs. 4)": "larger than gRPC",
    "ValueError: Cannot create a tensor proto whose content is larger than 2GB.": "part of the graph",
    "tf.errors.OutOfRangeError: FIFOQueue '_1_q' is closed and has insufficient elements": "input queue",
    "tf.errors.OutOfRangeError: End of sequence": "at its end",
    "tf.errors.InvalidArgumentError: Feature: age (data type: int64) is required but could": "age",
    "OSError: [Errno 30] Read-only file system: '/out'": "nothing can be written",
    "OSError: [Errno 24] Too many open files: '/data/part-3'": "files open",
    "tf.errors.FailedPreconditionError: /model; Is a directory": "folder stands",
    "tf.errors.FailedPreconditionError: Attempting to use uninitialized value emb/w": "emb/w",
    "tf.errors.InvalidArgumentError: You must feed a value for placeholder tensor 'x' with": "x was",
    "ValueError: Cannot feed value of shape (3,) for Tensor 'x:0', which has shape '(?, 3)'": "placeholder",
    "RuntimeError: Graph is finalized and cannot be modified.": "froze",
    'ValueError: Tensor("x:0") must be from the same graph as Tensor("y:0").': "two graphs",
    "ValueError: Variable emb already exists, disallowed.": "emb is made twice",
    "ValueError: No gradients provided for any variable: ['w:0'].": "no variable",
    "RuntimeError: Run called even after should_stop requested.": "another step",
    "RuntimeError: can't start new thread": "threads",
    "tf.errors.InvalidArgumentError: No OpKernel was registered to support Op 'Nccl'": "Nccl",
    "OSError: [Errno 28] No space left on device": "disk",
    "tf.errors.DataLossError: corrupted record at 0": "data",
    "PermissionError: [Errno 13] Permission denied: '/data/train'": "may not be used",
    "tf.errors.NotFoundError: Key emb/Adam not found in checkpoint": "another model",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'": "/data/train.csv",
    "tf.errors.NotFoundError: /no/such.csv; No such file or directory": "A file is not there: /no/such.csv",
    "FileNotFoundError: part 3": "A file is not there.",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0": "encoding",
    "tensorflow.python.training.basic_session_run_hooks.NanLossDuringTrainingError: NaN loss": "diverged",
    "tf.errors.InvalidArgumentError: loss : Tensor had NaN values": "diverged",
    "TypeError: Input 'y' of 'Mul' Op has type float32 that does not match type int32": "types",
    "ValueError: Dimensions must be equal, but are 8 and 4": "shapes",
    "tf.errors.InvalidArgumentError: indices[3] = 50 is not in [0, 50)": "shapes",
    "tf.errors.ResourceExhaustedError: OOM when allocating tensor": "memory",
    "tf.errors.UnavailableError: Socket closed": "did not answer",
    "tf.errors.NotFoundError: /code/zero.so: cannot open shared object file: No": "shared library",
    "OSError: SavedModel file does not exist at: /export/{saved_model.pbtxt|saved_model.pb}": "/export/.",
    "OSError: Unable to open file (name = '/a.h5', errno = 2, error message = 'No such file')": "/a.h5.",
    "ValueError: Can't load save_path when it is None.": "no checkpoint",
    "tf.errors.InvalidArgumentError: Expect 3 fields but have 2 in record 0": "columns",
    "tf.errors.InvalidArgumentError: StringToNumberOp could not correctly convert string: NA": "numbers",
    "tf.errors.InvalidArgumentError: a label value of 9 which is outside the valid range": "9",
    "tf.errors.FailedPreconditionError: Table not initialized.": "initializer",
    "tf.errors.FailedPreconditionError: the iterator has not been initialized. Ensure": "iterator",
    "ValueError: Trying to share variable a/w, but specified shape (3,) and found shape (2,).": "a/w",
    "ValueError: Variable a/w does not exist, or was not created with get_variable.": "a/w",
    "RuntimeError: Global step should be created to use StopAtStepHook.": "global step",
    "tf.errors.OperatorNotAllowedInGraphError: a symbolic `tf.Tensor` is not allowed": "value of",
    "ValueError: tf.function only supports singleton tf.Variables created on the first call.": "tf.function",
    "ValueError: Cannot capture a stateful node (name:v, type:VariableV2) by value.": "one-shot",
    "requests.exceptions.ConnectionError: [Errno 111] Connection refused": "Nothing listened",
    "NameError: name 'xrange' is not defined. Did you mean: 'range'?": "Python 2",
    "AttributeError: 'dict' object has no attribute 'iteritems'": "Python 2",
    "ImportError: attempted relative import with no known parent package": "part of a package",
    "tf.errors.DeadlineExceededError: Deadline Exceeded": "in time",
}


@pytest.mark.parametrize("line", FAILURES)
def test_each_is_known_and_something_helps(line):
    words = last_words.read([line])
    assert words is not None
    found = known.find(words)
    assert found is not None
    what, steps = found.filled(words)
    assert FAILURES[line] in what
    assert steps
    assert what.endswith(".")
    assert not any("{{" in step or "None" in step for step in (what, *steps))


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: batch size must be even",
        "my.app.BrokenError: no",
        "KeyError: 'x'",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ],
)
def test_of_others_nothing_is_said(line):
    words = last_words.read([line])
    assert words is not None
    assert known.find(words) is None


def test_json_is_tf_config_where_the_code_says_so():
    words = last_words.read(
        [
            "Traceback (most recent call last):", '  File "/code/train.py", line 3, in <module>',
            "    json.loads(os.environ['TF_CONFIG'])", "json.decoder.JSONDecodeError: Expecting value",
        ]
    )  # fmt: skip
    assert words is not None
    found = known.find(words)
    assert found is not None
    assert "TF_CONFIG" in found.what


def test_each_failure_of_the_list_has_an_example():
    fitting = {known.find(words) for words in map(last_words.read, ([line] for line in FAILURES)) if words}
    assert [each for each in known.ALL if each not in fitting and each.code is None] == []
