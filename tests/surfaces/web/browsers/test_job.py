"""The page of a job in a browser: charts are drawn, in every theme and language; output comes by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import browsers, filled_homes, traced_jobs
from support.served import serving

from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import state_dirs
from paceline.stores import open_store, recordings

pytestmark = browsers.MARKS
RECORDED = Path(__file__).parents[4] / "benchmarks" / "diagnosis" / "recordings"
expect = browsers.playwright.expect
#: How many different colours a canvas has.
COLOURS = """canvas => new Set(new Uint32Array(
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""


@dataclasses.dataclass(frozen=True)
class Jobs:
    """A server over two jobs.

    Attributes:
        url: of the server.
        link: the link into it.
        measured: the name of one that was measured and traced, and has ended.
        going: one that goes on, which is called that.
        printing: the output of a replica of that one.
    """

    url: str
    link: str
    measured: str
    going: Run
    printing: Path


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    folder = tmp_path_factory.mktemp("job")
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(folder / "home")})
    with open_store(home.store_url) as store:
        found = recordings.read(RECORDED / "evaluation-starves.gross.wide-deep-middle-evaluated-4.parquet")
        ended = dataclasses.replace(
            found.run, phase=JobPhase.STOPPED, finished_at=max(each.at for each in found.samples)
        )
        measured = filled_homes.keep(store, dataclasses.replace(found, run=ended), folder)
    going = filled_homes.fill(home, "going", phase=JobPhase.RUNNING, loads=(0.5, 0.9), steps=3)
    printing = Path(going.directory) / "logs" / "worker-0.1.log"
    printing.parent.mkdir(parents=True)
    printing.write_text("the first line\n")
    with serving(home) as server:
        yield Jobs(server.url, f"{server.url}/enter?token={server.token}", measured, going, printing)


@pytest.fixture
def page(jobs: Jobs, browser: browsers.playwright.Browser) -> Iterator[browsers.playwright.Page]:
    """A page of a browser that has followed the link; nothing goes wrong in it."""
    made = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong = browsers.listened(made)
    made.goto(jobs.link)
    yield made
    made.close()
    assert wrong == []


@pytest.mark.parametrize(
    ("theme", "language"),
    [
        ("light", "en"),
        ("dark", "zh"),
        pytest.param("dark", "en", marks=pytest.mark.nightly),
        pytest.param("light", "zh", marks=pytest.mark.nightly),
    ],
)
def test_charts_are_drawn(page: browsers.playwright.Page, jobs: Jobs, theme: str, language: str) -> None:
    page.goto(f"{jobs.url}/jobs/{jobs.measured}?theme={theme}&language={language}")
    page.wait_for_selector("#course[data-drawn=cpu]")
    assert page.locator(".heat canvas").evaluate(COLOURS) > 20
    curves = page.locator(".curve canvas")
    expect(curves).to_have_count(3)
    assert all(each.evaluate(COLOURS) > 5 for each in curves.all())
    expect(page.locator(".bars rect").first).to_be_attached()
    # Another load, and the numbers of a place in it.
    page.locator("[data-gauge=sent]").click()
    page.wait_for_selector("#course[data-drawn=sent]")
    page.locator(".heat canvas").press("ArrowRight")
    expect(page.locator(".tip")).to_contain_text("iB/s")
    # A part of the time, in all charts, and all of it again.
    frame = page.locator(".curve .u-over").first
    place = frame.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 200, place["y"] + 40)
    page.mouse.down()
    page.mouse.move(place["x"] + 320, place["y"] + 40, steps=3)
    page.mouse.up()
    page.locator("button.whole").click()
    expect(page.locator("button.whole")).to_be_hidden()


@pytest.mark.parametrize("begin", ["null", "a list"])
def test_a_heat_map_is_read_anew_once_shares_are_known(
    page: browsers.playwright.Page, jobs: Jobs, begin: str
) -> None:
    """A limit of a replica may come, or go, while the job is looked at."""
    course = page.request.get(f"{jobs.url}/api/v1/jobs/going/course?gauge=cpu").json()
    shares = [[0.5] * len(row) for row in course["values"]]
    asked: list[bool] = []

    def answer(route: browsers.playwright.Route) -> None:
        is_part = "since=" in route.request.url
        asked.append(is_part)
        has_shares = (begin == "a list") is not is_part
        route.fulfill(json={**course, "shares": shares if has_shares else None})

    page.route("**/course?*", answer)
    page.goto(f"{jobs.url}/jobs/going?language=en")
    page.wait_for_selector("#course[data-drawn=cpu]")
    with page.expect_request(lambda request: "/course?" in request.url and "since=" not in request.url):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert asked[:2] == [False, True]


def test_output_comes_by_itself(page: browsers.playwright.Page, jobs: Jobs) -> None:
    page.goto(f"{jobs.url}/jobs/going?language=en")
    log = page.locator(".log")
    expect(log).to_contain_text("the first line")
    with jobs.printing.open("a") as file:
        file.write("\x1b[31m<b>the second</b>\x1b[0m\u202e\n")
    expect(log).to_contain_text("<b>the second</b>\ufffd")
    page.get_by_role("button", name="Pause").click()
    with jobs.printing.open("a") as file:
        file.write("the third\n")
    for _ in range(2):
        page.wait_for_event("response", lambda answer: answer.url.endswith("/now"))
    expect(log).not_to_contain_text("the third")
    page.keyboard.press("p")
    expect(log).to_contain_text("the third")
    assert log.locator("div").count() == 3  # None twice.
    page.get_by_role("searchbox").fill("THIRD")
    expect(log.locator("div")).to_have_count(1)
    expect(log.locator("mark")).to_have_text("third")


def test_no_click_is_lost_while_scripts_come(page: browsers.playwright.Page, jobs: Jobs) -> None:
    held: list[browsers.playwright.Route] = []
    page.route("**/static/htmx.min.js", lambda route: held.append(route))
    page.goto(f"{jobs.url}/jobs/going?language=en", wait_until="commit")
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_visible()
    with pytest.raises(browsers.playwright.TimeoutError):
        stop.click(timeout=1000)
    held[0].continue_()
    with page.expect_event("dialog") as asked:
        page.once("dialog", lambda dialog: dialog.dismiss())
        stop.click()
    assert asked.value.message == "Stop this job?"


def test_keys(page: browsers.playwright.Page, jobs: Jobs) -> None:
    page.goto(f"{jobs.url}/?language=en")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    row = page.locator("table.jobs tbody tr").first.get_by_role("link").first
    expect(row).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#course")).to_be_attached()


def test_steps_that_no_session_makes_are_traced_by_the_profiler(
    page: browsers.playwright.Page, jobs: Jobs
) -> None:
    def answers(text: str, folder: Path) -> None:
        if " profile " in text:
            traced_jobs.profile(folder)
        else:
            for trainer in ("worker-0", "worker-1"):
                traced_jobs.refuse(folder, trainer)

    page.goto(f"{jobs.url}/jobs/going?language=en")
    expect(page.get_by_text("No step was traced yet.")).to_be_visible()
    with traced_jobs.answering(jobs.going, answers):
        page.get_by_role("button", name="Trace some steps").click()
        expect(page.get_by_text("Where the time of a step goes")).to_be_visible(timeout=60_000)


def test_why_no_step_can_be_traced_is_said(page: browsers.playwright.Page, jobs: Jobs) -> None:
    def answers(text: str, folder: Path) -> None:
        if " profile " in text:
            traced_jobs.refuse_profile(folder, "TensorFlow has no profiler before 2.4")
        else:
            traced_jobs.refuse(folder, "worker-0")

    page.goto(f"{jobs.url}/jobs/going?language=en")
    with traced_jobs.answering(jobs.going, answers):
        page.get_by_role("button", name="Trace some steps").click()
        said = page.locator(".trace [role=status]")
        expect(said).to_contain_text("No step could be traced.", timeout=60_000)
    expect(said).to_contain_text("TensorFlow has no profiler before 2.4")
