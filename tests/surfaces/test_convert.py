"""``paceline convert``: the job file on stdout, what is not in it on stderr; the cases of restart limits."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from paceline import specs
from paceline.surfaces.cli.main import cli

TFJOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: clicks}}
spec:
  {policy}
  tfReplicaSpecs:
    Worker:
      replicas: 4
      restartPolicy: {when}
      template:
        metadata: {{annotations: {{note: "\\e[2J"}}}}
        spec:
          containers: [{{name: tensorflow, image: "team/clicks:1", command: [python, train.py]}}]
"""


def convert(text: str) -> Result:
    return CliRunner().invoke(cli, ["convert", "-"], input=text, prog_name="paceline")


@pytest.mark.parametrize(
    ("policy", "when", "said"),
    [
        ("", "OnFailure", "nothing is said here, so restarts have no end (here each replica has 3)"),
        ("runPolicy: {backoffLimit: 6}", "OnFailure", "6 (restarts of all replicas together; here each"),
        ("", "Always", "nothing is said here, so restarts have no end (here each replica has 3)"),
        ("runPolicy: {backoffLimit: 0}", "ExitCode", "0 (restarts of all replicas together; here each"),
    ],
)
def test_a_limit_of_restarts_is_said(policy: str, when: str, said: str) -> None:
    result = convert(TFJOB.format(policy=policy, when=when))
    assert result.exit_code == 0
    assert specs.parse_job(result.stdout).spec.name == "clicks"
    assert f"not carried over: spec.runPolicy.backoffLimit: {said}" in result.stderr
    assert "\x1b" not in result.stderr
    assert r"annotations.note: \x1b[2J" in result.stderr


def test_a_refusal_names_the_line_of_stdin() -> None:
    result = convert(TFJOB.format(policy="runPolicy: {backoffLimit: many}", when="Never"))
    assert result.exit_code != 0
    assert "stdin:5:29: spec.runPolicy.backoffLimit: this is 'many'" in result.stderr
