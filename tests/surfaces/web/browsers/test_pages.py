"""Every page in a browser, in each language, theme and width: nothing that axe finds wrong, nothing that is
wider than the window, no error.

Pages are those routes of the application that answer with one, so a new page is tested, too. Where
``PACELINE_SCREENSHOTS`` names a folder, pictures of all of them are left there: ``make screenshots``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import browsers, site_routes

from paceline.surfaces.web.applications import application
from paceline.surfaces.web.pages import languages

pytestmark = [*browsers.MARKS, pytest.mark.timeout(600)]
WIDTHS = (360, 1280, 2560)
HEIGHT = 900
PICTURES = os.environ.get("PACELINE_SCREENSHOTS")
#: Pages that look different where an address says more than its route.
MORE = (
    "/?search=nobody",
    "/?sort=speed&phase=succeeded&label=team%3Dads",
    "/?label=%3D",
    "/experiments/clicks-trial",
)


def addresses(shown: Any) -> Iterator[str]:
    """Yield what may be asked for: every route for people, with what there is for its parameters."""
    examples = {
        "/jobs/{name}": shown.job,
        "/rules/{code}": "PS101",
        "/experiments/{name}": "sizes",
        "/models/{name}": shown.model,
    }
    for route in site_routes.routes(application(SimpleNamespace()).routes):
        if "GET" in route.methods and not route.include_in_schema:
            yield _filled(route.path, examples)
    yield f"/compare?job={shown.job}&job=census&job=gone"
    yield from MORE


def _filled(path: str, examples: Mapping[str, str]) -> str:
    for found in re.finditer(r"\{\w+\}", path):
        beginning = path[: found.end()]
        assert beginning in examples, f"say in examples what there is at {beginning}"
        path = path.replace(found.group(), examples[beginning])
    return path


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", languages.LANGUAGES)
def test_every_page(shown: Any, browser: browsers.playwright.Browser, theme: str, language: str) -> None:
    context = browser.new_context(color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    wrong = browsers.listened(page)
    # Who is not known sees this one alone, and only then.
    entrance = f"{shown.server.url}/enter?language={language}"
    complaints = list(_looked_at(page, entrance, theme, f"enter-{language}", 401))
    wrong.clear()  # The browser says that the answer was 401.
    page.goto(shown.link)
    count = 0
    for path in addresses(shown):
        url = f"{shown.server.url}{path}{'&' if '?' in path else '?'}language={language}"
        answer = context.request.get(url, headers={"Accept": "text/html"})
        is_file = "content-disposition" in answer.headers
        if is_file or "<!DOCTYPE html>" not in answer.text() or path == "/enter":
            continue  # A part of a page, which is looked at where it stands; or for programs.
        count += 1
        name = re.sub(r"\W+", "-", path).strip("-") or "jobs"
        complaints += _looked_at(page, url, theme, f"{name}-{language}", 200)
        complaints += [f"{path}: {each}" for each in wrong]
        wrong.clear()
    context.close()
    assert count >= 5
    assert not complaints, "\n".join(complaints)


def _looked_at(page: browsers.playwright.Page, url: str, theme: str, name: str, status: int) -> Iterator[str]:
    """Look at a page at each width; yield what is wrong with it."""
    page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
    answer = page.goto(url)
    if answer.status != status:
        yield f"{url}: {answer.status}"
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        browsers.settle(page)
        where = f"{url} at {width} pixels, {theme}"
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}-{theme}-{width}.png", full_page=True)
        yield from (f"{where}: {each}" for each in browsers.violations(page))
        if (pixels := browsers.overflow_pixels(page)) > 0:
            yield f"{where}: {pixels} pixels wider than the window"


def test_a_job_file_that_is_wrong(shown: Any, browser: browsers.playwright.Browser) -> None:
    page = browser.new_page()
    page.goto(shown.link)
    page.get_by_role("link", name="Submit a job").click()
    page.get_by_label("Job file").fill("kind: TrainingJob\nmetadata: {name: Wrong Name}\n")
    page.get_by_role("button", name="Submit").click()
    browsers.playwright.expect(page.get_by_role("alert")).to_be_visible()
    assert browsers.violations(page) == []
    page.close()


def test_what_is_not_there(shown: Any, browser: browsers.playwright.Browser) -> None:
    page = browser.new_page()
    page.goto(shown.link)
    assert page.goto(f"{shown.server.url}/jobs/nobody").status == 404
    assert browsers.violations(page) == []
    page.close()
