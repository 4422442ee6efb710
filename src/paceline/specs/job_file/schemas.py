"""The JSON Schema of a job file, for editors; it is generated from the models that check job files."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from paceline.specs.job_file import shapes

DIALECT = GenerateJsonSchema.schema_dialect
IDENTIFIER = "https://paceline.dev/schemas/v1alpha1/training-job.json"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a job file."""
    body = _tidy(shapes.JobSection.model_json_schema())
    body["$defs"] = {name.removesuffix("Section"): part for name, part in sorted(body["$defs"].items())}
    head = {"$schema": DIALECT, "$id": IDENTIFIER, "title": "Paceline training job"}
    return {**head, **body}


def _tidy(part: Any, *, names: bool = False) -> Any:
    """Return a schema without pydantic's titles and null defaults, and with shorter names in references.

    With ``names``, the keys of this mapping are names of fields or definitions, not keywords of JSON Schema.
    """
    if isinstance(part, list):
        return [_tidy(item) for item in part]
    if not isinstance(part, dict):
        return part
    result: dict[str, Any] = {}
    for key, value in part.items():
        if not names and (key == "title" or (key == "default" and value is None)):
            continue
        if not names and key == "$ref":
            value = value.removesuffix("Section")
        if not names and key == "patternProperties":
            result["additionalProperties"] = False
        result[key] = _tidy(value, names=not names and key in ("properties", "$defs"))
    return result
