"""Cores for some jobs before others, so that what runs beside a test does not disturb the job of the test.

Beside other tests `why` says that other programs take a job's cores, and that is true. A test of what else it
says needs a job whose own limits bind it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from paceline.engines.local import machines
from paceline.engines.local.folders import RunFolder

#: The share that a group begins with, and one that counts as much as sixteen busy processes, in the words of
#: each version of cgroups. With more, other tests would stand still: the largest share left them a twentieth
#: of two cores for minutes.
DEFAULT = {"cpu.shares": "1024", "cpu.weight": "100"}
LARGE = {"cpu.shares": "16384", "cpu.weight": "1600"}
LOOK_SECONDS = 0.2


@contextlib.contextmanager
def preferred(home: Path) -> Iterator[None]:
    """Give the jobs of a home a large share of the cores while this lasts, where they have groups.

    Args:
        home: the state folder; it need not be there yet.
    """
    hierarchy = machines.read().cgroups
    if hierarchy is None:
        yield
        return
    ended = threading.Event()

    def prefer() -> None:
        while not ended.wait(LOOK_SECONDS):
            for run in home.glob("runs/*"):
                for group in hierarchy.folders(RunFolder(run).token):
                    _set(group, LARGE)
                    _set(group.parent, LARGE)

    thread = threading.Thread(target=prefer)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        # The groups of jobs go with them; that of all jobs stays. Another test that needs it sets it again.
        for root in hierarchy.roots.values():
            _set(root, DEFAULT)


def _set(group: Path, shares: Mapping[str, str]) -> None:
    for name, share in shares.items():
        # The group is not there yet, or no more; the other version of cgroups has no such file.
        with contextlib.suppress(OSError):
            path = group / name
            if path.exists():
                path.write_text(share)
