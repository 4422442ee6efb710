"""TensorFlow is imported when it is first used, and without what it drags in for nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DESCRIBES = """
import sys
from paceline import training
from paceline.training import blocks, features, settings
label, column = features.Label("label"), features.Identity("id", 50)
known = features.FeatureSet((features.Numeric("x"),), (column,), label)
for model in (training.WideAndDeep, training.DeepFM, training.DCN, training.DLRM):
    model(known)
training.run, training.TrainingError, training.Tracer, training.Source(("train.parquet",)), settings.read({})
assert "tensorflow" not in sys.modules, sorted(sys.modules)
"""

IMPORTS = """
import gc, sys
if len(sys.argv) > 1:
    gc.disable()
was = gc.isenabled()
from paceline.training.lazy_tensorflow import tf, tf1
assert "tensorflow" not in sys.modules
assert tf1.Session is tf.compat.v1.Session
assert gc.isenabled() is was
assert not {"keras", "tf_keras"} & set(sys.modules)
assert not [name for name, module in sys.modules.items() if module is None]
assert tf.keras.optimizers.Adam(0.5).learning_rate == 0.5
import keras.src.optimizers
"""

TRAINS = """
import atexit, json, runpy, sys
names = ("tensorflow", "keras", "tf_keras", "pandas", "matplotlib", "IPython")
atexit.register(lambda: print(json.dumps([name for name in names if name in sys.modules])))
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def python(text, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        env={"PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_describes_its_model_and_its_data_without_it():
    python(DESCRIBES)


@pytest.mark.slow
def test_keras_is_imported_when_it_is_used():
    python(IMPORTS)


@pytest.mark.slow
def test_who_collects_no_garbage_collects_none_afterwards():
    python(IMPORTS, "disabled")


@pytest.mark.slow
def test_a_trainer_needs_neither_keras_nor_pandas(tiny_data):
    alone = {"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}
    script = ROOT / "tests/training/tiny_job.py"
    training = json.dumps({"max_steps": 2, "hidden_units": [8]})
    said = python(TRAINS, script, *tiny_data, TF_CONFIG=json.dumps(alone), PACELINE_TRAINING=training)
    assert json.loads(said.splitlines()[-1]) == ["tensorflow"]
