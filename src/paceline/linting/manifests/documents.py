"""Rules on documents that are not Kubernetes objects."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.linting.manifests.readings import FixedSpot, ManifestFile
from paceline.linting.rules import LintHit, rule
from paceline.model.explanations.findings import Severity


@rule(
    "K8S001",
    "A document that cannot be read",
    Severity.ERROR,
    why="What is no YAML, Kubernetes refuses. The other documents of the file were checked all the same.",
    fix="Mend the place that the message names.",
)
def unreadable(file: ManifestFile) -> Iterator[LintHit]:
    """Documents must be YAML."""
    for problem in file.failures:
        yield LintHit(FixedSpot(problem.position), (), problem.message)


@rule(
    "K8S002",
    "A key that is given twice or is no text",
    Severity.ERROR,
    why="Of two equal keys in a mapping one is dropped without a word, by most tools the first.",
    fix="Keep one of them; put keys in quotes that YAML takes for numbers or booleans.",
)
def faulty_keys(file: ManifestFile) -> Iterator[LintHit]:
    """Keys must be unique."""
    for manifest in file.manifests:
        for fault in manifest.document.faults:
            # The text has both branches of a template, but only one is rendered.
            if not (manifest.template.has_branches and "twice" in fault.message):
                yield LintHit(FixedSpot(fault.position), (), manifest.template.resolved(fault.message))


@rule(
    "K8S003",
    "A fragment, not an object",
    Severity.INFO,
    why="Without apiVersion and kind a document is not an object that Kubernetes accepts. It was checked "
    "as a part of one.",
    fix="Nothing, when it is meant as a part; otherwise write apiVersion and kind.",
)
def fragment(file: ManifestFile) -> Iterator[LintHit]:
    """Objects have apiVersion and kind."""
    for manifest in file.manifests:
        missing = [key for key in ("apiVersion", "kind") if key not in manifest.data]
        if missing:
            yield LintHit(manifest.document, manifest.path, f"the document has no {' and no '.join(missing)}")


RULES = (unreadable, faulty_keys, fragment)
