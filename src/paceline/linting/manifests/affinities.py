"""Rules on selectors and affinities that match other pods or nodes than intended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.linting.manifests import readings
from paceline.linting.manifests.readings import Manifest, ManifestFile
from paceline.linting.rules import LintHit, rule
from paceline.model.explanations.findings import Severity
from paceline.specs.yaml_text.documents import Path, Scalar

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
#: Label values that replicas of every job have.
_ANY_JOB = frozenset(("chief", "evaluator", "master", "ps", "pserver", "tensorflow", "tf", "worker"))
#: Further words in such values, if the label key stands for a role.
_PARTS = frozenset(
    (
        "compute", "coordinator", "job", "launcher", "node", "parameter", "replica", "server", "task",
        "tfjob", "train", "trainer", "training",
    )
)  # fmt: skip
#: How many characters of a selector are shown.
_MOST_SHOWN = 200
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
def repelling_anti_affinity(file: ManifestFile) -> Iterator[LintHit]:
    """Anti-affinity must match the pods that it is meant to spread."""
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
                yield LintHit(
                    manifest.document, where, f"podAntiAffinity with {named} repels every other pod"
                )


@rule(
    "K8S102",
    "A selector that is not scoped to a job",
    Severity.WARNING,
    why="A selector by role alone matches the replicas of every job in the namespace: a Service sends one "
    "job's traffic to another's PS, and an affinity is disturbed by strangers.",
    fix="Add the job's label to the selector, such as job-name: clicks.",
)
def unscoped_selector(file: ManifestFile) -> Iterator[LintHit]:
    """Selectors must name the job."""
    for manifest in file.manifests:
        for path, labels in _selectors(manifest):
            if not labels or not all(_is_of_any_job(manifest, *label) for label in labels):
                continue
            if not manifest.is_filled_in(path):
                named = manifest.template.resolved(", ".join(map(_said, labels)))[:_MOST_SHOWN]
                message = f"the selector looks only at {named}, so it matches the pods of other jobs too"
                yield LintHit(manifest.document, path, message, key=True)


@rule(
    "K8S103",
    "Node affinity on hand-made labels",
    Severity.INFO,
    why="New nodes and other clusters do not have these labels, so the pods wait for ever there. A label "
    "that is moved to another node moves the next job. Nothing in these files sets the labels.",
    fix="Spread or isolate by pod affinity with a topology key, or set the labels where the job is created.",
)
def hand_made_node_labels(file: ManifestFile) -> Iterator[LintHit]:
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
                yield LintHit(manifest.document, (*path, "nodeAffinity"), message, key=True)


def _pod_terms(manifest: Manifest, kind: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the terms of pod affinities or anti-affinities: all parts that have a label selector."""
    for path, part in manifest.mappings():
        if "labelSelector" in part and kind in path:
            yield path, part


def _is_of_any_job(manifest: Manifest, key: str, values: tuple[str, ...]) -> bool:
    """Return whether replicas of every job have a label with these values, which name roles or numbers.

    If a value is unknown, the key decides.
    """
    named = frozenset(re.findall(r"[a-z]+", key.lower()))
    is_of_role = bool(named & _ROLES) and not named & _SCOPES
    known = [manifest.template.example(value) for value in values]
    words = [re.findall(r"[a-z]+|\d+", value.lower()) for value in known if "{{" not in value]
    if not words or len(words) < len(values) or not all(words):
        return is_of_role
    common = _ANY_JOB | _PARTS if is_of_role else _ANY_JOB
    return all(word in common or word.isdecimal() for value in words for word in value)


def _said(label: tuple[str, tuple[str, ...]]) -> str:
    key, values = label
    return f"{key}: {' or '.join(values)}" if values else key


def _selectors(manifest: Manifest) -> Iterator[tuple[Path, list[tuple[str, tuple[str, ...]]]]]:
    """Yield the path of each selector, and its labels with their values."""
    for kind in ("podAffinity", "podAntiAffinity"):
        for path, term in _pod_terms(manifest, kind):
            yield (*path, "labelSelector"), _labels(term["labelSelector"])
    selector, path = readings.field(manifest.data, "spec", "selector"), (*manifest.path, "spec", "selector")
    if isinstance(selector, Mapping):
        is_flat = not {"matchLabels", "matchExpressions"} & selector.keys()
        yield path, _labels({"matchLabels": selector} if is_flat else selector)


def _labels(selector: Any) -> list[tuple[str, tuple[str, ...]]]:
    labels = readings.field(selector, "matchLabels") if isinstance(selector, Mapping) else None
    listed = labels.items() if isinstance(labels, Mapping) else ()
    return [
        *((key, (value.text,) if isinstance(value, Scalar) else ()) for key, value in listed),
        *((key, tuple(_texts(found.get("values")))) for found, key in _expression_keys(selector)),
    ]


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


@rule(
    "K8S104",
    "A pod that is bound to a node by its name",
    Severity.WARNING,
    why="With nodeName no scheduler looks at the pod: not whether there is room, nor at taints, affinities "
    "or gangs. When the node is full or gone, the pod fails or waits for ever, and the job with it.",
    fix="Leave nodeName out; choose nodes by nodeSelector, affinity or tolerations.",
)
def bound_to_node(file: ManifestFile) -> Iterator[LintHit]:
    """The scheduler chooses nodes."""
    for manifest in file.manifests:
        is_live = manifest.kind == "Pod" and "status" in manifest.data
        for path, pod in manifest.pods():
            name = readings.scalar(pod, "nodeName")
            if name is not None and name.text and not is_live:
                message = f"the pod is bound to the node {manifest.template.shown(name.text)}"
                yield LintHit(manifest.document, (*path, "nodeName"), message, key=True)


RULES = (repelling_anti_affinity, unscoped_selector, hand_made_node_labels, bound_to_node)
