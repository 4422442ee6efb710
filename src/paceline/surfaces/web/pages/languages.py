"""What the pages say, in each language that they speak: English in the templates, others in files here."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources

ENGLISH, CHINESE = "en", "zh"
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", CHINESE: "中文"}


def chosen(asked: str | None, cookie: str | None, accepted: str) -> str:
    """Return the language of a page.

    Args:
        asked: what its address names; None: nothing.
        cookie: what was chosen before.
        accepted: what the browser asks for (``Accept-Language``, RFC 9110, 12.5.4), whose order counts here.
    """
    wanted = [asked, cookie, *(part.partition(";")[0].strip() for part in accepted.split(","))]
    for each in wanted:
        language = (each or "").lower().partition("-")[0]
        if language in LANGUAGES:
            return language
    return ENGLISH


def said(text: str, language: str) -> str:
    """Return a text of a template in a language; a text without a translation stays English."""
    return text if language == ENGLISH else catalogue(language).get(text, text)


@functools.cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return what each English text is in another language."""
    file = resources.files("paceline.surfaces.web.pages") / f"{language}.json"
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found
