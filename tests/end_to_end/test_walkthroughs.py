"""The walk-throughs of the documentation do what they show: each command runs, and says what it should."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import hadoop, prerequisites, shares

from paceline.engines.local import machines

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "walkthroughs"
PAGES = sorted(page for page in FOLDER.glob("*.md") if "." not in page.stem)
TRANSLATED = sorted(FOLDER.glob("*.zh.md"))
#: The page whose commands run each time; those of the others run at night.
#: What does not differ from run to run: the causes that ``why`` numbers. On a busy machine others may be
#: told before them.
CAUSE = re.compile(r"^\d+\. ([A-Z]+\d{3}) ", re.MULTILINE)


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Each command, and what the page shows of its answer."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


@contextlib.contextmanager
def needed(page: Path) -> Iterator[None]:
    """Run what a page takes for granted; afterwards no link of this machine is limited."""
    if page.stem != "hdfs-input":
        yield
        return
    with prerequisites.skipping(), hadoop.hdfs():
        try:
            yield
        finally:
            subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=False, capture_output=True)


def test_there_are_pages_and_each_shows_causes() -> None:
    assert [page.stem for page in PAGES] == ["asked", "busy-ps", "hdfs-input", "more-workers"]
    for page in PAGES:
        assert CAUSE.search("".join(shown for _, shown in blocks(page)))


def test_a_page_in_another_language_shows_the_same() -> None:
    assert [page.name for page in TRANSLATED] == [f"{page.stem}.zh.md" for page in PAGES]
    for page in TRANSLATED:
        first, _ = page.stem.split(".")
        assert [*blocks(page)] == [*blocks(FOLDER / f"{first}.md")]


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_does_what_the_page_says(tmp_path: Path, page: Path) -> None:
    if lacks := machines.read().lacks_namespaces:
        pytest.skip(f"hosts are emulated as root: {lacks}")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {
        **os.environ,
        "PACELINE_HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False,
        )  # fmt: skip

    try:
        with needed(page), shares.preferred(tmp_path / "home"):
            for command, shown in blocks(page):
                done = run(command)
                assert done.returncode == 0, f"{command}\n{done.stdout}"
                missing = set(CAUSE.findall(shown)) - set(CAUSE.findall(done.stdout))
                assert not missing, f"{command} does not say {missing}:\n{done.stdout}"
    finally:
        run("paceline --quiet list -o name --phase running | xargs -r paceline stop")
