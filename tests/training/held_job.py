"""`tiny_job.py`, whose trainers do not end before a test lets them: so it acts while they train.

From the step `HELD_AT` on each trainer takes five steps a second, with a report of each; shortly before
`HELD_UNTIL` none, until the file `RELEASE` is there or it is asked to stop. So nothing depends on how fast a
machine trains.
"""

import os
import runpy
import signal
import threading
import time
from pathlib import Path

from paceline.training import deadlines, paces, reports

HELD_AT, HELD_UNTIL = int(os.environ["HELD_AT"]), int(os.environ["HELD_UNTIL"])
RELEASE = Path(os.environ["RELEASE"])
#: Steps that may be under way in all trainers when they are held.
UNDER_WAY = 20
STOPPED = threading.Event()
INSTALL = signal.signal


class HeldMeter(reports.StepMeter):
    """A meter that holds up the step after the one that it counts."""

    def add(self, step, steps, examples, loss, input_cost, **more):
        super().add(step, steps, examples, loss, input_cost, **more)
        if step >= HELD_AT and not RELEASE.exists():
            self.flush(input_cost)
            time.sleep(0.2)
            while step >= HELD_UNTIL - UNDER_WAY and not RELEASE.exists() and not STOPPED.is_set():
                time.sleep(0.05)


def install(number, handler):
    """As `signal.signal`; a trainer that gets its signal is held no longer."""

    def handle(*received):
        STOPPED.set()
        return handler(*received)

    return INSTALL(number, handle if callable(handler) else handler)


if __name__ == "__main__":
    signal.signal = install
    reports.StepMeter = HeldMeter
    deadlines.FIRST_SECONDS = float(os.environ.get("FIRST_DEADLINE_SECONDS", deadlines.FIRST_SECONDS))
    paces._NOTICE_SECONDS = float(os.environ.get("NOTICE_SECONDS", paces._NOTICE_SECONDS))
    runpy.run_path(str(Path(__file__).with_name("tiny_job.py")), run_name="__main__")
