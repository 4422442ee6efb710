"""The server that is deployed for a team: the kustomize overlay and the chart, which say the same."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import charts, pod_security
from support.cluster_sites import USERS

from paceline.surfaces.cli import catalogue
from paceline.surfaces.cli.verbs import serve

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "server" / "server.yaml").read_text()))
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")

Object = dict[str, Any]


def chart(namespaced: bool = False, **server: Any) -> list[Object]:
    values = {
        "storeSecret": "paceline-store",
        "namespaced": namespaced,
        "server": {"enabled": True, **server},
    }
    return [each for each in charts.rendered(**values) if "-server" in each["metadata"]["name"]]


def by_name(objects: list[Object], *wanted: str) -> dict[tuple[str, str], Object]:
    found = {}
    for each in objects:
        if not wanted or each["kind"] in wanted:
            metadata = {name: value for name, value in each["metadata"].items() if name != "labels"}
            found[each["kind"], each["metadata"]["name"]] = {**each, "metadata": metadata}
    return found


def of_kind(objects: list[Object], kind: str) -> Object:
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def container(objects: list[Object]) -> Object:
    return dict(of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0])


def test_chart_and_kustomize_give_the_same_rights() -> None:
    ours, theirs = by_name(chart(), *RIGHTS), by_name(MANIFESTS, *RIGHTS)
    assert ours == theirs
    assert len(ours) == 4


def test_chart_and_kustomize_run_the_same_server() -> None:
    assert by_name(chart()).keys() == by_name(MANIFESTS).keys()
    one, other = (of_kind(each, "Deployment")["spec"]["template"]["spec"] for each in (chart(), MANIFESTS))
    ours, theirs = (dict(each["containers"][0]) for each in (one, other))
    assert ours.pop("imagePullPolicy") == "IfNotPresent"
    assert ours == theirs
    assert {**one, "containers": (), "affinity": ()} == {**other, "containers": (), "affinity": ()}


def test_nothing_is_there_unless_it_is_wanted() -> None:
    made = charts.rendered()
    assert not [each for each in made if "-server" in each["metadata"]["name"]]
    assert not [each for each in made if each["metadata"]["name"] == "paceline-view"]


@pytest.mark.parametrize("objects", [chart(), MANIFESTS], ids=["chart", "kustomize"])
def test_the_server_passes_the_restricted_standard(objects: list[Object]) -> None:
    template = of_kind(objects, "Deployment")["spec"]["template"]
    assert pod_security.violations(template) == []
    made = container(objects)
    assert made["securityContext"]["readOnlyRootFilesystem"] is True
    written = {each["mountPath"] for each in made["volumeMounts"]}
    assert written == {"/tmp", "/var/lib/paceline"}


@pytest.mark.parametrize("objects", [chart(), MANIFESTS], ids=["chart", "kustomize"])
def test_what_belongs_together_finds_each_other(objects: list[Object]) -> None:
    labels = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    for selector in (
        of_kind(objects, "Service")["spec"]["selector"],
        of_kind(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        of_kind(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        of_kind(objects, "Deployment")["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    (port,) = container(objects)["ports"]
    assert of_kind(objects, "Service")["spec"]["ports"][0]["targetPort"] == port["name"]
    assert {
        each: container(objects)[f"{each}Probe"]["httpGet"]["path"] for each in ("liveness", "readiness")
    } == {
        "liveness": "/healthz",
        "readiness": "/readyz",
    }


@pytest.mark.parametrize(
    "objects",
    [
        MANIFESTS,
        chart(),
        chart(
            gate="proxy",
            proxies=["10.0.0.0/8"],
            proxySecret="theirs",
            userHeader="X-User",
            groupsHeader="X-Groups",
        ),
        chart(namespace="ads", hosts=["paceline.example.com"]),
    ],
)
def test_the_command_is_one_that_there_is(objects: list[Object]) -> None:
    made = container(objects)
    assert made["command"] == ["paceline", "serve"]
    assert "serve" in catalogue.VERBS
    parsed = serve.command.make_context("serve", list(made["args"]))
    gate = serve.GateKind(parsed.params["kind"])
    assert gate is not serve.GateKind.TOKEN
    assert parsed.params["hosts"][:3] == (
        "paceline-server",
        "paceline-server.paceline",
        "paceline-server.paceline.svc",
    )


def test_within_one_namespace_only_reviews_are_asked_of_the_cluster() -> None:
    made = chart(namespaced=True)
    assert [each["metadata"]["name"] for each in made if each["kind"].startswith("Cluster")] == [
        "paceline-server-reviews"
    ]
    resources = [each for rule in of_kind(made, "Role")["rules"] for each in rule["resources"]]
    assert "nodes" not in resources


def test_an_ingress_is_encrypted() -> None:
    ingress = {"enabled": True, "host": "p.example.com", "tlsSecret": "tls", "className": "nginx"}
    made = chart(ingress=ingress, proxies=["10.0.0.0/8"])
    spec = of_kind(made, "Ingress")["spec"]
    assert spec["tls"] == [{"hosts": ["p.example.com"], "secretName": "tls"}]
    assert spec["ingressClassName"] == "nginx"
    assert "--host=p.example.com" in container(made)["args"]
    with pytest.raises(Exception, match="tokens must not go over the network"):
        chart(ingress={**ingress, "tlsSecret": ""}, proxies=["10.0.0.0/8"])
    with pytest.raises(Exception, match="from which network does the ingress come"):
        chart(ingress=ingress)


def test_a_server_needs_a_store() -> None:
    with pytest.raises(Exception, match="both need a store"):
        charts.rendered(server={"enabled": True})


def test_optional_rights_of_the_server() -> None:
    plain = of_kind(chart(), "ClusterRole")["rules"]
    more = of_kind(chart(traces=True), "ClusterRole")["rules"]
    assert [each for each in more if each not in plain] == [
        {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get", "create"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
    ]


def test_users_get_the_same_by_either() -> None:
    made = [each for each in charts.rendered(users=True) if each["kind"] == "ClusterRole"]
    ours = [each for each in made if each["metadata"]["name"] != "paceline-operator"]
    assert ours == list(yaml.safe_load_all(USERS.read_text()))


def test_the_overlay_can_be_built() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl, which has kustomize")
    done = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY / "server")],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all(done.stdout))
    stores = [
        variable
        for each in objects
        if each["kind"] == "Deployment"
        for variable in each["spec"]["template"]["spec"]["containers"][0]["env"]
        if variable["name"] == "PACELINE_STORE"
    ]
    assert len(stores) == 2
    assert stores[0] == stores[1], "the server reads what the operator keeps"


def test_the_image_has_what_the_server_needs() -> None:
    text = (DEPLOY.parent / "Containerfile").read_text()
    assert ".[kubernetes,s3,postgresql,report,web]" in text
