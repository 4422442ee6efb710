"""Files that are not here: real HTTP, its losses, and the local cache."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from support.s3_stores import s3_store

from paceline.training import connections, errors, features
from paceline.training.input import inputs, locations, sources

pytest.importorskip("aiohttp")

ENCODER = features.FeatureSet((features.Numeric("x"),), (features.Hashed("w", 50),), features.Label("y"))
ROWS = 5_000


def web_servers():
    """The module beside this file; test folders are no packages."""
    spec = importlib.util.spec_from_file_location("web_servers", Path(__file__).with_name("web_servers.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(tmp_path, monkeypatch):
    folder = tmp_path / "served"
    folder.mkdir()
    columns = {"x": np.arange(ROWS, dtype=np.float64), "w": ["a", "b"] * (ROWS // 2), "y": [1] * ROWS}
    pyarrow.parquet.write_table(pa.table(columns), folder / "a.parquet", row_group_size=1_000)
    (folder / "a.csv").write_text("x,w,y\n" + "".join(f"{i},a,1\n" for i in range(ROWS)))
    monkeypatch.setattr(connections, "_DELAYS_SECONDS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(locations, "_BLOCK_BYTES", 16_384)
    with web_servers().serving(folder) as made:
        yield made


def read(source):
    assert sources.count(source) == ROWS
    return [int(x) for chunk in inputs.once(source, ENCODER) for x in chunk.numeric[:, 0]]


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
@pytest.mark.parametrize("drops", [0, 2])
def test_files_over_http_through_lost_connections(server, name, drops, caplog):
    server.drops = drops
    assert read(sources.Source((f"{server.url}/{name}",))) == list(range(ROWS))
    assert ("the connection was lost" in caplog.text) == (drops > 0)


def test_a_connection_that_stays_lost_is_an_input_error(server):
    source = sources.Source((f"{server.url}/a.csv",))
    assert sources.count(source) == ROWS
    server.drops = 1_000
    with pytest.raises(errors.InputError, match=r"a\.csv: the connection was lost 4 times in a row"):
        read(source)


def test_a_server_that_is_not_there_and_a_file_that_is_not(server):
    with pytest.raises(errors.InputError, match="the connection was lost 4 times in a row"):
        read(sources.Source(("http://127.0.0.1:9/a.csv",)))
    with pytest.raises(errors.InputError, match="there is no such file"):
        read(sources.Source((f"{server.url}/none.csv",)))


def test_the_second_pass_reads_the_cache(server, tmp_path):
    cache = locations.Cache(str(tmp_path / "cache"))
    source = sources.Source((f"{server.url}/a.parquet",), cache=cache)
    first = read(source)
    server.served.clear()
    assert list(inputs.once(source, ENCODER))
    assert not server.served
    assert first == list(range(ROWS))
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_broken_copy_is_fetched_again(server, tmp_path, caplog):
    source = sources.Source((f"{server.url}/a.parquet",), cache=locations.Cache(str(tmp_path / "cache")))
    read(source)
    (kept,) = (tmp_path / "cache").iterdir()
    damaged = bytearray(kept.read_bytes())
    damaged[100] ^= 1
    kept.write_bytes(damaged)
    assert read(source) == list(range(ROWS))
    assert "is broken: it is fetched again" in caplog.text


def test_a_cache_that_cannot_be_written_is_passed_by(server, tmp_path, caplog):
    (tmp_path / "cache").write_text("a file where the folder should be")
    source = sources.Source((f"{server.url}/a.csv",), cache=locations.Cache(str(tmp_path / "cache")))
    assert read(source) == list(range(ROWS))
    assert "is of no use" in caplog.text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_passed_by(server, tmp_path, caplog, monkeypatch):
    class Full(type(Path())):
        """A path whose new files lie on a disk without room."""

        def open(self, mode="r", *arguments):
            return open("/dev/full" if "w" in mode else self, mode, *arguments)

    monkeypatch.setattr(locations, "Path", Full)
    source = sources.Source((f"{server.url}/a.csv",), cache=locations.Cache(str(tmp_path / "cache")))
    assert read(source) == list(range(ROWS))
    assert "No space left on device" in caplog.text
    assert not os.listdir(tmp_path / "cache")


def test_the_least_recently_used_copy_goes(server, tmp_path):
    folder = server.folder
    for name in "bcd":
        (folder / f"{name}.csv").write_bytes((folder / "a.csv").read_bytes())
    size = (folder / "a.csv").stat().st_size
    cache = locations.Cache(str(tmp_path / "cache"), max_bytes=2 * size)
    b, c = (cache.path(f"{server.url}/{name}.csv") for name in "bc")
    os.utime(b, (1, 1))
    d = cache.path(f"{server.url}/d.csv")
    assert sorted((tmp_path / "cache").iterdir()) == sorted([c, d])
    assert locations.Cache(str(tmp_path / "cache"), max_bytes=size - 1).path(f"{server.url}/b.csv") is None


@pytest.mark.parametrize("has_limit", [True, False])
def test_what_a_killed_process_has_begun_goes_and_what_others_fetch_counts(server, tmp_path, has_limit):
    size = (server.folder / "a.csv").stat().st_size
    (server.folder / "b.csv").write_bytes((server.folder / "a.csv").read_bytes())
    folder = tmp_path / "cache"
    cache = locations.Cache(str(folder), max_bytes=2 * size if has_limit else None)
    a = cache.path(f"{server.url}/a.csv")
    left, others, notes = (folder / name for name in (f".{'0' * 32}.7.7", f".{'1' * 32}.8.8", ".notes.7.7"))
    for each in (left, others, notes):
        each.write_bytes(b"o" * 10)
    for each in (left, notes):
        os.utime(each, (1, 1))
    b = cache.path(f"{server.url}/b.csv")
    assert sorted(folder.iterdir()) == sorted([others, notes, b] if has_limit else [others, notes, a, b])


def test_what_else_is_in_the_folder_of_a_cache_stays(server, tmp_path):
    folder = tmp_path / "cache"
    (folder / "below").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    cache = locations.Cache(str(folder), max_bytes=(server.folder / "a.csv").stat().st_size)
    for name in "bc":
        (server.folder / f"{name}.csv").write_bytes((server.folder / "a.csv").read_bytes())
        assert cache.path(f"{server.url}/{name}.csv") is not None
    assert len(list(folder.iterdir())) == 3
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_missing_package_is_named():
    with pytest.raises(errors.InputError, match=r"gs://bucket/a\.csv: .*gcsfs"):
        sources.Source(("gs://bucket/a.csv",)).files()


def test_files_of_an_s3_store(server, tmp_path):
    with s3_store("data") as system:
        for name in ("a.parquet", "a.csv"):
            system.put(str(server.folder / name), f"data/{name}")
        cache = locations.Cache(str(tmp_path / "cache"))
        for source in (
            sources.Source(("s3://data/*.parquet",)),
            sources.Source(("s3://data/a.csv",)),
            sources.Source(("s3://data/a.parquet",), cache=cache),
        ):
            assert read(source) == list(range(ROWS))
        assert len(os.listdir(cache.folder)) == 1
        with pytest.raises(errors.InputError, match="there is no such file"):
            read(sources.Source(("s3://data/none.csv",)))
