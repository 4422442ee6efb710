"""The version of a cluster's API server, and what a cluster has from which version on."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from paceline.engines.kubernetes.clusters import WORDS_BYTES, Cluster, ClusterError

_VERSION = re.compile(r"v(\d{1,4})\.(\d{1,4})\.", re.ASCII)

#: The versions that Paceline supports: it is tested on each.
SUPPORTED = ((1, 34), (1, 35), (1, 36), (1, 37))


class Feature(NamedTuple):
    """Something that not every cluster has.

    Attributes:
        name: what it is called in the documentation of Kubernetes.
        gate: the feature gate that switches it on and off.
        since: the version from which on it is on by default; None: it is off by default in all versions.
        offered: the version from which on Paceline uses it where it is on.
    """

    name: str
    gate: str
    since: tuple[int, int] | None
    offered: tuple[int, int]


# Source: ``pkg/features/kube_features.go`` of each version; the tests on a cluster ask each server.
#: Pods can mount images: the agent's files need no init container then.
IMAGE_VOLUMES = Feature(name="image volumes", gate="ImageVolume", since=(1, 35), offered=(1, 35))
#: Pods that run can get other cores and memory.
POD_RESIZE = Feature(
    name="in-place resize of pods", gate="InPlacePodVerticalScaling", since=(1, 33), offered=(1, 33)
)
#: The scheduler itself places all pods of a group at once.
POD_GROUPS = Feature(name="gangs of the scheduler", gate="GenericWorkload", since=None, offered=(1, 37))
FEATURES = (IMAGE_VOLUMES, POD_RESIZE, POD_GROUPS)


class KubernetesVersion(NamedTuple):
    """A version as the server says it, such as v1.37.2, and the two numbers that features depend on."""

    major: int
    minor: int
    text: str

    def has(self, feature: Feature) -> bool:
        """Return whether a feature is on by default."""
        return feature.since is not None and self[:2] >= feature.since

    @property
    def is_supported(self) -> bool:
        """Whether Paceline is tested on this version."""
        return self[:2] in SUPPORTED


def supported_text() -> str:
    """Return the supported versions in words, such as ``1.34 to 1.37``."""
    return " to ".join(f"{major}.{minor}" for major, minor in (SUPPORTED[0], SUPPORTED[-1]))


async def of(cluster: Cluster) -> KubernetesVersion:
    """Return the version of a cluster's API server.

    Raises:
        ClusterError: the server does not answer, or what answers is no API server of Kubernetes.
    """
    said = await cluster.read("/version", limit_bytes=WORDS_BYTES)
    try:
        text = str(json.loads(said)["gitVersion"])
    except (ValueError, KeyError, TypeError):
        text = ""
    found = _VERSION.match(text)
    if found is None:
        raise ClusterError(
            "what answers is no API server of Kubernetes",
            hint="see that the kubeconfig names the right server",
        )
    return KubernetesVersion(int(found[1]), int(found[2]), text)
