"""How the kubelet of a node assigns cores to pods, according to its configuration.

Source: Kubernetes' documentation, "Control CPU Management Policies on the Node"; ``KubeletConfiguration``
(``k8s.io/kubelet/config/v1beta1``), which a kubelet shows at ``/configz``.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from paceline.engines.kubernetes.clusters import Cluster

STATIC = "static"
_FULL_CORES = "full-pcpus-only"
#: A kubelet's configuration takes a few KiB; a larger answer is something else.
_MOST_BYTES = 1 << 20


class CpuManager(NamedTuple):
    """How a kubelet assigns cores.

    Attributes:
        policy: ``static`` gives Guaranteed pods exclusive cores; ``none``, the default, never does.
        reserved: the CPU reserved from all pods, as the kubelet's configuration writes it; empty if none.
        gives_full_cores: whether the kubelet refuses pods that do not take all threads of physical cores.
    """

    policy: str
    reserved: str = ""
    gives_full_cores: bool = False

    @property
    def is_static(self) -> bool:
        """Whether the kubelet gives pods exclusive cores."""
        return self.policy == STATIC


async def read(cluster: Cluster, node: str) -> CpuManager:
    """Return how the kubelet of a node assigns cores; the request goes through the API server.

    Raises:
        ClusterError: the permission ``get nodes/proxy`` is missing, or the kubelet does not answer.
        ValueError: the answer is not a kubelet's configuration.
    """
    return parse(await cluster.read(f"/api/v1/nodes/{node}/proxy/configz", limit_bytes=_MOST_BYTES))


def parse(answer: bytes) -> CpuManager:
    """Return the CPU manager that a kubelet's answer describes.

    Raises:
        ValueError: the answer is not a kubelet's configuration.
    """
    try:
        config = json.loads(answer)["kubeletconfig"]
        options = config.get("cpuManagerPolicyOptions") or {}
        parts = [config.get("reservedSystemCPUs")]
        parts += [(config.get(name) or {}).get("cpu") for name in ("kubeReserved", "systemReserved")]
        return CpuManager(
            policy=str(config.get("cpuManagerPolicy") or "none"),
            reserved=" + ".join(str(part) for part in parts if part),
            gives_full_cores=str(options.get(_FULL_CORES)).lower() == "true",
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no kubelet's configuration: {answer[:60]!r}") from error
