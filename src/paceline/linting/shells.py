"""What shell lines and image names say, for the rules of job files and of manifests."""

from __future__ import annotations

import re

_MAX_LENGTH = 20_000
_DOWNLOADS = (
    re.compile(r"\b(?:wget|curl)\b[^|;&\n]{0,500}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b"),
    re.compile(r"\b(?:wget|curl)\b[^|;&\n]{0,500}\|\s*(?:sudo\s+)?python[\d.]*\b"),
    re.compile(r"\b(?:ba|z|da|k)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:wget|curl)\b[^)\n]{0,500}\)"),
    re.compile(r"\bwget\s(?:[^|;&\n]{0,200}\s)?(?:-r\b|--recursive\b|-m\b|--mirror\b)[^|;&\n]{0,300}"),
)
_THEN_RUN = re.compile(
    r"\b(?:wget|curl)\b[^|;&\n]{1,500}(?:;|&&|\n).{0,500}?\b(?:(?:ba|z|da|k)?sh|python[\d.]*)\s+\S",
    re.DOTALL,
)
_CHECKED = re.compile(r"\b(?:sha(?:1|224|256|384|512)sum|shasum|md5sum|gpg|cosign)\b")


def download_in(line: str) -> str | None:
    """Return the part of a shell line that downloads code and runs it unchecked, or None."""
    line = line[:_MAX_LENGTH]
    if _CHECKED.search(line):
        return None
    for pattern in (*_DOWNLOADS, _THEN_RUN):
        match = pattern.search(line)
        if match:
            return " ".join(match[0].split())
    return None


def floating_tag(image: str) -> str | None:
    """Return why an image's version is not fixed, or None."""
    if "@" in image:
        return None
    name, colon, tag = image.rpartition("/")[2].partition(":")
    if not colon or not tag or not name:
        return "has no tag, which means latest"
    return "has the tag latest" if tag == "latest" else None
