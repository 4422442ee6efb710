"""What an open page does when its session has ended."""

from __future__ import annotations

from typing import Any

import pytest
from support import browsers

pytestmark = browsers.MARKS


@pytest.mark.parametrize("path", ["/", "/jobs/lost"])
def test_a_page_whose_session_has_ended_asks_for_nothing_more(shown: Any, browser: Any, path: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(browsers.PATIENCE)
    page.goto(shown.link)
    page.goto(shown.server.url + path)
    browsers.playwright.expect(page.locator("nav a.home")).to_be_visible()
    (session,) = (each["value"] for each in context.cookies() if each["name"].startswith("paceline-"))
    assert session != shown.server.token
    context.clear_cookies()
    browsers.playwright.expect(page.locator("form[action='/enter']")).to_be_visible()
    assert page.locator("[hx-trigger]").count() == 0
    assert page.locator("script[src='/static/job.js']").count() == 0
    context.close()


def test_a_file_leads_a_browser_in(shown: Any, browser: Any, tmp_path: Any) -> None:
    """As `paceline serve --open` does it: no command line has the token, and the cookie arrives."""
    from paceline.surfaces.web import servers

    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(browsers.PATIENCE)
    with servers.opening(tmp_path, shown.link) as file:
        page.goto(file.as_uri())
        page.wait_for_url(f"{shown.server.url}/")
    browsers.playwright.expect(page.locator("nav a.home")).to_be_visible()
    browsers.playwright.expect(page.locator("#jobs")).to_be_visible()
    context.close()
