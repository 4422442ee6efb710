"""Files that describe the variables of a model, written by a training run or by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from paceline.model.variables.variables import Variable
from paceline.specs.job_file import checks, fields
from paceline.specs.job_file.sections import Section
from paceline.specs.yaml_text import documents, problems

_HINT = "a training writes variables.json into its run's folder"
_Size = Annotated[int, fields.whole(1, 10**12)]
_Few = Annotated[int, fields.whole(0, 100)]
_Amount = Annotated[float, fields.Leaf(fields.number(0, 1e18), {"type": "number", "minimum": 0})]


class MeasuredVariableSection(Section):
    """One variable."""

    name: fields.Text = Field(description="its name in the model")
    shape: list[_Size] = Field(description="rows first; empty for a scalar")
    sparse: fields.Boolean = Field(False, description="whether rows are looked up by id")
    element_bytes: _Size = Field(4, description="bytes of one value")
    slots: _Few = Field(0, description="values that the optimizer keeps for each value")
    step_bytes: _Amount | None = Field(None, description="bytes pulled and pushed in a step of one worker")
    row_shares: list[_Amount] = Field(
        default_factory=list, description="shares of that traffic over equal ranges of rows"
    )
    rows_used: _Amount | None = Field(None, description="rows that a batch uses, each counted once")
    value_type: fields.Text | None = Field(None, description="TensorFlow's name of the type of its values")
    devices: list[fields.Text] = Field(default_factory=list, description="where TensorFlow has its parts")
    updates: list[fields.Text] = Field(
        default_factory=list, description="types of the operations that change it in a step"
    )


class VariableFileSection(Section):
    """The file."""

    variables: list[MeasuredVariableSection] = Field(description="the model's variables, as they are created")


def load_variables(path: str | os.PathLike[str]) -> tuple[Variable, ...]:
    """Return the variables that a file (YAML or JSON) describes.

    Raises:
        errors.NotFound: there is no such file.
        errors.InvalidInput: the file cannot be read or is wrong; `problems.DocumentError` says where.
    """
    data, file = checks.read_bytes(path, _HINT), os.fspath(path)
    with problems.hinted(_HINT):
        document = documents.read(documents.decode(data, file), file)
        section = checks.check(document, VariableFileSection, "a file of variables", _contradictions)
    return tuple(
        Variable(
            **{
                **each.model_dump(),
                "shape": tuple(each.shape),
                "row_shares": tuple(each.row_shares),
                "devices": tuple(each.devices),
                "updates": tuple(each.updates),
            }
        )
        for each in section.variables
    )


def _contradictions(document: documents.Document, section: VariableFileSection) -> Iterator[problems.Problem]:
    seen: set[str] = set()
    for index, variable in enumerate(section.variables):
        if variable.name in seen:
            message = f"there is a variable {problems.shown(variable.name)} already"
            yield document.problem(("variables", index, "name"), message)
        seen.add(variable.name)
        if variable.row_shares and not variable.sparse:
            yield document.problem(
                ("variables", index, "row_shares"),
                "only a sparse variable has rows with more or less traffic",
            )
