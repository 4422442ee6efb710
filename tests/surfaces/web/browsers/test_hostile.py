"""Whatever jobs are called, print and say is text in a browser: nothing of it runs, and none stands still."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import browsers, filled_homes
from support.served import serving

from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import JobEvent
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import state_dirs
from paceline.stores import open_store

pytestmark = browsers.MARKS
HOSTILE = (
    "<script>alert('one')</script>",
    "</pre></td><img src=x onerror=\"alert('two')\">",
    "<svg onload=alert('three')>",
    '"><a href="javascript:alert(\'four\')" autofocus onfocus=alert(4)>five</a>',
    '<b hx-get="/leave" hx-trigger="load">six</b>',
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "\x00\x01\x08\x7f\x9b nul",
    "\u202egnp.exe \u2066hidden\u2069 \u200b\ufeff",
    "&lt;b&gt; &amp;amp;",
)
NAME = "<img src=x onerror=alert('name')>"
#: A line of a log, as a tensor that a script prints.
LINE_BYTES = 10_000_000


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link into a server over jobs that do all they can to be more than text."""
    folder = tmp_path_factory.mktemp("hostile")
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(folder / "home")})
    text = " ".join(HOSTILE)
    for name in (NAME, "running"):
        spec = dataclasses.replace(
            filled_homes.spec_of(name),
            labels={f"label-{number}": each for number, each in enumerate(HOSTILE)},
            command=HOSTILE,
        )
        phase = JobPhase.RUNNING if name == "running" else JobPhase.FAILED
        run = filled_homes.fill(home, name, spec=spec, message=text, phase=phase, loads=(0.5, 0.9), steps=5)
        logs = Path(run.directory) / "logs"
        logs.mkdir(parents=True)
        (logs / "ps-0.1.log").write_text("\n".join(HOSTILE) + "\n")
        (logs / "worker-0.1.log").write_bytes(
            b"x" * LINE_BYTES + b"\n" + b"<script>alert(9)</script>\xff\xfe\n"
        )
        with open_store(home.store_url) as store:
            store.append_events(name, [JobEvent(at=1e9, kind="replica-exited", message=text)])
            summary = DiagnosisSummary(
                at=2e9, examples_per_second=None, trend=(), progress=None, imbalance=None, code="PS101",
                severity=Severity.WARNING, finding=text,
            )  # fmt: skip
            store.save_diagnosis(name, summary)
    with serving(home) as server:
        yield f"{server.url}/enter?token={server.token}"


@pytest.fixture
def page(link: str, browser: browsers.playwright.Browser) -> Iterator[browsers.playwright.Page]:
    """A page of a browser that has followed the link; nothing goes wrong in it, and it opens no dialog."""
    made = browser.new_page()
    wrong = browsers.listened(made)
    made.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    made.goto(link)
    yield made
    made.close()
    # Nothing can be proposed to jobs whose files are empty, which is said in its place.
    assert [each for each in wrong if "status of 422" not in each] == []


def _is_text(page: browsers.playwright.Page) -> None:
    """Make sure that a page shows what is hostile, and has made nothing of it."""
    browsers.settle(page)
    assert page.locator("img, b, a[href^='javascript'], [onload], [onerror], [onfocus]").all() == []
    sources = page.evaluate("() => [...document.scripts].map(each => each.getAttribute('src'))")
    assert all(each and each.startswith("/static/") for each in sources), sources
    text = page.locator("main").inner_text()
    assert "<script>alert('one')</script>" in text
    assert "{{ 7 * 7 }}" in text
    odd = {each for each in text if unicodedata.category(each).startswith("C")} - {"\n", "\t"}
    assert odd == set()
    assert len(text) < 500_000


def test_the_list(page: browsers.playwright.Page) -> None:
    _is_text(page)
    expect = browsers.playwright.expect
    expect(page.get_by_role("link", name=NAME)).to_be_visible()
    page.get_by_role("searchbox").fill(NAME)
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("^1 of 1"))).to_be_visible()
    page.get_by_role("link", name=NAME).click()
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()


@pytest.mark.parametrize("name", [NAME, "running"])
def test_a_job(page: browsers.playwright.Page, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).click()
    browsers.playwright.expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    _is_text(page)


def test_a_line_of_ten_megabytes(page: browsers.playwright.Page) -> None:
    page.get_by_role("link", name="running", exact=True).click()
    page.get_by_label("Replica").select_option("worker-0")
    browsers.playwright.expect(page.locator(".log")).to_contain_text("<script>alert(9)</script>")
    browsers.settle(page)
    assert len(page.locator(".log").inner_text()) < 20_000
    # It still answers.
    page.get_by_label("Replica").select_option("ps-0")
    browsers.playwright.expect(page.locator(".log")).to_contain_text("<svg onload=alert('three')>")
    _is_text(page)
