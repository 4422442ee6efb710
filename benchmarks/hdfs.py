"""Throughput of HDFS beside a local file and beside S3, as training reads and as checkpoints are written.

Each round reads the clicks from each place, as bytes and as a trainer's examples, and writes a file of the
size of a checkpoint there, in an order that turns. HDFS is a name node and a data node of Hadoop, S3 is
VersityGW; both are on this machine's loopback, with the client on the same cores and all files in the page
cache. So the ratios are what clients and servers cost, and no network is in them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from support import hadoop, s3_gateways

from benchmarks import plots, rungs
from benchmarks.protocols import KEPT, Bench, Check, Result, Row, interval, reported
from paceline import training
from paceline.examples.clicks import generate, train
from paceline.training import errors
from paceline.training.input import inputs, locations
from paceline.training.remote_folders import RemoteFolder

DATA = "clicks-large"
LOCAL, HDFS, S3 = "local", "hdfs", "s3"
PLACES = (LOCAL, HDFS, S3)
ROUNDS, QUICK_ROUNDS = 12, 2
WRITTEN_BYTES, QUICK_WRITTEN_BYTES = 512 << 20, 64 << 20
_CHUNK_BYTES = 1 << 20
#: What is measured, with its unit.
MEASURES = {
    "read_bytes_per_second": ("bytes read", 1e-6, "MB/s"),
    "examples_per_second": ("examples read and decoded", 1e-3, "thousand/s"),
    "written_bytes_per_second": ("bytes written", 1e-6, "MB/s"),
}


def run(bench: Bench) -> list[Check]:
    """Measure all places, round by round."""
    folder = KEPT / DATA
    generate.generate(folder, rungs.DATA[DATA])
    rounds = QUICK_ROUNDS if bench.quick else ROUNDS
    written = QUICK_WRITTEN_BYTES if bench.quick else WRITTEN_BYTES
    bench.plan(rounds * len(PLACES))
    with _places(folder) as urls:
        for number in range(rounds):
            turn = number % len(PLACES)
            for place in (*PLACES[turn:], *PLACES[:turn]):
                measure = functools.partial(_measure, place, urls[place], folder, written)
                bench.repeat(f"{place} {number}", measure)
    return [
        reported(f"{what}, {place} / local", _ratios(bench.rows, place, measured))
        for measured, (what, _, _) in MEASURES.items()
        for place in (HDFS, S3)
    ]


@contextlib.contextmanager
def _places(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run both servers with the data in them; give the URL of each place's folder."""
    with contextlib.ExitStack() as stack:
        here = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paceline-bench-")))
        (here / LOCAL).mkdir()
        (here / S3 / "clicks").mkdir(parents=True)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in stack.enter_context(s3_gateways.running(here / S3)).items():
            patch.setenv(name, value)
        urls = {
            LOCAL: f"file://{here / LOCAL}",
            HDFS: f"{stack.enter_context(hadoop.hdfs()).url}/clicks",
            S3: "s3://clicks",
        }
        for url in urls.values():
            target = RemoteFolder(url, errors.ExportError)
            for path in sorted(folder.glob("train-*.parquet")):
                target.put(path, path.name)
        yield urls


def _measure(place: str, url: str, folder: Path, written_bytes: int) -> Row:
    parameters = generate.load(folder).parameters
    source = training.Source((f"{url}/train-*.parquet",))
    features = train.model(parameters.tables).features
    read, reading_seconds = _timed(lambda: sum(map(_read, source.files())))
    examples, decoding_seconds = _timed(
        lambda: sum(len(chunk.labels) for chunk in inputs.once(source, features))
    )
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(written_bytes // _CHUNK_BYTES):
            file.write(os.urandom(_CHUNK_BYTES))
        file.flush()
        target = RemoteFolder(url, errors.ExportError)
        _, writing_seconds = _timed(lambda: target.put(Path(file.name), "checkpoint"))
    return {
        "place": place,
        "read_bytes_per_second": read / reading_seconds,
        "examples_per_second": examples / decoding_seconds,
        "written_bytes_per_second": written_bytes / writing_seconds,
    }


def _read(url: str) -> int:
    """Read a whole file; return how many bytes it has."""
    with locations.opened(url) as stream:
        return sum(len(piece) for piece in iter(lambda: stream.read(_CHUNK_BYTES), b""))


def _timed(action: Callable[[], int | None]) -> tuple[int, float]:
    """Return what an action returns, and how many seconds it took."""
    before = time.perf_counter()
    count = action()
    return count or 0, time.perf_counter() - before


def _ratios(rows: Sequence[Row], place: str, measured: str) -> list[float]:
    """Return a place's throughput over that of a local file, round by round."""
    here, there = ([row[measured] for row in rows if row["place"] == side] for side in (LOCAL, place))
    return [there / here for here, there in zip(here, there, strict=True)]


def details(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table with a row for each place."""
    headers = [f"{what} ({unit})" for what, _, unit in MEASURES.values()]
    lines = [f"| place | {' | '.join(headers)} |", f"| --- |{' --- |' * len(headers)}"]
    for place in PLACES:
        shown = []
        for measured, (_, factor, _) in MEASURES.items():
            value, low, high = interval([row[measured] * factor for row in rows if row["place"] == place])
            shown.append(f"{value:.3g} ({low:.3g} to {high:.3g})")
        lines.append(f"| {place} | {' | '.join(shown)} |")
    return lines


def draw(result: Result, path: Path) -> None:
    """Draw the examples that are read and decoded a second from each place."""
    groups = {
        place: [row["examples_per_second"] for row in result.rows if row["place"] == place]
        for place in PLACES
    }
    plots.strips(path, groups, label="examples a second", title="Clicks read and decoded from each place")
