"""Scripts that fail for the reasons of public ones, run for real: the line that matters, and the cure."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import interpreters

from paceline.diagnosing.failures import known, last_words

TF = "import tensorflow as tf\n"
TF1 = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
RUN = "with tf.Session() as session:\n    session.run({})\n"


@dataclass(frozen=True)
class Failure:
    """A script; what the line that matters has; what its meaning begins with, if it is known.

    A place is the line of the script that a traceback shows; None: there is no traceback of it.
    """

    code: str
    line: str
    meaning: str = ""
    place: int | None = None
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    version: str | None = None


PLAIN = {
    "missing-module": Failure(
        "import no_such_module_x", "No module named 'no_such_module_x'", "The Python module", 1
    ),
    "missing-name": Failure("from json import lods", "cannot import name 'lods'", "", 1),
    "syntax": Failure("steps = (1,\nrate = 2\n", "SyntaxError: ", "The script"),
    "indentation": Failure("if True:\nsteps = 1\n", "IndentationError: ", "The script"),
    "option": Failure(
        "import argparse\nargparse.ArgumentParser().parse_args()", "unrecognized arguments: --steps=3",
        "The script does not", arguments=("--steps=3",),
    ),
    "own-error": Failure("def train():\n    return {}['rate']\n\ntrain()\n", "KeyError: 'rate'", "", 2),
    "assertion": Failure(
        "batch = 3\nassert batch % 2 == 0, 'an even batch'\n", "AssertionError: an even batch", "", 2
    ),
    "no-file": Failure(
        "open('/no/such/data.csv')", "No such file or directory: '/no/such/data.csv'", "A file", 1
    ),
    "encoding": Failure("b'\\xff\\xfe'.decode()", "UnicodeDecodeError: ", "", 1),
    "json": Failure("import json\njson.loads('{')", "JSONDecodeError: ", "", 2),
    "memory": Failure("bytearray(1 << 60)", "MemoryError", "The process found no more memory.", 1),
    "recursion": Failure("def deeper():\n    deeper()\n\ndeeper()\n", "RecursionError: ", "", 2),
    "launcher": Failure(
        "import subprocess\nsubprocess.run(['false'], check=True)", "CalledProcessError: ", "", 2
    ),
    "chained": Failure(
        "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('no a') from error\n",
        "ValueError: no a", "", 4,
    ),
    "several-lines": Failure(
        "raise ValueError('the configuration is wrong:\\n  lr must be > 0')\n", "\nlr must be > 0", "", 1
    ),
    "python-2-print": Failure("print 'step', 3\n", "SyntaxError: ", "The script is written for Python 2"),
    "python-2-name": Failure("xrange(3)", "'xrange' is not defined", "The script is written for Python 2", 1),
    "python-2-module": Failure("import cPickle", "cPickle", "The script is written for Python 2", 1),
    "part-of-a-package": Failure("from . import model", "relative import", "The script is a part", 1),
    "refused": Failure(
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')", "onnection refused",
        "Nothing listened", 2,
    ),
    "its-own-words": Failure("print('begin')\nexit('no column clicked')", "no column clicked"),
    "logged": Failure(
        "import logging, sys\nlogging.basicConfig(level='INFO')\nlogging.error('no column clicked')\n"
        "for step in range(9):\n    logging.info('closing %d', step)\nsys.exit(3)\n",
        "ERROR:root:no column clicked",
    ),
    "silent": Failure("import os\nprint('step 9', flush=True)\nos._exit(7)", "step 9"),
    "shell": Failure(
        "import subprocess, sys\nsys.exit(subprocess.call(['cp', '/no/such/data.csv', '/tmp/data.csv']))",
        "cannot stat", "A file is not there: /no/such/data.csv",
    ),
}  # fmt: skip

TENSORFLOW = {
    "contrib": Failure(
        TF + "tf.contrib.layers", "has no attribute 'contrib'", "The script uses tf.contrib", 2
    ),
    "examples": Failure(
        "from tensorflow.examples.tutorials.mnist import input_data", "No module named 'tensorflow.examples",
        "The script uses tensorflow.examples", 1,
    ),
    "estimator": Failure(TF + "tf.estimator.Estimator", "'estimator'", "The script uses tf.estimator", 2),
    "session-of-1": Failure(TF + "tf.Session()", "has no attribute 'Session'", "", 2),
    "placeholder-eager": Failure(
        "import tensorflow.compat.v1 as tf\ntf.placeholder(tf.float32)",
        "not compatible with eager execution", "The script is written for TensorFlow 1", 2,
    ),
    "layers-of-1": Failure(TF1 + "tf.layers.dense(tf.zeros([2, 2]), 3)", "", "Keras 3", 3),
    "undefined-job": Failure(
        TF1 + "tf.train.Server({'ps': ['localhost:39917']}, job_name='worker', task_index=0)", "", "", 3
    ),
    "undefined-task": Failure(
        TF1 + "tf.train.Server({'ps': ['localhost:39917']}, job_name='ps', task_index=3)", "", "", 3
    ),
    "bad-tf-config": Failure(
        TF + "tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec()",
        "JSONDecodeError: ", "", 2,
        environment=(("TF_CONFIG", "{'cluster': "),),
    ),
    "no-device": Failure(
        TF1
        + "with tf.device('/job:ps/task:0'):\n    v = tf.get_variable('v', [2])\n"
        + RUN.format("v.initializer"),
        "Cannot assign a device for operation", "",
    ),
    "uninitialised": Failure(
        TF1 + "v = tf.get_variable('v', [2])\n" + RUN.format("v"), "FailedPreconditionError: ", "", 5
    ),
    "shapes": Failure(
        TF1 + "x = tf.placeholder(tf.float32)\ny = tf.matmul(x, x)\nwith tf.Session() as session:\n"
        "    session.run(y, {x: [[1.0, 2.0]]})\n",
        "ncompatible", "",
    ),
    "shapes-known": Failure(
        TF1 + "tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))", "Dimensions must be equal", "", 3
    ),
    "types": Failure(TF1 + "tf.add(tf.constant(1), tf.constant(1.0))", "", "", 3),
    "index": Failure(
        TF1 + "x = tf.gather(tf.zeros([3]), tf.constant([9]))\n" + RUN.format("x"), "is not in [0, 3)", ""
    ),
    "not-a-number": Failure(
        TF1 + "x = tf.check_numerics(tf.log(-tf.ones([])), 'loss')\n" + RUN.format("x"),
        "Tensor had NaN", "The loss",
    ),
    "end-of-data": Failure(
        TF1 + "it = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1)).get_next()\n"
        "with tf.Session() as session:\n    session.run(it)\n    session.run(it)\n",
        "End of sequence", "",
    ),
    "no-record-file": Failure(
        TF + "next(iter(tf.data.TFRecordDataset('/no/such.tfrecord')))", "NotFoundError: ", "A file"
    ),
    "damaged-records": Failure(
        TF + "open('/tmp/damaged.tfrecord', 'wb').write(b'damaged' * 9)\n"
        "next(iter(tf.data.TFRecordDataset('/tmp/damaged.tfrecord')))",
        "DataLossError: ", "",
    ),
    "checkpoint-key": Failure(
        TF1 + "import os, tempfile\npath = os.path.join(tempfile.mkdtemp(), 'model')\n"
        "v = tf.get_variable('v', [2])\nwith tf.Session() as session:\n    session.run(v.initializer)\n"
        "    tf.train.Saver().save(session, path)\nw = tf.get_variable('w', [2])\n"
        "with tf.Session() as session:\n    tf.train.Saver().restore(session, path)\n",
        "Key w not found in checkpoint", "",
    ),
    "checkpoint-shape": Failure(
        TF1 + "import os, tempfile\npath = os.path.join(tempfile.mkdtemp(), 'model')\n"
        "v = tf.get_variable('v', [2])\nwith tf.Session() as session:\n    session.run(v.initializer)\n"
        "    tf.train.Saver().save(session, path)\ntf.reset_default_graph()\nw = tf.get_variable('v', [3])\n"
        "with tf.Session() as session:\n    tf.train.Saver().restore(session, path)\n",
        "InvalidArgumentError: ", "",
    ),
    "too-late": Failure(
        TF1 + "x = tf.FIFOQueue(3, tf.float32).dequeue()\nwith tf.Session() as session:\n"
        "    session.run(x, options=tf.RunOptions(timeout_in_ms=300))\n",
        "DeadlineExceededError: ", "Another process",
    ),
    "nan-hook": Failure(
        TF1 + "loss = tf.log(-tf.ones([]))\nhook = tf.train.NanTensorHook(loss)\n"
        "with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:\n    session.run(loss)\n",
        "NanLossDuringTrainingError: ", "The loss",
    ),
    "fit-shapes": Failure(
        TF + "import numpy as np, tf_keras as keras\n"
        "model = keras.Sequential([keras.layers.Dense(1, input_shape=(4,))])\n"
        "model.compile('sgd', 'mse')\nmodel.fit(np.zeros((8, 3)), np.zeros(8), verbose=0)\n",
        "ValueError: ", "",
    ),
}  # fmt: skip
OLD = {
    "no-preprocessing": Failure(
        "from tensorflow.keras.layers import StringLookup", "cannot import name 'StringLookup'", "", 1,
        version="1.15.5",
    ),
    "feed-of-nothing": Failure(
        "import tensorflow as tf\nx = tf.placeholder(tf.float32, name='x')\n" + RUN.format("x * 2"),
        "InvalidArgumentError: ", "", version="1.15.5",
    ),
    "attribute-of-2": Failure(
        TF + "tf.keras.utils.set_random_seed(1)", "AttributeError: ", "", 2, version="1.15.5"
    ),
}  # fmt: skip


def check(tmp_path: Path, failure: Failure) -> None:
    python = interpreters.with_tensorflow_or_skip(failure.version)
    script = tmp_path / "train.py"
    script.write_text(failure.code)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **dict(failure.environment)}
    done = subprocess.run(
        [python, script, *failure.arguments], env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0, done.stdout
    lines = (done.stdout + done.stderr).splitlines()
    words = last_words.read(lines) or last_words.closing(lines)
    assert words is not None, done.stderr
    assert failure.line in words.text, done.stderr
    found = known.find(words)
    meaning = "" if found is None else found.filled(words)[0]
    assert meaning.startswith(failure.meaning), words.text
    if failure.place is not None:
        assert words.place is not None, done.stderr
        assert (words.place.file, words.place.line) == (str(script), failure.place)


@pytest.mark.parametrize("failure", PLAIN.values(), ids=PLAIN)
def test_a_script_of_python(tmp_path: Path, failure: Failure) -> None:
    check(tmp_path, failure)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("failure", [*TENSORFLOW.values(), *OLD.values()], ids=[*TENSORFLOW, *OLD])
def test_a_script_of_tensorflow(tmp_path: Path, failure: Failure) -> None:
    check(tmp_path, failure)
