import json

import pytest
import yaml

from paceline import errors, specs
from paceline.model.variables import saved_plans
from paceline.model.variables.variable_plans import PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable

PLAN = plan(
    [
        Variable(
            name="table", shape=(1000, 16), sparse=True, slots=1, step_bytes=1e-3, row_shares=(1.0, 2.5)
        ),
        Variable(name="bias", shape=()),
    ],
    servers=2,
    cut=RowPartitioning(),
    rule=PlacementRule.BALANCED,
)
JOB = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: clicks}}
spec:
  command: [python, train.py]
  roles: {{ps: {{replicas: 2}}, worker: {{replicas: 2}}}}
  training: {training}
"""


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_what_was_saved_is_read_back(tmp_path, write):
    path = tmp_path / "plan"
    path.write_text(write(saved_plans.write(PLAN)))
    assert specs.load_plan(path) == PLAN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "plan.json: the plan: a mapping is wanted"),
        ("{}", "plan.json: the plan has no 'apiVersion'"),
        (json.dumps({**saved_plans.write(PLAN), "servers": "2"}), "servers: a whole number"),
        ("{", "plan.json:"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path, text, message):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(errors.InvalidInput, match=message):
        specs.load_plan(path)


def test_a_job_may_hold_a_plan_or_the_path_of_one():
    assert specs.parse_job(JOB.format(training="{variable_plan: plan.json}")).spec.training == {
        "variable_plan": "plan.json"
    }
    plain = saved_plans.write(PLAN, traffic=False)
    job = specs.parse_job(JOB.format(training=json.dumps({"variable_plan": plain}))).spec
    assert job.training == {"variable_plan": plain}
    assert specs.parse_job(specs.dump_job(job)).spec == job


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ("{variable_plan: {kind: x}}", "the plan has no 'apiVersion'"),
        ("{variable_plan: p, partitioning: {strategy: none}}", "remove it or partitioning"),
        ("{variable_plan: p, variable_placement: greedy}", "remove it or variable_placement"),
        ("{variable_placement: traffic}", "write measured_variables: FILE"),
    ],
)
def test_what_contradicts_a_plan_is_said(training, message):
    with pytest.raises(specs.DocumentError, match=message):
        specs.parse_job(JOB.format(training=training))
