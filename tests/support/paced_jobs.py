"""Jobs whose trainers make steps as fast as their training section says: real processes, no TensorFlow."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

#: Reports steps; fused tables make it twice as fast, shared exchanges nothing, short layers let it fail, and
#: steps in flight make it faster and learn worse. Steps have the moments at which they are due, so on any
#: machine it is as fast as it says.
_SCRIPT = """\
import json, os, time

training = json.loads(os.environ["PACELINE_TRAINING"])
if training.get("compute_precision") == "bfloat16":
    raise SystemExit("this CPU has no bfloat16")
speed = 20_000 * (2 if training.get("fused_tables", True) else 1)
loss = 0.4
if training.get("steps_in_flight", 1) > 1:
    speed, loss = 2 * speed, 0.6
step, at = 0, time.time()
while True:
    step, at = step + 10, at + 0.1
    time.sleep(max(0.0, at - time.time()))
    report = {
        "type": "step", "at": at, "interval_seconds": 0.1, "step": step, "steps": 10,
        "examples": speed // 10, "loss": loss, "input_wait_seconds": 0.0,
    }
    with open(os.environ["PACELINE_REPORT_FILE"], "a") as file:
        file.write(json.dumps(report) + "\\n")
"""


def source(folder: Path, **training: object) -> str:
    """Return a job file of one PS and two such trainers; their script is written into the folder."""
    (folder / "train.py").write_text(_SCRIPT)
    return textwrap.dedent(
        f"""\
        apiVersion: paceline.dev/v1alpha1
        kind: TrainingJob
        metadata:
          name: paced
        spec:
          termination_grace: 1s
          command: [{sys.executable}, train.py]
          roles:
            ps: {{command: [sleep, "600"]}}
            worker: {{replicas: 2, restart: {{when: never}}}}
          training: {{fused_tables: false, batch_size: 200}}
        """
    )
