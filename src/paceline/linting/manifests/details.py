"""Rules on images, commands, names and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from paceline.linting import shells
from paceline.linting.manifests import readings
from paceline.linting.manifests.readings import ManifestFile
from paceline.linting.rules import LintHit, rule
from paceline.model.explanations.findings import Severity
from paceline.specs.yaml_text import problems
from paceline.specs.yaml_text.documents import Scalar, ScalarKind

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_QUOTES = ("'", '"')


@rule(
    "K8S601",
    "An image pull secret whose name cannot be right",
    Severity.ERROR,
    why="No Secret can have this name, so the image is pulled without a login and a private registry "
    "refuses it.",
    fix="Write the name of the Secret: lower-case letters, digits, '-' and '.'.",
)
def bad_pull_secret(file: ManifestFile) -> Iterator[LintHit]:
    """Pull secrets must be names of Secrets."""
    for manifest in file.manifests:
        for path, part in manifest.mappings():
            secrets = part.get("imagePullSecrets")
            for index, secret in enumerate(secrets if isinstance(secrets, list) else ()):
                name = readings.scalar(secret, "name") if isinstance(secret, Mapping) else None
                if name is None or manifest.template.is_open(name.text) or _NAME.fullmatch(name.text[:300]):
                    continue
                unbalanced = any(name.text.count(quote) % 2 for quote in _QUOTES)
                hint = ": the quote has no partner" if unbalanced else ""
                message = f"{manifest.template.shown(name.text)} cannot be the name of a Secret{hint}"
                yield LintHit(manifest.document, (*path, "imagePullSecrets", index, "name"), message)


@rule(
    "K8S602",
    "A headless Service that is not headless",
    Severity.ERROR,
    why="Only the exact text None makes a Service headless, so that its name leads to the pod itself. Any "
    "other spelling is refused, and an empty value gives an ordinary address with a hop between.",
    fix="Write clusterIP: None.",
)
def misspelt_headless(file: ManifestFile) -> Iterator[LintHit]:
    """Headless is spelt None."""
    for manifest in file.manifests:
        address = readings.scalar(manifest.data, "spec", "clusterIP")
        if manifest.kind != "Service" or address is None or manifest.template.is_open(address.text):
            continue
        written_null = address.kind is ScalarKind.NULL and address.text != ""
        if written_null or (
            address.text != "None" and address.text.strip().lower() in ("none", "nil", "non", "null")
        ):
            message = (
                f"clusterIP is {manifest.template.shown(address.text)}; only None makes a Service headless"
            )
            yield LintHit(manifest.document, (*manifest.path, "spec", "clusterIP"), message)


@rule(
    "K8S603",
    "The command downloads code and runs it",
    Severity.WARNING,
    why="What is downloaded can change between two starts of the same replica, so replicas may run "
    "different code; hundreds of replicas load the server at once; and nothing checks what arrived.",
    fix="Put the code into the image, or check what is downloaded with sha256sum.",
)
def downloading_command(file: ManifestFile) -> Iterator[LintHit]:
    """Code belongs in the image."""
    for manifest, path, container in file.containers():
        for key in ("command", "args"):
            words = container.get(key)
            for index, word in enumerate(words if isinstance(words, list) else ()):
                line = word.text if isinstance(word, Scalar) else ""
                what = shells.download_in(manifest.template.resolved(line))
                if what:
                    message = f"the command runs {problems.shown(what)}"
                    yield LintHit(manifest.document, (*path, key, index), message)


@rule(
    "K8S604",
    "An image without a fixed version",
    Severity.WARNING,
    why="`latest`, or no tag at all, means another image whenever someone pushes one: replicas that start "
    "later, or are restarted, may run other code than the first.",
    fix="Write a tag that does not move, such as :1.4, or a digest (@sha256:...).",
)
def floating_image(file: ManifestFile) -> Iterator[LintHit]:
    """Images need versions."""
    for manifest, path, container in file.containers():
        image = readings.scalar(container, "image")
        name = manifest.template.resolved(image.text) if image is not None else "{{"
        if "{{" not in name and name and (what := shells.floating_tag(name)):
            yield LintHit(manifest.document, (*path, "image"), f"the image {problems.shown(name)} {what}")


@rule(
    "K8S605",
    "A namespace for each job",
    Severity.INFO,
    why="Namespaces are for teams: quotas, secrets, service accounts and network policies have to be "
    "copied into each one, and a namespace that is left behind keeps all that is in it.",
    fix="Use one namespace for each team, and the job's label to tell jobs apart.",
)
def namespace_for_each_job(file: ManifestFile) -> Iterator[LintHit]:
    """Namespaces must outlive jobs."""
    for manifest in file.manifests:
        namespace, name = manifest.text("metadata", "namespace"), manifest.text("metadata", "name")
        if namespace and name and manifest.template.is_open(namespace) and name.startswith(namespace):
            message = f"the namespace {manifest.template.shown(namespace)} is the job's own name"
            yield LintHit(manifest.document, (*manifest.path, "metadata", "namespace"), message)
            return


RULES = (bad_pull_secret, misspelt_headless, downloading_command, floating_image, namespace_for_each_job)
