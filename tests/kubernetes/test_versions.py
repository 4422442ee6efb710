"""What a version of Kubernetes has by default: the table of `versions`, by the word of a real API server."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from support.real_clusters import NAMESPACE, kubectl, until

from paceline.engines.kubernetes import versions
from paceline.engines.kubernetes.versions import Feature, KubernetesVersion

_GATE = re.compile(r'kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])')


@pytest.fixture(scope="module")
def version(installed: None) -> KubernetesVersion:
    text = str(json.loads(kubectl("get", "--raw", "/version"))["gitVersion"])
    major, minor, _ = text.removeprefix("v").split(".", 2)
    return KubernetesVersion(int(major), int(minor), text)


@pytest.fixture(scope="module")
def gates() -> dict[str, bool]:
    """The feature gates of the server; those that are always on by now are not among them."""
    return {name: value == "1" for name, value in _GATE.findall(kubectl("get", "--raw", "/metrics"))}


def test_the_server_is_of_a_supported_version_and_of_that_which_was_asked_for(
    version: KubernetesVersion,
) -> None:
    assert version.is_supported
    if wanted := os.environ.get("KUBE_VERSION"):
        assert version.text == f"v{wanted}"


@pytest.mark.parametrize("feature", versions.FEATURES, ids=lambda feature: feature.gate)
def test_a_feature_is_on_by_default_from_its_version_on(
    version: KubernetesVersion, gates: dict[str, bool], feature: Feature
) -> None:
    if os.environ.get("FEATURES"):
        pytest.skip("the features of this cluster are not those by default")
    assert gates, "the server says which features it has"
    assert gates.get(feature.gate, version.has(feature)) == version.has(feature)
    if version[:2] >= feature.offered and not version.has(feature):
        assert feature.gate in gates, "an administrator can switch it on"


def test_image_volumes_are_taken_where_they_are_on(version: KubernetesVersion) -> None:
    volume = {"name": "files", "image": {"reference": "localhost/files:1", "pullPolicy": "Never"}}
    mount = {"name": "files", "mountPath": "/files", "readOnly": True}
    pod: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mounts", "namespace": NAMESPACE},
        "spec": {
            "containers": [{"name": "c", "image": "localhost/work:1", "volumeMounts": [mount]}],
            "volumes": [volume],
        },
    }  # fmt: skip
    # A new namespace has it a moment later, and no pod is taken without it.
    until(lambda: kubectl("get", "serviceaccount", "default", "-n", NAMESPACE, "--ignore-not-found"), str)
    given = json.dumps(pod)
    made = json.loads(kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", given=given))
    has_image = any("image" in each for each in made["spec"]["volumes"])
    assert has_image == version.has(versions.IMAGE_VOLUMES)


def test_pods_are_resized_where_that_is_on(version: KubernetesVersion) -> None:
    assert ("pods/resize" in kubectl("get", "--raw", "/api/v1")) == version.has(versions.POD_RESIZE)
