"""`tiny_job.py` with a deadline that a test can wait for."""

import runpy
from pathlib import Path

from paceline.training import deadlines

if __name__ == "__main__":
    deadlines.FIRST_SECONDS = 4.0
    runpy.run_path(str(Path(__file__).with_name("tiny_job.py")), run_name="__main__")
