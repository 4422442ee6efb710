"""What the job file takes in ``training:`` is what the training library obeys: neither imports the other."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from paceline import specs
from paceline.errors import InvalidInput
from paceline.specs.job_file.trainings import TrainingSection
from paceline.training import settings
from paceline.training.errors import SettingsError

#: The platform makes a variable plan of these, and passes that on.
FOR_THE_PLATFORM = {"measured_variables", "variables"}
#: Values that need a file, or are the platform's, are left out.
LEFT_OUT = {*FOR_THE_PLATFORM, "variable_plan"}
JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  command: [python, train.py]
  training: %s
  roles: {ps: {replicas: 2}, worker: {replicas: 2}}
"""


def asked(schema: Mapping[str, Any], known: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each key of a section with the JSON Schema of its value."""
    for name, each in schema["properties"].items():
        value = next(one for one in each.get("anyOf", [each]) if one.get("type") != "null")
        if "$ref" in value:
            yield from asked(known[value["$ref"].rpartition("/")[2]], known, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def obeyed(kind: type, place: str = "") -> Iterator[str]:
    """Yield each setting."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(hints[field.name]):
            yield from obeyed(hints[field.name], f"{place}{field.name}.")
        else:
            yield f"{place}{field.name}"


SCHEMA = TrainingSection.model_json_schema()
ASKED = dict(asked(SCHEMA, SCHEMA["$defs"]))
OTHERS = {name for name in ASKED if name.rpartition(".")[2] in settings._FOR_OTHERS}


def test_both_have_the_same_keys() -> None:
    unknown = ASKED.keys() - OTHERS - set(obeyed(settings.Settings))
    assert {name.partition(".")[0] for name in unknown} == FOR_THE_PLATFORM
    assert set(obeyed(settings.Settings)) <= ASKED.keys()


def near(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Return values at the bounds of a schema and around them."""
    if "anyOf" in schema:
        return st.one_of(*(near(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("type") == "array":
        return st.lists(near(schema["items"]), max_size=3)
    bounds = {schema[key] for key in schema if key in ("minimum", "maximum", "exclusiveMinimum")}
    numbers = {number + more for number in bounds or {0} for more in (-1, -0.5, 0, 0.5, 1)}
    if schema.get("type") == "integer":
        return st.sampled_from(sorted({int(number) for number in numbers}))
    if schema.get("type") == "number":
        return st.sampled_from(sorted(numbers))
    return st.booleans() if schema.get("type") == "boolean" else st.sampled_from(["a", "64Ki", "1Gi"])


SETTINGS = st.fixed_dictionaries(
    {}, optional={name: near(each) for name, each in ASKED.items() if name not in OTHERS | LEFT_OUT}
)


@given(chosen=SETTINGS)
@hypothesis.settings(max_examples=examples(1000), deadline=None)
def test_the_library_obeys_what_the_job_file_takes(chosen: Mapping[str, Any]) -> None:
    section: dict[str, Any] = {}
    for name, value in chosen.items():
        *blocks, key = name.split(".")
        block = section
        for each in blocks:
            block = block.setdefault(each, {})
        block[key] = value
    try:
        spec = specs.parse_job(JOB % json.dumps(section), "job.yaml").spec
    except InvalidInput:
        return
    assert spec.training is not None or not section
    settings.parse(json.loads(json.dumps(dict(spec.training or {}))))


@pytest.mark.parametrize(
    ("section", "place"),
    [
        ({"wide_optimizer": {"schedule": {"warmup_steps": 10}}}, "spec.training.wide_optimizer.schedule"),
        ({"export_dir": "model", "checkpoint": {"keep": 0}}, "spec.training.export_dir"),
        ({"checkpoint": {"keep": 0, "mirror": "s3://b/c"}}, "spec.training.checkpoint.keep"),
    ],
    ids=["schedule", "export", "mirror"],
)
def test_what_every_trainer_would_refuse_is_refused_before_the_job_begins(
    section: Mapping[str, Any], place: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        specs.parse_job(JOB % json.dumps(section), "job.yaml")
    assert place in str(refused.value)
    with pytest.raises(SettingsError):
        settings.parse(dict(section))
