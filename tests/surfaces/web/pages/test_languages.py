"""What pages say, in every language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paceline.surfaces import charts, reports
from paceline.surfaces.web.pages import languages

#: Reasons and charts are the same in reports.
TEMPLATES = (
    Path(languages.__file__).parent / "templates",
    *(Path(each.__path__[0]) for each in (charts, reports)),
)
TEXTS = re.compile(r"_\('((?:[^'\\]|\\.)*)'\)")


def test_every_text_is_translated_and_no_other() -> None:
    files = [file for folder in TEMPLATES for file in folder.glob("*.html")]
    used = {text for file in files for text in TEXTS.findall(file.read_text())}
    assert len(used) > 40
    for language in languages.LANGUAGES:
        if language != languages.ENGLISH:
            assert set(languages.catalogue(language)) == used


@pytest.mark.parametrize(
    ("asked", "cookie", "accepted", "language"),
    [
        (None, None, "", "en"),
        (None, None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, None, "fr, en;q=0.5", "en"),
        (None, "zh", "en", "zh"),
        ("en", "zh", "zh", "en"),
        ("xx", "nonsense", "*", "en"),
    ],
)
def test_the_language_of_a_page(asked: str | None, cookie: str | None, accepted: str, language: str) -> None:
    assert languages.chosen(asked, cookie, accepted) == language
