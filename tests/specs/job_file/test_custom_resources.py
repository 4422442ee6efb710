"""The custom resource: a schema that Kubernetes takes, and that lets every good job file through."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from support.examples import examples
from support.job_specs import job_specs

from paceline.errors import InvalidInput
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.specs.job_file import custom_resources, templates

DEFINITION = custom_resources.definition()
SCHEMA = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
WORKER = RoleSpec(role=Role.WORKER)
TYPES = ("object", "array", "string", "integer", "number", "boolean")
WORDS = {
    "type", "description", "format", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum",
    "exclusiveMinimum", "minItems", "maxItems", "required", "properties", "items",
    "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for each in [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]:
        yield from parts(each)


def test_the_schema_is_structural() -> None:
    """The rules of Kubernetes: one type for each value, no other words, none required that is unknown."""
    for part in parts(SCHEMA):
        assert part.keys() <= WORDS
        assert part.get("type") in TYPES or part.get("x-kubernetes-preserve-unknown-fields")
        assert set(part.get("required", ())) <= part.get("properties", {}).keys()
        assert ("items" in part) == (part.get("type") == "array")
        assert isinstance(part.get("exclusiveMinimum", True), bool)


def test_names_belong_together() -> None:
    names = DEFINITION["spec"]["names"]
    assert DEFINITION["metadata"]["name"] == f"{names['plural']}.{DEFINITION['spec']['group']}"
    assert names["kind"] == "TrainingJob"


def lets_through(job: dict[str, Any]) -> None:
    """Check as the API server does; in OpenAPI 3.0 ``exclusiveMinimum`` is a flag, as in draft 4."""
    jsonschema.Draft4Validator(SCHEMA).validate({"spec": job["spec"]})


@pytest.mark.parametrize("name", sorted(templates.TEMPLATES))
def test_templates_pass(name: str) -> None:
    lets_through(yaml.safe_load(templates.template(name)))


@settings(max_examples=examples(80))
@given(job_specs())
def test_a_job_and_its_resource_are_the_same(spec: JobSpec) -> None:
    """But for the order of its roles: the API server sorts keys."""
    made = custom_resources.resource(spec, "ads")
    lets_through(made)
    found = custom_resources.job_spec(json.loads(json.dumps(made, sort_keys=True)))
    in_order = sorted(spec.roles, key=lambda role: role.role)
    assert found == dataclasses.replace(spec, roles=tuple(in_order))


def test_what_is_wrong_is_said_by_field() -> None:
    made = custom_resources.resource(JobSpec(name="clicks", command=("x",), roles=(WORKER,)), "ads")
    made["spec"]["roles"]["worker"]["replicas"] = -1
    made["spec"]["sucess"] = "chief"
    with pytest.raises(InvalidInput) as caught:
        custom_resources.job_spec(made)
    assert "spec.roles.worker.replicas: " in caught.value.message
    assert "spec.sucess: unknown key" in caught.value.message
    assert "job.yaml" not in caught.value.message


def test_being_suspended_is_no_part_of_the_job() -> None:
    spec = JobSpec(name="clicks", command=("x",), roles=(WORKER,))
    made = custom_resources.resource(spec, "ads")
    made["spec"]["suspend"] = True
    assert custom_resources.job_spec(made) == spec


def test_what_is_deployed_is_current() -> None:
    file = Path(__file__).parents[3] / "deploy" / "kustomize" / "trainingjobs.yaml"
    assert yaml.safe_load(file.read_text()) == DEFINITION, "make docs"
