"""Debian's Chromium, driven by Playwright, and what is asked of every page in it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright import sync_api as playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
#: For modules whose tests need a browser.
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (tests/end_to_end/fetch-chromium)"),
]
#: In milliseconds: until what is expected of a page is the case, on however busy a machine.
PATIENCE = 600_000
playwright.expect.set_options(timeout=PATIENCE)
_IS_SETTLED = "() => document.readyState == 'complete' && !document.querySelector('.htmx-request')"
_OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
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
    page.set_default_timeout(PATIENCE)
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    return wrong


def settle(page: playwright.Page) -> None:
    """Open what is folded, and wait for all that the page asks for by itself."""
    page.evaluate(_OPEN)
    await_frames(page)
    page.wait_for_function(_IS_SETTLED, timeout=PATIENCE)


def await_frames(page: playwright.Page) -> None:
    """Wait until a page has been drawn twice: then it has heard that it was opened, or has another width."""
    page.evaluate(_FRAMES)


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
