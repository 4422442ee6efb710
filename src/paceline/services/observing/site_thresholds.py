"""The file in which a site sets thresholds of rules: ``thresholds.yaml`` in the state folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from paceline.diagnosing import catalogues
from paceline.specs.job_file import checks, fields
from paceline.specs.job_file.sections import Section
from paceline.specs.yaml_text import documents, problems

KIND = "Thresholds"
NAME = "thresholds.yaml"
_HINT = "paceline thresholds lists all names; docs/causes/thresholds.md shows a file"
_MOST = 2.0**62

_Kind = Annotated[Literal["Thresholds"], fields.choice((KIND,))]
_Number = Annotated[float, fields.Leaf(fields.number(0, _MOST), {"type": "number"})]


class ThresholdsSection(Section):
    """A file of thresholds."""

    apiVersion: fields.ApiVersion = Field(description="version of this format")
    kind: _Kind = Field(description="kind of this file")
    spec: dict[str, _Number] = Field({}, description="by name: the number that this site compares with")


def load_thresholds(folder: Path) -> Mapping[str, float]:
    """Return the thresholds that the file in a state folder sets, by name; none if there is no file.

    Raises:
        problems.DocumentError: the file is wrong; the error says where.
        errors.InvalidInput: the file cannot be read.
    """
    path = folder / NAME
    if not path.exists():
        return {}
    return parse_thresholds(checks.read_bytes(path, _HINT), file=str(path))


def parse_thresholds(text: str | bytes, file: str = NAME) -> Mapping[str, float]:
    """Return the thresholds that a text sets, by name.

    Raises:
        problems.DocumentError: the text is wrong; the error says where.
    """
    with problems.hinted(_HINT):
        document = documents.read(documents.decode(text, file), file)
        return checks.check(document, ThresholdsSection, "a file of thresholds", _contradictions).spec


def _contradictions(document: documents.Document, section: ThresholdsSection) -> Iterator[problems.Problem]:
    for name, value in section.spec.items():
        threshold = catalogues.THRESHOLDS.get(name)
        if threshold is None:
            close = problems.did_you_mean(name, catalogues.THRESHOLDS)
            message = f"there is no threshold {problems.shown(name)}{close}"
            yield document.problem(("spec", name), message, key=True)
        elif (refusal := threshold.refusal(value)) is not None:
            yield document.problem(("spec", name), refusal)
