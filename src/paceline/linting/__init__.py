"""Lint rules: errors that can be found before anything runs.

A rule is a pure function with an explanation for users (``rules``). ``jobs`` has the rules for job files,
``manifests`` the rules for Kubernetes manifests, and ``catalogues`` all of them. ``pages`` makes the page of
rules in the documentation.
"""

from paceline.linting.catalogues import catalogue, lint_job, lint_manifests, lint_place
from paceline.linting.jobs.files import LocalJobFile
from paceline.linting.rules import LintRule

__all__ = ["LintRule", "LocalJobFile", "catalogue", "lint_job", "lint_manifests", "lint_place"]
