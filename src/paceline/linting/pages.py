"""The page of all lint rules: ``python -m paceline.linting.pages > docs/lint-rules.md``."""

from __future__ import annotations

import sys

from paceline.linting import catalogues

_HEAD = """\
# Lint rules

Made from the catalogue by `python -m paceline.linting.pages`; change the rules, not this page.

A rule fires only on what is known to go wrong. An error cannot work as it is meant, a warning works but costs
speed or safety, an info is worth knowing.
"""


def page() -> str:
    """Return the page as Markdown."""
    lines = [_HEAD]
    for title, prefix in (("Job files", "JOB"), ("Kubernetes manifests", "K8S")):
        found = [rule for rule in catalogues.catalogue() if rule.code.startswith(prefix)]
        lines += [f"## {title}\n", "| code | severity | what |", "| --- | --- | --- |"]
        lines += [
            f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity} | {rule.title} |" for rule in found
        ]
        for rule in found:
            lines += [f"\n### {rule.code}\n", f"**{rule.title}** ({rule.severity}).\n"]
            lines += [f"{rule.why}\n", f"*What to do:* {rule.fix}"]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
