"""Rules on label keys that look misspelt.

A label that is spelt in two ways selects nothing, and no tool reports it. A key is suspicious if it is one
letter away from a common word, from a more frequent key of the file, or from a word in the file's comments.
"""

from __future__ import annotations

import collections
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

from paceline.linting.manifests.readings import Manifest, ManifestFile
from paceline.linting.rules import LintHit, rule
from paceline.model.explanations.findings import Severity
from paceline.specs.yaml_text.documents import Path, Scalar

_HOLDERS = ("labels", "matchLabels", "nodeSelector", "selector")
_WELL_KNOWN = (
    "app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/version",
    "kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os",
    "node.kubernetes.io/instance-type", "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
)  # fmt: skip
_COMMON = frozenset(
    (
        "chief", "cluster", "component", "controller", "environment", "evaluator", "experiment", "group",
        "hostname", "index", "instance", "managed", "network", "owner", "partition", "placement", "priority",
        "project", "queue", "region", "release", "replica", "scenario", "scene", "server", "service", "stage",
        "storage", "training", "version", "worker",
    )
)  # fmt: skip
#: How many keys are checked, and with how many other keys and words each is compared; real files have fewer.
_MOST_KEYS, _MOST_WORDS = 2000, 300
#: Correct words that are one letter away from a common word.
_FINE = frozenset(("stale", "state"))


@rule(
    "K8S401",
    "A label key that looks misspelt",
    Severity.WARNING,
    why="A label that is spelt differently in two places matches nothing: the pod stays pending or the "
    "selector is empty, and no tool reports it.",
    fix="Spell the key in the same, right way everywhere, also where the label is set (kubectl label).",
)
def misspelt_keys(file: ManifestFile) -> Iterator[LintHit]:
    """Label keys must be spelt one way."""
    found = [(manifest, *entry) for manifest in file.manifests for entry in _label_keys(manifest)]
    counts = collections.Counter(key for _, _, key, _ in found)
    others = counts.most_common(_MOST_WORDS)
    words = frozenset(sorted(file.words)[:_MOST_WORDS])
    meanings = {key: _meant(key, counts[key], others, words) for key in [*counts][:_MOST_KEYS]}
    for manifest, path, key, is_key in found:
        meant = meanings.get(key)
        if meant is not None and not manifest.template.is_open(key):
            message = f"the label key {manifest.template.shown(key)} looks like a misspelt {meant}"
            yield LintHit(manifest.document, path, message, fix=f"Write {meant}, everywhere.", key=is_key)


def _label_keys(manifest: Manifest) -> Iterator[tuple[Path, str, bool]]:
    """Yield path and text of each label key, and whether it is the key at this path (not the value)."""
    for path, part in manifest.mappings():
        if path and path[-1] in _HOLDERS and all(isinstance(value, Scalar) for value in part.values()):
            yield from (((*path, key), key, True) for key in part)
        expressions = part.get("matchExpressions")
        for index, expression in enumerate(expressions if isinstance(expressions, list) else ()):
            key = expression.get("key") if isinstance(expression, Mapping) else None
            if isinstance(key, Scalar):
                yield (*path, "matchExpressions", index, "key"), key.text, False


def _meant(key: str, own_count: int, others: Sequence[tuple[str, int]], words: frozenset[str]) -> str | None:
    """Return the probable correct spelling of a key, or None if the key looks right."""
    if "kube" in key or "topolog" in key:
        close = difflib.get_close_matches(key, _WELL_KNOWN, n=1, cutoff=0.92)
        return close[0] if close and key not in _WELL_KNOWN else None
    for token in re.findall(r"[A-Za-z]{5,40}", key):
        word = token.lower()
        if word in _COMMON or word in _FINE:
            continue
        known = next((w for w in sorted(_COMMON | words) if _one_letter_apart(word, w)), None)
        if known is not None and word not in words:
            return key.replace(token, known.upper() if token.isupper() else known)
    for other, count in others:
        if count > own_count and len(key) >= 5 and _one_letter_apart(key.lower(), other.lower()):
            return other
    return None


def _one_letter_apart(word: str, other: str) -> bool:
    """Return whether words differ by one letter: missing, added, changed or swapped with its neighbour.

    A difference in the last letter alone does not count.
    """
    if word == other or len(other) < 5 or abs(len(word) - len(other)) > 1 or word[0] != other[0]:
        return False
    if word[:-1] == other or other[:-1] == word or (len(word) == len(other) and word[:-1] == other[:-1]):
        return False
    start = next(i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b)
    rests = (
        (word[start + 1 :], other[start:]),
        (word[start:], other[start + 1 :]),
        (word[start + 1 :], other[start + 1 :]),
    )
    swapped = (
        word[start : start + 2] == other[start : start + 2][::-1] and word[start + 2 :] == other[start + 2 :]
    )
    return swapped or any(mine == theirs for mine, theirs in rests)


RULES = (misspelt_keys,)
