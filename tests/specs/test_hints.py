"""Whatever kind of document is wrong, the hint is about this kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paceline import specs
from paceline.services.observing import site_thresholds
from paceline.specs.job_file import experiment_files
from paceline.specs.tfjob import tfjob_files
from paceline.specs.yaml_text.problems import DocumentError

HINTS: dict[Callable[[Path], object], str | None] = {
    specs.load_job: "docs/job-file.md",
    specs.load_plan: "paceline plan",
    specs.load_variables: "variables.json",
    experiment_files.load_experiment: "docs/experiments.md",
    lambda path: site_thresholds.parse_thresholds(path.read_bytes()): "paceline thresholds",
    tfjob_files.convert: None,
}


@pytest.mark.parametrize("text", ["a: [1\n", "a: 1\na: 2\n", b"\xff\n"])
@pytest.mark.parametrize(("load", "part"), HINTS.items(), ids=map(str, HINTS.values()))
def test_the_hint_is_about_this_kind_of_document(
    load: Callable[[Path], object], part: str | None, text: str | bytes, tmp_path: Path
) -> None:
    file = tmp_path / "document.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DocumentError) as caught:
        load(file)
    if part is None:
        assert "job-file" not in (caught.value.hint or "")
    else:
        assert part in (caught.value.hint or "")
