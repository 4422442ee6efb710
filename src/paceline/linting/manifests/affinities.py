"""Selectors and affinities: which pods and nodes are meant, and which are hit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.linting.manifests import readings
from paceline.linting.manifests.readings import Manifest, ManifestFile
from paceline.linting.rules import Hit, rule
from paceline.model.findings import Severity
from paceline.specs.documents import Path, Scalar

_SCOPES = frozenset(
    (
        "app",
        "controller",
        "experiment",
        "id",
        "instance",
        "job",
        "name",
        "owner",
        "release",
        "run",
        "tfjob",
        "uid",
    )
)
_ROLES = frozenset(("component", "index", "replica", "role", "task", "tier", "type"))
_REPELLING = ("NotIn", "DoesNotExist")


@rule(
    "K8S101",
    "Anti-affinity that repels the others",
    Severity.ERROR,
    why="Anti-affinity keeps a pod away from the pods that the selector matches. With NotIn [ps] these "
    "are all pods that are not PS: the PS are driven away from workers and from strangers, towards "
    "nodes that hold only PS, and nothing spreads them.",
    fix="Write operator: In with values [ps], and add the job's own label, so that PS repel the PS of "
    "their job.",
)
def repelling_anti_affinity(file: ManifestFile) -> Iterator[Hit]:
    """Anti-affinity must match what it is to spread."""
    for manifest in file.manifests:
        for path, term in _pod_terms(manifest, "podAntiAffinity"):
            expressions = readings.field(term, "labelSelector", "matchExpressions")
            for index, expression in enumerate(expressions if isinstance(expressions, list) else ()):
                operator = (
                    readings.scalar(expression, "operator") if isinstance(expression, Mapping) else None
                )
                if operator is None or operator.text not in _REPELLING:
                    continue
                key = readings.scalar(expression, "key")
                values = ", ".join(_texts(expression.get("values")))
                named = manifest.template.resolved(f"{key.text if key else '?'} {operator.text} [{values}]")
                where = (*path, "labelSelector", "matchExpressions", index, "operator")
                yield Hit(manifest.document, where, f"podAntiAffinity with {named} repels every other pod")


@rule(
    "K8S102",
    "A selector that is not scoped to a job",
    Severity.WARNING,
    why="A selector by role alone matches the replicas of every job in the namespace: a Service sends one "
    "job's traffic to another's PS, and an affinity is disturbed by strangers.",
    fix="Add the job's label to the selector, such as job-name: clicks.",
)
def unscoped_selector(file: ManifestFile) -> Iterator[Hit]:
    """Selectors must name the job."""
    for manifest in file.manifests:
        for path, keys in _selectors(manifest):
            words = [frozenset(re.findall(r"[a-z]+", key.lower())) for key in keys]
            if words and all(word & _ROLES and not word & _SCOPES for word in words):
                named = ", ".join(manifest.template.resolved(key) for key in keys)
                message = f"the selector looks only at {named}, so it matches the pods of other jobs too"
                yield Hit(manifest.document, path, message, key=True)


@rule(
    "K8S103",
    "Node affinity on hand-made labels",
    Severity.INFO,
    why="The pods wait for ever on a cluster, or on a new node, where nobody has set these labels, and "
    "whoever moves a label moves the next job. Nothing in these files sets them.",
    fix="Spread or isolate by pod affinity with a topology key, or set the labels where the job is created.",
)
def hand_made_node_labels(file: ManifestFile) -> Iterator[Hit]:
    """Node labels must come from somewhere."""
    provided = {
        key
        for manifest in file.manifests
        if manifest.kind == "Node"
        for key in readings.field(manifest.data, "metadata", "labels") or ()
    }
    for manifest in file.manifests:
        for path, part in manifest.mappings():
            affinity = part.get("nodeAffinity")
            if not isinstance(affinity, Mapping):
                continue
            keys = [key for _, key in _expression_keys(affinity) if "/" not in key and key not in provided]
            if keys:
                named = manifest.template.resolved(", ".join(dict.fromkeys(keys)))
                message = f"the node labels {named} are set by hand: nothing in this file sets them"
                yield Hit(manifest.document, (*path, "nodeAffinity"), message, key=True)


def _pod_terms(manifest: Manifest, kind: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the terms of pod affinities or anti-affinities: whatever has a selector below them."""
    for path, part in manifest.mappings():
        if "labelSelector" in part and kind in path:
            yield path, part


def _selectors(manifest: Manifest) -> Iterator[tuple[Path, list[str]]]:
    for kind in ("podAffinity", "podAntiAffinity"):
        for path, term in _pod_terms(manifest, kind):
            yield (*path, "labelSelector"), _keys(term["labelSelector"])
    selector = readings.field(manifest.data, "spec", "selector")
    if manifest.kind == "Service" and isinstance(selector, Mapping):
        yield (*manifest.path, "spec", "selector"), list(selector)
    elif isinstance(selector, Mapping):
        yield (*manifest.path, "spec", "selector"), _keys(selector)


def _keys(selector: Any) -> list[str]:
    labels = readings.field(selector, "matchLabels") if isinstance(selector, Mapping) else None
    listed = list(labels) if isinstance(labels, Mapping) else []
    return [*listed, *(key for _, key in _expression_keys(selector))]


def _expression_keys(value: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield every expression (key, operator, values) below a value, with its key."""
    if isinstance(value, Mapping):
        key = value.get("key")
        if isinstance(key, Scalar) and "operator" in value:
            yield value, key.text
        for part in value.values():
            yield from _expression_keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from _expression_keys(part)


def _texts(value: Any) -> list[str]:
    return [item.text for item in value if isinstance(item, Scalar)] if isinstance(value, list) else []


RULES = (repelling_anti_affinity, unscoped_selector, hand_made_node_labels)
