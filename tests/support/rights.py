"""What roles of Kubernetes allow, right by right."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

Object = dict[str, Any]


class Right(NamedTuple):
    """A verb on a kind of objects, in the words in which the API refuses it."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb}-{self.resource.replace('/', '-')}"


def roles(manifests: Iterable[Object]) -> list[Object]:
    return [each for each in manifests if each["kind"] in ("ClusterRole", "Role")]


def rights(manifests: Iterable[Object]) -> list[Right]:
    return [
        Right(verb, resource)
        for role in roles(manifests)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def without(right: Right, manifests: Iterable[Object]) -> list[Object]:
    """Return the manifests whose roles lack one right."""
    made = copy.deepcopy(list(manifests))
    for role in roles(made):
        role["rules"] = [part for rule in role["rules"] for part in _parts(rule, right)]
    return made


def _parts(rule: Object, right: Right) -> list[Object]:
    """Return a rule for each of its resources; the API refuses rules without verbs."""
    parts = [
        {
            **rule,
            "resources": [resource],
            "verbs": [verb for verb in rule["verbs"] if Right(verb, resource) != right],
        }
        for resource in rule["resources"]
    ]
    return [part for part in parts if part["verbs"]]
