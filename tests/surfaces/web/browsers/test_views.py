"""What people do on the pages beside a job's own, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from support import browsers

pytestmark = browsers.MARKS


@pytest.fixture
def page(shown: Any, browser: browsers.playwright.Browser) -> Any:
    """A page of a browser that was let in, and that has nothing to complain of."""
    made = browser.new_page()
    wrong = browsers.listened(made)
    made.goto(shown.link)
    yield made
    made.close()
    assert wrong == []


def test_a_slider_moves_the_curve(page: Any, shown: Any) -> None:
    expect = browsers.playwright.expect
    page.goto(f"{shown.server.url}/jobs/{shown.job}/what-if")
    page.get_by_label("Curve over").select_option("server_cores")
    expect(page.locator("#told h2").first).to_have_text("Cores of each PS → Examples/s")
    slider = page.get_by_label("Workers", exact=False).first
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#workers-chosen")).to_have_text("3")
    expect(page.locator("#told .diff")).to_contain_text("replicas: 3")
    assert browsers.violations(page) == []


def test_proposals_come_by_themselves(page: Any, shown: Any) -> None:
    page.goto(f"{shown.server.url}/jobs/{shown.job}")
    page.locator("summary", has_text="What could be changed").click()
    found = page.locator("ol.proposals")
    found.wait_for()
    assert found.locator(".diff").first.is_visible()
    assert browsers.violations(page) == []


def test_jobs_are_chosen_in_the_list_and_compared(page: Any, shown: Any) -> None:
    page.goto(shown.server.url)
    for name in (shown.job, "census"):
        page.get_by_label(f"Compare {name}").check()
    # The list is asked for again meanwhile, and what was chosen stays so.
    with page.expect_response(lambda answer: "part=true" in answer.url) as again:
        pass
    again.value.finished()
    browsers.settle(page)
    page.get_by_role("button", name="Compare").click()
    browsers.playwright.expect(page.locator("table.sides tbody tr")).to_have_count(2)


def test_rules_are_searched_as_one_types(page: Any, shown: Any) -> None:
    page.goto(f"{shown.server.url}/rules")
    page.get_by_label("Search").press_sequentially("too-many-threads")
    browsers.playwright.expect(page.locator("table.rules tbody tr")).to_have_count(1)
    page.get_by_role("link", name="CPU001").click()
    browsers.playwright.expect(page.locator("h1")).to_contain_text("More threads")


def test_a_job_file_is_looked_at(page: Any, shown: Any) -> None:
    page.goto(f"{shown.server.url}/cluster")
    page.get_by_label("The file of a job").select_option("census")
    page.get_by_role("button", name="Look").click()
    browsers.playwright.expect(page.locator("#fit")).to_contain_text("census")
    assert browsers.violations(page) == []
