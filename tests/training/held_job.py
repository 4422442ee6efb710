"""`tiny_job.py`, whose trainers do not end before a test lets them: so it acts while they train.

From the step `HELD_AT` on each trainer takes five steps a second, with a report of each; shortly before
`HELD_UNTIL` none, until the file `RELEASE` is there or it is asked to stop. So nothing depends on how fast a
machine trains.
"""

import json
import os
import runpy
import signal
import threading
import time
from pathlib import Path

#: Steps that may be under way in all trainers when they are held.
UNDER_WAY = 20


def hold(at, until, release):
    """Has the meter of steps hold up the trainer after the step that it counts."""
    from paceline.training import reports

    stopped = threading.Event()
    add, install = reports.StepMeter.add, signal.signal

    def held(self, step, steps, examples, loss, input_cost, **more):
        add(self, step, steps, examples, loss, input_cost, **more)
        if step >= at and not release.exists():
            self.flush(input_cost)
            time.sleep(0.2)
            while step >= until - UNDER_WAY and not release.exists() and not stopped.is_set():
                time.sleep(0.05)

    def installed(number, handler):
        def handle(*received):
            stopped.set()
            return handler(*received)

        return install(number, handle if callable(handler) else handler)

    reports.StepMeter.add = held
    signal.signal = installed


def wait_as_told():
    """Has a trainer wait for others as long as the environment says: tests wait less, or hold it longer."""
    from paceline.training import deadlines
    from paceline.training.graph import step_policies
    from paceline.training.input import shared_queues

    deadlines.FIRST_SECONDS = float(os.environ.get("FIRST_DEADLINE_SECONDS", deadlines.FIRST_SECONDS))
    step_policies._NOTICE_SECONDS = float(os.environ.get("NOTICE_SECONDS", step_policies._NOTICE_SECONDS))
    shared_queues._PATIENCE_SECONDS = float(
        os.environ.get("PATIENCE_SECONDS", shared_queues._PATIENCE_SECONDS)
    )


if __name__ == "__main__":
    if json.loads(os.environ["TF_CONFIG"])["task"]["type"] != "ps":
        hold(int(os.environ["HELD_AT"]), int(os.environ["HELD_UNTIL"]), Path(os.environ["RELEASE"]))
        wait_as_told()
    runpy.run_path(str(Path(__file__).with_name("tiny_job.py")), run_name="__main__")
