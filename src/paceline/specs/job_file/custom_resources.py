"""The job file as a custom resource, with a schema that Kubernetes accepts.

A CustomResourceDefinition accepts a part of OpenAPI 3 ("structural schemas"): no references, and one type for
each value. The schema therefore accepts anything where a value may have several types (``cpu: 2``, ``cpu:
500m``). It also preserves unknown fields, which Kubernetes would silently drop. The operator reads each job
with `parse_job` and reports errors in the same words as `paceline lint`.

Source: Kubernetes' documentation, "Extend the Kubernetes API with CustomResourceDefinitions".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from paceline.errors import InvalidInput
from paceline.model.jobs import job_specs
from paceline.specs.job_file import dumping, files
from paceline.specs.job_file.schemas import json_schema
from paceline.specs.yaml_text import documents, problems

GROUP, VERSION = job_specs.API_VERSION.split("/")
PLURAL = "trainingjobs"
#: A field that only the resource has: true stops the job or keeps it from starting.
SUSPEND = "suspend"
_HINT = "mend its spec and apply it again"
_ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
_KEPT = (
    "type", "description", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems",
    "maxItems", "required",
)  # fmt: skip
_COLUMNS = (
    ("Phase", "string", ".status.phase"),
    ("Ready", "string", ".status.ready"),
    ("Message", "string", ".status.message"),
    ("Age", "date", ".metadata.creationTimestamp"),
)
_CONDITION = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        name: {"type": "string"} for name in ("type", "status", "reason", "message", "lastTransitionTime")
    },
}
_STATUS = {
    "type": "object",
    "description": "where the job stands; the operator writes it and goes on from it",
    "properties": {
        "version": {
            "type": "integer",
            "description": "of this status; an older operator leaves the job alone",
        },
        "observedGeneration": {"type": "integer", "format": "int64"},
        "phase": {"type": "string", "description": "pending, starting, running, ..."},
        "ready": {"type": "string", "description": "replicas that run, of all"},
        "workers": {"type": "integer", "description": "how many the job has, not only asks for"},
        "maxWorkers": {"type": "integer", "description": "up to how many it may be scaled while it runs"},
        "message": {"type": "string", "description": "why it is in this phase"},
        "startedAt": {"type": "string", "format": "date-time"},
        "finishedAt": {"type": "string", "format": "date-time"},
        "conditions": {"type": "array", "items": _CONDITION},
    },
    **_ANYTHING,
}


def definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of training jobs."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": job_specs.KIND,
                "listKind": f"{job_specs.KIND}List",
                "plural": PLURAL,
                "singular": "trainingjob",
                "shortNames": ["tj"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _resource()},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.roles.worker.replicas",
                            "statusReplicasPath": ".status.workers",
                        },
                    },
                    "additionalPrinterColumns": [
                        {"name": name, "type": kind, "jsonPath": path} for name, kind, path in _COLUMNS
                    ],
                }
            ],
        },
    }


def job_spec(custom: Mapping[str, Any]) -> job_specs.JobSpec:
    """Return the job that a resource asks for.

    Raises:
        InvalidInput: the resource has errors; the message lists them by field.
    """
    metadata, spec = custom.get("metadata") or {}, custom.get("spec") or {}
    document = {
        "apiVersion": custom.get("apiVersion"),
        "kind": custom.get("kind"),
        "metadata": {"name": metadata.get("name"), "labels": dict(metadata.get("labels") or {})},
        "spec": {name: value for name, value in spec.items() if name != SUSPEND},
    }
    excess = _excess(document)
    if excess is not None:
        raise InvalidInput(f"the job is wrong: {excess}", _HINT)
    try:
        return files.parse_job(dumping.dump_document(document)).spec
    except problems.DocumentError as error:
        # The text is generated, so its line numbers would not help the user.
        shown = error.problems[: problems.MAX_SHOWN]
        found = "; ".join(": ".join(filter(None, (each.path, each.message))) for each in shown)
        rest = len(error.problems) - len(shown)
        found += f"; and {rest} more" if rest else ""
        raise InvalidInput(f"the job is wrong: {found}", _HINT) from error


def _excess(document: Mapping[str, Any]) -> str | None:
    """Return which limit of a job file a document exceeds; None if it exceeds none.

    This runs before anything slow is done with the document. It does not recurse, because the document may
    have more levels than Python's recursion limit.
    """
    values = 0
    level: list[Any] = [document]
    for _ in range(documents.MAX_DEPTH + 1):
        values += len(level)
        if values > documents.MAX_VALUES:
            return f"there are more than {documents.MAX_VALUES} values"
        parts = (
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        )
        level = [below for part in parts for below in part]
        if not level:
            size = len(json.dumps(document, ensure_ascii=False).encode())
            limit = documents.MAX_BYTES
            return f"it has {size} bytes; the limit is {limit} (1 MiB)" if size > limit else None
    return f"the nesting is deeper than {documents.MAX_DEPTH} levels"


def resource(spec: job_specs.JobSpec, namespace: str) -> dict[str, Any]:
    """Return the resource of a job; `job_spec` converts it back to an equal job."""
    document: dict[str, Any] = yaml.safe_load(dumping.dump_job(spec))
    document["metadata"]["namespace"] = namespace
    return document


def _resource() -> dict[str, Any]:
    schema = json_schema()
    spec = _structural(schema["properties"]["spec"], schema["$defs"])
    spec["properties"][SUSPEND] = {
        "type": "boolean",
        "description": "whether the job is to be stopped, or not to begin; false brings it back",
    }
    return {
        "type": "object",
        "description": "a training job with parameter servers",
        "required": ["spec"],
        "properties": {"spec": spec, "status": _STATUS},
    }


def _structural(part: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a JSON Schema as a structural schema that accepts everything that the part accepts."""
    if "$ref" in part:
        referenced = _structural(parts[part["$ref"].rpartition("/")[2]], parts)
        return {**referenced, **{key: part[key] for key in ("description",) if key in part}}
    if "anyOf" in part:
        others = [alternative for alternative in part["anyOf"] if alternative.get("type") != "null"]
        about = {key: part[key] for key in ("description",) if key in part}
        return {**(_structural(others[0], parts) if len(others) == 1 else _ANYTHING), **about}
    result = {key: part[key] for key in _KEPT if key in part}
    if isinstance(result.get("type"), list) or not ("type" in result or "enum" in result):
        return {**{key: result[key] for key in ("description",) if key in result}, **_ANYTHING}
    if "exclusiveMinimum" in part:
        result.update(minimum=part["exclusiveMinimum"], exclusiveMinimum=True)
    if "enum" in result:
        result["type"] = "string"
    if result["type"] == "array":
        result["items"] = _structural(part["items"], parts) if "items" in part else _ANYTHING
    if result["type"] == "object":
        result.update(_ANYTHING)
        fields = part.get("properties", {})
        if fields:
            result["properties"] = {name: _structural(field, parts) for name, field in fields.items()}
    return result
