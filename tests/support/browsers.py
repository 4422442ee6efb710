"""Debian's Chromium, driven by Playwright, and what is asked of every page in it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
#: For modules whose tests need a browser.
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (tests/end_to_end/fetch-chromium)"),
]
#: In milliseconds: parts of a page that are asked for when it is there take some seconds at most.
PATIENCE = 60_000
_IS_SETTLED = "() => document.readyState == 'complete' && !document.querySelector('.htmx-request')"
_OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
_OPEN = "() => document.querySelectorAll('details:not([open])').forEach(each => { each.open = true; })"


@contextlib.contextmanager
def launched() -> Iterator[playwright.Browser]:
    """Give a browser."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def listened(page: playwright.Page) -> list[str]:
    """Return where every error in a page is noted, of what it loads and of its scripts."""
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    return wrong


def settle(page: playwright.Page) -> None:
    """Open what is folded, and wait for all that the page asks for by itself."""
    page.evaluate(_OPEN)
    page.wait_for_timeout(100)
    page.wait_for_function(_IS_SETTLED, timeout=PATIENCE)


def violations(page: playwright.Page) -> list[str]:
    """Return what axe finds wrong in a page."""
    found = Axe().run(page).response["violations"]
    return [_said(each["id"], node) for each in found for node in each["nodes"]]


def _said(rule: str, node: dict[str, Any]) -> str:
    reasons = "; ".join(each["message"] for each in node["any"] + node["all"] + node["none"])
    return f"{rule}: {node['html'][:200]} ({reasons})"


def overflow_pixels(page: playwright.Page) -> int:
    """Return by how much a page is wider than its window."""
    return int(page.evaluate(_OVERFLOW))
