from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support import examples, postgresqls, prerequisites

# A shell starts what it runs in the background with SIGINT ignored, and everything that the tests start would
# inherit that: Ctrl-C could not be tested there.
signal.signal(signal.SIGINT, signal.default_int_handler)

examples.register()

ON_A_CLUSTER = Path(__file__).parent / "kubernetes"
ALL_SLOW = re.compile(r"^pytestmark = .*\bpytest\.mark\.slow\b", re.MULTILINE)
#: Only what mentions neither the mark nor marks that another module gives has surely no slow test.
NONE_SLOW = re.compile(r"\A(?!.*(slow|MARKS))", re.DOTALL)
#: After so long a slow test hangs.
SLOW_SECONDS = 1800
#: Modules whose tests take longest.
LONG = (
    "surfaces/test_demo.py",
    "end_to_end/test_walkthroughs.py",
    "services/test_tunings.py",
    "end_to_end/test_scaling.py",
    "end_to_end/test_stops.py",
    "surfaces/client/test_served_lives.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nightly", action="store_true", help="all examples of properties, and tests marked nightly"
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(examples.NIGHTLY if config.getoption("nightly") else examples.CI)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave modules unread of which no test runs: all are slow (most import TensorFlow), or none is."""
    marks = config.getoption("markexpr")
    if collection_path == ON_A_CLUSTER:
        return "not kubernetes" in marks or None
    if collection_path.suffix != ".py" or "slow" not in marks:
        return None
    found = ALL_SLOW if "not slow" in marks else NONE_SLOW
    return True if found.search(collection_path.read_text()) else None


@pytest.hookimpl(trylast=True)  # What -m leaves out is gone by then.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only ``make nightly`` runs; give slow tests time on a busy machine; set the order."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
    if not config.getoption("nightly"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("nightly")])
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    items[:] = spread(items, getattr(config, "workerinput", {}).get("workercount", 1))


def spread(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return tests in an order in which each worker of pytest-xdist begins with its share of the longest.

    With ``--dist worksteal`` each worker gets an equal stretch of the list. A worker that is done takes tests
    from the end of another's stretch, so a long test there would be left alone at the end of the run.
    """
    order = {Path(__file__).parent / name: number for number, name in enumerate(LONG)}
    long = sorted((item for item in items if item.path in order), key=lambda item: order[item.path])
    others = iter([item for item in items if item.path not in order])
    spread_items: list[pytest.Item] = []
    for worker in range(workers):
        spread_items += long[worker::workers]
        room = len(items) * (worker + 1) // workers - len(spread_items)
        spread_items += itertools.islice(others, max(0, room))
    return spread_items


@pytest.fixture(scope="session")
def postgresql() -> Iterator[postgresqls.Postgresql]:
    """A PostgreSQL server that lives as long as the session."""
    with prerequisites.skipping(), postgresqls.running() as server:
        yield server
