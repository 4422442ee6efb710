"""What can be known to be wrong before anything runs.

A rule is a pure function with words for people (``rules``). ``jobs`` holds the rules for job files,
``manifests`` those for Kubernetes manifests, ``catalogues`` all of them; ``pages`` makes their page in the
documentation.
"""

from paceline.linting.catalogues import catalogue, lint_job, lint_manifests, lint_place
from paceline.linting.jobs.files import LocalJobFile
from paceline.linting.rules import LintRule

__all__ = ["LintRule", "LocalJobFile", "catalogue", "lint_job", "lint_manifests", "lint_place"]
