"""The whole story in a real browser, over a real job: submitted from the page, explained, changed, faster."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import browsers, shares

from benchmarks.diagnosis import bases
from benchmarks.diagnosis.bases import Base
from paceline import specs
from paceline.model.roles import Role
from paceline.services.local import state_dirs
from paceline.surfaces import composition

playwright = browsers.playwright
pytestmark = [
    *browsers.MARKS,
    # Its parts have tests of their own, in a browser and without; whole, it is two jobs long.
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="limits of cores need root"),
]
#: Of each parameter server: far too few.
CORES = 0.08
#: In milliseconds: TensorFlow starts, trains, and is looked at for half a minute.
PATIENCE = 600_000


@pytest.fixture
def link(tmp_path: Path) -> Iterator[str]:
    """The link into a server over a home of its own; its jobs end with it."""
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(tmp_path / "home")})
    program = str(Path(sys.executable).parent / "paceline")
    command = [program, "serve", "--port", "0", "--home", str(home.path)]
    with (
        shares.preferred(tmp_path / "home"),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()
    with composition.opened(home) as jobs:
        for run in jobs.runs():
            jobs.delete(run.name, force=True)


@pytest.fixture
def page(link: str) -> Iterator[playwright.Page]:
    """A page of a browser that has followed the link; whatever goes wrong in it is an error."""
    with browsers.launched() as browser:
        made = browser.new_page()
        wrong = browsers.listened(made)
        made.on("dialog", lambda dialog: dialog.accept())
        made.goto(link)
        yield made
    assert wrong == []


def source() -> str:
    """Return the file of a job whose parameter servers are short of cores."""
    base = Base(model="deepfm", size="small", seed=1, kind=bases.PLAIN)
    base.make_data()
    job = base.job()
    roles = tuple(
        dataclasses.replace(role, cpu_cores=CORES) if role.role is Role.PS else role for role in job.roles
    )
    return specs.dump_job(dataclasses.replace(job, name="story", roles=roles))


def test_the_whole_story(page: playwright.Page) -> None:
    expect = playwright.expect
    expect(page.get_by_text("There is no job yet.")).to_be_visible()
    page.get_by_role("link", name="Submit a job").click()
    page.get_by_label("Job file").fill(source())
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="story", exact=True)).to_be_visible()

    # The finding appears without a request of the user, with the change that mends it.
    cause = page.locator(".reason.primary").filter(has_text="PS101")
    expect(cause).to_be_visible(timeout=PATIENCE)
    expect(cause.locator(".added")).to_contain_text("cpu:")
    cause.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("being made")).to_be_visible()

    # Then what it has brought.
    gained = page.locator("section", has=page.get_by_role("heading", name="Changes")).locator("strong")
    expect(gained).to_be_visible(timeout=PATIENCE)
    assert float(gained.inner_text()) > 1.2  # Several times as fast, but for what runs beside it.
    expect(page.locator(".reason", has_text="PS101")).to_have_count(0, timeout=PATIENCE)

    page.get_by_role("link", name="Paceline").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="story"))
    expect(row).to_contain_text(re.compile("running"))
    expect(row.locator("svg.spark")).to_be_visible(timeout=PATIENCE)

    row.get_by_role("link", name="story").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".when .phase")).to_have_text("stopped", timeout=PATIENCE)
