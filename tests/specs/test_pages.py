"""The reference of the job file names every field, and its example is a job."""

import re
from pathlib import Path

from paceline import specs
from paceline.model.jobs import job_specs

PAGE = (Path(__file__).parents[2] / "docs" / "job-file.md").read_text(encoding="utf-8")


def test_every_field_is_named() -> None:
    schema = specs.json_schema()
    names = {name for part in (schema, *schema["$defs"].values()) for name in part["properties"]}
    words = set(re.findall(r"[A-Za-z_0-9]+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
    assert sorted(names - words - {"metadata"}) == []


def test_every_placeholder_is_named() -> None:
    assert [name for name in job_specs.PLACEHOLDERS if f"`{{{name}}}`" not in PAGE] == []


def test_every_choice_is_named() -> None:
    for words in (
        job_specs.Framework,
        job_specs.CpuPolicy,
        job_specs.SuccessPolicy,
        job_specs.CleanUp,
        job_specs.RestartWhen,
    ):
        assert [str(word) for word in words if f"`{word}`" not in PAGE] == []


def test_the_examples_are_jobs() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert [specs.parse_job(example).spec.name for example in examples] == ["clicks", "all-reduce"]
