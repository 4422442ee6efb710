"""What a cluster of a version has, and what the documentation says of that."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import versions
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.engines.kubernetes.versions import SUPPORTED, Feature, KubernetesVersion

ROOT = Path(__file__).parents[3]
PAGES = {"kubernetes.md": ("yes", "no", "with the gate"), "kubernetes.zh.md": ("有", "无", "开启特性门")}


def read(page: bytes) -> KubernetesVersion:
    cluster = MemoryCluster(lambda: 0.0)
    cluster.pages["/version"] = page
    return asyncio.run(versions.of(cluster))


@pytest.mark.parametrize(
    ("text", "has_image_volumes", "is_supported"),
    [
        ("v1.20.15", False, False),
        ("v1.34.9", False, True),
        ("v1.35.0", True, True),
        ("v1.37.2+k3s1", True, True),
        ("v1.36.0-eks-1234", True, True),
        ("v2.0.0", True, False),
    ],
)
def test_a_version_has_what_came_before_it(text: str, has_image_volumes: bool, is_supported: bool) -> None:
    version = read(json.dumps({"gitVersion": text}).encode())
    assert version.text == text
    assert version.has(versions.IMAGE_VOLUMES) == has_image_volumes
    assert not version.has(versions.POD_GROUPS), "only an administrator can switch it on"
    assert version.is_supported == is_supported


@given(page=st.binary(max_size=200) | st.text().map(lambda text: json.dumps({"gitVersion": text}).encode()))
def test_what_is_no_api_server_is_said(page: bytes) -> None:
    with pytest.raises(ClusterError, match="what answers is no API server of Kubernetes"):
        read(page)


def cell(feature: Feature, minor: tuple[int, int], words: tuple[str, str, str]) -> str:
    yes, no, with_gate = words
    if KubernetesVersion(*minor, "").has(feature):
        return yes
    return f"{with_gate} `{feature.gate}`" if minor >= feature.offered else no


@pytest.mark.parametrize("page", PAGES)
def test_the_table_of_the_documentation_is_true(page: str) -> None:
    rows = [line.strip("| ").split(" | ") for line in (ROOT / "docs" / page).read_text().splitlines()]
    (head,) = (row for row in rows if row[1:-1] == [f"{major}.{minor}" for major, minor in SUPPORTED])
    start = rows.index(head) + 2
    table = rows[start : start + len(versions.FEATURES)]
    assert [row[1:-1] for row in table] == [
        [cell(feature, minor, PAGES[page]) for minor in SUPPORTED] for feature in versions.FEATURES
    ]


def test_each_supported_version_is_tested_by_make_and_the_chart_asks_for_the_first() -> None:
    (made,) = re.findall(r"^KUBE_VERSIONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [tuple(map(int, each.split(".")[:2])) for each in made.split()] == list(SUPPORTED)
    major, minor = SUPPORTED[0]
    chart = (ROOT / "deploy" / "helm" / "paceline" / "Chart.yaml").read_text()
    assert f'kubeVersion: ">={major}.{minor}.0-0"' in chart
