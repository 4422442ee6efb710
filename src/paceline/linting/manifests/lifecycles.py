"""Replicas that never end, and objects that no current cluster accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paceline.linting.manifests import readings
from paceline.linting.manifests.readings import ManifestFile
from paceline.linting.rules import Hit, rule
from paceline.model.findings import Severity

_TRAINING = re.compile(
    r"\bps_hosts\b|\bworker_hosts\b|\bTF_CONFIG\b|\btf-(?:job|replica)[-\w]*|--job_name[= ]|tensorflow",
    re.IGNORECASE,
)
_SERVING = re.compile(r"tensorflow[-_/]?(?:model[-_]?server|serving)|tensorboard", re.IGNORECASE)
_ENDLESS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Pod")

_RBAC = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
_FLOW = ("FlowSchema", "PriorityLevelConfiguration")
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_STORAGE = ("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment")
_WORKLOADS = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
_REVIEWS = (
    "LocalSubjectAccessReview",
    "SelfSubjectAccessReview",
    "SelfSubjectRulesReview",
    "SubjectAccessReview",
)

#: (apiVersion, kinds, version that removed it, what takes its place), from Kubernetes' deprecation guide.
_REMOVALS: tuple[tuple[str, tuple[str, ...], str, str | None], ...] = (
    ("extensions/v1beta1", _WORKLOADS, "1.16", "apps/v1"),
    ("extensions/v1beta1", ("NetworkPolicy",), "1.16", "networking.k8s.io/v1"),
    ("extensions/v1beta1", ("PodSecurityPolicy",), "1.16", None),
    ("apps/v1beta1", _WORKLOADS, "1.16", "apps/v1"),
    ("apps/v1beta2", _WORKLOADS, "1.16", "apps/v1"),
    ("batch/v2alpha1", ("CronJob",), "1.21", "batch/v1"),
    ("extensions/v1beta1", ("Ingress",), "1.22", "networking.k8s.io/v1"),
    ("networking.k8s.io/v1beta1", ("Ingress", "IngressClass"), "1.22", "networking.k8s.io/v1"),
    ("admissionregistration.k8s.io/v1beta1", _WEBHOOKS, "1.22", "admissionregistration.k8s.io/v1"),
    ("apiextensions.k8s.io/v1beta1", ("CustomResourceDefinition",), "1.22", "apiextensions.k8s.io/v1"),
    ("apiregistration.k8s.io/v1beta1", ("APIService",), "1.22", "apiregistration.k8s.io/v1"),
    ("authentication.k8s.io/v1beta1", ("TokenReview",), "1.22", "authentication.k8s.io/v1"),
    ("authorization.k8s.io/v1beta1", _REVIEWS, "1.22", "authorization.k8s.io/v1"),
    ("certificates.k8s.io/v1beta1", ("CertificateSigningRequest",), "1.22", "certificates.k8s.io/v1"),
    ("coordination.k8s.io/v1beta1", ("Lease",), "1.22", "coordination.k8s.io/v1"),
    ("rbac.authorization.k8s.io/v1beta1", _RBAC, "1.22", "rbac.authorization.k8s.io/v1"),
    ("rbac.authorization.k8s.io/v1alpha1", _RBAC, "1.22", "rbac.authorization.k8s.io/v1"),
    ("scheduling.k8s.io/v1beta1", ("PriorityClass",), "1.22", "scheduling.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", _STORAGE, "1.22", "storage.k8s.io/v1"),
    ("batch/v1beta1", ("CronJob",), "1.25", "batch/v1"),
    ("discovery.k8s.io/v1beta1", ("EndpointSlice",), "1.25", "discovery.k8s.io/v1"),
    ("events.k8s.io/v1beta1", ("Event",), "1.25", "events.k8s.io/v1"),
    ("autoscaling/v2beta1", ("HorizontalPodAutoscaler",), "1.25", "autoscaling/v2"),
    ("policy/v1beta1", ("PodDisruptionBudget",), "1.25", "policy/v1"),
    ("policy/v1beta1", ("PodSecurityPolicy",), "1.25", None),
    ("node.k8s.io/v1beta1", ("RuntimeClass",), "1.25", "node.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", _FLOW, "1.26", "flowcontrol.apiserver.k8s.io/v1"),
    ("autoscaling/v2beta2", ("HorizontalPodAutoscaler",), "1.26", "autoscaling/v2"),
    ("storage.k8s.io/v1beta1", ("CSIStorageCapacity",), "1.27", "storage.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io/v1beta2", _FLOW, "1.29", "flowcontrol.apiserver.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io/v1beta3", _FLOW, "1.32", "flowcontrol.apiserver.k8s.io/v1"),
)
REMOVED = {(api, kind): (version, use) for api, kinds, version, use in _REMOVALS for kind in kinds}


@rule(
    "K8S301",
    "A parameter server that never ends",
    Severity.ERROR,
    why="A parameter server waits for ever by itself, and what is restarted always is started again even "
    "when it does end. Without an owner nothing removes it with its job: its cores and memory stay "
    "taken until someone notices.",
    fix="Let a job's controller own it (a Paceline TrainingJob, a TFJob), or delete it with the job.",
)
def never_ends(file: ManifestFile) -> Iterator[Hit]:
    """Training replicas must end with their job."""
    for manifest in file.manifests:
        if manifest.kind not in _ENDLESS or readings.field(manifest.data, "metadata", "ownerReferences"):
            continue
        if not _TRAINING.search(manifest.source) or _SERVING.search(manifest.source):
            continue
        for path, pod in manifest.pods():
            restart = readings.scalar(pod, "restartPolicy")
            if manifest.kind == "Pod" and restart is not None and restart.text != "Always":
                continue
            message = f"a {manifest.kind} without an owner is always restarted: this replica never ends"
            if restart is not None:
                yield Hit(manifest.document, (*path, "restartPolicy"), message, key=True)
            else:
                yield Hit(manifest.document, (*manifest.path, "kind"), message, key=True)


@rule(
    "K8S501",
    "An API version that was removed",
    Severity.ERROR,
    why="Clusters from the named version on refuse the object: nothing of it is created.",
    fix="Write the API version that took its place, and check its new required fields.",
)
def removed_api(file: ManifestFile) -> Iterator[Hit]:
    """API versions must still exist."""
    for manifest in file.manifests:
        api = manifest.text("apiVersion") or ""
        removed = REMOVED.get((api, manifest.kind))
        if removed is None:
            continue
        version, use = removed
        fix = f"Write apiVersion: {use}." if use else "Nothing took its place; remove the object."
        if use == "apps/v1":
            fix = "Write apiVersion: apps/v1, and spec.selector, which is required there."
        message = f"{manifest.kind} of {api} was removed in Kubernetes {version}"
        yield Hit(manifest.document, (*manifest.path, "apiVersion"), message, fix=fix, key=True)


RULES = (never_ends, removed_api)
