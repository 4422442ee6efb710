"""Experiment files: what they say, and every error at its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InvalidInput, NotFound
from paceline.model.explanations.causes import FieldChange
from paceline.specs.job_file import experiment_files
from paceline.specs.yaml_text.problems import DocumentError

JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  command: [python, train.py]
  roles: {ps: {replicas: 1}, worker: {replicas: 2}}
"""
HEAD = (
    "apiVersion: paceline.dev/v1alpha1\nkind: Experiment\nmetadata: {name: scenes}\nspec:\n  job: job.yaml\n"
)


def load(folder: Path, body: str, *, head: str = HEAD) -> experiment_files.Experiment:
    (folder / "job.yaml").write_text(JOB)
    (folder / "experiment.yaml").write_text(head + body)
    return experiment_files.load_experiment(folder / "experiment.yaml")


def test_variants_and_a_matrix_are_combined(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        "  variants:\n    together: {placement.strategy: colocate}\n"
        "    apart: {placement.strategy: isolate}\n"
        "  matrix: {ps.replicas: [1, 2], worker.cpu: [500m]}\n  repeats: 2\n  seconds: 7.5\n",
    )
    assert [each.name for each in found.variants] == [
        "together, ps.replicas=1, worker.cpu=500m", "together, ps.replicas=2, worker.cpu=500m",
        "apart, ps.replicas=1, worker.cpu=500m", "apart, ps.replicas=2, worker.cpu=500m",
    ]  # fmt: skip
    assert found.variants[1].changes == (
        FieldChange(path=("spec", "placement", "strategy"), value="colocate"),
        FieldChange(path=("spec", "roles", "ps", "replicas"), value=2),
        FieldChange(path=("spec", "roles", "worker", "cpu"), value="500m"),
    )
    assert (found.name, found.repeats, found.seconds, found.source) == ("scenes", 2, 7.5, JOB)
    assert found.baseline == found.variants[0].name
    assert found.base == str(tmp_path.resolve())


def test_the_job_as_it_is_may_be_a_variant(tmp_path: Path) -> None:
    found = load(tmp_path, "  variants: {now: {}, more: {worker.replicas: 4}}\n  baseline: more\n")
    assert (found.variants[0].changes, found.baseline) == ((), "more")


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("", 5, "there is nothing to compare"),
        ("  variants: {a: {ps.replica: 4}}\n", 6, "the job of 'a' is wrong"),
        ("  variants: {a: {worker.replicas: 0, ps.replicas: -1}}\n", 6, "the job of 'a' is wrong"),
        ("  variants: {a: 4}\n", 6, "a mapping of fields to values is wanted"),
        ("  variants: {a: {'..': 4}}\n", 6, "'..' is no field"),
        ("  variants: {a: {ps.replicas: [~]}}\n", 6, "no plain value"),
        ("  matrix: {ps.replicas: [1, [~]]}\n", 6, "no plain value"),
        ("  matrix: {'..': [1, 2]}\n", 6, "'..' is no field"),
        ("  matrix: {ps.replicas: [1, 1e999]}\n", 6, "no plain value"),
        ("  matrix: {ps.replicas: 4}\n", 6, "a list of values is wanted"),
        ("  matrix: {ps.replicas: [1, 1]}\n", 6, "two variants are the same"),
        ("  matrix: {worker.replicas: [1, 2]}\n  repeats: 0\n", 7, "0"),
        ("  variants: {a: {}}\n  baseline: b\n", 7, "there is no such variant; there are 'a'"),
        ("  variant: {a: {}}\n", 6, "variant"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, body: str, line: int, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load(tmp_path, body)
    assert message in str(caught.value)
    assert caught.value.problems[0].position.line == line


def test_a_job_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "experiment.yaml").write_text(HEAD + "  variants: {a: {}}\n")
    with pytest.raises(NotFound, match=r"job\.yaml"):
        experiment_files.load_experiment(tmp_path / "experiment.yaml")


def test_too_many_runs_are_refused(tmp_path: Path) -> None:
    values = ", ".join(map(str, range(1, 102)))
    with pytest.raises(DocumentError, match="1010 runs, and at most 1000"):
        load(tmp_path, f"  matrix: {{worker.replicas: [{values}]}}\n  repeats: 10\n")


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        document = experiment_files.documents.read(text, "experiment.yaml")
        experiment_files.checks.check(
            document, experiment_files.ExperimentSection, "an experiment file", lambda *_: iter(())
        )
    except InvalidInput:
        pass
