"""Where a job writes what TensorBoard shows."""

from __future__ import annotations

import dataclasses

import pytest
from support import filled_homes

from paceline.surfaces.web.pages import log_folders


@pytest.mark.parametrize(
    ("command", "environment", "found"),
    [
        (("python", "train.py"), {}, []),
        (("python", "train.py", "--log_dir=/data/logs"), {}, ["/data/logs"]),
        (("python", "train.py", "--tensorboard-dir", "runs", "--logdir"), {}, ["runs"]),
        (("python", "train.py", "--catalog_dir=x"), {"TENSORBOARD_LOGDIR": "tb", "DIR": "y"}, ["tb"]),
    ],
)
def test_folders_that_a_job_names(
    command: tuple[str, ...], environment: dict[str, str], found: list[str]
) -> None:
    spec = dataclasses.replace(filled_homes.spec_of("clicks"), command=command, environment=environment)
    assert log_folders.named(spec) == found
