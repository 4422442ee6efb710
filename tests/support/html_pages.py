"""Pages of HTML, read and checked."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}
EVIL = '<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\x00 & "quoted" \''


class Page(HTMLParser):
    """Reads a page, and fails where a tag is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(str(value))
            if name in ("href", "src", "xlink:href"):
                self.references.append(str(value))
            self.references += re.findall(r"url\(([^)]*)\)", value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data.replace("\N{NO-BREAK SPACE}", " ")


def read(html: str) -> Page:
    """Read a page and check what holds for all of them."""
    page = Page(html)
    assert "script" not in page.tags
    assert "http:" not in html
    assert "https:" not in html
    assert "//" not in "".join(page.references)
    assert len(set(page.ids)) == len(page.ids)
    for reference in page.references:
        assert reference.strip("'\"").removeprefix("#") in page.ids
    assert not re.search(r"\b(nan|NaN|None|inf)\b", page.text)
    return page


def plots_of(html: str) -> list[str]:
    return re.findall(r'id="plot-(\w+)"', html)


def links(html: str, *, rel: str) -> list[str]:
    """Return where the links of a kind lead."""
    found = re.findall(rf'<a href="([^"]*)" rel="{rel}"', html)
    return [unescape(each) for each in found]
