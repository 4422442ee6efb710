"""Experiment files, which define variants of a job file that are compared by running them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.model.studies import experiments
from paceline.model.studies.experiments import Experiment, Variant
from paceline.specs.edits import assignments, edits
from paceline.specs.job_file import checks, fields, files, plan_files, shapes
from paceline.specs.job_file.sections import Section
from paceline.specs.yaml_text import documents, problems, writings
from paceline.specs.yaml_text.documents import Scalar

KIND = "Experiment"
#: The most runs of an experiment; users would not wait for more.
MOST_RUNS = 1000
_HINT = "docs/experiments.md shows one"


def _changes(value: object) -> tuple[FieldChange, ...]:
    if not isinstance(value, dict):
        raise fields.wrong("a mapping of fields to values is wanted, such as {ps.replicas: 4}")
    return tuple(_change(field, plan_files.plain(each)) for field, each in value.items())


def _change(field: str, value: Any) -> FieldChange:
    try:
        return FieldChange(path=assignments.path(field), value=writings.writable(value))
    except InvalidInput as error:
        raise fields.wrong(error.message) from error


def _values(value: object) -> tuple[tuple[str, Any], ...]:
    """Return the values of a field, each as its written text and as a plain value."""
    if not isinstance(value, list) or not value:
        raise fields.wrong("a list of values is wanted, such as [1, 2, 4]")
    try:
        plain = [writings.writable(plan_files.plain(each)) for each in value]
    except InvalidInput as error:
        raise fields.wrong(error.message) from error
    written = (
        each.text if isinstance(each, Scalar) else str(made) for each, made in zip(value, plain, strict=True)
    )
    return tuple(zip(written, plain, strict=True))


_Kind = Annotated[Literal["Experiment"], fields.choice((KIND,))]
_Changes = Annotated[tuple[FieldChange, ...], fields.Leaf(_changes, {"type": "object"})]
_Values = Annotated[tuple[tuple[str, Any], ...], fields.Leaf(_values, {"type": "array"})]
_Repeats = Annotated[int, fields.whole(1, 100)]
_Seconds = Annotated[float, fields.Leaf(fields.number(0, 86_400, above=True), {"type": "number"})]


class ExperimentSpecSection(Section):
    """What is compared."""

    job: fields.Text = Field(description="path of the job file that variants change, from this file's folder")
    variants: dict[str, _Changes] = Field(
        {}, description="by name: the fields that are otherwise, such as {ps.replicas: 4}"
    )
    matrix: dict[str, _Values] = Field(
        {}, description="by field: its values; every variant is run with every combination"
    )
    baseline: fields.Text | None = Field(
        None, description="the variant with which the others are compared; default: the first"
    )
    repeats: _Repeats = Field(3, description="runs of each variant, in turn with the others")
    seconds: _Seconds = Field(20.0, description="that each run is measured, when it trains")


class ExperimentSection(Section):
    """An experiment file."""

    apiVersion: fields.ApiVersion = Field(description="version of this format")
    kind: _Kind = Field(description="kind of this file")
    metadata: shapes.MetadataSection = Field(description="name and labels")
    spec: ExperimentSpecSection = Field(description="what is compared")


def load_experiment(path: str | os.PathLike[str]) -> Experiment:
    """Return the experiment that a file describes.

    Raises:
        errors.NotFound: there is no such file, or the job file that it names does not exist.
        errors.InvalidInput: one of the two files cannot be read or is wrong; `problems.DocumentError` says
            where.
    """
    file = os.fspath(path)
    with problems.hinted(_HINT):
        document = documents.read(documents.decode(checks.read_bytes(path, _HINT), file), file)
        section = checks.check(document, ExperimentSection, "an experiment file", _contradictions)
    job = Path(file).parent / section.spec.job
    source = files.load_job(job).text
    found = experiment(section, source, base=job.resolve().parent)
    if problem := _wrong(document, found):
        raise problems.DocumentError([problem], _HINT)
    return found


def experiment(section: ExperimentSection, source: str, *, base: Path) -> Experiment:
    """Return the experiment of a section.

    Args:
        section: the checked experiment file.
        source: text of the job file that it names.
        base: folder of the job file.
    """
    asked = section.spec
    named = [Variant(name=name, changes=changes) for name, changes in asked.variants.items()]
    matrix = [
        [Variant(name=f"{field}={text}", changes=(_change(field, value),)) for text, value in values]
        for field, values in asked.matrix.items()
    ]
    variants = experiments.combined(named or [Variant(name="", changes=())], matrix)
    return Experiment(
        name=section.metadata.name,
        source=source,
        base=str(base),
        variants=variants,
        baseline=asked.baseline or variants[0].name,
        repeats=asked.repeats,
        seconds=asked.seconds,
    )


def _contradictions(document: documents.Document, section: ExperimentSection) -> Iterator[problems.Problem]:
    if not section.spec.variants and not section.spec.matrix:
        yield document.problem(("spec",), "there is nothing to compare: name variants, or a matrix")
    for field in section.spec.matrix:
        try:
            assignments.path(field)
        except InvalidInput as error:
            yield document.problem(("spec", "matrix", field), error.message, key=True)


def _wrong(document: documents.Document, study: Experiment) -> problems.Problem | None:
    """Return the first problem of the experiment as a whole; None if there is none."""
    names = [variant.name for variant in study.variants]
    if len(names) * study.repeats > MOST_RUNS:
        message = f"these are {len(names) * study.repeats} runs, and at most {MOST_RUNS} are made"
        return document.problem(("spec",), message)
    if len(set(names)) < len(names):
        return document.problem(("spec", "matrix"), "two variants are the same")
    if study.baseline not in names:
        shown_names = ", ".join(problems.shown(name) for name in names[:5])
        return document.problem(("spec", "baseline"), f"there is no such variant; there are {shown_names}")
    for variant in study.variants:
        try:
            files.parse_job(edits.edited(study.source, variant.changes))
        except problems.DocumentError as error:
            place = ("spec", "variants", variant.name)
            where = place if place in document.places else ("spec", "matrix")
            said = f"the job of {problems.shown(variant.name)} is wrong: {error.problems[0].message}"
            return document.problem(where, said)
    return None
