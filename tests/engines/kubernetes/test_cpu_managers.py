"""What a kubelet's configuration says of cores."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.engines.kubernetes import cpu_managers
from paceline.engines.kubernetes.cpu_managers import CpuManager


def answer(**config: Any) -> bytes:
    return json.dumps({"kubeletconfig": config}).encode()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, CpuManager("none")),
        ({"cpuManagerPolicy": "none", "kubeReserved": {"cpu": "500m"}}, CpuManager("none", "500m")),
        ({"cpuManagerPolicy": "static", "reservedSystemCPUs": "0-1"}, CpuManager("static", "0-1")),
        (
            {
                "cpuManagerPolicy": "static",
                "kubeReserved": {"cpu": "1", "memory": "1Gi"},
                "systemReserved": {"cpu": "500m"},
                "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
            },
            CpuManager("static", "1 + 500m", gives_full_cores=True),
        ),
        ({"cpuManagerPolicy": "static", "kubeReserved": None}, CpuManager("static")),
    ],
)
def test_what_it_says(config: dict[str, Any], expected: CpuManager) -> None:
    assert cpu_managers.parse(answer(**config)) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
)
KEYS = ("cpuManagerPolicy", "reservedSystemCPUs", "kubeReserved", "systemReserved", "cpuManagerPolicyOptions")


@given(st.binary(max_size=20) | st.dictionaries(st.sampled_from(KEYS), JSON).map(lambda c: answer(**c)))
def test_whatever_answers_breaks_nothing(said: bytes) -> None:
    try:
        found = cpu_managers.parse(said)
    except ValueError:
        return
    assert isinstance(found.policy, str)
