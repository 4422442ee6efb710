"""The version of a cluster's API server, and what a cluster has from which version on."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from paceline.engines.kubernetes.clusters import WORDS_BYTES, Cluster, ClusterError

_VERSION = re.compile(r"v(\d{1,4})\.(\d{1,4})\.", re.ASCII)


class KubernetesVersion(NamedTuple):
    """A version as the server says it, such as v1.37.2, and the two numbers that features depend on."""

    major: int
    minor: int
    text: str

    @property
    def has_image_volumes(self) -> bool:
        """Return whether pods can mount images.

        Source: the feature gate ImageVolume, on by default since 1.35 (``pkg/features/kube_features.go``).
        """
        return (self.major, self.minor) >= (1, 35)


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
