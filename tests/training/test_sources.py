import itertools
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.training import errors, features, shards, sources
from paceline.training import inputs as reading
from paceline.training.input_costs import Pauses

ENCODER = features.FeatureSet((features.Numeric("x"),), (features.Hashed("w", 50),), features.Label("y"))

ENDS_EARLY = """
import io, sys, time
from paceline.training import locations, sources

class Slow(io.FileIO):
    def read(self, size):
        time.sleep(0.1)
        return super().read(size)

path = sys.argv[1]
locations.opened = lambda *_: Slow(path)
sources._BLOCK_BYTES = 4_096
source = sources.Source((path,), column_names=("x",))
print(next(sources.chunks(source, path, {"x": "number"}))["x"][0])
"""


def parquet(path, rows, start=0, row_group_size=None):
    table = pa.table(
        {
            "x": np.arange(start, start + rows, dtype=np.float64),
            "w": [f"w{i % 3}" for i in range(rows)],
            "y": np.arange(rows) % 2,
            "unused": ["?"] * rows,
        }
    )
    pyarrow.parquet.write_table(table, path, row_group_size=row_group_size)
    return str(path)


def csv(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def read(source):
    return [int(x) for chunk in reading.once(source, ENCODER) for x in chunk.numeric[:, 0]]


def test_count_and_decode_parquet(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 100, row_group_size=7),))
    assert sources.count(source) == 100
    assert read(source) == list(range(100))


def test_count_and_decode_csv(tmp_path):
    lines = ["y,w,x", "1, a,0", "", "0,b,1", "", ""]
    source = sources.Source((csv(tmp_path / "a.csv", lines),))
    assert sources.count(source) == 2
    (chunk,) = reading.once(source, ENCODER)
    assert chunk.numeric[:, 0].tolist() == [0, 1]
    assert chunk.labels.tolist() == [1, 0]


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
def test_count_of_lines_does_not_depend_on_blocks_or_line_ends(tmp_path, monkeypatch, end):
    (tmp_path / "a.csv").write_bytes(("x,w,y\r\n1,a,0\r\n\r\n2,b,1" + end).encode())
    source = sources.Source((str(tmp_path / "a.csv"),))
    for block in range(1, 12):
        monkeypatch.setattr(sources, "_BLOCK_BYTES", block)
        assert sources.count(source) == 2


@given(
    rows=st.lists(st.tuples(st.integers(-99, 99), st.sampled_from(["a", "é", "b c"])), max_size=30),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"]), min_size=1, max_size=4),
    is_ended=st.booleans(),
    block=st.integers(12, 60),
)
def test_rows_do_not_depend_on_blocks_or_line_ends(tmp_path_factory, rows, ends, is_ended, block):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    lines = ["x,w,y", *(f"{x},{w},1" for x, w in rows)]
    text = "".join(line + end for line, end in zip(lines, itertools.cycle(ends)))
    path.write_bytes((text if is_ended else text.rstrip("\r\n")).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_BLOCK_BYTES", block)
        chunks = list(reading.once(sources.Source((str(path),)), ENCODER))
    assert [int(x) for chunk in chunks for x in chunk.numeric[:, 0]] == [x for x, _ in rows]


def test_a_line_longer_than_a_block_is_explained(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_bytes(b"1" * 5_000)
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 1_000)
    with pytest.raises(errors.InputError, match=r"a\.csv: a line has more than 1,000 bytes; is this CSV\?"):
        read(sources.Source((str(tmp_path / "a.csv"),), column_names=("x", "w", "y")))


def test_a_process_may_end_while_a_slow_file_is_read(tmp_path):
    path = csv(tmp_path / "a.csv", map(str, range(50_000)))
    ended = subprocess.run([sys.executable, "-c", ENDS_EARLY, path], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "0.0\n"), ended.stderr


def test_csv_without_a_header_and_with_a_line_to_skip(tmp_path):
    path = csv(tmp_path / "a.csv", ["| not data", "3,w0,1", "4,w1,0"])
    source = sources.Source((path,), column_names=("x", "w", "y"), skip_rows=1)
    assert sources.count(source) == 2
    assert read(source) == [3, 4]


def test_patterns_and_other_file_systems():
    import fsspec

    memory = fsspec.filesystem("memory")
    for i in range(2):
        with memory.open(f"/set/part-{i}.csv", "w") as stream:
            stream.write(f"x,w,y\n{i},a,1\n")
    source = sources.Source(("memory://set/part-*.csv",))
    assert len(source.files()) == 2
    assert sources.count(source) == 2
    assert read(source) == [0, 1]
    memory.rm("/set", recursive=True)


@pytest.mark.parametrize("first", [0, 3, 7, 50, 99])
def test_a_file_is_read_from_any_row_on(tmp_path, first):
    rows = [f"{i},w,1" for i in range(100)]
    for path in (
        parquet(tmp_path / "a.parquet", 100, row_group_size=7),
        csv(tmp_path / "a.csv", ["x,w,y", *rows]),
    ):
        chunks = sources.chunks(sources.Source((path,)), path, {"x": "number"}, first=first)
        assert [int(x) for chunk in chunks for x in chunk["x"]] == list(range(first, 100))


def test_shuffled_batches_are_full_and_repeat_the_whole_share(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 10),))

    def first(count, seed):
        stream = reading.shuffled(source, ENCODER, 0, 1, 4, seed)
        batches = [next(stream).numeric[:, 0].tolist() for _ in range(count)]
        assert all(len(batch) == 4 for batch in batches)
        return [row for batch in batches for row in batch]

    rows = first(5, seed=0)
    assert sorted(rows) == sorted(list(range(10)) * 2)
    assert rows == first(5, seed=0)
    assert rows != first(5, seed=1)


def test_readers_have_shards_of_their_own(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 3_000),))
    shares = []
    for index in range(3):
        stream = reading.shuffled(source, ENCODER, index, 3, 10, 0)
        shares.append({int(x) for _ in range(100) for x in next(stream).numeric[:, 0]})
    assert set.union(*shares) == set(range(3_000))
    assert sum(map(len, shares)) == 3_000


def test_a_batch_may_be_larger_than_the_share(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 3),))
    batch = next(reading.shuffled(source, ENCODER, 0, 1, 7, 0))
    assert sorted(batch.numeric[:6, 0].tolist()) == [0, 0, 1, 1, 2, 2]


def test_whoever_goes_on_with_a_shard_gets_what_is_left_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_POOL_ROWS", 64)
    source = sources.Source(
        (parquet(tmp_path / "a.parquet", 1_000), parquet(tmp_path / "b.parquet", 500, 1_000))
    )
    work = shards.cut(sources.rows(source), 1.0)

    def rows(*grants):
        pools = reading.pools(source, ENCODER, work, grants)
        return [int(x) for pool in pools for x in pool.numeric[:, 0]]

    whole = rows(shards.Grant(1, 0, 0, 250))
    assert sorted(whole) == list(range(250, 500))
    assert rows(shards.Grant(1, 0, 0, 100)) == whole[:100]
    assert rows(shards.Grant(1, 0, 100, 250)) == whole[100:]
    assert rows(shards.Grant(1, 1, 0, 250)) != whole
    every = rows(*(shards.Grant(s, 0, 0, work.shards[s].rows) for s in (3, 0, 1, 2, 5, 4)))
    assert sorted(every) == list(range(1_500))


def test_what_is_left_is_a_smaller_batch_where_nothing_follows(tmp_path):
    def examples(rows):
        return features.Examples(
            np.zeros((rows, 0), np.float32), np.zeros((rows, 0), np.int32), np.zeros(rows, np.float32)
        )

    found = reading.batches(iter([examples(5), examples(4), None, None, examples(4), examples(3)]), 4)
    assert [len(batch.labels) for batch in found] == [4, 4, 1, 4, 3]
    found = reading.batches(iter([examples(5), None, examples(3)]), 4, parts=2)
    assert [len(batch.labels) for batch in found] == [4, 2, 4]


def test_a_file_that_became_shorter_is_explained(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 100),))
    work = shards.cut(sources.rows(source), 1.0)
    parquet(tmp_path / "a.parquet", 60)
    with pytest.raises(errors.InputError, match=r"a.parquet: it has only 60 rows"):
        list(reading.pools(source, ENCODER, work, [shards.Grant(0, 0, 0, 100)]))


def test_prefetching_counts_the_wait_and_passes_errors_on(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 10),))
    with reading.Prefetched(reading.shuffled(source, ENCODER, 0, 1, 4, 0)) as batches:
        assert len(batches.next().labels) == 4
        assert batches.cost.wait > 0
        assert batches.cost.cpu > 0

    def broken():
        raise errors.InputError("broken")
        yield

    with reading.Prefetched(broken()) as batches, pytest.raises(errors.InputError, match="broken"):
        batches.next()


def test_who_waits_for_a_shard_does_not_wait_for_its_input():
    pauses = Pauses()
    is_wanted = threading.Event()

    def slow():
        is_wanted.wait()
        time.sleep(0.2)
        yield "read slowly"
        with pauses.pause():
            time.sleep(0.4)
        yield "had nothing to read"

    with reading.Prefetched(slow(), 1, pauses=pauses) as items:
        began = time.perf_counter()
        is_wanted.set()
        assert items.next() == "read slowly"
        assert items.wait_seconds > 0
        assert items.next() == "had nothing to read"
        elapsed = time.perf_counter() - began
        assert pauses.seconds >= 0.4
        assert items.wait_seconds + pauses.seconds <= elapsed


def attempt(source):
    sources.count(source)
    return read(source)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["x,w,y", "1,a,0", "2,b"], r"bad.csv:3: 2 fields where 3 are expected"),
        (["x,w,y", "1,a,0", "", "two,b,1"], r"bad.csv:4: column 'x' holds 'two', not a number"),
        (["x,v,y", "1,a,0"], r"bad.csv: there is no column 'w'; known are: v, x, y"),
        (["xx,w,y", "1,a,0"], r"no column 'x'; did you mean 'xx'"),
        (["x,w,y"], r"bad.csv: no examples in it"),
        ([], r"bad.csv: no examples in it"),
    ],
)
def test_a_bad_csv_file_is_explained(tmp_path, lines, message):
    with pytest.raises(errors.InputError, match=message):
        attempt(sources.Source((csv(tmp_path / "bad.csv", lines),)))


def test_other_bad_inputs_are_explained(tmp_path):
    with pytest.raises(errors.InputError, match="there is no such file"):
        attempt(sources.Source((str(tmp_path / "none.csv"),)))
    with pytest.raises(errors.InputError, match="no file matches"):
        attempt(sources.Source((str(tmp_path / "none-*.csv"),)))
    with pytest.raises(errors.InputError, match=r"set training\.inputs\.train"):
        attempt(sources.Source(()))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(errors.InputError, match="not a whole Parquet file"):
        attempt(sources.Source((str(tmp_path / "a.parquet"),)))
    pyarrow.parquet.write_table(pa.table({"x": ["one"], "w": ["a"], "y": [1]}), tmp_path / "b.parquet")
    with pytest.raises(errors.InputError, match="column 'x' does not hold numbers"):
        attempt(sources.Source((str(tmp_path / "b.parquet"),)))
    pyarrow.parquet.write_table(pa.table({"x": [1.0], "y": [1]}), tmp_path / "c.parquet")
    with pytest.raises(errors.InputError, match="no column 'w'"):
        attempt(sources.Source((str(tmp_path / "c.parquet"),)))


def test_a_reader_without_examples_says_so(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 1),))
    with pytest.raises(errors.InputError, match="reader 1 of 2 gets no example"):
        reading.shuffled(source, ENCODER, 1, 2, 4, 0)


def test_what_is_made_ahead_stops_when_it_is_told_to():
    closed = threading.Event()

    def endless():
        while not closed.is_set():
            yield None

    with reading.Prefetched(reading.batches(reading.ahead(endless(), 1, closed), 4), stopped=closed):
        pass
    assert closed.is_set()
