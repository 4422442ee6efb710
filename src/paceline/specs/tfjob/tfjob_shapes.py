"""The shape of those parts of a TFJob that are read; an error about a missing or wrong part names its path.

Kubernetes' own API server rejects the same errors. Fields that the conversion does not read are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from paceline.rendering import tfjobs
from paceline.specs.yaml_text import problems

Shape = Callable[[Any, str], None]
#: The operator ignores the case of role names; ``Master`` is its old name for the chief.
ROLES = {**{name.lower(): str(role) for role, name in tfjobs.NAMES.items()}, "master": "chief"}
RESTARTS = (*tfjobs.RESTARTS.values(), "ExitCode")


class Unreadable(Exception):
    """The TFJob cannot be converted to a job file.

    Attributes:
        path: the part that the error is about, from the top of the TFJob, such as ``spec.runPolicy``.
        is_key: whether the error is about the key, not about its value.
    """

    def __init__(self, path: str, message: str, hint: str = "", *, is_key: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.hint = hint
        self.is_key = is_key


def check(tfjob: Mapping[str, Any]) -> None:
    """Check the parts of a TFJob that are read.

    Raises:
        Unreadable: a part is missing, or Kubernetes would not accept it.
    """
    _TFJOB(tfjob, "")
    roles: dict[str, str] = {}
    for name in tfjob["spec"]["tfReplicaSpecs"]:
        role, at = ROLES.get(name.lower()), f"spec.tfReplicaSpecs.{name}"
        if role is None:
            close = problems.did_you_mean(name, (*tfjobs.NAMES.values(), "Master"))
            message = f"{problems.shown(name)} is no role of a TFJob{close}"
            raise Unreadable(at, message, f"there are {', '.join(tfjobs.NAMES.values())}", is_key=True)
        if role in roles:
            message = f"{roles[role]} and {name} are the same role, the {role}"
            raise Unreadable(at, message, "keep one of them", is_key=True)
        roles[role] = name


def _text(value: Any, at: str) -> None:
    if isinstance(value, dict | list):
        raise Unreadable(at, f"this is {_kind(value)}; text is wanted")
    if not isinstance(value, str):
        written = str(value).lower() if isinstance(value, bool) else str(value)
        message = f"{written} has to be text for Kubernetes"
        raise Unreadable(at, message, f"write '{written}' in quotes")


def _whole(value: Any, at: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        written = _kind(value) if isinstance(value, dict | list) else problems.shown(str(value))
        raise Unreadable(at, f"this is {written}; a whole number is wanted, without quotes")


def _truth(value: Any, at: str) -> None:
    if not isinstance(value, bool):
        raise Unreadable(at, f"this is {_kind(value)}; true or false is wanted, without quotes")


def _quantity(value: Any, at: str) -> None:
    if isinstance(value, dict | list | bool):
        raise Unreadable(at, f"this is {_kind(value)}; a quantity is wanted (2, 500m, 4Gi)")


def _one_of(words: Collection[str]) -> Shape:
    def check_word(value: Any, at: str) -> None:
        _text(value, at)
        if value not in words:
            close = problems.did_you_mean(value, words)
            message = f"{problems.shown(value)} is not one of {', '.join(words)}{close}"
            raise Unreadable(at, message)

    return check_word


def _list_of(shape: Shape) -> Shape:
    def check_list(value: Any, at: str) -> None:
        if not isinstance(value, list):
            raise Unreadable(at, f"this is {_kind(value)}; a list is wanted")
        for index, each in enumerate(value):
            shape(each, f"{at}[{index}]")

    return check_list


def _mapping(
    fields: Mapping[str, Shape] | None = None, *, needs: Collection[str] = (), others: Shape | None = None
) -> Shape:
    """Return the shape of a mapping: its fields' shapes, its required fields, the shape of other fields."""

    def check_mapping(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise Unreadable(at, f"this is {_kind(value)}; a mapping (key: value) is wanted")
        for key, each in value.items():
            shape = (fields or {}).get(key, others)
            if shape is not None:
                shape(each, f"{at}.{key}" if at else key)
        for key in needs:
            if key not in value:
                close = problems.did_you_mean(key, value.keys() - (fields or {}).keys())
                hint = (
                    f"is {key} meant{close.removeprefix('; did you mean').replace(' ', ' by ', 1)}"
                    if close
                    else ""
                )
                raise Unreadable(at, f"{key} is missing", hint, is_key=True)

    return check_mapping


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else problems.shown(str(value))


_NAMED = _mapping({"name": _text})
_WORDS = _mapping(others=_text)
_AMOUNTS = _mapping(others=_quantity)
_METADATA = _mapping({"name": _text, "namespace": _text, "labels": _WORDS, "annotations": _WORDS})
_CONTAINER = _mapping(
    {
        "name": _text,
        "image": _text,
        "command": _list_of(_text),
        "args": _list_of(_text),
        "workingDir": _text,
        "env": _list_of(_mapping({"name": _text, "value": _text}, needs=("name",))),
        "envFrom": _list_of(_mapping({"secretRef": _NAMED, "configMapRef": _NAMED, "prefix": _text})),
        "ports": _list_of(_mapping({"name": _text, "containerPort": _whole})),
        "resources": _mapping({"limits": _AMOUNTS, "requests": _AMOUNTS}),
        "volumeMounts": _list_of(
            _mapping({"name": _text, "mountPath": _text, "readOnly": _truth}, needs=("name", "mountPath"))
        ),
        "securityContext": _mapping(),
    }
)
_VOLUME = _mapping(
    {
        "name": _text,
        "hostPath": _mapping({"path": _text}),
        "persistentVolumeClaim": _mapping({"claimName": _text}),
        "secret": _mapping({"secretName": _text}),
        "configMap": _NAMED,
    },
    needs=("name",),
)
_TOLERATION = _mapping(
    {"key": _text, "operator": _text, "value": _text, "effect": _text, "tolerationSeconds": _whole}
)
_POD = _mapping(
    {
        "containers": _list_of(_CONTAINER),
        "initContainers": _list_of(_CONTAINER),
        "volumes": _list_of(_VOLUME),
        "nodeSelector": _WORDS,
        "priorityClassName": _text,
        "tolerations": _list_of(_TOLERATION),
        "terminationGracePeriodSeconds": _whole,
        "securityContext": _mapping({"runAsUser": _whole, "runAsNonRoot": _truth}),
        "affinity": _mapping(),
    },
    needs=("containers",),
)
_REPLICAS = _mapping(
    {
        "replicas": _whole,
        "restartPolicy": _one_of(RESTARTS),
        "template": _mapping({"metadata": _METADATA, "spec": _POD}, needs=("spec",)),
    },
    needs=("template",),
)
_RUN_POLICY = _mapping(
    {
        "backoffLimit": _whole,
        "activeDeadlineSeconds": _whole,
        "ttlSecondsAfterFinished": _whole,
        "cleanPodPolicy": _text,
        "schedulingPolicy": _mapping({"queue": _text, "priorityClass": _text}),
    }
)
_SPEC = _mapping(
    {"runPolicy": _RUN_POLICY, "successPolicy": _text, "tfReplicaSpecs": _mapping(others=_REPLICAS)},
    needs=("tfReplicaSpecs",),
)
_TFJOB = _mapping({"metadata": _METADATA, "spec": _SPEC}, needs=("metadata", "spec"))
