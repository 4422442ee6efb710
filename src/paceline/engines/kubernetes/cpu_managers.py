"""What a node's kubelet does with cores, by its configuration.

Source: Kubernetes' documentation, "Control CPU Management Policies on the Node"; ``KubeletConfiguration``
(``k8s.io/kubelet/config/v1beta1``), which a kubelet shows at ``/configz``.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from paceline.engines.kubernetes.clusters import Cluster

STATIC = "static"
_FULL_CORES = "full-pcpus-only"
#: A kubelet's configuration takes some KiB; more is none.
_MOST_BYTES = 1 << 20


class CpuManager(NamedTuple):
    """How a kubelet gives out cores.

    Attributes:
        policy: ``static`` gives whole cores to Guaranteed pods alone; ``none``, the default, never does.
        reserved: what is kept from all pods, in the kubelet's words; empty: nothing.
        gives_full_cores: whether it refuses pods that do not take all threads of their physical cores.
    """

    policy: str
    reserved: str = ""
    gives_full_cores: bool = False

    @property
    def is_static(self) -> bool:
        """Whether exclusive cores are exclusive here."""
        return self.policy == STATIC


async def read(cluster: Cluster, node: str) -> CpuManager:
    """Return how the kubelet of a node gives out cores, asked through the API server.

    Raises:
        ClusterError: the right ``get nodes/proxy`` lacks, or the kubelet does not answer.
        ValueError: it answers something else.
    """
    return parse(await cluster.read(f"/api/v1/nodes/{node}/proxy/configz", limit_bytes=_MOST_BYTES))


def parse(answer: bytes) -> CpuManager:
    """Return what a kubelet's answer says.

    Raises:
        ValueError: it is no kubelet's configuration.
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
