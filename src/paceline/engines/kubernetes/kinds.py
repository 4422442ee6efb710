"""The kinds of objects of the Kubernetes API that Paceline reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from paceline.model.jobs import job_specs


class ResourceKind(NamedTuple):
    """A kind of object, with its names in the API."""

    group: str
    version: str
    name: str
    plural: str
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version


_GROUP, _VERSION = job_specs.API_VERSION.split("/")

TRAINING_JOBS = ResourceKind(_GROUP, _VERSION, job_specs.KIND, "trainingjobs")
PODS = ResourceKind("", "v1", "Pod", "pods")
SERVICES = ResourceKind("", "v1", "Service", "services")
CONFIG_MAPS = ResourceKind("", "v1", "ConfigMap", "configmaps")
SECRETS = ResourceKind("", "v1", "Secret", "secrets")
NETWORK_POLICIES = ResourceKind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
NAMESPACES = ResourceKind("", "v1", "Namespace", "namespaces", is_namespaced=False)
NODES = ResourceKind("", "v1", "Node", "nodes", is_namespaced=False)
QUOTAS = ResourceKind("", "v1", "ResourceQuota", "resourcequotas")
EVENTS = ResourceKind("", "v1", "Event", "events")
#: Queues of Kueue and of Volcano, and the groups of pods that Volcano starts all at once.
LOCAL_QUEUES = ResourceKind("kueue.x-k8s.io", "v1beta2", "LocalQueue", "localqueues")
OLD_LOCAL_QUEUES = LOCAL_QUEUES._replace(version="v1beta1")  # before Kueue 0.15; gone in 0.20
#: What Kueue knows of a job: whether its queue has let it in, and why not.
WORKLOADS = ResourceKind("kueue.x-k8s.io", "v1beta2", "Workload", "workloads")
OLD_WORKLOADS = WORKLOADS._replace(version="v1beta1")
VOLCANO_QUEUES = ResourceKind("scheduling.volcano.sh", "v1beta1", "Queue", "queues", is_namespaced=False)
POD_GROUPS = ResourceKind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
#: The groups of pods that the scheduler of Kubernetes itself starts all at once.
GANGS = ResourceKind("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
LEASES = ResourceKind("coordination.k8s.io", "v1", "Lease", "leases")
ACCESS_REVIEWS = ResourceKind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", is_namespaced=False
)
TOKEN_REVIEWS = ResourceKind(
    "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", is_namespaced=False
)
SUBJECT_REVIEWS = ResourceKind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", is_namespaced=False
)
DEFINITIONS = ResourceKind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", is_namespaced=False
)
