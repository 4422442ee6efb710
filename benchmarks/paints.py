"""How soon a browser shows something of a page: the first contentful paint of Debian's Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from playwright import sync_api as playwright
from support.prerequisites import NotHere
from support.served import Server

_PAINTED = "() => performance.getEntriesByName('first-contentful-paint').length > 0"
_SECONDS = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"


def chromium() -> str:
    """Return the browser's path.

    Raises:
        NotHere: there is none.
    """
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise NotHere("no Chromium (Debian: apt-get install chromium)")
    return found


def first_paints(served: Server, paths: Mapping[str, str], repeats: int) -> dict[str, list[float]]:
    """Return how many seconds after it was asked for each page showed something.

    Args:
        served: what serves them.
        paths: of the pages, by name.
        repeats: how often each is opened, in turn, every time by a browser that has nothing of it yet.
    """
    taken: dict[str, list[float]] = {name: [] for name in paths}
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for _ in range(repeats):
            for name, path in paths.items():
                headers = {"Authorization": f"Bearer {served.token}"}
                context = browser.new_context(extra_http_headers=headers)
                page = context.new_page()
                page.goto(served.url + path, wait_until="commit")
                page.wait_for_function(_PAINTED)
                taken[name].append(float(page.evaluate(_SECONDS)))
                context.close()
        browser.close()
    return taken


def spread(seconds: Sequence[float]) -> str:
    """Return the middle and the ends of some times for people."""
    known = sorted(seconds)
    return f"{known[len(known) // 2]:.2f} s ({known[0]:.2f} to {known[-1]:.2f} s)"
