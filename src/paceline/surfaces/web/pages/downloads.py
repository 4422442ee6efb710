"""Files that a page offers and that take a while to make: one at a time, whoever asks."""

from __future__ import annotations

import threading

from paceline.errors import PacelineError
from paceline.services.life_cycles import LifeCycle

#: Matplotlib's settings are of the whole process, so two drawings at once would mix them up.
_DRAWING = threading.Lock()


def report(jobs: LifeCycle, name: str) -> str:
    """Return the report of a job.

    Raises:
        NotFound: there is no such job.
        StoreError: the store cannot be read.
        PacelineError: what draws is not installed.
    """
    with _DRAWING:
        try:
            from paceline.surfaces.reports import evidence, pages
        except ModuleNotFoundError as error:
            raise PacelineError(
                f"a report needs {error.name}, which is not installed where the server runs",
                "there: pip install 'paceline[report]'",
            ) from error
        return pages.page(evidence.gather(jobs, name))
