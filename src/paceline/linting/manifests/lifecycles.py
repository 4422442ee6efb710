"""Rules on replicas that never end, and on objects that no current cluster accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paceline.linting.manifests import readings, training
from paceline.linting.manifests.readings import Manifest, ManifestFile
from paceline.linting.rules import LintHit, rule
from paceline.model.explanations.findings import Severity
from paceline.specs.yaml_text.documents import Path

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

#: (apiVersion, kinds, version that removed them, replacement), from Kubernetes' deprecation guide.
_REMOVALS: tuple[tuple[str, tuple[str, ...], str, str | None], ...] = (
    ("extensions/v1beta1", _WORKLOADS, "1.16", "apps/v1"),
    ("extensions/v1beta1", ("NetworkPolicy",), "1.16", "networking.k8s.io/v1"),
    ("extensions/v1beta1", ("PodSecurityPolicy",), "1.16", None),
    ("apps/v1beta1", _WORKLOADS, "1.16", "apps/v1"),
    ("apps/v1beta2", _WORKLOADS, "1.16", "apps/v1"),
    ("apps/v1beta1", ("ControllerRevision",), "1.16", "apps/v1"),
    ("apps/v1beta2", ("ControllerRevision",), "1.16", "apps/v1"),
    ("settings.k8s.io/v1alpha1", ("PodPreset",), "1.20", None),
    ("scheduling.k8s.io/v1alpha1", ("PriorityClass",), "1.22", "scheduling.k8s.io/v1"),
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
#: Kubeflow's API versions before 1.0, and the kinds of Volcano's predecessor.
_BEFORE_V1 = ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2")
_OLD_KINDS = {
    **{(f"kubeflow.org/{version}", "TFJob"): ("Kubeflow 1.0", "kubeflow.org/v1") for version in _BEFORE_V1},
    **{
        (f"kubeflow.org/{version}", "PyTorchJob"): ("Kubeflow 1.0", "kubeflow.org/v1")
        for version in _BEFORE_V1
    },
    ("tensorflow.org/v1alpha1", "TfJob"): ("Kubeflow 0.1", "kubeflow.org/v1, and kind: TFJob"),
    ("scheduling.incubator.k8s.io/v1alpha1", "PodGroup"): ("Volcano 1.0", "scheduling.volcano.sh/v1beta1"),
}
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
def never_ends(file: ManifestFile) -> Iterator[LintHit]:
    """Training replicas must end with their job."""
    for manifest in file.manifests:
        if manifest.kind not in _ENDLESS or readings.field(manifest.data, "metadata", "ownerReferences"):
            continue
        for path, pod in manifest.pods():
            containers = [each for each in pod["containers"] if isinstance(each, Mapping)]
            if not any(training.trains(manifest, each) for each in containers):
                continue
            restart = readings.scalar(pod, "restartPolicy")
            if manifest.kind == "Pod" and restart is not None and restart.text != "Always":
                continue
            message = f"a {manifest.kind} without an owner is always restarted: this replica never ends"
            if restart is not None:
                yield LintHit(manifest.document, (*path, "restartPolicy"), message, key=True)
            else:
                yield LintHit(manifest.document, (*manifest.path, "kind"), message, key=True)


@rule(
    "K8S501",
    "An API version that was removed",
    Severity.ERROR,
    why="Clusters from the named version on refuse the object: nothing of it is created.",
    fix="Write the API version that took its place, and check its new required fields.",
)
def removed_api(file: ManifestFile) -> Iterator[LintHit]:
    """API versions must still exist."""
    for manifest in file.manifests:
        api = manifest.text("apiVersion") or ""
        version, use = REMOVED.get((api, manifest.kind), ("", None))
        product = f"Kubernetes {version}"
        if not version:
            product, use = _OLD_KINDS.get((api, manifest.kind), ("", None))
        fork = any(fault.path == "apiVersion" for fault in manifest.document.faults)
        if not product or (fork and manifest.template.has_branches):
            continue  # A template may write an old version for old clusters.
        fix = f"Write apiVersion: {use}." if use else "Nothing took its place; remove the object."
        if use == "apps/v1":
            fix = "Write apiVersion: apps/v1, and spec.selector, which is required there."
        message = f"{manifest.kind} of {api} was removed in {product}"
        yield LintHit(manifest.document, (*manifest.path, "apiVersion"), message, fix=fix, key=True)


#: Names that Kubernetes no longer knows: (version that removed the name, replacement).
_NAMES = {
    "alpha.kubernetes.io/nvidia-gpu": ("1.11", "nvidia.com/gpu"),
    "node-role.kubernetes.io/master": ("1.25", "node-role.kubernetes.io/control-plane"),
    "scheduler.alpha.kubernetes.io/affinity": ("1.6", "spec.affinity"),
    "scheduler.alpha.kubernetes.io/tolerations": ("1.6", "spec.tolerations"),
    "scheduler.alpha.kubernetes.io/critical-pod": ("1.16", "spec.priorityClassName"),
    "scheduler.alpha.kubernetes.io/name": ("1.6", "spec.schedulerName"),
    "pod.alpha.kubernetes.io/init-containers": ("1.8", "spec.initContainers"),
    "pod.beta.kubernetes.io/init-containers": ("1.8", "spec.initContainers"),
    "pod.beta.kubernetes.io/hostname": ("1.6", "spec.hostname"),
    "pod.beta.kubernetes.io/subdomain": ("1.6", "spec.subdomain"),
    "security.alpha.kubernetes.io/sysctls": ("1.11", "spec.securityContext.sysctls"),
    "seccomp.security.alpha.kubernetes.io/pod": ("1.27", "spec.securityContext.seccompProfile"),
}
#: Mappings that have such names as keys.
_HOLDERS = (("annotations",), ("limits",), ("requests",), ("nodeSelector",))


@rule(
    "K8S502",
    "A name that was removed",
    Severity.ERROR,
    why="Clusters from the named version on do not know the resource, label or annotation: a pod that asks "
    "for it waits for ever, and an annotation does nothing, without a word.",
    fix="Write the name that took its place.",
)
def removed_name(file: ManifestFile) -> Iterator[LintHit]:
    """Resources, labels and annotations must still exist."""
    for manifest in file.manifests:
        # If the document also has the current name, the old name is meant for old clusters: it is in another
        # term, or in a branch of a template.
        gone = {name for name, (_, use) in _NAMES.items() if use not in manifest.source}
        for path, part in manifest.mappings():
            for key in part.keys() & gone if path[-1:] in _HOLDERS else ():
                yield _gone(manifest, (*path, key), key, is_key=True)
            label = readings.scalar(part, "key")
            # A toleration of an old taint does no harm.
            is_wanted = path[-2:-1] == ("matchExpressions",)
            if label is not None and label.text in gone and is_wanted:
                yield _gone(manifest, (*path, "key"), label.text)


def _gone(manifest: Manifest, path: Path, name: str, *, is_key: bool = False) -> LintHit:
    version, use = _NAMES[name]
    message = f"{name} was removed in Kubernetes {version}"
    return LintHit(manifest.document, path, message, fix=f"Write {use}.", key=is_key)


RULES = (never_ends, removed_api, removed_name)
