"""What a cluster of a version has."""

from __future__ import annotations

import asyncio
import json

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import versions
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.engines.kubernetes.versions import KubernetesVersion


def read(page: bytes) -> KubernetesVersion:
    cluster = MemoryCluster(lambda: 0.0)
    cluster.pages["/version"] = page
    return asyncio.run(versions.of(cluster))


@pytest.mark.parametrize(
    ("text", "has_image_volumes"),
    [
        ("v1.20.15", False),
        ("v1.34.9", False),
        ("v1.35.0", True),
        ("v1.37.2+k3s1", True),
        ("v1.36.0-eks-1234", True),
        ("v2.0.0", True),
    ],
)
def test_image_volumes_are_on_since_1_35(text: str, has_image_volumes: bool) -> None:
    found = read(json.dumps({"gitVersion": text}).encode())
    assert (found.text, found.has_image_volumes) == (text, has_image_volumes)


@given(page=st.binary(max_size=200) | st.text().map(lambda text: json.dumps({"gitVersion": text}).encode()))
def test_what_is_no_api_server_is_said(page: bytes) -> None:
    with pytest.raises(ClusterError, match="what answers is no API server of Kubernetes"):
        read(page)
