"""Kubeflow's TFJobs read as job files, with a list of what a job file has no words for.

What is understood is taken out of the TFJob; what is left over in the end would be lost, and is named by its
path. A TFJob that `rendering.tfjobs` made is read back together with its config map. Source:
``tensorflow_types.go`` and ``common_types.go`` of kubeflow/training-operator 1.9.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml

from paceline.errors import InvalidInput
from paceline.model import jobs, quantities
from paceline.model.jobs import JobSpec
from paceline.model.placements import PlacementStrategy
from paceline.rendering import affinities, labels, pods, tfjobs
from paceline.specs import checks, documents, dumping, files, problems

_HINT = "a TFJob starts with apiVersion: kubeflow.org/v1, kind: TFJob"
_ROLES = {**{name: str(role) for role, name in tfjobs.NAMES.items()}, "Master": "chief"}
_RESTARTS = {**{name: str(when) for when, name in tfjobs.RESTARTS.items()}, "ExitCode": "on-failure"}
_CLEAN_UPS = {"Running": "running", "All": "all"}
#: What every pod of Paceline's has by itself.
_OWN_FIELDS = ("automountServiceAccountToken", "enableServiceLinks", "securityContext", "initContainers")
_OWN_LABELS = (labels.JOB, labels.ROLE, labels.MANAGED_BY)

#: What only the API server writes.
_OF_THE_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")

Fields = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A job file, and what of the TFJob is not in it."""

    text: str
    lost: tuple[str, ...]


def convert(path: str | os.PathLike[str]) -> Conversion:
    """Return the job file that a file with a TFJob makes.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no TFJob, or one that makes no job.
    """
    name = os.fspath(path)
    return convert_text(documents.decode(checks.read_bytes(name, _HINT), name), name)


def convert_text(text: str, file: str) -> Conversion:
    """Return the job file that a text with a TFJob makes; the file's name is for messages.

    Raises:
        InvalidInput: it is no TFJob, or one that makes no job.
    """
    shown = problems.visible(file)
    try:
        found = [each for each in yaml.load_all(text, Loader=_Loader) if isinstance(each, dict)]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{shown}: it is no YAML: {problems.visible(str(error))}", _HINT) from error
    tfjob = next((each for each in found if each.get("kind") == "TFJob"), None)
    if tfjob is None:
        raise InvalidInput(f"{shown}: there is no TFJob in it", _HINT)
    told = next((each.get("data") for each in found if each.get("kind") == "ConfigMap"), None) or {}
    try:
        reading = _Reading(copy.deepcopy(tfjob), told)
        document = reading.document()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"{shown}: this is no TFJob as Kubeflow has them: {problems.visible(repr(error))}"
        raise InvalidInput(message, _HINT) from error
    spec = files.parse_job(json.dumps(document, ensure_ascii=False), file=f"the job of {file}").spec
    spec = reading.placed(spec)
    return Conversion(text=dumping.dump_job(spec), lost=tuple(reading.lost()))


class _Loader(yaml.SafeLoader):
    """Keeps dates and the like as they are written, and takes no aliases: TFJobs have none, bombs do."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Reading:
    """Takes a TFJob apart; what nobody has taken in the end is lost."""

    def __init__(self, tfjob: Fields, told: Mapping[str, str]) -> None:
        self._rest = tfjob
        self._told = told
        self._notes: list[str] = []
        self._affinities: dict[str, Any] = {}
        self._labels = tuple(tfjob["metadata"].get("labels") or {})

    def document(self) -> Fields:
        """Return the job file's data."""
        for key in ("apiVersion", "kind", "status"):
            self._rest.pop(key, None)
        metadata, spec = self._rest.pop("metadata"), self._rest["spec"]
        policy = spec.pop("runPolicy", {})
        replicas = spec.pop("tfReplicaSpecs")
        roles = {_ROLES[name]: self._role(name, each) for name, each in replicas.items()}
        limit = policy.pop("backoffLimit", None)
        for role in roles.values():
            role["restart"] = _given({**role["restart"], "limit": limit})
        self._keep("spec.tfReplicaSpecs", replicas)
        name, own = metadata.pop("name"), metadata.pop("labels", None) or {}
        for key in (*_OF_THE_SERVER, "namespace"):
            metadata.pop(key, None)
        self._keep("metadata", metadata)
        return {
            "apiVersion": jobs.API_VERSION,
            "kind": jobs.KIND,
            "metadata": _given({"name": name, "labels": _without(own, _OWN_LABELS)}),
            "spec": _given({**self._common(roles), **self._ends(policy, spec), "roles": roles}),
        }

    def _ends(self, policy: Fields, spec: Fields) -> Fields:
        every = spec.pop("successPolicy", "") == "AllWorkers"
        clean_up = policy.pop("cleanPodPolicy", None)
        if clean_up == "None":
            self._notes.append("spec.runPolicy.cleanPodPolicy: None (what still runs ends with the job)")
        deadline = policy.pop("activeDeadlineSeconds", None)
        kept = policy.pop("ttlSecondsAfterFinished", None)
        (policy.get("schedulingPolicy") or {}).pop("minAvailable", None)  # all of them, always
        self._keep("spec.runPolicy", policy)
        return {
            "success": "all-workers" if every else "chief",
            "clean_up": _CLEAN_UPS.get(str(clean_up)),
            "active_deadline": None if deadline is None else f"{deadline}s",
            "ttl_after_finished": None if kept is None else f"{kept}s",
        }

    def _role(self, name: str, replicas: Fields) -> Fields:
        template = replicas.get("template") or {}
        spec = template.get("spec") or {}
        found = spec.get("containers") or []
        container = next((each for each in found if each.get("name") == tfjobs.CONTAINER), found[0])
        found.remove(container)
        container.pop("name")
        restart = replicas.pop("restartPolicy", None) or spec.pop("restartPolicy", None) or "Never"
        if restart == "ExitCode":
            self._notes.append(f"{name}: restartPolicy ExitCode (every failure is restarted, not some codes)")
        role = {
            "replicas": replicas.pop("replicas", 1),
            "restart": {"when": _RESTARTS[restart]},
            **self._resources(name, container.pop("resources", None) or {}),
            **self._program(name, container),
            "_pod": self._pod(name, spec, container),
        }
        metadata = template.get("metadata") or {}
        for key in (*_OWN_LABELS, *self._labels):
            (metadata.get("labels") or {}).pop(key, None)
        self._keep(f"{name}: container", container)
        return role

    def _program(self, name: str, container: Fields) -> Fields:
        words = [*(container.pop("command", None) or ()), *(container.pop("args", None) or ())]
        variables = container.pop("env", None) or []
        if tuple(words[: len(pods.AGENT)]) == pods.AGENT:
            told = json.loads(self._told[f"{_ROLES[name]}.json"])
            environment = {key: value for key, value in told["environment"].items() if key != "TMPDIR"}
            training = environment.pop("PACELINE_TRAINING", None)
            program = {
                "command": told["command"],
                "environment": environment,
                "threads": told["threads"] or "auto",
            }
            return {**program, "_training": None if training is None else json.loads(training)}
        if any("$(" in word for word in words):
            self._notes.append(
                f"{name}: $(NAME) in the command is not filled in (placeholders are: {{index}}, ...)"
            )
        for each in variables:
            if "value" not in each:
                self._notes.append(f"{name}: environment {each['name']} from elsewhere (valueFrom)")
        environment = {each["name"]: str(each["value"]) for each in variables if "value" in each}
        return {"command": words, "environment": environment}

    def _resources(self, name: str, resources: Fields) -> Fields:
        limits, requests = resources.pop("limits", None) or {}, resources.pop("requests", None) or {}
        cores, memory = (limits.pop(key, None) or requests.get(key) for key in ("cpu", "memory"))
        asked = {key: requests.pop(key, None) for key in ("cpu", "memory")}
        gpus = limits.pop(pods.GPU, None) or requests.get(pods.GPU) or 0
        requests.pop(pods.GPU, None)
        is_own = _is_shared(cores, asked["cpu"])
        for key, wanted in (("cpu", cores), ("memory", memory)):
            given = asked[key]
            if given is not None and not _same(given, wanted) and not (key == "cpu" and is_own):
                self._notes.append(f"{name}: requests.{key}: {given} (the limit, {wanted}, is requested)")
        whole = cores is not None and quantities.parse_quantity(cores) % 1 == 0
        exclusive = (
            whole
            and memory is not None
            and _same(asked["cpu"] or cores, cores)
            and _same(asked["memory"] or memory, memory)
        )
        self._keep(f"{name}: resources", {"limits": limits, "requests": requests, **resources})
        return {
            "cpu": cores,
            "memory": memory,
            "gpu": int(gpus),
            "cpu_policy": "exclusive" if exclusive else None,
        }

    def _pod(self, name: str, spec: Fields, container: Fields) -> Fields:
        """Return what a job file says once for all roles."""
        self._affinities[_ROLES[name]] = spec.pop("affinity", None) or {}
        mounts = {each.pop("name"): each for each in container.pop("volumeMounts", None) or []}
        is_ours = bool([mounts.pop(name) for name in pods.OWN_VOLUMES if name in mounts])
        security = _security(spec.get("securityContext") or {}) if is_ours else None
        if is_ours:
            for key in _OWN_FIELDS:
                spec.pop(key, None)
            container.pop("securityContext", None)
        container.pop("ports", None)
        grace, slack = spec.pop("terminationGracePeriodSeconds", None), pods.SLACK_SECONDS if is_ours else 0
        volumes = [each for each in spec.pop("volumes", None) or [] if each["name"] not in pods.OWN_VOLUMES]
        spec["volumes"] = [each for each in volumes if each["name"] not in mounts]
        volumes = [each for each in volumes if each["name"] in mounts]
        return {
            "image": container.pop("image"),
            "working_dir": container.pop("workingDir", None),
            "termination_grace": None if grace is None else f"{grace - slack}s",
            "secrets": self._secrets(name, container.pop("envFrom", None) or []),
            "volumes": [each for volume in volumes for each in self._volume(name, volume, mounts)],
            "security": security,
            "placement": _given(
                {
                    "node_selector": spec.pop("nodeSelector", None),
                    "tolerations": [_toleration(each) for each in spec.pop("tolerations", None) or []],
                }
            ),
        }

    def _secrets(self, name: str, sources: list[Fields]) -> list[str]:
        for each in sources:
            if "secretRef" not in each:
                self._notes.append(f"{name}: environment of {', '.join(sorted(each))} (envFrom)")
        return [each["secretRef"]["name"] for each in sources if "secretRef" in each]

    def _volume(self, name: str, volume: Fields, mounts: Mapping[str, Fields]) -> Iterator[Fields]:
        mount = mounts[volume["name"]]
        common = {
            "name": volume.pop("name"),
            "mount_path": mount.pop("mountPath"),
            "read_only": mount.pop("readOnly", None),
        }
        sources = {
            "host_path": (volume.pop("hostPath", None) or {}).get("path"),
            "claim": (volume.pop("persistentVolumeClaim", None) or {}).get("claimName"),
            "secret": (volume.pop("secret", None) or {}).get("secretName"),
        }
        if any(sources.values()):
            yield _given({**common, **sources})
        else:
            self._notes.append(f"{name}: volume {common['name']} of kind {', '.join(sorted(volume))}")
        self._keep(f"{name}: mount of {common['name']}", mount)

    def _common(self, roles: dict[str, Fields]) -> Fields:
        """Take what all roles say of their pods; where they differ, the first one's holds for all."""
        shared = [(name, role.pop("_pod")) for name, role in roles.items()]
        _, first = shared[0]
        for name, each in shared[1:]:
            for key in first:
                if each[key] != first[key]:
                    self._notes.append(f"{name}: {key} {each[key]!r} (all roles have {first[key]!r})")
        training = [role.pop("_training", None) for role in roles.values()]
        return {**first, "training": training[0]}

    def placed(self, spec: JobSpec) -> JobSpec:
        """Return the job with the placement whose affinities these are; others are lost."""
        for strategy in PlacementStrategy:
            placement = dataclasses.replace(spec.placement, strategy=strategy)
            tried = dataclasses.replace(spec, placement=placement)
            if all(
                affinities.of_role(tried, role.role) == self._affinities[str(role.role)]
                for role in spec.roles
            ):
                return tried
        for name, affinity in self._affinities.items():
            self._keep(f"{name}: affinity", affinity)
        return spec

    def lost(self) -> Iterator[str]:
        """Yield what the job file does not say."""
        yield from self._notes
        yield from _leaves("", self._rest)

    def _keep(self, path: str, rest: Any) -> None:
        self._notes.extend(_leaves(path, rest))


def _leaves(path: str, value: Any) -> Iterator[str]:
    """Yield the paths below which something is left."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves(f"{path}[{index}]", each)
    elif value is not None:
        yield f"{path}: {value}"


def _without(fields: Mapping[str, Any], names: Collection[str]) -> Fields:
    return {name: value for name, value in fields.items() if name not in names}


def _security(found: Fields) -> Fields:
    """Return what a pod's security context, as it is rendered here, was made of."""
    profile = jobs.SecurityProfile.RESTRICTED if found.get("runAsNonRoot") else None
    return _given({"profile": profile and str(profile), "user": found.get("runAsUser")})


def _toleration(each: Fields) -> Fields:
    names = {"tolerationSeconds": "toleration_seconds"}
    return {names.get(key, key): value for key, value in each.items() if value is not None}


def _same(one: Any, other: Any) -> bool:
    return bool(quantities.parse_quantity(one) == quantities.parse_quantity(other))


def _is_shared(limit: Any, request: Any) -> bool:
    """Whether a request is that of shared cores, as `rendering.pods` has it."""
    if limit is None or request is None:
        return False
    apart = quantities.parse_quantity(limit) - quantities.parse_quantity(request)
    return apart * 1000 == 1 and quantities.parse_quantity(limit) % 1 == 0


def _given(fields: Mapping[str, Any]) -> Fields:
    return {name: value for name, value in fields.items() if value not in (None, {}, [], "")}
