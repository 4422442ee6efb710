"""What is deployed: the kustomize base, its overlay for one namespace, and the chart, which say the same."""

from __future__ import annotations

import functools
import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import charts, pod_security

from paceline import specs
from paceline.rendering.surroundings import AGENT_FILES, AGENT_IMAGE
from paceline.services.observing import site_thresholds
from paceline.specs.job_file import custom_resources

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
#: kubectl has kustomize, and comes with a cluster.
KUSTOMIZE = pytest.mark.kubernetes
MODES = pytest.mark.parametrize("namespaced", [False, True], ids=["cluster", "namespaced"])

Object = dict[str, Any]


def kustomized(namespaced: bool) -> list[Object]:
    return list(yaml.safe_load_all(_kustomized(namespaced)))


@functools.cache
def _kustomized(namespaced: bool) -> str:
    folder = DEPLOY / ("namespaced" if namespaced else "kustomize")
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def bare(made: Object) -> Object:
    """Return an object without the labels that tell releases of a chart apart."""
    metadata = {name: value for name, value in made["metadata"].items() if name != "labels"}
    return {**made, "metadata": metadata}


def by_name(objects: list[Object], *kinds: str) -> dict[tuple[str, str], Object]:
    return {(each["kind"], each["metadata"]["name"]): bare(each) for each in objects if each["kind"] in kinds}


@KUSTOMIZE
@MODES
def test_chart_and_kustomize_give_the_same_rights(namespaced: bool) -> None:
    kinds = ("ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    ours, theirs = charts.rendered(namespaced=namespaced), kustomized(namespaced)
    assert by_name(ours, *kinds) == by_name(theirs, *kinds)
    assert len(by_name(ours, *kinds)) == 5


@MODES
def test_within_one_namespace_nothing_is_asked_of_the_cluster(namespaced: bool) -> None:
    wide = [each for each in charts.rendered(namespaced=namespaced) if each["kind"].startswith("Cluster")]
    assert bool(wide) != namespaced


def test_within_some_namespaces_there_are_roles_and_no_more() -> None:
    made = charts.rendered(namespaces=["team-a", "team-b"])
    assert not [each["kind"] for each in made if each["kind"].startswith("Cluster")]
    within = by_name(charts.rendered(namespaced=True), "Role")["Role", "paceline-operator-jobs"]["rules"]
    for kind in ("Role", "RoleBinding"):
        jobs = [
            each
            for each in made
            if (each["kind"], each["metadata"]["name"]) == (kind, "paceline-operator-jobs")
        ]
        assert [each["metadata"]["namespace"] for each in jobs] == ["team-a", "team-b"]
        for each in jobs:
            assert each.get("rules", within) == within
            for subject in each.get("subjects", ()):
                assert (subject["name"], subject["namespace"]) == ("paceline-operator", "paceline")
    (deployment,) = by_name(made, "Deployment").values()
    assert "--namespaces=team-a,team-b" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


@KUSTOMIZE
@MODES
def test_chart_and_kustomize_run_the_same_operator(namespaced: bool) -> None:
    ours = by_name(charts.rendered(namespaced=namespaced), "Deployment")
    theirs = by_name(kustomized(namespaced), "Deployment")
    assert ours.keys() == theirs.keys() == {("Deployment", "paceline-operator")}
    one, other = (each["Deployment", "paceline-operator"]["spec"] for each in (ours, theirs))
    assert one["replicas"] == other["replicas"]
    pods = [dict(each["template"]["spec"]) for each in (one, other)]
    containers = [dict(each.pop("containers")[0]) for each in pods]
    assert pods[0] == pods[1]
    for container in containers:
        # The chart writes out what kustomize leaves to defaults, or to the pod itself.
        for name in ("args", "env", "imagePullPolicy"):
            container.pop(name, None)
    assert containers[0] == containers[1]


@KUSTOMIZE
@MODES
def test_the_overlay_of_one_namespace_leaves_what_the_base_says(namespaced: bool) -> None:
    (deployment,) = by_name(kustomized(namespaced), "Deployment").values()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "PACELINE_HOME", "value": "/var/lib/paceline"} in container["env"]
    assert container["args"][:1] == [f"--agent-files={AGENT_FILES}"]
    assert container["args"][1:] == (["--namespace=$(OWN_NAMESPACE)"] if namespaced else [])


@KUSTOMIZE
@MODES
def test_the_operator_passes_the_restricted_standard(namespaced: bool) -> None:
    for objects in (charts.rendered(namespaced=namespaced), kustomized(namespaced)):
        for each in by_name(objects, "Deployment").values():
            assert pod_security.violations(each["spec"]["template"]) == []
            container = each["spec"]["template"]["spec"]["containers"][0]
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


@MODES
def test_pods_are_found_by_their_deployment(namespaced: bool) -> None:
    for each in charts.rendered(namespaced=namespaced):
        if each["kind"] == "Deployment":
            selected = each["spec"]["selector"]["matchLabels"]
            assert selected.items() <= each["spec"]["template"]["metadata"]["labels"].items()


def test_the_chart_is_well_made() -> None:
    assert charts.lint() == []


def test_what_the_chart_says_a_training_job_is() -> None:
    file = charts.CHART / "crds" / "trainingjobs.yaml"
    assert yaml.safe_load(file.read_text()) == custom_resources.definition(), "make docs"


def test_one_version_and_one_image() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)
    base = yaml.safe_load((DEPLOY / "kustomize" / "operator.yaml").read_text())
    for made in (base, *by_name(charts.rendered(), "Deployment").values()):
        container = made["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] == AGENT_IMAGE
        assert f"--agent-files={AGENT_FILES}" in container["args"]


def rules(objects: list[Object], name: str) -> list[Object]:
    roles = {each["metadata"]["name"]: each for each in objects if each["kind"] == "ClusterRole"}
    return list(roles[name]["rules"])


@pytest.mark.parametrize(
    ("values", "file", "role", "same"),
    [
        ({"queues": True}, "queues", "paceline-operator-queues", "paceline-operator-queues"),
        ({"monitoring": {"rights": True}}, "monitoring", "paceline-monitoring", "paceline-monitoring"),
    ],
)
def test_optional_rights_are_the_same(values: Object, file: str, role: str, same: str) -> None:
    ours = list(yaml.safe_load_all((DEPLOY / "kustomize" / f"{file}.yaml").read_text()))
    assert rules(charts.rendered(**values), same) == rules(ours, role)
    assert not any(each["metadata"]["name"] == same for each in charts.rendered())


def test_what_is_shipped_for_prometheus_and_grafana() -> None:
    on = {"podMonitor": True, "rules": True, "dashboards": True}
    made = {each["kind"]: each for each in charts.rendered(monitoring=on) if each["kind"] != "Deployment"}
    folder = DEPLOY / "monitoring"
    assert made["PrometheusRule"]["spec"] == yaml.safe_load((folder / "rules.yaml").read_text())
    monitors = {
        each["metadata"]["name"]: each["spec"]
        for each in charts.rendered(monitoring=on)
        if each["kind"] == "PodMonitor"
    }
    for name, file in (("paceline", "pod-monitor"), ("paceline-operator", "operator-pod-monitor")):
        ours = yaml.safe_load((folder / f"{file}.yaml").read_text())["spec"]
        chosen, wanted = monitors[name].pop("selector"), ours.pop("selector")
        # A release of the chart tells its own operator from those of others.
        chosen.get("matchLabels", {}).pop("app.kubernetes.io/instance", None)
        assert (chosen, monitors[name]) == (wanted, ours)
    shown = {path.name: path.read_text() for path in folder.glob("*.json")}
    assert made["ConfigMap"]["data"].keys() == shown.keys()
    for name, text in made["ConfigMap"]["data"].items():
        assert json.loads(text) == json.loads(shown[name])


def test_a_store_is_named_by_a_secret() -> None:
    environment = operator(storeSecret="store")[1]["env"]
    assert environment[1]["valueFrom"] == {"secretKeyRef": {"name": "store", "key": "url"}}


def operator(**values: Any) -> tuple[Object, Object]:
    made = next(each for each in charts.rendered(**values) if each["kind"] == "Deployment")
    pod = made["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


@pytest.mark.parametrize(
    ("values", "namespace"), [({}, charts.NAMESPACE), ({"namespaces": ["team-a", "team-b"]}, "team-a")]
)
def test_the_job_of_helm_test_runs_where_the_operator_looks(values: Object, namespace: str) -> None:
    made = charts.rendered_test(**values, image={"repository": "hub/paceline", "tag": "9"})
    assert {each["metadata"]["namespace"] for each in made} == {namespace}
    (pod,) = by_name(made, "Pod").values()
    assert pod_security.violations(pod) == []
    (container,) = pod["spec"]["containers"]
    (text,) = (each["value"] for each in container["env"] if each["name"] == "JOB")
    spec = specs.parse_job(text).spec
    assert spec.image == container["image"] == "hub/paceline:9"


def test_thresholds_are_a_file_in_the_state_folder_of_operator_and_server() -> None:
    numbers = {"links.full": 0.6, "large-feeds.large-bytes-per-second": 2e8}
    made = charts.rendered(thresholds=numbers, server={"enabled": True}, storeSecret="store")
    (config_map,) = by_name(made, "ConfigMap").values()
    assert site_thresholds.parse_thresholds(config_map["data"]["thresholds.yaml"]) == numbers
    pods = [each["spec"]["template"] for each in by_name(made, "Deployment").values()]
    assert len(pods) == 2
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        (mount,) = (each for each in container["volumeMounts"] if each["name"] == "thresholds")
        (home,) = (each["value"] for each in container["env"] if each["name"] == "PACELINE_HOME")
        assert (mount["mountPath"], mount["subPath"]) == (f"{home}/thresholds.yaml", "thresholds.yaml")
        (volume,) = (each for each in pod["spec"]["volumes"] if each["name"] == "thresholds")
        assert volume["configMap"]["name"] == config_map["metadata"]["name"]
    # A pod does not see a change of such a file, so pods are replaced.
    marks = {pod["metadata"]["annotations"]["paceline.dev/thresholds"] for pod in pods}
    others = by_name(charts.rendered(thresholds={"links.full": 0.7}), "Deployment").values()
    assert len(marks) == 1
    assert not marks & {
        each["spec"]["template"]["metadata"]["annotations"]["paceline.dev/thresholds"] for each in others
    }
    assert not by_name(charts.rendered(), "ConfigMap")


def test_values_arrive() -> None:
    toleration = {"key": "infra", "operator": "Exists"}
    pod, container = operator(
        image={"repository": "hub/paceline", "tag": "9"},
        imagePullSecrets=[{"name": "hub"}],
        nodeSelector={"disk": "ssd"},
        tolerations=[toleration],
        resources={"limits": {"memory": "1Gi"}},
        quiet=True,
    )
    assert (container["image"], container["args"]) == (
        "hub/paceline:9",
        ["--agent-image=hub/paceline:9", "--agent-files=hub/paceline-agent:9", "--quiet"],
    )
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert pod["imagePullSecrets"] == [{"name": "hub"}]
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"disk": "ssd"}, [toleration])
    assert operator(agentImage="none")[1]["args"] == ["--agent-image=none"]
    assert operator(agentFiles="none")[1]["args"][1] == "--agent-files=none"
    clients = operator(agentClients=["10.0.0.0/24", "fd00::/8", "monitoring"])[1]["args"][-1]
    assert clients == "--agent-clients=10.0.0.0/24,fd00::/8,monitoring"
    assert operator(namespaced=True)[1]["args"][-1] == f"--namespace={charts.NAMESPACE}"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"replica": 2}, "replica"),
        ({"replicas": 0}, "minimum"),
        ({"image": {"name": "x"}}, "name"),
        ({"agentClients": ["a b"]}, "agentClients"),
    ],
)
def test_a_wrong_value_is_refused(values: Object, says: str) -> None:
    with pytest.raises(charts.ValuesRefused, match=says):
        charts.rendered(**values)
