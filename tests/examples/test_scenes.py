"""The cases of the study of scenes: ready experiment files, like for like."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline import specs
from paceline.model.roles import Role
from paceline.specs.edits import edits
from paceline.specs.job_file import experiment_files

FOLDER = Path(__file__).parents[2] / "examples" / "scenes"


@pytest.mark.parametrize("servers", [1, 5, 10, 20])
def test_scenes_differ_in_nothing_but_where_replicas_are(servers: int) -> None:
    file = FOLDER / ("1-server.yaml" if servers == 1 else f"{servers}-servers.yaml")
    experiment = experiment_files.load_experiment(file)
    jobs = {
        each.name: specs.parse_job(edits.edited(experiment.source, each.changes)).spec
        for each in experiment.variants
    }
    assert list(jobs) == ["scene 1, whole", "scene 2, whole", "scene 1, cut", "scene 2, cut"]
    for name, spec in jobs.items():
        is_together, is_cut = name.startswith("scene 1"), name.endswith("cut")
        assert spec.role(Role.PS).replicas == servers  # type: ignore[union-attr]
        assert spec.role(Role.WORKER).replicas == 10 * servers  # type: ignore[union-attr]
        assert len(spec.hosts) == servers * (1 if is_together else 2)
        assert spec.placement.strategy == ("colocate" if is_together else "isolate")
        assert ("partitioning" in (spec.training or {})) is not is_cut
