"""The `restricted` Pod Security Standard, all of its controls (baseline's included) as of Kubernetes 1.37.

By the fields that k8s.io/pod-security-admission (``policy/check_*.go``) looks at. Only stricter where the
standard has a way out that Paceline does not take (user namespaces, Windows).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Object = Mapping[str, Any]

VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
    "secret",
}  # fmt: skip
SELINUX_TYPES = {None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
}  # fmt: skip
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def violations(pod: Object) -> list[str]:
    """Return which controls a pod (with metadata and spec) or a template of pods does not pass."""
    spec = pod["spec"]
    found = [*_of_pod(spec), *_of_annotations((pod.get("metadata") or {}).get("annotations") or {})]
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            found += [f"{container['name']}: {each}" for each in _of_container(container, spec)]
    return found


def _of_pod(spec: Object) -> Iterator[str]:
    security = spec.get("securityContext") or {}
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            yield name
    for volume in spec.get("volumes") or ():
        kinds = volume.keys() - {"name"}
        if not kinds <= VOLUMES:
            yield f"volume {volume['name']}: {', '.join(sorted(kinds - VOLUMES))}"
    for sysctl in security.get("sysctls") or ():
        if sysctl["name"] not in SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    yield from _of_both(security)


def _of_annotations(annotations: Object) -> Iterator[str]:
    for name, value in annotations.items():
        is_allowed = value == "runtime/default" or str(value).startswith("localhost/")
        if name.startswith(_APPARMOR) and not is_allowed:
            yield f"AppArmor {value}"


def _of_both(security: Object) -> Iterator[str]:
    """Yield what is wrong with what pods and containers alike can say."""
    if (security.get("windowsOptions") or {}).get("hostProcess"):
        yield "hostProcess"
    selinux = security.get("seLinuxOptions") or {}
    if selinux.get("type") not in SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
        yield "SELinux"
    if (security.get("appArmorProfile") or {}).get("type", "RuntimeDefault") == "Unconfined":
        yield "AppArmor"
    if (security.get("seccompProfile") or {}).get("type", "RuntimeDefault") == "Unconfined":
        yield "seccomp is unconfined"
    if security.get("runAsUser") == 0:
        yield "runAsUser is root"
    if security.get("runAsNonRoot") is False:
        yield "runAsNonRoot is false"


def _of_container(container: Object, spec: Object) -> Iterator[str]:
    security, of_pod = container.get("securityContext") or {}, spec.get("securityContext") or {}
    yield from _of_both(security)
    if security.get("privileged"):
        yield "privileged"
    if security.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation"
    if security.get("procMount", "Default") != "Default":
        yield "procMount"
    if any(port.get("hostPort") for port in container.get("ports") or ()):
        yield "hostPort"
    if any(
        _has_host(container.get(name) or {}) for name in ("livenessProbe", "readinessProbe", "startupProbe")
    ):
        yield "a probe of another host"
    if any(_has_host(hook or {}) for hook in (container.get("lifecycle") or {}).values()):
        yield "a hook of another host"
    capabilities = security.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or ()):
        yield "capabilities are not dropped"
    if set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}:
        yield "capabilities are added"
    if not security.get("runAsNonRoot", of_pod.get("runAsNonRoot")):
        yield "runAsNonRoot"
    profile = security.get("seccompProfile") or of_pod.get("seccompProfile") or {}
    if profile.get("type") not in ("RuntimeDefault", "Localhost"):
        yield "seccomp"


def _has_host(handler: Object) -> bool:
    return any((handler.get(name) or {}).get("host") for name in ("httpGet", "tcpSocket"))
