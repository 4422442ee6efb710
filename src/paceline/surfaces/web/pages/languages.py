"""The texts of the pages in each language: English in the templates, other languages in files here."""

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
        asked: the language in the page's address; None: it names none.
        cookie: the language that the user chose before.
        accepted: the languages that the browser accepts (``Accept-Language``, RFC 9110, 12.5.4); their order
            counts here.
    """
    wanted = [asked, cookie, *(part.partition(";")[0].strip() for part in accepted.split(","))]
    for each in wanted:
        language = (each or "").lower().partition("-")[0]
        if language in LANGUAGES:
            return language
    return ENGLISH


def said(text: str, language: str) -> str:
    """Return a template's text in a language; a text without a translation stays English."""
    return text if language == ENGLISH else catalogue(language).get(text, text)


@functools.cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return the translations of the English texts into another language."""
    file = resources.files("paceline.surfaces.web.pages") / f"{language}.json"
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found
