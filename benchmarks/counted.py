"""A training script that also writes numbered lines, each acknowledged beside the log once it is written.

``python -m benchmarks.counted FOLDER ARGUMENTS``: what FOLDER holds afterwards says which lines the log must
have, however the process was ended.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from paceline.examples.clicks import train

LINE_SECONDS = 0.01


def count(acknowledged: Path) -> None:
    """Write numbered lines for ever; each number is kept once its line is out."""
    descriptor = os.open(acknowledged, os.O_WRONLY | os.O_CREAT, 0o600)
    number = 0
    while True:
        number += 1
        os.write(1, f"line {number}\n".encode())
        os.pwrite(descriptor, f"{number:12d}".encode(), 0)
        time.sleep(LINE_SECONDS)


def main() -> None:
    """Count beside the training."""
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    name = f"{os.environ['PACELINE_ROLE']}-{os.environ['PACELINE_INDEX']}.{os.environ['PACELINE_ATTEMPT']}"
    threading.Thread(target=count, args=(folder / name,), daemon=True).start()
    train.main(sys.argv[2:])


if __name__ == "__main__":
    main()
