"""The pages of all cures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paceline import specs
from paceline.model.variables import cures
from paceline.model.variables.cures import CURES, Cure
from paceline.surfaces import cure_pages

DOCS = Path(__file__).parents[2] / "docs" / "cures"
_JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: mine}
spec:
  command: [python, train.py]
  roles:
    ps: {replicas: 1}
    worker: {replicas: 1}
"""


def test_the_pages_are_those_of_the_catalogue() -> None:
    written = {path.name: path.read_text() for path in DOCS.glob("*.md")}
    assert written == cure_pages.pages(), "make docs"


@pytest.mark.parametrize("cure", CURES, ids=lambda cure: cure.name)
def test_what_a_page_shows_asks_for_its_cure_alone(cure: Cure) -> None:
    (shown,) = re.findall(r"```yaml\nspec:\n(.*?)```", cure_pages.pages()[f"{cure.name}.md"], re.DOTALL)
    spec = specs.parse_job(_JOB + shown).spec
    assert cures.asked(spec.training) == (cure,)
    assert cures.unmet(spec.training) == ()
