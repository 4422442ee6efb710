"""Hostile names, labels, environments, commands and resources on a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    found,
    kubectl,
    objects,
    status,
    submit,
    until,
    until_phase,
)  # fmt: skip

from paceline.engines.kubernetes import kinds
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import Role
from paceline.rendering import manifests
from paceline.rendering.surroundings import Surroundings

HERE = Surroundings(namespace=NAMESPACE)
WORDS = (
    "sh", "-c", "$(HOME) $$(HOME) $(PACELINE_INDEX) ${HOME} `id`", "'", '"', "\\", "a\nb\r\n\tc",
    "", "--", "$",
    "\u2028\u202e\U0001f600", "{worker_hosts}", "%s", "!!python/object:os.system", "*a", "\x1b[31m",
)  # fmt: skip
ENVIRONMENT = {f"X_{index}": word for index, word in enumerate(WORDS)}


def job(name: str = "hostile", **more: Any) -> JobSpec:
    fields: dict[str, Any] = {"command": WORDS, "environment": ENVIRONMENT, **more}
    return JobSpec(
        name=name,
        image="localhost/work:1",
        roles=(RoleSpec(role=Role.WORKER, cpu_cores=1.0, memory_bytes=1 << 28),),
        placement=PodPlacement(node_selector={"paceline.dev/hollow": "true"}),
        termination_grace_seconds=1.0,
        **fields,
    )


def create(made: dict[str, Any]) -> dict[str, Any]:
    text = kubectl("create", "--validate=false", "-f", "-", "-o", "json", given=json.dumps(made))
    return dict(json.loads(text))


def told(config_map: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(config_map["data"]["worker.json"]))


def strings(part: Any) -> list[str]:
    if isinstance(part, dict):
        return [each for below in part.values() for each in strings(below)]
    if isinstance(part, list):
        return [each for below in part for each in strings(below)]
    return [part] if isinstance(part, str) else []


@pytest.mark.parametrize("target", ["pods", "tfjob", "vcjob"])
def test_words_and_variables_lie_where_kubernetes_does_not_look(upstream: None, target: str) -> None:
    """It fills in ``$(NAME)`` in command, args and env: the only one there is the index that we put there."""
    made = manifests.rendered(job(f"hostile-{target}"), manifests.Target(target), HERE)
    stored = [create(each) for each in made]
    try:
        config = told(next(each for each in stored if each["kind"] == "ConfigMap"))
        assert config["command"] == list(WORDS)
        assert {key: config["environment"][key] for key in ENVIRONMENT} == ENVIRONMENT
        texts = [text for each in stored if each["kind"] != "ConfigMap" for text in strings(each.get("spec"))]
        indices = {"pods": [], "tfjob": ["PACELINE_INDEX"], "vcjob": ["VC_TASK_INDEX"]}[target]
        assert [text for text in texts if "$(" in text] == [
            f'{{"index": $({name}), "attempt": 1}}' for name in indices
        ]
        assert not set(texts) & set(WORDS[2:])
    finally:
        for each in stored:
            kind = "jobs.batch.volcano.sh" if each["kind"] == "Job" else each["kind"]
            kubectl("delete", kind, each["metadata"]["name"], "-n", NAMESPACE, "--wait=false")


def test_a_resource_carries_them_to_the_config_map_of_its_agents(operator: OperatorProcess) -> None:
    submit(job())
    until_phase("hostile", "running")
    config = told(found("configmap", "hostile", "-n", NAMESPACE))
    assert config["command"] == list(WORDS)
    assert {key: config["environment"][key] for key in ENVIRONMENT} == ENVIRONMENT


def resource(name: str, **fields: Any) -> dict[str, Any]:
    spec = {"image": "i", "command": ["x"], "roles": {"worker": {"replicas": 1}}, **fields}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "metadata": metadata, "spec": spec}


def nested(levels: int) -> dict[str, Any]:
    deep: dict[str, Any] = {}
    for _ in range(levels):
        deep = {"a": deep}
    return deep


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "a-name.with-dots-and-more-than-fifty-two-characters-in-it": ({}, "metadata.name"),
    "no-roles": ({"roles": {}}, "nothing trains"),
    "one-megabyte": ({"environment": {"BIG": "x" * (1 << 20)}}, "the limit is 1048576"),
    "quarter-megabyte": ({"environment": {"BIG": "x" * (1 << 18)}}, "the text has 262144 bytes"),
    "together-too-much": (
        {
            "environment": {f"X_{index}": "x" * 120_000 for index in range(8)},
            "roles": {"worker": {}, "ps": {}},
        },
        "Kubernetes allows 1048576",
    ),
    "just-too-much": (
        # Less than what Kubernetes allows, but for the copy of the job beside it.
        {"environment": {f"X_{index}": "x" * 120_000 for index in range(7)}},
        "Too long: may not be more than 1048576 bytes",
    ),
    "a-zero-byte": ({"environment": {"NUL": "a\0b"}}, "spec.environment.NUL: the character"),
    "no-variable": ({"environment": {"A=B\n": "c"}}, "is not a variable's name"),
    "no-words": ({"command": [{"$(x)": 1}, ["y"]]}, "spec.command[0]: this is a mapping"),
    # Far deeper ones never get in: an API server of 1.20 takes twice the time for each level.
    "deep": ({"training": nested(12)}, "unknown key 'a'"),
    "wide": ({"command": ["x"] * 30_000}, "there are more than 20000 values"),
    # The API server itself is slow with thousands of fields that it does not know.
    "many-unknown": ({f"key-{index}": index for index in range(100)}, "unknown key 'key-0'"),
    "numbers": ({"threads": 10**40, "active_deadline": -1e300}, "spec.threads"),
    "no-image-name": ({"image": "$(rm -rf /)"}, "is not an image"),
}  # fmt: skip


def test_what_is_wrong_is_said_and_other_jobs_go_on(operator: OperatorProcess) -> None:
    submit(job("before", command=("sleep", "9")))
    until_phase("before", "running")
    for name, (fields, _) in HOSTILE.items():
        create(resource(name, **fields))
    submit(job("after", command=("sleep", "9")))
    until_phase("after", "running")
    for name, (_, says) in HOSTILE.items():
        until(
            lambda name=name: status(name).get("phase") == "failed",
            lambda name=name: (name, status(name), operator.said()[-3000:]),
        )
        message = status(name)["message"]
        assert says in message, (name, message)
        assert len(message) < 20_000, name
    assert status("before")["phase"] == "running"
    # One that begins now has to read all of them first.
    operator.kill()
    kubectl("delete", "pod", "before-worker-0-1", "-n", NAMESPACE, "--grace-period=0", "--force")
    operator.start()
    until(lambda: objects(kinds.PODS, "paceline.dev/attempt=2"), lambda: status("before"))
    assert operator.said().count("could not be looked after") == 0


def test_names_that_kubernetes_itself_refuses(installed: None) -> None:
    for name in ("../../etc/passwd", "$(id)", "A", "x\ny", ""):
        with pytest.raises(AssertionError, match=r"Invalid value|invalid|must be|error"):
            create(resource(name))
    labelled = resource("labelled")
    labelled["metadata"]["labels"] = {"team": "$(id)\n"}
    with pytest.raises(AssertionError, match="Invalid value"):
        create(labelled)
