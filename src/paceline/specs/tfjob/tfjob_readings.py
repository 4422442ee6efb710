"""Reading of a TFJob: the reader removes what it understands, and the remainder is reported as lost.

Nothing is dropped silently. The reader removes what a job file can express. It also removes what a job file
can only express differently, but adds a note. Everything else remains and is reported by its path. Source:
``tensorflow_types.go`` and ``common_types.go`` of kubeflow/training-operator 1.9.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.model.jobs import job_specs
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.placements import PlacementStrategy
from paceline.rendering import (
    affinities,
    agents,
    config_maps,
    labels,
    pods,
    previews,
    services,
    sizes,
    tfjobs,
)
from paceline.specs.job_file import expansions
from paceline.specs.tfjob import tfjob_resources, tfjob_volumes
from paceline.specs.tfjob.tfjob_shapes import ROLES, Unreadable

Fields = dict[str, Any]
_Sources = tuple[tuple[str, tuple[str, ...]], ...]

_RESTARTS = {**{name: str(when) for when, name in tfjobs.RESTARTS.items()}, "ExitCode": "on-failure"}
_CLEAN_UPS = {"Running": "running", "All": "all", "None": "running"}
#: Fields that Paceline sets in every pod.
_OWN_FIELDS = ("automountServiceAccountToken", "enableServiceLinks", "securityContext")
#: Metadata that only the API server writes.
_OF_THE_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
#: Fields that all roles of a job file share, and where a TFJob has each of them for every role.
_COMMON = {
    "image": "{container}.image",
    "working_dir": "{container}.workingDir",
    "termination_grace": "{pod}.terminationGracePeriodSeconds",
    "node_selector": "{pod}.nodeSelector",
    "tolerations": "{pod}.tolerations",
    "priority_class": "{pod}.priorityClassName",
}
#: Fields that were directly in ``spec`` before there was a ``runPolicy``.
_OF_RUN_POLICY = frozenset(
    ("activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "schedulingPolicy", "ttlSecondsAfterFinished")
)
#: Fields that are copied from the first role.
_ALIKE = ("image", "code", "working_dir", "termination_grace", "security")
#: The fields of a job file, and the paths in a TFJob that each is made of; the first existing path is
#: reported.
_SOURCES: _Sources = (
    ("spec.image", ("{container}.image",)),
    ("spec.working_dir", ("{container}.workingDir",)),
    ("spec.termination_grace", ("{pod}.terminationGracePeriodSeconds",)),
    ("spec.placement.node_selector", ("{pod}.nodeSelector",)),
    ("spec.placement.tolerations", ("{pod}.tolerations",)),
    ("spec.scheduling.queue", ("spec.runPolicy.schedulingPolicy.queue",)),
    (
        "spec.scheduling.priority_class",
        ("{pod}.priorityClassName", "spec.runPolicy.schedulingPolicy.priorityClass"),
    ),
    ("spec.volumes", ("{pod}.volumes", "{container}.volumeMounts")),
    ("spec.secrets", ("{container}.envFrom",)),
    ("spec.active_deadline", ("spec.runPolicy.activeDeadlineSeconds",)),
    ("spec.ttl_after_finished", ("spec.runPolicy.ttlSecondsAfterFinished",)),
)
_SOURCES_OF_ROLE: _Sources = (
    ("replicas", ("{role}.replicas",)),
    ("restart.limit", ("spec.runPolicy.backoffLimit",)),
    ("restart", ("{role}.restartPolicy",)),
    ("cpu", ("{container}.resources.limits.cpu", "{container}.resources.requests.cpu")),
    ("memory", ("{container}.resources.limits.memory", "{container}.resources.requests.memory")),
    ("gpu", (f"{{container}}.resources.limits.{sizes.GPU}", f"{{container}}.resources.requests.{sizes.GPU}")),
    ("command", ("{container}.command",)),
    ("environment", ("{container}.env",)),
    ("", ("{role}",)),
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The replicas of one role: their pod spec and its container, with the paths of both in the TFJob."""

    role: str
    at: str
    pod: Fields
    container: Fields
    container_at: str
    is_ours: bool

    @property
    def pod_at(self) -> str:
        return f"{self.at}.template.spec"


class TFJobReader:
    """Reads a TFJob and removes what it has read, in place.

    Args:
        tfjob: the TFJob, which is modified.
        told: the data of the config map of its agents, if Paceline rendered the TFJob.
    """

    def __init__(self, tfjob: Fields, told: Mapping[str, str]) -> None:
        self._whole = copy.deepcopy(tfjob)
        self._said_at = [path for path, _ in _values("", self._whole)]
        self._rest = tfjob
        self._told = told
        self._notes: list[str] = []
        self._parts: list[_Part] = []

    def document(self) -> Fields:
        """Return the data of the job file.

        Raises:
            Unreadable: no job file can express the TFJob.
            LookupError, TypeError, ValueError, AttributeError: Paceline rendered the TFJob or its config map,
                and it was changed since.
        """
        if self._rest.get("apiVersion") == tfjobs.API_VERSION:
            del self._rest["apiVersion"]
        for key in ("kind", "status"):
            self._rest.pop(key, None)
        metadata, spec = self._rest["metadata"], self._rest["spec"]
        if "name" not in metadata:
            raise Unreadable("metadata", "name is missing", is_key=True)
        name = metadata.pop("name")
        (metadata.get("annotations") or {}).pop(_LAST_APPLIED, None)
        for key in _OF_THE_SERVER:
            metadata.pop(key, None)
        if "namespace" in metadata:
            self._note("metadata.namespace", f"{metadata.pop('namespace')} (say it when you submit: -n)")
        user_labels = self._own_labels(metadata.get("labels") or {}, name, "")
        policy, replicas = spec.get("runPolicy") or {}, spec["tfReplicaSpecs"]
        for key in sorted(_OF_RUN_POLICY & spec.keys()):
            where = "which today's operator passes over: it belongs into spec.runPolicy"
            self._note(f"spec.{key}", f"{spec.pop(key)} ({where})")
        limit = policy.pop("backoffLimit", None)
        roles: dict[str, Fields] = {}
        for replica_type in tuple(replicas):
            role = ROLES[replica_type.lower()]
            role_fields = self._role(replica_type, role, replicas, name, user_labels)
            if role_fields is not None:
                roles[role] = {**role_fields, "restart": _given({**role_fields["restart"], "limit": limit})}
        if not roles:
            raise Unreadable("spec.tfReplicaSpecs", "there are no replicas in it")
        self._note_restarts(limit, roles.values())
        ends = self._ends(policy, spec, sum(role_fields["replicas"] for role_fields in roles.values()))
        self._note_failures(limit, roles, str(ends["success"]))
        common = self._common(roles)
        scheduling = self._scheduling(
            policy.get("schedulingPolicy") or {}, common.pop("priority_class", None)
        )
        return {
            "apiVersion": job_specs.API_VERSION,
            "kind": job_specs.KIND,
            "metadata": _given({"name": name, "labels": user_labels}),
            "spec": _given({**common, **ends, "scheduling": scheduling, "roles": roles}),
        }

    @property
    def is_ours(self) -> bool:
        """Whether Paceline rendered the TFJob."""
        return any(part.is_ours for part in self._parts)

    def source_of(self, field: str) -> str:
        """Return the path in the TFJob from which a field of the job file was made."""
        part, table = self._parts[0] if self._parts else None, _SOURCES
        for each in self._parts:
            above = f"spec.roles.{each.role}"
            if _is_at_or_below(field, above):
                part, table, field = each, _SOURCES_OF_ROLE, field[len(above) + 1 :]
                break
        sources = next((found for name, found in table if not name or _is_at_or_below(field, name)), None)
        if part is None or sources is None:
            return "" if field.startswith("spec") else field
        paths = [each.format(role=part.at, pod=part.pod_at, container=part.container_at) for each in sources]
        said = [path for path in paths if any(_is_at_or_below(each, path) for each in self._said_at)]
        return (said or paths)[0]

    def placed(self, spec: JobSpec) -> JobSpec:
        """Return the job with the placement strategy that has these affinities; other affinities are lost."""
        for strategy in PlacementStrategy:
            placement = dataclasses.replace(spec.placement, strategy=strategy)
            tried = dataclasses.replace(spec, placement=placement)
            wanted = {str(role.role): affinities.of_role(tried, role.role) for role in spec.roles}
            if all(wanted[each.role] == (each.pod.get("affinity") or {}) for each in self._parts):
                for each in self._parts:
                    each.pod.pop("affinity", None)
                return tried
        return spec

    def lost(self) -> Iterator[str]:
        """Yield what the job file does not express, or expresses differently."""
        yield from self._notes
        yield from (f"{path}: {value}" for path, value in _values("", self._rest))

    def _note(self, path: str, what: str) -> None:
        self._notes.append(f"{path}: {what}")

    def _own_labels(self, found: Fields, name: str, role: str) -> Fields:
        """Remove Paceline's own labels and the user's labels; return the user's."""
        ours = {labels.MANAGED_BY: "paceline", labels.JOB: name, labels.ROLE: role}
        for key, value in ours.items():
            if found.get(key) == value:
                found.pop(key)
        return {key: found.pop(key) for key in tuple(found) if key not in ours}

    def _note_restarts(self, limit: int | None, roles: Iterable[Fields]) -> None:
        """Note what a restart limit meant, unless nothing is restarted or Paceline rendered the TFJob."""
        never = str(job_specs.RestartWhen.NEVER)
        if self.is_ours or all(role["restart"]["when"] == never for role in roles):
            return
        if limit is None:
            default = job_specs.RestartPolicy().limit
            what = f"nothing is said here, so restarts have no end (here each replica has {default})"
        else:
            what = f"{limit} (restarts of all replicas together; here each replica has {limit})"
        self._note("spec.runPolicy.backoffLimit", what)

    def _note_failures(self, limit: int | None, roles: Mapping[str, Fields], success: str) -> None:
        """Note which replicas end a TFJob when they fail for good, and do not end the job."""
        endless = (
            () if limit is not None else (job_specs.RestartWhen.ON_FAILURE, job_specs.RestartWhen.ALWAYS)
        )
        what = "a replica that fails for good ends a TFJob (here the job goes on without it)"
        for part in () if self.is_ours else self._parts:
            role_fields = roles[part.role]
            is_spared = part.role == "evaluator" or (
                part.role == "worker"
                and success == "chief"
                and ("chief" in roles or role_fields["replicas"] > 1)
            )
            if is_spared and role_fields["restart"]["when"] not in endless:
                self._note(f"{part.at}.restartPolicy", what)

    def _ends(self, policy: Fields, spec: Fields, replicas: int) -> Fields:
        success = spec.get("successPolicy")
        if success in (None, "", "AllWorkers"):
            spec.pop("successPolicy", None)
        if success == "AllWorkers" and not self.is_ours and any(part.role == "chief" for part in self._parts):
            success = None
            self._note("spec.successPolicy", "AllWorkers (where there is a chief, it decides alone)")
        clean_up = policy.get("cleanPodPolicy") or ""
        if clean_up in _CLEAN_UPS:
            del policy["cleanPodPolicy"]
        if clean_up == "None":
            self._note("spec.runPolicy.cleanPodPolicy", "None (what still runs ends with the job)")
        elif not clean_up:
            what = "nothing is said here, so what still runs goes on (here it ends with the job)"
            self._note("spec.runPolicy.cleanPodPolicy", what)
        deadline = policy.pop("activeDeadlineSeconds", None)
        ttl_seconds = policy.pop("ttlSecondsAfterFinished", None)
        scheduling = policy.get("schedulingPolicy") or {}
        for fields, key, as_always in (
            (scheduling, "minAvailable", replicas),
            (policy, "suspend", False),
            (spec, "enableDynamicWorker", False),
        ):
            if fields.get(key) == as_always:
                fields.pop(key)
        return {
            "success": "all-workers" if success == "AllWorkers" else "chief",
            "clean_up": _CLEAN_UPS.get(clean_up),
            "active_deadline": None if deadline is None else f"{deadline}s",
            "ttl_after_finished": None if ttl_seconds is None else f"{ttl_seconds}s",
        }

    def _scheduling(self, policy: Fields, of_pods: str | None) -> Fields:
        """Return the queue, and the priority class of the pods, or else of their group."""
        of_group = policy.pop("priorityClass", None)
        if of_pods is not None and of_group not in (None, of_pods):
            self._note(
                "spec.runPolicy.schedulingPolicy.priorityClass", f"{of_group} (the pods have {of_pods})"
            )
        return _given({"queue": policy.pop("queue", None), "priority_class": of_pods or of_group})

    def _role(self, name: str, role: str, all_replicas: Fields, job: str, own: Fields) -> Fields | None:
        """Return a role in the form of a job file; None if it has no replicas."""
        replicas, at = all_replicas[name], f"spec.tfReplicaSpecs.{name}"
        count = replicas.pop("replicas", None)
        if count == 0:
            del all_replicas[name]
            self._note(at, "it has no replicas, so it is left out")
            return None
        if name.lower() == "master":
            self._note(at, "the role is called chief, in TF_CONFIG too")
        part = _part(role, at, replicas)
        self._parts.append(part)
        restart = replicas.pop("restartPolicy", None)
        restart = "Never" if restart is None else restart
        if restart == "ExitCode":
            self._note(f"{at}.restartPolicy", "ExitCode (every failure is restarted, not some codes)")
        of_pods = replicas["template"].get("metadata") or {}
        if part.is_ours:
            for key in pods.SCRAPED.keys() & (of_pods.get("annotations") or {}).keys():
                del of_pods["annotations"][key]
        on_pods = of_pods.get("labels") or {}
        for key, value in self._own_labels(on_pods, job, role).items():
            if own.get(key) != value:
                on_pods[key] = value  # a label of this role alone: it is put back, and so reported as lost
        return {
            "replicas": 1 if count is None else count,
            "restart": {"when": _RESTARTS[restart]},
            **tfjob_resources.taken(part.pod, part.container, part.container_at, self._note),
            **self._program(part),
            "_pod": self._pod(part),
        }

    def _program(self, part: _Part) -> Fields:
        container, at = part.container, part.container_at
        if part.is_ours:
            for key in ("command", "env"):
                container.pop(key, None)
            return self._told_program(part)
        environment = self._environment(part)
        words = [
            (f"{at}.{key}[{index}]", word)
            for key in ("command", "args")
            for index, word in enumerate(container.get(key) or ())
        ]
        if not container.pop("command", None):
            what = "there are args but no command, so the image's own command gets them"
            if not container.get("args"):
                what = "there is no command, so the image starts what is its own"
            raise Unreadable(
                at,
                f"{what}; a job file has to say it",
                "write the image's entry point as its command (docker image inspect IMAGE shows it)",
            )
        container.pop("args", None)
        return {
            "command": [self._said(path, word, environment) for path, word in words],
            "environment": {key: previews.literal(value) for key, value in environment.items()},
        }

    def _told_program(self, part: _Part) -> Fields:
        text = self._told.get(f"{part.role}.json")
        if text is None:
            raise Unreadable(
                "",
                "this TFJob is Paceline's own, and the config map of its agents is not in the file",
                "put both into one file, as `paceline render --to tfjob` prints them",
            )
        told = json.loads(text)
        environment = {key: value for key, value in told["environment"].items() if key != "TMPDIR"}
        training = environment.pop("PACELINE_TRAINING", None)
        return {
            "command": told["command"],
            "environment": environment,
            "threads": told["threads"] or "auto",
            "_training": None if training is None else json.loads(training),
        }

    def _environment(self, part: _Part) -> dict[str, str]:
        """Return the variables that have literal values, as a container on Kubernetes sees them."""
        environment: dict[str, str] = {}
        places: dict[str, str] = {}
        for index, variable in enumerate(part.container.get("env") or ()):
            at, name = f"{part.container_at}.env[{index}]", variable["name"]
            if name in places:
                self._note(places.pop(name), f"{name} is said again after it, and that holds")
                environment.pop(name, None)
            if "valueFrom" in variable:
                self._note(at, f"{name} has its value from elsewhere (valueFrom)")
                variable.clear()
            elif not _VARIABLE.fullmatch(name):
                self._note(at, f"{name} is no name for a variable in a job file")
                variable.clear()
            else:
                places[name] = at
                value = variable.pop("value", None)
                environment[name] = self._expanded(f"{at}.value", "" if value is None else value, environment)
                del variable["name"]
        return environment

    def _said(self, path: str, text: str, values: Mapping[str, str]) -> str:
        """Return a word of a command as a job file writes it."""
        return previews.literal(self._expanded(path, text, values))

    def _expanded(self, path: str, text: str, values: Mapping[str, str]) -> str:
        try:
            found = expansions.expand(text, values)
        except expansions.TooLong as error:
            raise Unreadable(path, str(error), "write the value out, or shorter") from error
        for name in dict.fromkeys(found.unknown):
            self._note(path, f"$({name}) is not filled in (placeholders of a job file are: {{index}}, ...)")
        return found.text

    def _pod(self, part: _Part) -> Fields:
        """Return the settings of a role's pod that a job file has once for all roles."""
        pod, container, own_volumes = part.pod, part.container, pods.OWN_VOLUMES if part.is_ours else ()
        security = _security(pod.get("securityContext") or {}) if part.is_ours else None
        if part.is_ours:
            for key in _OWN_FIELDS:
                pod.pop(key, None)
            container.pop("securityContext", None)
            for init_container in pod.get("initContainers") or ():
                if init_container.get("name") in (agents.CONTAINER, pods.CODE_CONTAINER):
                    init_container.clear()
        own_ports = [{"name": tfjobs.PORT, "containerPort": services.PORT}]
        if part.is_ours:
            own_ports.append({"name": pods.METRICS, "containerPort": config_maps.METRICS_PORT})
        for port in container.get("ports") or ():
            if {"protocol": "TCP", **port} in [{"protocol": "TCP", **own_port} for own_port in own_ports]:
                port.clear()
        grace, slack = pod.pop("terminationGracePeriodSeconds", None), pods.SLACK_SECONDS
        code, working_dir = self._code(part), container.pop("workingDir", None)
        is_within = code is not None and working_dir.startswith(config_maps.CODE)
        return {
            "image": container.pop("image"),
            "code": code,
            "working_dir": None if is_within else working_dir,
            "termination_grace": None if grace is None else f"{grace - (slack if part.is_ours else 0)}s",
            "secrets": self._secrets(part),
            "security": security,
            "volumes": tfjob_volumes.taken(
                pod, container, own_volumes, (part.pod_at, part.container_at), self._note
            ),
            "node_selector": pod.pop("nodeSelector", None),
            "tolerations": [_toleration(toleration) for toleration in pod.pop("tolerations", None) or ()],
            "priority_class": pod.pop("priorityClassName", None),
        }

    def _code(self, part: _Part) -> Fields | None:
        """Return the source of the code, which the fetcher's config in Paceline's own TFJobs names."""
        text = self._told.get(config_maps.FETCH.rpartition("/")[2]) if part.is_ours else None
        if text is None:
            return None
        told = json.loads(text)
        maps = [each["configMap"]["name"] for each in part.pod.get("volumes") or () if "configMap" in each]
        sources = {"git": told.get("git"), "archive": told.get("archive"), "config_map": "".join(maps)}
        return _given({**sources, "path": "" if told["start"] == "." else told["start"]})

    def _secrets(self, part: _Part) -> Fields:
        """Return the path of each secret by its name; a secret that is optional or has a prefix is lost."""
        found: Fields = {}
        for index, each in enumerate(part.container.get("envFrom") or ()):
            reference = each.get("secretRef")
            if reference and each.keys() == {"secretRef"} and reference.keys() == {"name"}:
                found[reference["name"]] = f"{part.container_at}.envFrom[{index}]"
                each.clear()
        return found

    def _common(self, roles: Mapping[str, Fields]) -> Fields:
        """Return the settings that all roles of a job file share; if the roles differ, the first one decides.

        Every role gets the volumes and secrets of all roles.
        """
        shared = [(part, roles[part.role].pop("_pod")) for part in self._parts]
        if not shared:
            return {}
        _, first = shared[0]
        for part, settings in shared[1:]:
            for key, path in _COMMON.items():
                if settings[key] != first[key]:
                    at = path.format(pod=part.pod_at, container=part.container_at)
                    said = repr(settings[key]) if settings[key] else "nothing is said here"
                    common = f"all roles have {first[key]!r}" if first[key] else "no role has one"
                    self._note(at, f"{said} ({common})")
        training = [role.pop("_training", None) for role in roles.values()]
        placement = {key: first[key] for key in ("node_selector", "tolerations")}
        return {
            **{key: first[key] for key in _ALIKE},
            "secrets": list(dict.fromkeys(name for _, settings in shared for name in settings["secrets"])),
            "volumes": self._all_volumes(shared),
            "placement": _given(placement),
            "priority_class": first["priority_class"],
            "training": training[0],
        }

    def _all_volumes(self, shared: list[tuple[_Part, Fields]]) -> list[Fields]:
        volumes: Fields = {}
        for part, settings in shared:
            for name, volume in settings["volumes"].items():
                if volumes.setdefault(name, volume) != volume:
                    for at in (f"{part.pod_at}.volumes", f"{part.container_at}.volumeMounts"):
                        self._note(at, f"{name} is {volume} (all roles have {volumes[name]})")
        secrets = dict.fromkeys(name for _, settings in shared for name in settings["secrets"])
        for part, settings in shared:
            for kind, more in (("volume", volumes), ("secret", secrets)):
                gained = [name for name in more if name not in settings[f"{kind}s"]]
                if gained:
                    self._note(part.at, f"{kind} {', '.join(gained)} of the other roles as well")
        return list(volumes.values())


def _part(role: str, at: str, replicas: Fields) -> _Part:
    pod = replicas["template"]["spec"]
    containers = pod["containers"]
    index = next((i for i, each in enumerate(containers) if each.get("name") == tfjobs.CONTAINER), None)
    if index is None:
        raise Unreadable(
            f"{at}.template.spec.containers",
            f"no container is called {tfjobs.CONTAINER}, so Kubeflow does not know which one trains",
            f"call it {tfjobs.CONTAINER}",
        )
    container = containers[index]
    if not container.get("image"):
        where = f"{at}.template.spec.containers[{index}]"
        raise Unreadable(where, "image is missing", "a job file has to say which image has the script")
    del container["name"]
    words = tuple(container.get("command") or ())
    return _Part(
        role=role,
        at=at,
        pod=pod,
        container=container,
        container_at=f"{at}.template.spec.containers[{index}]",
        is_ours=agents.is_started(words),
    )


def _values(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every leaf with its path; empty mappings and empty lists have none."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _values(f"{path}.{key}" if path else str(key), each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _values(f"{path}[{index}]", each)
    elif value is not None:
        yield path, value


def _is_at_or_below(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}["))


def _security(found: Fields) -> Fields:
    """Return the security settings of a job from the security context of a pod that Paceline rendered."""
    profile = job_specs.SecurityProfile.RESTRICTED if found.get("runAsNonRoot") else None
    return _given({"profile": profile and str(profile), "user": found.get("runAsUser")})


def _toleration(each: Fields) -> Fields:
    names = {"tolerationSeconds": "toleration_seconds"}
    return {names.get(key, key): value for key, value in each.items() if value is not None}


def _given(fields: Mapping[str, Any]) -> Fields:
    return {name: value for name, value in fields.items() if value not in (None, {}, [], "")}
