"""Every page in a browser, in each language, theme and width: nothing that axe finds wrong, nothing that is
wider than the window, no error.

Axe looks at each page once in each theme; in ``make nightly`` in each language and at each width, too.

Pages are those routes of the application that answer with one, so a new page is tested, too. Where
``PACELINE_SCREENSHOTS`` names a folder, pictures of all of them are left there: ``make screenshots``.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import browsers, site_routes

from paceline.surfaces.web.applications import application
from paceline.surfaces.web.pages import languages

pytestmark = browsers.MARKS
WIDTHS = (360, 1280, 2560)
HEIGHT = 900
#: The width and the language in which axe looks at pages, but for the nightly tests.
AXE_WIDTH, AXE_LANGUAGE = 1280, "en"
NIGHTLY = pytest.mark.nightly
PICTURES = os.environ.get("PACELINE_SCREENSHOTS")
#: Pages that look different where an address says more than its route.
MORE = (
    "/?search=missing",
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


@pytest.mark.parametrize(
    ("theme", "language"),
    [
        pytest.param(theme, language, marks=() if theme == "light" or language == AXE_LANGUAGE else NIGHTLY)
        for theme in ("light", "dark")
        for language in languages.LANGUAGES
    ],
)
def test_every_page(
    shown: Any, browser: browsers.playwright.Browser, pytestconfig: pytest.Config, theme: str, language: str
) -> None:
    is_nightly = pytestconfig.getoption("nightly")
    axe_widths = WIDTHS if is_nightly else (AXE_WIDTH,) if language == AXE_LANGUAGE else ()
    context = browser.new_context(color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    look = functools.partial(_looked_at, page, theme=theme, axe_widths=axe_widths)
    wrong = browsers.listened(page)
    # Who is not known sees this one alone, and only then.
    entrance = f"{shown.server.url}/enter?language={language}"
    complaints = list(look(entrance, name=f"enter-{language}", status=401))
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
        complaints += look(url, name=f"{name}-{language}", status=200)
        complaints += [f"{path}: {each}" for each in wrong]
        wrong.clear()
    context.close()
    assert count >= 5
    assert not complaints, "\n".join(complaints)


def _looked_at(
    page: browsers.playwright.Page,
    url: str,
    *,
    theme: str,
    name: str,
    status: int,
    axe_widths: Sequence[int],
) -> Iterator[str]:
    """Look at a page at each width; yield what is wrong with it."""
    page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
    answer = page.goto(url)
    if answer.status != status:
        yield f"{url}: {answer.status}"
    browsers.settle(page)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        browsers.await_frames(page)
        where = f"{url} at {width} pixels, {theme}"
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}-{theme}-{width}.png", full_page=True)
        if width in axe_widths:
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
    assert page.goto(f"{shown.server.url}/jobs/missing").status == 404
    assert browsers.violations(page) == []
    page.close()
