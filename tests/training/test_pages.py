"""The examples of the user's page run as they stand there: those with their imports, which are whole."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n((?:from|import) .*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def data(folder):
    random = np.random.default_rng(0)
    folder.mkdir()
    (folder / "tags.txt").write_text("red\nround\n")
    for name in ("train-0", "train-1", "test"):
        columns = {
            "price": random.random(64),
            "age": random.integers(0, 99, 64),
            "site": random.choice(["a", "b"], 64),
            "ad": random.integers(0, 99, 64),
            "tags": [["red", "other"][: i % 3] for i in range(64)],
            "click": random.integers(0, 2, 64),
        }
        pyarrow.parquet.write_table(pa.table(columns), folder / f"{name}.parquet")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(tmp_path, monkeypatch, caplog, number):
    data(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    alone = {"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(alone))
    monkeypatch.setenv("PACELINE_TRAINING", json.dumps({"batch_size": 32}))
    caplog.set_level("INFO")
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), {"__name__": "example"})
    assert ("step 4: AUC" in caplog.text) == ("training.run(" in EXAMPLES[number])
