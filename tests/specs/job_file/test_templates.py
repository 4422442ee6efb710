import re

import pytest

from paceline import errors, linting, specs
from paceline.model.jobs import job_specs

KINDS = tuple(specs.TEMPLATES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_is_a_job_without_findings(kind: str) -> None:
    job = specs.parse_job(specs.template(kind, "my-job"))
    assert job.spec.name == "my-job"
    assert linting.lint_job(job) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_everything_that_is_commented_out_is_right(kind: str) -> None:
    text = re.sub(r"(?m)^( *)# (?= *(?:[A-Za-z_]+:|- \{))", r"\1", specs.template(kind))
    spec = specs.parse_job(text).spec
    assert len(spec.roles) == 4
    assert spec.training is not None
    assert len(spec.volumes) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_shown(kind: str) -> None:
    text = specs.template(kind)
    schema = specs.json_schema()
    sections = [schema, *schema["$defs"].values()]
    names = {name for section in sections for name in section["properties"]} - {
        "secret",
        "shards",
        "min_shard_bytes",
    }
    assert [name for name in sorted(names) if not re.search(rf"\b{name}:", text)] == []
    assert all(len(line) <= 110 for line in text.splitlines())


def test_placeholders_are_listed() -> None:
    assert [name for name in job_specs.PLACEHOLDERS if f"{{{name}}}" not in specs.template()] == []


def test_a_name_that_is_no_name() -> None:
    with pytest.raises(errors.InvalidInput, match="cannot be a job's name"):
        specs.template("script", "My Job")
    with pytest.raises(errors.InvalidInput, match="did you mean 'script'"):
        specs.template("scripts")
