"""Pages in another language say the same as the English ones: headings, code, tables, and generated parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.zh.md", *(ROOT / "docs").rglob("*.zh.md")])
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def english(page: Path) -> Path:
    return page.with_name(f"{page.name.removesuffix('.zh.md')}.md")


def code(text: str) -> list[str]:
    """The blocks of code without comments, which may be translated."""
    return [re.sub(r"(^|\s+)# .*$", "", block, flags=re.MULTILINE) for block in _CODE.findall(text)]


def headings(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", _CODE.sub("", text), re.MULTILINE)]


def tables(text: str) -> list[int]:
    """The number of cells of each row of each table, in order."""
    rows = re.findall(r"^\|.*\|$", _CODE.sub("", text), re.MULTILINE)
    return [len(re.findall(r"(?<!\\)\|", row)) for row in rows]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_translated_page_has_what_the_english_one_has(page: Path) -> None:
    there, here = (path.read_text(encoding="utf-8") for path in (english(page), page))
    assert headings(here) == headings(there)
    assert code(here) == code(there)
    assert tables(here) == tables(there)
    generated = re.compile(r"^<!-- (\w+): made by make docs -->$.*?^<!-- /\1 -->$", re.MULTILINE | re.DOTALL)
    assert [each.group() for each in generated.finditer(here)] == [
        each.group() for each in generated.finditer(there)
    ]
