"""The catalogue of all rules, and the functions that apply them."""

from __future__ import annotations

from typing import Any

from paceline.linting import rules
from paceline.linting.jobs import commands, files, layouts, lifecycles, resources, threads, variables
from paceline.linting.manifests import affinities, details, documents, labels, readings
from paceline.linting.manifests import lifecycles as manifest_lifecycles
from paceline.linting.manifests import resources as manifest_resources
from paceline.model.explanations.findings import Finding
from paceline.specs import JobFile

JOB_RULES: tuple[rules.LintRule[JobFile], ...] = (
    *resources.RULES,
    *threads.RULES,
    *lifecycles.RULES,
    *layouts.RULES,
    *variables.RULES,
    *commands.RULES,
)
#: Rules for job files whose job runs on this machine.
PLACE_RULES: tuple[rules.LintRule[files.LocalJobFile], ...] = files.RULES
MANIFEST_RULES: tuple[rules.LintRule[readings.ManifestFile], ...] = (
    *documents.RULES,
    *affinities.RULES,
    *manifest_resources.RULES,
    *manifest_lifecycles.RULES,
    *labels.RULES,
    *details.RULES,
)


def lint_job(job_file: JobFile) -> tuple[Finding, ...]:
    """Return what the rules find in a job file, in the order of its lines."""
    return rules.in_order(finding for rule in JOB_RULES for finding in rule.findings(job_file))


def lint_place(place: files.LocalJobFile) -> tuple[Finding, ...]:
    """Return the findings about files that a job needs but this machine lacks, in the order of the lines."""
    return rules.in_order(finding for rule in PLACE_RULES for finding in rule.findings(place))


def lint_manifests(text: str | bytes, file: str = "manifests.yaml") -> tuple[Finding, ...]:
    """Return what the rules find in Kubernetes manifests, in the order of lines; similar findings are merged.

    Args:
        text: one or many YAML documents, plain or with Jinja or Helm templates in them.
        file: name of the file, for positions.
    """
    manifests = readings.read(text, file)
    found = rules.in_order(finding for rule in MANIFEST_RULES for finding in rule.findings(manifests))
    return rules.merged(found)


def catalogue() -> tuple[rules.LintRule[Any], ...]:
    """Return all rules, sorted by code."""
    return tuple(sorted((*JOB_RULES, *PLACE_RULES, *MANIFEST_RULES), key=lambda rule: rule.code))
